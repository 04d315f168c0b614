//! Workers that do not speak the protocol, or answer what was not asked.

use crate::common::run_patiently;
use holdpoint_model::FailureCause::{self, Garbage, Mismatch};

/// What `bad` answers to a run, and what is said of it.
fn answer_to_run(answer: &str, cause: FailureCause, words: &[&str]) {
    run_patiently(&format!("bad_run() ( {answer} )")).bad_failed(cause, words);
}

#[test]
fn a_line_that_is_no_answer_is_quoted() {
    answer_to_run(
        "echo 'Segmentation fault'",
        Garbage,
        &["not an answer of the protocol", "Segmentation fault"],
    );
    answer_to_run("echo ''", Garbage, &["not an answer of the protocol"]);
    answer_to_run("echo '[1, 2]'", Garbage, &["[1, 2]"]);
    answer_to_run("say '{\"type\":\"nonsense\"}'", Garbage, &["unknown variant `nonsense`"]);
}

#[test]
fn a_line_that_is_no_text_is_garbage() {
    answer_to_run(r"printf '\377\376\n'", Garbage, &["not UTF-8"]);
}

#[test]
fn terminal_codes_are_not_quoted() {
    // The helper refuses a detail with control characters.
    answer_to_run(r"printf '\033[2J\a\n'", Garbage, &["not an answer of the protocol", "[2J"]);
}

#[test]
fn a_time_that_is_no_number_is_garbage() {
    for time in ["NaN", "-5", "1.5", "1e400", "null", "99999999999999999999999"] {
        answer_to_run(&format!("durations() {{ printf %s {time}; }}; ok_run"), Garbage, &["not an answer"]);
    }
}

#[test]
fn an_answer_to_another_question_is_a_mismatch() {
    answer_to_run("ok_prepare", Mismatch, &["answered run with {\"type\":\"prepared\""]);
    answer_to_run("workload=other; ok_run", Mismatch, &["answered run with", "\"workload\":\"other\""]);
}

#[test]
fn every_request_wants_its_own_answer() {
    for request in ["prepare", "verify"] {
        let ran = run_patiently(&format!("bad_{request}() {{ ok_release; }}"));
        ran.bad_failed(Mismatch, &[&format!("answered {request} with {{\"type\":\"released\"")]);
    }
    for request in ["hello", "list"] {
        let ran = run_patiently(&format!("ok_{request}() {{ say '{{\"type\":\"bye\"}}'; }}"));
        ran.worker_failed(Mismatch, &[&format!("answered {request} with {{\"type\":\"bye\"}}")]);
    }
}

#[test]
fn garbage_at_hello_fails_the_whole_worker() {
    run_patiently("ok_hello() { echo hi; }")
        .worker_failed(Garbage, &["not an answer of the protocol", ": hi"]);
}
