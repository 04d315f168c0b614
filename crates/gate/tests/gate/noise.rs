//! Baselines whose runs differ by more than the tolerance.

use super::*;
use holdpoint_gate::record::{fit_tolerances, record};
use proptest::prelude::*;

/// A baseline of 100 ms from runs with this spread, and this tolerance.
fn noisy(spread: f64, tolerance: f64) -> Baseline {
    let half = 50.0 * spread;
    let runs = [100.0 - half, 100.0, 100.0 + half].map(|value_ms| run(&[("m_ms", value_ms)]));
    let mut baseline = record(&runs, 0.001).unwrap();
    let metric = baseline.metrics.get_mut("m_ms").unwrap();
    // As in files that do not say what can be seen.
    (metric.max_regression_ratio, metric.smallest_visible_slowdown) = (tolerance, None);
    baseline
}

fn judged(baseline: &Baseline, current_ms: f64, policy: Policy) -> Judgement {
    judge(&compare(&run(&[("m_ms", current_ms)]), baseline, Allow::default()), policy)
}

#[test]
fn a_spread_that_cannot_resolve_the_tolerance_decides_only_what_is_clear() {
    let threshold = Policy::Threshold { threshold_pct: -5.0 };
    for policy in [ALLOWED_MAX, threshold] {
        for (current_ms, status, verdict) in [
            (146.0, CheckStatus::Fail, Verdict::Regressed),
            (144.0, CheckStatus::Inconclusive, Verdict::Inconclusive),
            (106.0, CheckStatus::Inconclusive, Verdict::Inconclusive),
            (104.0, CheckStatus::Inconclusive, Verdict::Inconclusive),
            (100.0, CheckStatus::Inconclusive, Verdict::Inconclusive),
            (61.0, CheckStatus::Inconclusive, Verdict::Inconclusive),
            (59.0, CheckStatus::Pass, Verdict::Pass),
            (54.0, CheckStatus::Pass, Verdict::Improved),
        ] {
            let judged = judged(&noisy(0.15, 0.05), current_ms, policy);
            let check = &judged.checks[0];
            assert_eq!((check.status, check.verdict), (status, verdict), "{policy:?}: {current_ms}");
        }
    }
}

#[test]
fn the_reason_has_the_figures_and_what_to_do() {
    let judged = judged(&noisy(0.15, 0.05), 106.0, ALLOWED_MAX);
    assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Inconclusive));
    let check = &judged.checks[0];
    for part in [
        "+6.0 %",
        "runs of the baseline differ by 15.0 %",
        "a change below 45 % is within the noise",
        "the tolerance is 5.0 %",
        "quieter machine",
        "gate --against REV",
    ] {
        assert!(check.reason.contains(part), "{:?} should contain {part:?}", check.reason);
    }
    assert_eq!(check.regression_ratio.map(|ratio| (ratio * 1e9).round()), Some(6e7));
}

#[test]
fn a_tolerance_as_wide_as_what_can_be_seen_is_the_policys_alone() {
    for spread in [0.001, 0.07, 0.1 + 0.2, 1.0 / 3.0] {
        let mut baseline = noisy(spread, 0.01);
        fit_tolerances(&mut baseline, 0.001).unwrap();
        let metric = baseline.metrics.get_mut("m_ms").unwrap();
        metric.max_regression_ratio = metric.smallest_visible_slowdown.unwrap();
        let allowed_max_ms = metric.allowed_max_ms();
        assert_eq!(judged(&baseline, 100.0, ALLOWED_MAX).verdict, Verdict::Pass, "{spread}");
        assert_eq!(judged(&baseline, allowed_max_ms, ALLOWED_MAX).verdict, Verdict::Pass);
        assert_eq!(judged(&baseline, allowed_max_ms.next_up(), ALLOWED_MAX).verdict, Verdict::Regressed);
    }
}

#[test]
fn what_can_be_seen_stands_in_the_file() {
    let mut baseline = noisy(0.15, 0.05);
    baseline.metrics.get_mut("m_ms").unwrap().smallest_visible_slowdown = Some(0.08);
    for (current_ms, verdict) in [(109.0, Verdict::Regressed), (107.0, Verdict::Inconclusive)] {
        assert_eq!(judged(&baseline, current_ms, ALLOWED_MAX).verdict, verdict, "{current_ms}");
    }
}

#[test]
fn a_reader_is_told_what_cannot_be_seen() {
    let runs = [100.0, 104.0, 97.0].map(|value_ms| run(&[("m_ms", value_ms)]));
    let noisy = record(&runs, 0.001).unwrap();
    let visible = noisy.metrics["m_ms"].smallest_visible_slowdown.unwrap();
    let judgement = judged(&noisy, 100.0, ALLOWED_MAX);
    assert_eq!(judgement.verdict, Verdict::Inconclusive);
    let note = judgement.notes.iter().find(|note| note.contains("gate --against REV")).unwrap();
    assert!(note.contains(&format!("m_ms from {:.0} %", visible * 100.0)), "{note}");
    let steady = record(&[1.0; 3].map(|value_ms| run(&[("m_ms", value_ms)])), 0.001).unwrap();
    assert_eq!(judged(&steady, 1.0, ALLOWED_MAX).notes, [""; 0]);
}

#[test]
fn a_slowdown_on_a_busier_machine_is_no_verdict() {
    let at = |value_ms, others_cpu| Current { others_cpu, ..run(&[("m_ms", value_ms)]) };
    let baseline = record(&[at(1.0, Some(0.02)), at(1.0, Some(0.05)), at(1.0, Some(0.0))], 0.001).unwrap();
    let judged = |baseline: &Baseline, value_ms, others_cpu| {
        judge(&compare(&at(value_ms, others_cpu), baseline, Allow::default()), ALLOWED_MAX)
    };
    for (value_ms, others_cpu, verdict) in [
        (1.5, Some(0.9), Verdict::Inconclusive),
        // Others had nine tenths of the CPUs, so ten times as long is theirs, and three times of that by what else is shared.
        (29.0, Some(0.9), Verdict::Inconclusive),
        (31.0, Some(0.9), Verdict::Regressed),
        (3.9, Some(0.2), Verdict::Regressed),
        (301.0, Some(1.0), Verdict::Regressed),
        (1.5, Some(0.14), Verdict::Regressed),
        (1.5, None, Verdict::Regressed),
        (1.0, Some(0.9), Verdict::Pass),
    ] {
        assert_eq!(judged(&baseline, value_ms, others_cpu).verdict, verdict, "{value_ms} {others_cpu:?}");
    }
    let reason = &judged(&baseline, 1.5, Some(0.9)).checks[0].reason;
    assert!(reason.contains("used 90 % of this machine's CPUs, at most 5 %"), "{reason}");
    // What a device times does not depend on the host.
    let mut device = baseline.clone();
    let identity = device.metrics.get_mut("m_ms").unwrap().identity.as_mut().unwrap();
    identity.timer = "cuda_events".to_owned();
    let allow = Allow { timer: true, ..Allow::default() };
    let on_device = judge(&compare(&at(1.5, Some(0.9)), &device, allow), ALLOWED_MAX);
    assert_eq!(on_device.verdict, Verdict::Regressed);
    // A baseline that does not say how busy it was may be of a quiet machine.
    let mut unknown = baseline;
    unknown.runs.iter_mut().for_each(|run| run.others_cpu = None);
    for (others_cpu, verdict) in
        [(Some(0.9), Verdict::Inconclusive), (Some(0.1), Verdict::Regressed), (None, Verdict::Regressed)]
    {
        assert_eq!(judged(&unknown, 1.5, others_cpu).verdict, verdict, "{others_cpu:?}");
    }
}

#[test]
fn fewer_than_three_runs_say_nothing_about_the_spread() {
    let mut baseline = noisy(0.5, 0.05);
    let metric = baseline.metrics.get_mut("m_ms").unwrap();
    metric.runs_ms.truncate(2);
    assert_eq!(judged(&baseline, 106.0, ALLOWED_MAX).verdict, Verdict::Regressed);
    baseline.metrics.get_mut("m_ms").unwrap().runs_ms.clear();
    assert_eq!(judged(&baseline, 104.0, ALLOWED_MAX).verdict, Verdict::Pass);
}

#[test]
fn a_threshold_that_asks_for_an_improvement_is_missed_clearly_or_not() {
    let policy = Policy::Threshold { threshold_pct: 20.0 };
    for (current_ms, verdict) in [
        (100.0, Verdict::Regressed),
        (83.0, Verdict::Inconclusive),
        (76.0, Verdict::Inconclusive),
        (73.0, Verdict::Improved),
    ] {
        assert_eq!(judged(&noisy(0.02, 0.05), current_ms, policy).verdict, verdict, "{current_ms}");
    }
    let nothing_passes = Policy::Threshold { threshold_pct: f64::NAN };
    assert_eq!(judged(&noisy(0.02, 0.05), 50.0, nothing_passes).verdict, Verdict::Regressed);
}

proptest! {
    #[test]
    fn a_slower_run_is_never_judged_better_however_wide_the_spread(
        spread in 0.0_f64..0.9, tolerance in 0.0_f64..2.0, a in 1.0_f64..400.0, b in 1.0_f64..400.0, pct in -50.0_f64..50.0,
    ) {
        let baseline = noisy(spread, tolerance);
        for policy in [ALLOWED_MAX, Policy::Threshold { threshold_pct: pct }] {
            let verdict = |current_ms| judged(&baseline, current_ms, policy).verdict;
            prop_assert!(verdict(a.min(b)) <= verdict(a.max(b)));
        }
    }

    #[test]
    fn noise_only_takes_certainty_away(
        spread in 0.0_f64..0.9, tolerance in 0.0_f64..2.0, current_ms in 1.0_f64..400.0,
    ) {
        let baseline = noisy(spread, tolerance);
        let mut quiet = baseline.clone();
        quiet.metrics.values_mut().for_each(|metric| metric.runs_ms.clear());
        let (found, ruled) = [&baseline, &quiet].map(|b| judged(b, current_ms, ALLOWED_MAX).verdict).into();
        prop_assert!(found == ruled || found == Verdict::Inconclusive || (found, ruled) == (Verdict::Pass, Verdict::Improved));
    }
}
