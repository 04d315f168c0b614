//! Workers that say too much.

use crate::common::{SHORT, run_patiently, run_with};
use holdpoint_model::FailureCause::{Flooded, Garbage, TimedOut};

/// A thousand characters, so that a shell floods fast.
const WIDE: &str = "wide=$(printf '%01000d' 0)\n";

#[test]
fn a_line_without_end_is_cut_off_at_the_limit() {
    let ran = run_patiently(&format!("{WIDE}bad_run() {{ while :; do printf %s $wide; done; }}"));
    ran.bad_failed(Flooded, &["over the limit of 4 MiB"]);
}

#[test]
fn two_answers_to_one_request_are_one_too_many() {
    let ran = run_patiently("bad_run() { both=$(ok_run; ok_run); printf '%s\\n' \"$both\"; }");
    ran.bad_failed(Flooded, &["it wrote more than one answer to a request"]);
}

#[test]
fn a_line_before_the_answer_is_shown() {
    let ran =
        run_patiently("bad_run() { both=$(echo loading the model; ok_run); printf '%s\\n' \"$both\"; }");
    ran.bad_failed(Garbage, &["not an answer of the protocol", ": loading the model"]);
}

#[test]
fn endless_answers_are_a_flood() {
    let ran =
        run_patiently("bad_run() { all=$(ok_run; ok_run); while :; do printf '%s\\n' \"$all\"; done; }");
    ran.bad_failed(Flooded, &["it wrote more than one answer to a request"]);
}

#[test]
fn endless_stderr_neither_blocks_nor_fills_memory() {
    let ran = run_with(SHORT, "bad_run() { while :; do echo noise >&2; done; }");
    let failure = ran.bad_failed(TimedOut, &["no answer to run"]);
    assert_eq!(failure.stderr_tail, vec!["noise"; 20]);
    let ran = run_with(SHORT, &format!("{WIDE}bad_run() {{ while :; do printf %s $wide >&2; done; }}"));
    assert_eq!(ran.bad_failed(TimedOut, &["no answer to run"]).stderr_tail.len(), 1);
}

#[test]
fn a_chatty_worker_is_measured_all_the_same() {
    // More than a pipe holds, and not while it is timed: it would have to report that as untimed.
    let chat = "i=0; while [ $i -lt 100 ]; do echo $wide >&2; i=$((i + 1)); done";
    run_patiently(&format!("{WIDE}bad_prepare() {{ {chat}; ok_prepare; }}"))
        .measured(&["bad", "other", "good"]);
}

#[test]
fn more_workloads_than_anyone_has_are_a_flood() {
    let script = "ok_list() { printf '{\"id\":%s,\"type\":\"workloads\",\"workloads\":[' \"$id\"; i=0
        while [ $i -lt 20001 ]; do printf '{\"name\":\"w%s\",\"op\":\"x\"},' $i; i=$((i + 1)); done
        printf '%s]}\\n' \"$(listed bad)\"; }";
    run_patiently(script).worker_failed(Flooded, &["it lists 20002 workloads, at most 20000"]);
}
