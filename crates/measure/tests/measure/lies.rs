//! Workers that speak the protocol and do not tell the truth, and those that admit to something.

use crate::common::{measured, run_patiently};
use holdpoint_model::FailureCause::{BadTime, Mismatch, WorkerError, WrongAnswer};
use holdpoint_model::{Outcome, RunStatus};

/// The list with this entry for `bad`, or with none.
fn list_bad(entry: &str) -> String {
    format!(
        "ok_list() {{ say \"{{\\\"type\\\":\\\"workloads\\\",\\\"workloads\\\":[{entry}$(listed other)]}}\"; }}"
    )
}

#[test]
fn a_worker_that_tells_the_truth_is_measured() {
    let ran = run_patiently("");
    ran.measured(&["bad", "other", "good"]);
    assert_eq!((ran.report.status, &ran.report.reason), (RunStatus::Ok, &None));
    let measured = measured(&ran.report, "bad");
    assert_eq!((measured.samples.calls_per_sample, measured.min_ms), (1, 0.002));
    assert!(measured.answer.as_ref().unwrap().passed);
    assert_eq!(ran.of("bad").identity.timer, "host_monotonic");
    assert_eq!(ran.report.metrics.keys().collect::<Vec<_>>(), ["bad_p50_ms", "good_p50_ms", "other_p50_ms"]);
}

#[test]
fn a_workload_that_is_not_listed_is_a_mismatch() {
    run_patiently(&list_bad("")).bad_failed(Mismatch, &["worker \"strange\" has no workload \"bad\""]);
}

#[test]
fn a_workload_that_is_listed_twice_is_a_mismatch() {
    let ran = run_patiently(&list_bad("$(listed bad),$(listed bad),"));
    ran.bad_failed(Mismatch, &["worker \"strange\" lists \"bad\" twice"]);
}

#[test]
fn a_workload_with_other_op_shape_or_dtype_is_a_mismatch() {
    for (was, is, words) in [
        ("copy", "move", "has move [2, 3] f32"),
        ("2,3", "2,4", "has copy [2, 4] f32"),
        ("f32", "f16", "has copy [2, 3] f16"),
    ] {
        let ran = run_patiently(&list_bad(&format!("$(listed bad | sed 's/{was}/{is}/'),")));
        ran.bad_failed(Mismatch, &["the suite asks for copy [2, 3] f32, worker \"strange\"", words]);
    }
}

#[test]
fn other_counts_than_asked_for_are_a_mismatch() {
    let ran = run_patiently("bad_run() { samples=2; ok_run; }");
    ran.bad_failed(Mismatch, &["asked for 1 samples of 1 calls, got 2 of 1"]);
    let ran = run_patiently("bad_run() { samples=4; ok_run; }");
    ran.bad_failed(Mismatch, &["asked for 1 samples of 1 calls, got 4 of 1"]);
    let ran = run_patiently("bad_run() { calls=7; ok_run; }");
    ran.bad_failed(Mismatch, &["asked for 1 samples of 1 calls, got 1 of 7"]);
    let ran = run_patiently("bad_run() { ok_run | sed 's/}$/,\"cpu_ns\":[1,1]}/'; }");
    ran.bad_failed(Mismatch, &["as many CPU times as samples are needed, or none"]);
}

#[test]
fn no_time_and_more_time_than_there_was_are_bad_times() {
    let ran = run_patiently("bad_run() ( durations() { printf '0'; }; ok_run )");
    ran.bad_failed(BadTime, &["a sample took 0 ns"]);
    let ran = run_patiently("bad_run() ( durations() { printf '3600000000000'; }; ok_run )");
    ran.bad_failed(BadTime, &["the worker reported 3600000000000 ns of work"]);
    let ran = run_patiently("bad_run() ( durations() { printf '18446744073709551615'; }; ok_run )");
    ran.bad_failed(BadTime, &["the worker reported 18446744073709551615 ns"]);
}

#[test]
fn a_call_that_takes_no_measurable_time_is_a_bad_time() {
    let ran = run_patiently(
        "bad_run() ( durations() { if [ \"$1\" = 1 ]; then printf 1; else printf '1,1,1'; fi; }; ok_run )",
    );
    ran.bad_failed(BadTime, &["a call takes no measurable time"]);
}

#[test]
fn another_version_of_the_protocol_is_a_mismatch() {
    let hello = "{\"type\":\"hello\",\"protocol\":1,\"name\":\"sh\",\"version\":\"1\",\"timer\":\"t\",\"clock_resolution_ns\":1}";
    let ran = run_patiently(&format!("ok_hello() {{ say '{hello}'; }}"));
    ran.worker_failed(Mismatch, &["it speaks protocol 1, holdpoint speaks 2"]);
}

#[test]
fn a_wrong_answer_before_timing_is_never_timed() {
    let ran = run_patiently("bad_verify() { answer false '\"[3]: 1 is not 2\"'; }\nbad_run() { exit 1; }");
    let failure = ran.bad_failed(WrongAnswer, &["wrong answer before timing: [3]: 1 is not 2"]);
    assert_eq!(failure.samples, None);
    assert_eq!(
        (ran.report.status, ran.report.reason.as_deref()),
        (RunStatus::Failed, Some("bad: wrong_answer"))
    );
    assert!(!ran.report.metrics.contains_key("bad_p50_ms"));
}

#[test]
fn a_wrong_answer_after_timing_spoils_the_times() {
    let ran = run_patiently(
        "n=0\nbad_verify() { n=$((n + 1)); if [ $n = 1 ]; then ok_verify; else answer false null; fi; }",
    );
    let failure = ran.bad_failed(WrongAnswer, &["wrong answer after timing: by the worker's own check"]);
    assert_eq!(failure.samples.as_ref().unwrap().rounds.len(), 6);
    assert!(!ran.report.metrics.contains_key("bad_p50_ms"));
}

#[test]
fn what_cannot_run_here_is_skipped_with_its_reason() {
    let skipped =
        "{\\\"type\\\":\\\"skipped\\\",\\\"workload\\\":\\\"bad\\\",\\\"reason\\\":\\\"cuda_unavailable\\\"}";
    let ran = run_patiently(&format!("bad_prepare() {{ say \"{skipped}\"; }}"));
    ran.measured(&["other", "good"]);
    assert_eq!(ran.of("bad").outcome, Outcome::Skipped { reason: "cuda_unavailable".to_owned() });
    assert_eq!(
        (ran.report.status, ran.report.reason.as_deref()),
        (RunStatus::Partial, Some("cuda_unavailable"))
    );
}

#[test]
fn an_error_is_told_in_the_workers_own_words_and_the_worker_lives_on() {
    let ran = run_patiently("bad_run() { say '{\"type\":\"error\",\"message\":\"out of \\u001bmemory\"}'; }");
    ran.bad_failed(WorkerError, &["out of memory"]);
    assert!(measured(&ran.report, "other").samples.rounds.iter().all(|round| round.process == 0));
}

#[test]
fn no_text_of_a_worker_floods_a_report() {
    let long = "long=$(printf '%05000d' 0)\n";
    let ran = run_patiently(&format!("{long}bad_verify() {{ answer false \"\\\"$long\\\"\"; }}"));
    let failure = ran.bad_failed(WrongAnswer, &["wrong answer before timing: 000"]);
    assert!(failure.detail.chars().count() <= 2_001, "{}", failure.detail.len());
}
