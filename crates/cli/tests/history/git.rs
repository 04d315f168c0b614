//! A history in a ref: two clones, one remote, no conflicts.

use crate::common::{Here, data};
use crate::list;
use serde_json::Value;

const STORE: &str = "git:refs/holdpoint/history";

/// A repository with a remote that both clones push to.
fn clones() -> (Here, [Here; 2]) {
    let remote = Here::new();
    remote.git(&["init", "--quiet", "--bare", "."]);
    let clone = || {
        let here = Here::new();
        here.git(&["init", "--quiet", "."]);
        here.git(&["remote", "add", "origin", remote.path(".").to_str().unwrap()]);
        here
    };
    let clones = [clone(), clone()];
    (remote, clones)
}

fn trend(here: &Here, name: &str, day: u32) {
    let text = std::fs::read_to_string(data("trend-v1.json")).unwrap();
    let mut trend: Value = serde_json::from_str(&text).unwrap();
    trend["timestamp_utc"] = format!("2026-11-{day:02}T00:00:00Z").into();
    here.write(name, &trend.to_string());
}

#[test]
fn two_clones_join_their_runs_without_conflicts() {
    let (remote, clones) = clones();
    for (day, here) in clones.iter().enumerate() {
        trend(here, "trend.json", 1 + day as u32);
        here.run(&["history", "add", "trend.json", &data("report-v1.json"), "--store", STORE]).ends(0);
    }
    // Each has a history without a common beginning; whoever comes second joins it.
    for here in [&clones[0], &clones[1], &clones[0]] {
        here.run(&["history", "add", "trend.json", "--store", STORE, "--push"])
            .ends(0)
            .prints(&["1 known already"]);
    }
    let files = remote.git(&["ls-tree", "-r", "--name-only", "refs/holdpoint/history"]);
    assert_eq!(files.lines().filter(|path| path.starts_with("runs/")).count(), 3, "{files}");
    let [first, second] = clones.map(|here| list(&here, &["--store", STORE]));
    assert_eq!(first, second);
    assert!(first.iter().any(|series| series["points_count"] == 2));
}

/// As the workflow of `ci init --history` does it: an empty repository, folders of evidence, the remote by its address.
#[test]
fn a_job_adds_the_evidence_of_others_to_the_remote() {
    let (remote, [here, _]) = clones();
    let address = remote.path(".").to_str().unwrap().to_owned();
    let report = std::fs::read_to_string(data("report-v1.json")).unwrap();
    for (folder, name) in [("perf-evidence", "report.json"), ("perf-gpu-evidence", "exit-code")] {
        std::fs::create_dir_all(here.path("artifacts").join(folder)).unwrap();
        here.write(&format!("artifacts/{folder}/{name}"), &report);
    }
    let add = ["history", "add", "artifacts", "--store", STORE, "--push", &address];
    here.run(&add).ends(0).prints(&["1 run with "]);
    here.run(&add).ends(0).prints(&["0 runs with 0 points added, 1 known already"]);
    let commits = remote.git(&["rev-list", "--count", "refs/holdpoint/history"]);
    assert_eq!(commits, "1", "adding again pushes nothing new");
    here.run(&["history", "add", "artifacts", "--store", STORE, "--push", "/nowhere"])
        .refuses(64, &["git:refs/holdpoint/history: ", "\"git ls-remote\" failed"]);
}

#[test]
fn an_accepted_change_travels_with_the_ref() {
    let (_remote, [here, there]) = clones();
    crate::add_days(&here);
    here.run(&["history", "add", "days", "--store", STORE]).ends(0);
    here.run(&["history", "accept", "--store", STORE, "--metric", "p50_ms", "--by", "Ada", "--why", "exact"])
        .ends(0);
    here.run(&["history", "add", &data("report-v1.json"), "--store", STORE, "--push"]).ends(0);
    there.git(&["fetch", "--quiet", "origin", "refs/holdpoint/history:refs/holdpoint/history"]);
    there.run(&["history", "show", "--store", STORE, "--metric", "p50_ms"]).ends(0).prints(&["Ada: exact"]);
}

fn files(here: &Here, folder: &str) -> Vec<String> {
    let paths = here.git(&["ls-tree", "-r", "--name-only", "refs/holdpoint/history"]);
    paths.lines().filter(|path| path.starts_with(folder)).map(str::to_owned).collect()
}

#[test]
fn pruned_samples_leave_points_and_no_clone_brings_them_back() {
    let (remote, [here, there]) = clones();
    here.run(&["history", "add", &data("report-v1.json"), &data("ab-v1.json"), "--store", STORE, "--push"])
        .ends(0);
    trend(&there, "trend.json", 1);
    there.run(&["history", "add", "trend.json", "--store", STORE, "--push"]).ends(0);
    let before = list(&there, &["--store", STORE]);
    // One prunes and pushes while the other, who has everything, adds a run.
    here.run(&["history", "prune", "--store", STORE, "--older-than", "0", "--push"])
        .ends(0)
        .prints(&["raw samples of 2 runs removed, summaries kept"]);
    trend(&there, "trend.json", 2);
    there.run(&["history", "add", "trend.json", "--store", STORE, "--push"]).ends(0).prints(&["1 run with "]);
    here.run(&["history", "add", &data("report-v1.json"), "--store", STORE, "--push"])
        .ends(0)
        .prints(&["0 runs with 0 points added, 1 known already"]);
    for here in [&remote, &here, &there] {
        assert_eq!((files(here, "runs/").len(), files(here, "summaries/").len()), (2, 2));
    }
    // The samples are in no commit that is left.
    let objects = remote.git(&["rev-list", "--objects", "refs/holdpoint/history"]);
    assert_eq!(objects.lines().filter(|line| line.contains(" runs/") && line.ends_with(".json")).count(), 2);
    // Whoever never saw the samples has every point.
    let (_other, [late, _]) = clones();
    let address = remote.path(".").to_str().unwrap().to_owned();
    late.git(&["fetch", "--quiet", &address, "refs/holdpoint/history:refs/holdpoint/history"]);
    let after = list(&late, &["--store", STORE]);
    assert_eq!(after, list(&here, &["--store", STORE]));
    let untouched = |series: &&Value| !series["key"]["machine"].is_null();
    assert_eq!(
        after.iter().filter(untouched).collect::<Vec<_>>(),
        before.iter().filter(untouched).collect::<Vec<_>>()
    );
    late.run(&["history", "prune", "--store", STORE, "--older-than", "0"])
        .ends(0)
        .prints(&["raw samples of 0 runs removed"]);
}

#[test]
fn a_removed_run_stays_removed_everywhere() {
    let (remote, [here, there]) = clones();
    for day in 1..=3 {
        trend(&here, &format!("{day}.json"), day);
    }
    here.run(&["history", "add", "1.json", "2.json", "3.json", "--store", STORE, "--push"]).ends(0);
    there.git(&["fetch", "--quiet", "origin", "refs/holdpoint/history:refs/holdpoint/history"]);
    let points = |here: &Here| list(here, &["--store", STORE])[0]["points_count"].clone();
    assert_eq!(points(&there), 3);
    here.run(&["history", "prune", "--store", STORE, "--keep", "1", "--runs", "--push"])
        .ends(0)
        .prints(&["2 runs with "]);
    // The other adds one of them once more, and a new one.
    for day in [1, 4] {
        trend(&there, &format!("{day}.json"), day);
    }
    there.run(&["history", "add", "4.json", "--store", STORE, "--push"]).ends(0);
    there
        .run(&["history", "add", "1.json", "--store", STORE, "--push"])
        .ends(0)
        .prints(&["0 runs with 0 points added, 1 known already"]);
    here.run(&["history", "add", "3.json", "--store", STORE, "--push"]).ends(0);
    assert_eq!((points(&here), points(&there)), (2.into(), 2.into()));
    for here in [&remote, &here, &there] {
        assert_eq!((files(here, "runs/").len(), files(here, "removed/").len()), (2, 2));
    }
    here.run(&["history", "prune", "--store", "h.db", "--keep", "1", "--push"]).ends(64);
}

#[test]
fn an_edited_file_is_left_out_and_a_bad_ref_is_refused() {
    let (_remote, [here, _]) = clones();
    here.run(&["history", "list", "--store", STORE]).refuses(64, &["there is no history yet"]);
    here.run(&["history", "list", "--store", "git:main"]).refuses(64, &["a full name is wanted"]);
    here.run(&["history", "list", "--store", "git:refs/a..b"]).refuses(64, &["git:refs/a..b"]);
    here.commit("work", Some("#!/bin/sh\n"));
    let branch = here.git(&["symbolic-ref", "HEAD"]);
    let before = here.git(&["rev-parse", "HEAD"]);
    here.run(&["history", "add", &data("report-v1.json"), "--store", &format!("git:{branch}")])
        .refuses(64, &["name a ref of its own"]);
    assert_eq!(here.git(&["rev-parse", "HEAD"]), before, "somebody's branch is left alone");
    here.run(&["history", "add", &data("report-v1.json"), "--store", STORE]).ends(0);
    let before_edit = list(&here, &["--store", STORE]);
    here.write("edited.json", "{}");
    let blob = here.git(&["hash-object", "-w", "edited.json"]);
    let other = format!("runs/00/{}.json", "0".repeat(64));
    here.git(&["read-tree", "refs/holdpoint/history"]);
    here.git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{other}")]);
    let tree = here.git(&["write-tree"]);
    let commit = here.git(&["commit-tree", &tree, "-m", "edit"]);
    here.git(&["update-ref", "refs/holdpoint/history", &commit]);
    let listed = here.run(&["history", "list", "--store", STORE]);
    listed.ends(0).notes(&["left out: ", &other, "its content is not that of its name"]);
    assert_eq!(list(&here, &["--store", STORE]), before_edit, "all others are read");
}
