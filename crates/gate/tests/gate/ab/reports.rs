//! The policy `disjoint-ci` for two reports.

use super::super::machine;
use super::*;
use holdpoint_gate::Allow;
use holdpoint_gate::{HasExitCode, compare_reports_disjoint_ci};
use serde_json::json;

/// A report with one measured workload of this median, in twelve rounds.
fn run(median_ms: f64) -> Report {
    let round = |index: u64| {
        let ns = |i: u64| (median_ms * 1e6 * (1.0 + (i * 5 + index % 5) as f64 * 1e-4)).round() as u64;
        json!({"process": 0, "round": index, "order": 0, "elapsed_ns": (0..8).map(ns).collect::<Vec<_>>()})
    };
    let measured = json!({
        "identity": identity(), "gated": ["p95_ms"], "status": "measured",
        "p50_ms": median_ms, "p95_ms": median_ms, "p99_ms": median_ms, "mean_ms": median_ms, "min_ms": median_ms,
        "warmup": {"calls_count": 1, "stable": true}, "stopped": "target_width",
        "samples": {"calls_per_sample": 1, "rounds": (0..12).map(round).collect::<Vec<_>>()},
    });
    let report = json!({
        "schema_version": 1, "suite": "cpu", "timestamp_utc": "2026-02-14T10:00:00Z", "status": "ok",
        "environment": {"platform": "linux", "device": "cpu", "cuda_available": false},
        "config": {"seed": 1, "percentile_rule": "", "clock_resolution_ns": 20, "elapsed_s": 1.0},
        "machine": machine("here"),
        "toolchain": {"holdpoint": "0.1.0", "rustc": "1.95.0", "profile": "release"},
        "metrics": {}, "benchmarks": {"w": measured},
    });
    serde_json::from_value(report).unwrap()
}

fn compared(current: &Report) -> Judgement {
    compare_reports_disjoint_ci(&run(0.32), current, Allow::default())
}

#[test]
fn each_workload_has_one_check_with_the_seeds_sentence() {
    for (current_ms, words, status, verdict, code) in [
        (0.345, "REGRESSION: 7.8% slower", CheckStatus::Fail, Verdict::Regressed, 1),
        (0.30, "MAINTAINED: -6.3%", CheckStatus::Pass, Verdict::Pass, 0),
        (0.28, "IMPROVEMENT: 12.5% faster", CheckStatus::Pass, Verdict::Improved, 0),
        (0.32, "NO SIGNIFICANT DIFFERENCE", CheckStatus::Inconclusive, Verdict::Inconclusive, 2),
    ] {
        let judged = compared(&run(current_ms));
        assert_eq!((judged.checks.len(), judged.policy.as_str()), (1, "disjoint-ci"));
        let check = &judged.checks[0];
        assert_eq!((check.metric.as_str(), check.workload.as_deref()), ("w_p50_ms", Some("w")));
        assert!(check.reason.starts_with(words), "{}", check.reason);
        assert_eq!((check.status, check.verdict, judged.verdict), (status, verdict, verdict));
        assert_eq!((check.current_ms, check.allowed_max_ms), (Some(current_ms), None));
        assert_eq!(judged.exit_code() as u8, code);
    }
}

#[test]
fn what_may_not_be_compared_is_not() {
    let mut elsewhere = run(0.32);
    elsewhere.machine = Some(machine("elsewhere"));
    let judged = compared(&elsewhere);
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert!(judged.checks[0].reason.contains("another machine"), "{}", judged.checks[0].reason);
    let mut gone = run(0.32);
    gone.benchmarks.clear();
    assert_eq!(compared(&gone).verdict, Verdict::Regressed);
    let mut skipped = run(0.32);
    skipped.status = RunStatus::Skipped;
    skipped.benchmarks[0].outcome = Outcome::Skipped { reason: "cuda_unavailable".to_owned() };
    assert_eq!(compared(&skipped).verdict, Verdict::Skipped);
}

#[test]
fn without_samples_nothing_is_known() {
    let mut bare = run(0.4);
    if let Outcome::Measured(measured) = &mut bare.benchmarks[0].outcome {
        measured.samples.rounds.truncate(1);
    }
    let judged = compared(&bare);
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert!(judged.checks[0].reason.contains("too few rounds"), "{}", judged.checks[0].reason);
}
