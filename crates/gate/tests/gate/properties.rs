//! What holds for all times.

use super::*;
use holdpoint_model::limits::{TIME_MS_MAX, TIME_MS_MIN};
use proptest::prelude::*;

/// Times over the whole range that files may hold, most of them close to each other.
fn time_ms() -> impl Strategy<Value = f64> {
    prop_oneof![4 => 0.01_f64..10.0, 1 => (-12.0_f64..15.0).prop_map(|e| 10_f64.powf(e).clamp(TIME_MS_MIN, TIME_MS_MAX))]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(ALLOWED_MAX),
        (-50.0_f64..50.0).prop_map(|threshold_pct| Policy::Threshold { threshold_pct })
    ]
}

/// A run and a baseline with gaps, failures and times of all kinds.
fn scene() -> impl Strategy<Value = (Current, Baseline)> {
    let metric = (time_ms(), 0.0_f64..2.0, 0.0_f64..3.0, 0_u8..8, time_ms());
    prop::collection::vec(metric, 0..12).prop_map(|metrics| {
        let names: Vec<String> = (0..metrics.len()).map(|index| format!("m{index}_ms")).collect();
        let named = || names.iter().map(String::as_str).zip(&metrics);
        let was: Vec<_> = named().map(|(name, (v, r, a, ..))| (name, *v, *r, *a)).collect();
        let measured: Vec<_> = named().filter(|(_, m)| m.3 > 2).map(|(name, m)| (name, m.4)).collect();
        let mut current = run(&measured);
        for (name, (.., kind, _)) in named() {
            let reason = match kind {
                0 => Unmeasured::Skipped("cuda_unavailable".to_owned()),
                1 => Unmeasured::Failed("crashed: signal 11".to_owned()),
                _ => continue,
            };
            current.unmeasured.insert(name.to_owned(), reason);
        }
        (current, baseline(&was))
    })
}

fn text(judgement: &Judgement) -> String {
    holdpoint_model::json::to_pretty(judgement).unwrap()
}

proptest! {
    #[test]
    fn swapping_the_sides_swaps_improved_and_regressed(
        a in time_ms(), b in time_ms(), ratio in 0.0_f64..2.0, abs_ms in 0.0_f64..3.0,
    ) {
        let there = one(a, b, ratio, abs_ms, ALLOWED_MAX).verdict;
        let back = one(b, a, ratio, abs_ms, ALLOWED_MAX).verdict;
        prop_assert_eq!(there == Verdict::Improved, back == Verdict::Regressed);
        prop_assert_eq!(there == Verdict::Regressed, back == Verdict::Improved);
    }

    #[test]
    fn a_slower_run_is_never_judged_better(was in time_ms(), a in time_ms(), b in time_ms(), policy in policy()) {
        let (fast, slow) = (a.min(b), a.max(b));
        let verdict = |current_ms| one(was, current_ms, 0.5, 0.1, policy).verdict;
        prop_assert!(verdict(fast) <= verdict(slow));
    }

    #[test]
    fn more_tolerance_never_makes_a_regression(
        was in time_ms(), is in time_ms(), ratio in 0.0_f64..2.0, more in 0.0_f64..2.0,
    ) {
        let regressed = |ratio| one(was, is, ratio, 0.0, ALLOWED_MAX).verdict == Verdict::Regressed;
        prop_assert!(regressed(ratio) || !regressed(ratio + more));
    }

    #[test]
    fn a_file_against_itself_passes(was in time_ms(), ratio in 0.0_f64..2.0, abs_ms in 0.0_f64..3.0) {
        prop_assert_eq!(one(was, was, ratio, abs_ms, ALLOWED_MAX).verdict, Verdict::Pass);
        let threshold = Policy::Threshold { threshold_pct: -3.0 };
        prop_assert_eq!(one(was, was, ratio, abs_ms, threshold).verdict, Verdict::Pass);
    }

    #[test]
    fn the_worst_check_is_the_verdict_and_only_passes_make_a_pass((current, baseline) in scene(), policy in policy()) {
        let judged = judge(&compare(&current, &baseline, Allow::default()), policy);
        let worst = judged.checks.iter().map(|check| check.verdict).max();
        prop_assert_eq!(judged.verdict, worst.unwrap_or(Verdict::Inconclusive));
        let all_pass = judged.checks.iter().all(|check| check.status == CheckStatus::Pass);
        prop_assert_eq!(judged.status == "pass", all_pass && !judged.checks.is_empty());
        prop_assert_eq!(judged.status == "pass", matches!(judged.verdict, Verdict::Pass | Verdict::Improved));
        prop_assert_eq!(judged.checks.len(), baseline.metrics.len(), "no metric becomes a missing row");
        prop_assert!(judged.checks.iter().all(|check| !check.reason.is_empty()));
    }

    #[test]
    fn the_same_files_give_the_same_bytes_and_survive_them((current, baseline) in scene(), policy in policy()) {
        let judged = judge(&compare(&current, &baseline, Allow::default()), policy);
        let again = judge(&compare(&current.clone(), &baseline.clone(), Allow::default()), policy);
        prop_assert_eq!(text(&judged), text(&again));
        let back: holdpoint_model::Stated = holdpoint_model::json::parse(&text(&judged)).unwrap();
        prop_assert_eq!(&back, &*judged);
    }
}
