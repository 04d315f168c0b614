//! Workers that end when they should not.

use crate::common::{measured, run_patiently, run_program};
use holdpoint_model::FailureCause::{Crashed, NotStarted};

/// A round has five samples; requests that look at the worker have others.
const DIES_IN_THIRD_ROUND: &str =
    "n=0\nbad_run() { [ $samples != 5 ] || n=$((n + 1)); [ $n -lt 3 ] || exit 3; ok_run; }";

#[test]
fn a_program_that_is_not_there_is_named_with_a_remedy() {
    let ran = run_program("[\"/nowhere/worker\"]");
    ran.worker_failed(NotStarted, &["cannot start \"/nowhere/worker\"", "is it built and on the path?"]);
}

#[test]
fn a_worker_that_exits_at_once_fails_all_its_workloads() {
    let ran = run_program("[\"sh\", \"-c\", \"echo no such model >&2\"]");
    let failure = ran.worker_failed(Crashed, &["hello (exit status: 0)"]);
    assert_eq!(failure.stderr_tail, ["no such model"]);
}

#[test]
fn a_killed_worker_leaves_its_last_twenty_lines() {
    let script =
        "bad_run() { i=1; while [ $i -le 25 ]; do echo line $i >&2; i=$((i + 1)); done; kill -9 $$; }";
    let ran = run_patiently(script);
    let failure = ran.bad_failed(Crashed, &["it ended while it worked on run", "signal: 9 (SIGKILL)"]);
    let expected: Vec<String> = (6..=25).map(|i| format!("line {i}")).collect();
    assert_eq!(failure.stderr_tail, expected);
}

#[test]
fn stderr_cannot_paint_on_a_terminal() {
    let ran = run_patiently(r"bad_run() { printf '\033[31mred\n\377\n' >&2; exit 3; }");
    let failure = ran.bad_failed(Crashed, &["exit status: 3"]);
    assert_eq!(failure.stderr_tail, ["[31mred", "(not UTF-8)"]);
}

#[test]
fn samples_before_a_crash_are_kept_as_evidence() {
    let ran = run_patiently(DIES_IN_THIRD_ROUND);
    let failure = ran.bad_failed(Crashed, &["exit status: 3"]);
    let samples = failure.samples.as_ref().unwrap();
    assert_eq!(samples.rounds.len(), 2);
    assert!(samples.rounds.iter().all(|round| round.process == 0 && round.elapsed_ns == [2000; 5]));
}

#[test]
fn the_others_go_on_in_a_new_process_that_the_samples_name() {
    let ran = run_patiently(DIES_IN_THIRD_ROUND);
    let processes: Vec<u32> =
        measured(&ran.report, "other").samples.rounds.iter().map(|round| round.process).collect();
    assert_eq!(processes.len(), 6);
    assert!(processes.is_sorted(), "{processes:?}");
    assert_eq!((processes[0], processes[5]), (0, 1));
}

#[test]
fn a_crash_does_not_undo_a_neighbour_that_was_done() {
    // Only after the last round of all is "bad" asked to verify a second time.
    let ran = run_patiently("n=0\nbad_verify() { n=$((n + 1)); [ $n -lt 2 ] || exit 3; ok_verify; }");
    let failure = ran.bad_failed(Crashed, &["it ended while it worked on verify (exit status: 3)"]);
    assert_eq!(failure.samples.as_ref().unwrap().rounds.len(), 6);
}

#[test]
fn a_worker_that_crashes_at_every_start_is_given_up() {
    let script = "ok_list() { exit 3; }";
    run_patiently(script).worker_failed(Crashed, &["it ended while it worked on list (exit status: 3)"]);
}
