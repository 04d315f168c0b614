//! The second seed's rule with the sign right.

use super::*;
use holdpoint_gate::disjoint_ci::compare;
use proptest::prelude::*;

/// A hundred samples within 1 % of a median, as the seed takes them: each a block of its own.
fn samples(median_ms: f64) -> Vec<Vec<f64>> {
    (0..101).map(|i| vec![median_ms * (1.0 + (f64::from(i * 37 % 101) - 50.0) * 2e-4)]).collect()
}

fn found(base_ms: f64, head_ms: f64) -> (String, Verdict) {
    let (keys, verdict) = compare(&samples(base_ms), &samples(head_ms)).unwrap();
    (keys.verdict, verdict)
}

#[test]
fn the_seeds_verified_cases_come_out_the_other_way_round() {
    for (head_ms, sentence, verdict) in [
        (0.30, "MAINTAINED: -6.3% (within noise)", Verdict::Pass),
        (0.345, "REGRESSION: 7.8% slower (significant, large effect)", Verdict::Regressed),
        (0.36, "REGRESSION: 12.5% slower (significant, large effect)", Verdict::Regressed),
        (0.28, "IMPROVEMENT: 12.5% faster (significant, large effect)", Verdict::Improved),
        (0.32, "NO SIGNIFICANT DIFFERENCE: CIs overlap (Δ=+0.0%)", Verdict::Inconclusive),
        (0.326, "MAINTAINED: +1.9% (within noise)", Verdict::Pass),
    ] {
        assert_eq!(found(0.32, head_ms), (sentence.to_owned(), verdict), "{head_ms}");
    }
}

#[test]
fn the_keys_are_the_seeds() {
    let (keys, _) = compare(&samples(0.32), &samples(0.36)).unwrap();
    assert!((keys.delta_pct - 12.5).abs() < 1e-9 && (keys.speedup - 0.32 / 0.36).abs() < 1e-9);
    assert_eq!((keys.baseline_median_ms, keys.candidate_median_ms), (0.32, 0.36));
    assert_eq!((keys.cliffs_delta, keys.cliffs_interpretation.as_str()), (-1.0, "large"));
    assert!(keys.is_significant && !keys.cis_overlap && keys.mann_whitney_p < 1e-9);
}

#[test]
fn a_small_effect_is_no_significant_difference() {
    // Half of the values are alike on both sides; the medians, and their intervals, are on different halves.
    let side = |low_count: usize| -> Vec<Vec<f64>> {
        (0..4001).map(|i| vec![if i < low_count { 1.0 } else { 1.2 } + i as f64 * 1e-9]).collect()
    };
    let (keys, verdict) = compare(&side(2200), &side(1800)).unwrap();
    assert!(!keys.cis_overlap && keys.delta_pct > 3.0, "{keys:?}");
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(keys.verdict.starts_with("NO SIGNIFICANT DIFFERENCE: Small effect size (Δ=+20.0%, δ="));
}

#[test]
fn too_little_data_is_not_maintained() {
    let blocks = |values: [f64; 3]| values.map(|value| vec![value]);
    let (keys, verdict) = compare(&blocks([1.0, 1.01, 1.02]), &blocks([1.2, 1.21, 1.22])).unwrap();
    assert!(!keys.cis_overlap && keys.mann_whitney_p > 0.05, "{keys:?}");
    assert_eq!(verdict, Verdict::Inconclusive);
    assert_eq!(keys.verdict, "NO SIGNIFICANT DIFFERENCE: Too few samples (Δ=+19.8%, p=0.100)");
}

#[test]
fn rounds_with_levels_of_their_own_are_not_taken_for_many_samples() {
    // Two levels within the one side, as when a clock drops half way: the seed's intervals would be apart.
    let base = vec![vec![1.0; 50], vec![1.08; 50], vec![1.0; 50], vec![1.08; 50]];
    let head = vec![vec![1.08; 50], vec![1.08; 50], vec![1.0; 50], vec![1.08; 50]];
    let (keys, verdict) = compare(&base, &head).unwrap();
    assert!(keys.cis_overlap && verdict == Verdict::Inconclusive, "{keys:?}");
}

#[test]
fn nothing_in_is_nothing_out() {
    assert_eq!(compare(&[], &samples(1.0)), None);
    assert_eq!(compare(&[vec![1.0, 2.0], vec![]], &samples(1.0)), None);
    assert_eq!(compare(&[vec![0.0], vec![1.0]], &samples(1.0)), None);
    assert_eq!(compare(&[vec![f64::NAN], vec![1.0]], &samples(1.0)), None);
}

#[test]
fn exit_codes_are_the_seeds() {
    for (change, verdict, code) in [
        (0.08, Verdict::Regressed, ExitCode::Failed),
        (-0.15, Verdict::Improved, ExitCode::Ok),
        (-0.06, Verdict::Pass, ExitCode::Ok),
        (0.0, Verdict::Inconclusive, ExitCode::Skipped),
    ] {
        let report = judged(vec![workload(&noisy(1, 30, change, 0.002))], Policy::DisjointCi);
        let workload = &report.checks[0];
        assert_eq!((report.verdict, report.exit_code()), (verdict, code), "{}", workload.reason);
        assert_eq!(report.policy, "disjoint-ci");
        assert_eq!(workload.paired.as_ref().unwrap().disjoint_ci.as_ref().unwrap().verdict, workload.reason);
        assert!(workload.evidence().is_some());
    }
    assert_eq!(ExitCode::Skipped as u8, 2);
    let alone = judged(vec![workload(&[0.5])], Policy::DisjointCi);
    assert_eq!(
        (alone.verdict, &alone.checks[0].paired.as_ref().unwrap().disjoint_ci),
        (Verdict::Inconclusive, &None)
    );
}

proptest! {
    #[test]
    fn slower_is_never_an_improvement_and_faster_never_a_regression(
        base in prop::collection::vec(prop::collection::vec(0.5_f64..2.0, 1..5), 2..20),
        head in prop::collection::vec(prop::collection::vec(0.5_f64..2.0, 1..5), 2..20),
    ) {
        let (keys, verdict) = compare(&base, &head).unwrap();
        prop_assert!(verdict != Verdict::Regressed || keys.delta_pct >= 3.0);
        prop_assert!(verdict != Verdict::Improved || keys.delta_pct <= -10.0);
        let (back, _) = compare(&head, &base).unwrap();
        prop_assert_eq!(keys.cis_overlap, back.cis_overlap);
        prop_assert_eq!(keys.cliffs_delta, -back.cliffs_delta);
    }
}
