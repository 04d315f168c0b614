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
    assert_eq!(here.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_line_lies_at_half_of_the_change() {
    let (here, hashes) = history(3, 9);
    here.revisions(&["bisect", "--good", &hashes[0]]).ends(0).prints(&["line"]);
    let found = here.json("artifacts/bisect.json");
    let (line, first) = (found["line"].as_f64().unwrap(), found["steps"][0]["ratio"].as_f64().unwrap());
    assert_eq!((found["tolerance"].as_f64(), found["steps"][0]["line"].as_f64()), (Some(1.0), Some(1.0)));
    assert!((line - (first.sqrt() - 1.0)).abs() < 1e-4 && line > 1.0, "{line} {first}");
    let steps = found["steps"].as_array().unwrap();
    assert!(steps[1..].iter().all(|step| step["line"].as_f64() == Some(line)), "{steps:?}");
    let budget_s = |at: usize| steps[at]["budget_s"].as_f64().unwrap();
    assert!((budget_s(0) - 3.0 * budget_s(1)).abs() < 1e-9, "later steps are given less time");
    assert_eq!(found["evidence"]["plan"]["tolerance"].as_f64(), Some(line));
}

#[test]
fn steps_are_built_in_one_folder_unless_the_suite_says_otherwise() {
    let (here, hashes) = history(3, 9);
    let suite = here.read("suite.toml");
    let reuse = |when: &str| {
        here.write("suite.toml", &suite.replace("[build]", &format!("[build]\nreuse = {when:?}")))
    };
    let builds_in_workshops_and_all = || {
        let text = here.read("builds");
        (text.lines().filter(|line| line.contains("/workshop")).count(), text.lines().count())
    };
    here.revisions(&["bisect", "--good", &hashes[0]]).ends(0);
    // Commits 6, 4, 3 and 2; from nothing the first one, and 2 and 3 to compare them.
    assert_eq!(builds_in_workshops_and_all(), (4, 7));
    reuse("never");
    here.revisions(&["bisect", "--good", &hashes[0]]).ends(0);
    assert_eq!(builds_in_workshops_and_all(), (4, 9));
    reuse("always");
    here.revisions(&["gate", "--against", "HEAD~1"]).ends(0);
    assert_eq!(builds_in_workshops_and_all(), (5, 10));
    reuse("sometimes");
    here.revisions(&["gate", "--against", "HEAD~1"]).refuses(64, &["sometimes", "always"]);
}

#[test]
fn a_slowdown_that_several_commits_share_is_called_spread() {
    let here = Here::repository();
    let sleeping = |ms: u32| here.commit(&format!("{ms} ms"), Some(&format!("#!/bin/sh\nsleep 0.{ms:03}\n")));
    let hashes = [2, 10, 30, 90].map(sleeping);
    let mut command =
        here.command(&["bisect", "--good", &hashes[0], "--suite", "suite.toml", "--tolerance", "5%"]);
    let ran = crate::common::ran(command.env("BUILDS", "/dev/null").output().unwrap());
    ran.ends(3).prints(&["spread: program passes half of its change at", "several commits share the change"]);
}

#[test]
fn an_interrupted_search_goes_on_from_its_steps() {
    let (here, hashes) = history(3, 9);
    let good = ["bisect", "--good", &hashes[0]];
    here.revisions(&good).ends(0);
    let whole = here.json("artifacts/bisect.json");
    let resume = || here.revisions(&[&good[..], &["--resume"]].concat());
    resume().refuses(64, &["it is finished"]);
    // As a kill after the second step leaves it.
    here.edit("artifacts/bisect.json", |search| {
        search["steps"].as_array_mut().unwrap().truncate(2);
        search["culprits"] = serde_json::json!([]);
        search.as_object_mut().unwrap().retain(|key, _| key != "evidence" && key != "judgement");
    });
    let cut_short = here.read("artifacts/bisect.json");
    here.revisions(&["bisect", "--good", &hashes[1], "--resume"])
        .refuses(64, &["its good is", &hashes[0][..12]]);
    let mut other =
        here.command(&[&good[..], &["--resume", "--suite", "suite.toml", "--tolerance", "90%"]].concat());
    crate::common::ran(other.output().unwrap()).refuses(64, &["its tolerance is 100.0 %"]);
    assert_eq!(here.read("artifacts/bisect.json"), cut_short);
    resume().ends(0).prints(&["found"]);
    let resumed = here.json("artifacts/bisect.json");
    assert_eq!(resumed["culprits"], whole["culprits"]);
    assert_eq!(resumed["steps"][0], whole["steps"][0]);
    let suite = here.read("suite.toml");
    here.write("suite.toml", &suite.replace("name = \"program\"", "name = \"renamed\""));
    resume().refuses(64, &["its suite is another version of program"]);
}

#[test]
fn a_good_revision_on_another_branch_stands_for_where_it_left() {
    let here = Here::repository();
    let base = here.commit("base", Some(FAST));
    here.git(&["branch", "side"]);
    let slow = here.commit("slow", Some(SLOW));
    here.git(&["checkout", "--quiet", "side"]);
    here.commit("side", Some(&format!("{FAST}# side\n")));
    let ran = here.revisions(&["bisect", "--good", "side", "--bad", "main"]);
    ran.ends(0).notes(&["side is no ancestor of main", &base[..12], "stands for it"]);
    let found = here.json("artifacts/bisect.json");
    assert_eq!(found["good"]["commit"].as_str(), Some(base.as_str()));
    assert_eq!(found["culprits"][0]["commit"].as_str(), Some(slow.as_str()));
    assert_eq!(found["notes"].as_array().unwrap().len(), 1);
}

#[test]
fn the_cache_is_listed_and_cleaned() {
    let here = Here::repository();
    here.run(&["cache"]).ends(0).prints(&["0 builds"]);
    let first = here.commit("first", Some(FAST));
    here.commit("second", Some(SLOW));
    here.revisions(&["gate", "--against", "HEAD~1"]).ends(1);
    let listed = here.run(&["cache"]);
    listed.ends(0).prints(&["repository", &first[..12], "2 builds"]);
    let json =
        serde_json::from_str::<serde_json::Value>(&here.run(&["cache", "--format", "json"]).stdout).unwrap();
    assert_eq!((json["builds"].as_array().unwrap().len(), &json["builds"][0]["in_use"]), (2, &false.into()));
    here.run(&["cache", "clean"]).ends(0).prints(&["2 builds"]);
    here.run(&["cache", "clean", "--older-than", "soon"]).ends(64).notes(&["such as 7d"]);
    here.run(&["cache", "clean", "--all"]).ends(0).prints(&["removed: 2 builds", "0 builds"]);
    here.revisions(&["gate", "--against", "HEAD~1"]).ends(1);
    assert_eq!(here.builds_count(), 4);
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
    here.revisions(&["bisect", "--good", "HEAD", "--bad", &first]).refuses(64, &["comes after", "swap them"]);
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
