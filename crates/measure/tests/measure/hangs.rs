//! Workers that do not answer.

use crate::common::{SHORT, run_with};
use holdpoint_model::FailureCause::{Crashed, TimedOut};

#[test]
fn a_worker_that_never_says_hello_is_killed() {
    let ran = run_with(SHORT, "ok_hello() { exec sleep 1000; }");
    ran.worker_failed(TimedOut, &["no answer to hello within 0.7 s"]);
}

#[test]
fn a_worker_that_hangs_in_a_run_is_started_again_for_the_others() {
    let ran = run_with(SHORT, "bad_run() { echo stuck >&2; exec sleep 1000; }");
    let failure = ran.bad_failed(TimedOut, &["no answer to run within 0.7 s"]);
    assert_eq!(failure.stderr_tail, ["stuck"]);
    assert_eq!(failure.samples, None);
}

#[test]
fn a_worker_that_hangs_in_prepare_or_verify_fails_that_workload_alone() {
    for request in ["prepare", "verify"] {
        let ran = run_with(SHORT, &format!("bad_{request}() {{ exec sleep 1000; }}"));
        ran.bad_failed(TimedOut, &[&format!("no answer to {request} within 0.7 s")]);
    }
}

#[test]
fn a_hanging_grandchild_is_killed_with_its_worker() {
    let ran = run_with(SHORT, "bad_run() { sleep 1000 & echo $! >> \"$pids\"; wait; }\npids=$1");
    ran.bad_failed(TimedOut, &["no answer to run"]);
}

#[test]
fn times_stand_when_a_worker_hangs_at_the_farewell() {
    for script in ["ok_bye() { exec sleep 1000; }", "bad_release() { exec sleep 1000; }"] {
        run_with(SHORT, script).measured(&["bad", "other", "good"]);
    }
}

#[test]
fn a_worker_that_closes_its_stdout_is_not_waited_for() {
    let ran = run_with(SHORT, "bad_run() { exec >&-; exec sleep 1000; }");
    ran.bad_failed(Crashed, &["while it worked on run", "it closed its stdout and lived on"]);
}
