//! `holdpoint init`: a first suite for a repository.

use crate::common::Here;

#[test]
fn a_repository_gets_a_suite_that_was_tried() {
    let here = Here::repository();
    here.write("Makefile", "all:\n\t@true\nbench: all\n\t@true\n");
    here.run(&["init"])
        .ends(0)
        .prints(&["perf.toml:", "[build]", "bench ", "ok: 1 workload measured"])
        .notes(&["next: commit it", "then change something and run \"holdpoint gate\""]);
    here.run(&["run"]).ends(0).prints(&["perf ·", "bench "]);
    here.run(&["init"]).refuses(64, &["perf.toml is there already; --force writes over it"]);
    here.run(&["init", "--force"]).ends(0);
    here.run(&["init", "--dir", "nowhere"]).refuses(64, &["--dir nowhere: there is no such folder"]);
}

#[test]
fn a_suite_that_does_not_run_stays_with_the_reason() {
    let here = Here::repository();
    here.write("Makefile", "all:\n\t@echo no compiler >&2; exit 1\nbench: all\n");
    here.run(&["init"]).ends(4).notes(&["the work tree", "no compiler"]);
    assert!(here.read("perf.toml").contains("command = [\"make\", \"--silent\", \"bench\"]"));
}

#[test]
fn a_repository_that_shows_nothing_gets_a_file_to_fill_in() {
    let here = Here::repository();
    here.run(&["init"]).ends(0).prints(&["# CHANGE"]).notes(&["next: fill in what is marked CHANGE"]);
    here.run(&[]).ends(0).prints(&["next          fill in what is marked CHANGE in perf.toml"]);
}
