//! The first seed's rule.

use super::*;

/// Apex-X's committed CPU baseline, with the largest value that passes.
const TABLE: [(&str, f64, f64, f64, f64); 5] = [
    ("fusion_gate_p50_ms", 1.1143329902552068, 0.75, 2.0, 3.950082732946612),
    ("infer_p50_ms", 0.24995801504701376, 0.75, 2.0, 2.437426526332274),
    ("infer_p95_ms", 0.736208981834352, 1.0, 5.0, 6.472417963668704),
    ("tile_pack_p50_ms", 0.22074999287724495, 0.75, 2.0, 2.3863124875351787),
    ("tile_unpack_p50_ms", 0.9070829837583005, 0.75, 2.0, 3.587395221577026),
];

#[test]
fn the_seeds_table_is_met_to_the_last_bit() {
    for (name, value_ms, ratio, abs_ms, allowed_max_ms) in TABLE {
        let baseline = baseline(&[(name, value_ms, ratio, abs_ms)]);
        let check = &gate(&run(&[(name, value_ms)]), &baseline).checks[0];
        assert_eq!(check.allowed_max_ms, Some(allowed_max_ms), "{name}");
        assert_eq!((check.baseline_ms, check.regression_ratio), (Some(value_ms), Some(0.0)));
    }
}

#[test]
fn exactly_at_the_allowed_maximum_passes_and_the_next_number_fails() {
    for (_, value_ms, ratio, abs_ms, allowed_max_ms) in TABLE {
        let at = one(value_ms, allowed_max_ms, ratio, abs_ms, ALLOWED_MAX);
        assert_one(&at, "pass", CheckStatus::Pass, Verdict::Pass);
        let above = one(value_ms, allowed_max_ms.next_up(), ratio, abs_ms, ALLOWED_MAX);
        assert_one(&above, "fail", CheckStatus::Fail, Verdict::Regressed);
    }
}

#[test]
fn checks_come_sorted_by_name_whatever_the_run_has() {
    let names = TABLE.map(|row| row.0);
    let baseline = baseline(&TABLE.map(|(name, value_ms, ratio, abs_ms, _)| (name, value_ms, ratio, abs_ms)));
    let judged = gate(&run(&TABLE.map(|row| (row.0, row.1))), &baseline);
    assert!(judged.checks.iter().map(|check| check.metric.as_str()).eq(names));
    assert_eq!((judged.status.as_str(), judged.verdict), ("pass", Verdict::Pass));
}

#[test]
fn faster_than_the_tolerance_can_explain_is_improved() {
    let judged = one(1.0, 0.6, 0.5, 0.0, ALLOWED_MAX);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Improved);
    assert_one(&one(1.0, 0.7, 0.5, 0.0, ALLOWED_MAX), "pass", CheckStatus::Pass, Verdict::Pass);
}

#[test]
fn a_vanished_metric_fails_the_run() {
    let judged = gate(&run(&[]), &baseline(&[("m_ms", 1.0, 0.5, 0.0)]));
    assert_one(&judged, "fail", CheckStatus::Missing, Verdict::Regressed);
    let check = &judged.checks[0];
    assert_eq!((check.baseline_ms, check.allowed_max_ms, check.current_ms), (Some(1.0), Some(1.5), None));
    assert_eq!(check.regression_ratio, None);
}

#[test]
fn a_status_other_than_required_is_the_first_check() {
    let mut current = run(&[("a_ms", 1.0)]);
    current.status = Some("degraded".to_owned());
    let judged = gate(&current, &baseline(&[("a_ms", 1.0, 0.5, 0.0)]));
    let check = &judged.checks[0];
    assert_eq!((check.metric.as_str(), check.status), ("__status__", CheckStatus::Fail));
    assert_eq!((check.expected.as_deref(), check.current.as_deref()), (Some("ok"), Some("degraded")));
    assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Regressed));
    assert_eq!((judged.required_status.as_str(), judged.current_status.as_deref()), ("ok", Some("degraded")));
    assert_eq!(judged.checks[1].status, CheckStatus::Pass);
}

#[test]
fn the_required_status_is_the_baselines_and_ok_by_default() {
    let (mut current, mut baseline) = (run(&[("a_ms", 1.0)]), baseline(&[("a_ms", 1.0, 0.5, 0.0)]));
    baseline.required_status = None;
    assert_eq!(gate(&current, &baseline).status, "pass");
    baseline.required_status = Some("partial".to_owned());
    assert_eq!(gate(&current, &baseline).checks[0].expected.as_deref(), Some("partial"));
    current.status = Some("partial".to_owned());
    assert_eq!(gate(&current, &baseline).status, "pass");
    current.status = None;
    assert_eq!(gate(&current, &baseline).status, "pass", "a file without a status has none to check");
}

#[test]
fn a_skipped_run_is_skipped_and_in_the_seeds_word_a_failure() {
    // As on a machine without CUDA: the status check and every metric of the baseline.
    let mut current = run(&[]);
    current.status = Some("skipped".to_owned());
    let judged = gate(&current, &baseline(&[("a_ms", 1.0, 0.5, 0.0), ("b_ms", 1.0, 0.5, 0.0)]));
    assert_eq!((judged.status.as_str(), judged.verdict, judged.checks.len()), ("fail", Verdict::Skipped, 3));
    for check in &judged.checks[1..] {
        assert_eq!((check.status, check.verdict), (CheckStatus::Missing, Verdict::Skipped));
    }
}

#[test]
fn a_skipped_workload_is_skipped_with_its_reason() {
    let mut current = run(&[("a_ms", 1.0)]);
    current.status = Some("partial".to_owned());
    current.unmeasured.insert("b_ms".to_owned(), Unmeasured::Skipped("cuda_unavailable".to_owned()));
    let judged = gate(&current, &baseline(&[("a_ms", 1.0, 0.5, 0.0), ("b_ms", 1.0, 0.5, 0.0)]));
    assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Skipped));
    assert_eq!(judged.checks[2].reason, "cuda_unavailable");
}

#[test]
fn a_failed_workload_is_broken_with_its_cause() {
    let mut current = run(&[]);
    current.status = Some("failed".to_owned());
    current.unmeasured.insert("a_ms".to_owned(), Unmeasured::Failed("wrong_answer: 3 is not 4".to_owned()));
    let judged = gate(&current, &baseline(&[("a_ms", 1.0, 0.5, 0.0)]));
    assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Broken));
    let check = &judged.checks[1];
    assert_eq!((check.status, check.reason.as_str()), (CheckStatus::Fail, "wrong_answer: 3 is not 4"));
}

#[test]
fn an_empty_baseline_decides_nothing() {
    let judged = gate(&run(&[("a_ms", 1.0)]), &baseline(&[]));
    assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Inconclusive));
    assert!(judged.notes.iter().any(|note| note.contains("nothing is gated")), "{:?}", judged.notes);
}

#[test]
fn what_the_baseline_does_not_have_is_listed_and_not_judged() {
    let current = run(&[("a_ms", 1.0), ("new_ms", 9.0), ("other_ms", 9.0)]);
    let judged = gate(&current, &baseline(&[("a_ms", 1.0, 0.5, 0.0)]));
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert_eq!(judged.ungated, ["new_ms", "other_ms"]);
}

#[test]
fn ten_times_faster_keeps_its_verdict_and_says_what_to_check() {
    let baseline = baseline(&[("m_ms", 100.0, 0.75, 2.0)]);
    for policy in [ALLOWED_MAX, Policy::Threshold { threshold_pct: -3.0 }] {
        let judged = |current_ms| {
            let judgement =
                judge(&compare(&run(&[("m_ms", current_ms)]), &baseline, Allow::default()), policy);
            (judgement.verdict, judgement.checks[0].reason.clone())
        };
        let (verdict, reason) = judged(9.0);
        assert_eq!(verdict, Verdict::Improved, "others rely on the exit code");
        assert!(reason.starts_with("check this: 11 times faster; does it still do the work?"), "{reason}");
        assert!(!judged(11.0).1.contains("check this"));
    }
}
