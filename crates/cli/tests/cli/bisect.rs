//! `holdpoint bisect`: the commit that slowed a workload.

use crate::common::Here;
use crate::repository::{FAST, SLOW};

/// Six commits, of which the named ones are slow and one does not build.
fn history(slow_from: usize, not_built: usize) -> (Here, Vec<String>) {
    let here = Here::repository();
    let commit = |at: usize| {
        let program = if at < slow_from { FAST } else { SLOW };
        here.commit(&format!("commit {at}"), (at != not_built).then_some(&format!("{program}# {at}\n")))
    };
    let hashes = (1..=6).map(commit).collect();
    (here, hashes)
}

#[test]
fn the_culprit_is_found_around_a_commit_that_does_not_build() {
    let (here, hashes) = history(3, 4);
    let ran = here.revisions(&["bisect", "--good", &hashes[0]]);
    ran.ends(0).prints(&["commit 3", &hashes[2][..10]]).notes(&["evidence: artifacts/bisect.json"]);
    let found = here.json("artifacts/bisect.json");
    let culprits: Vec<&str> =
        found["culprits"].as_array().unwrap().iter().map(|c| c["commit"].as_str().unwrap()).collect();
    assert_eq!(culprits, [&hashes[2]]);
    assert_eq!((&found["workload"], &found["suite"]), (&"program".into(), &"program".into()));
    let step = |step: &serde_json::Value| {
        let subject = step["commit"]["subject"].as_str().unwrap();
        format!("{subject} {}", step["outcome"].as_str().unwrap())
    };
    let steps: Vec<String> = found["steps"].as_array().unwrap().iter().map(step).collect();
    assert_eq!(steps, ["commit 6 slower", "commit 4 not_built", "commit 3 slower", "commit 2 not_slower"]);
    let evidence = &found["evidence"];
    assert_eq!(found["judgement"]["verdict"], "regressed");
    assert_eq!(evidence["base"]["revision"]["commit"].as_str(), Some(hashes[1].as_str()));
    assert_eq!(evidence["head"]["revision"]["commit"].as_str(), Some(hashes[2].as_str()));
    assert!(here.read("artifacts/bisect.md").contains("commit 3"));
    assert_eq!(here.git(&["status", "--porcelain", "--untracked-files=no"]), "");
    assert_eq!(here.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
}

#[test]
fn a_culprit_behind_one_that_does_not_build_is_one_of_two() {
    let (here, hashes) = history(4, 3);
    let ran = here.revisions(&["bisect", "--good", &hashes[0], "--format", "json"]);
    assert_eq!(ran.ends(3).stdout, here.read("artifacts/bisect.json"));
    let found = here.json("artifacts/bisect.json");
    let culprits: Vec<&str> =
        found["culprits"].as_array().unwrap().iter().map(|c| c["commit"].as_str().unwrap()).collect();
    assert_eq!(culprits, hashes[2..4]);
    assert!(found.get("evidence").is_none());
}

#[test]
fn revisions_with_nothing_between_them_are_refused() {
    let here = Here::repository();
    let first = here.commit("first", Some(FAST));
    here.commit("second", Some(SLOW));
    here.revisions(&["bisect", "--good", "HEAD"]).refuses(64, &["both revisions are", "name an older"]);
    here.revisions(&["bisect", "--good", "HEAD", "--bad", &first])
        .refuses(64, &["comes after", "swap them"]);
    here.revisions(&["bisect", "--good", "nowhere"]).refuses(64, &["\"nowhere\" is no commit"]);
    let ran = here.revisions(&["bisect", "--good", "HEAD~1", "--workload", "other"]);
    ran.refuses(64, &["has no workload \"other\"; it has program"]);
    here.revisions(&["bisect"]).ends(64).notes(&["--good"]);
    assert_eq!((here.builds_count(), here.path("artifacts/bisect.json").exists()), (0, false));
}

#[test]
fn nothing_slower_is_nothing_to_search() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", Some(&format!("{FAST}# 2\n")));
    here.commit("third", Some(&format!("{FAST}# 3\n")));
    here.revisions(&["bisect", "--good", "HEAD~2", "--workload", "program"]).ends(2).prints(&["not slower"]);
    let found = here.json("artifacts/bisect.json");
    assert_eq!((found["steps"].as_array().unwrap().len(), &found["culprits"]), (1, &serde_json::json!([])));
    assert_eq!(found["workload"], serde_json::Value::Null);
}

#[test]
fn ends_that_cannot_be_measured_are_broken() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.commit("second", None);
    here.revisions(&["bisect", "--good", "HEAD~1"]).ends(4).prints(&["not built"]);
    here.commit("third", Some("#!/bin/sh\nexit 3\n"));
    here.revisions(&["bisect", "--good", "HEAD~2"]).ends(4).prints(&["broken"]);
    here.revisions(&["bisect", "--good", "HEAD~1"]).ends(4).notes(&["building commit", "  | "]);
}
