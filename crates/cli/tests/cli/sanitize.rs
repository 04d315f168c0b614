//! `sanitize`, with stand-ins for the sanitizer and the device.

use crate::common::{Here, Ran, ran};
use crate::fakes;

fn sanitize(here: &Here, fake: &str, worker: &str, more: &[&str]) -> Ran {
    let arguments = [&["sanitize", "--suite", "fake.toml"][..], more].concat();
    ran(fakes::command(here, fake, worker, &arguments).output().unwrap())
}

#[test]
fn a_clean_workload_is_clean_under_all_four_tools() {
    let here = fakes::here();
    let told = sanitize(&here, "clean", "", &[]);
    told.ends(0);
    insta::assert_snapshot!("sanitize_clean", told.stdout);
    let words = here.read("args.txt");
    assert_eq!(words.lines().count(), 5, "the planted error, and one run a tool");
    assert!(words.lines().all(|line| line.contains("--error-exitcode 86")), "{words}");
    assert_eq!(here.left_over(), [""; 0]);
}

#[test]
fn errors_have_an_exit_code_of_their_own() {
    for (tool, words) in [
        ("memcheck", "Invalid __global__ write of size 4 bytes at fault_address+0x80"),
        ("racecheck", "Race reported between Write access at race+0xa0 in race.cu:2"),
        ("initcheck", "61 more"),
        ("synccheck", "Barrier error detected. Divergent thread(s) in warp."),
    ] {
        let here = fakes::here();
        sanitize(&here, tool, "", &["--tool", tool]).ends(1).prints(&["w, ", tool, words, "1 with errors"]);
        let outcome = here.json("artifacts/sanitize.json")["sanitized"]["w"][tool].clone();
        assert_eq!(outcome["status"], "errors");
        let log = outcome["log"].as_str().unwrap();
        assert!(here.path("artifacts/sanitize-raw").join(log).exists(), "{log}");
    }
    let here = fakes::here();
    let told = sanitize(&here, "memcheck", "", &["--tool", "memcheck"]);
    insta::assert_snapshot!("sanitize_errors", told.ends(1).stdout);
}

#[test]
fn a_fault_that_ends_the_worker_is_an_error_found_and_not_a_failure() {
    let here = fakes::here();
    sanitize(&here, "memcheck", "crash", &["--tool", "memcheck"]).ends(1).prints(&["13 errors"]);
}

#[test]
fn silence_that_means_nothing_is_unavailable() {
    for (fake, reason) in [
        ("blind", "sanitizer_blind"),
        ("unsupported", "sanitizer_not_supported"),
        ("no_summary", "sanitizer_no_summary"),
        ("odd_exit", "sanitizer_no_summary"),
    ] {
        let here = fakes::here();
        let told = sanitize(&here, fake, "", &["--tool", "memcheck,initcheck"]);
        told.ends(2).prints(&["unavailable", reason]);
    }
    let here = fakes::here();
    let mut command = fakes::command(&here, "clean", "", &["sanitize", "--suite", "fake.toml"]);
    let told = ran(command.env("HOLDPOINT_SANITIZER", "/nowhere").output().unwrap());
    told.ends(2).prints(&["sanitizer_not_found", "install the CUDA toolkit"]);
    sanitize(&here, "clean", "skipped", &[]).ends(2).prints(&["cuda_unavailable"]);
    sanitize(&here, "clean", "hang", &["--tool", "memcheck", "--timeout", "2"])
        .ends(2)
        .prints(&["sanitizer_timed_out"]);
}

#[test]
fn a_workload_that_is_wrong_or_crashes_without_an_error_found_is_broken() {
    for (worker, words) in [("wrong", "wrong_answer"), ("crash", "crashed")] {
        let here = fakes::here();
        sanitize(&here, "clean", worker, &["--tool", "memcheck"]).ends(4).prints(&["failed", words]);
    }
}
