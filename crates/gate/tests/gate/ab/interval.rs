//! The interval beside a verdict is the one that the verdict is read from.

use super::*;
use holdpoint_gate::Evidence;
use holdpoint_gate::rejudge::rejudge;

/// The verdict that the interval shown says.
fn read_verdict(check: &Check, alarm_rate_most: f64) -> Verdict {
    let Some(evidence) = check.evidence() else { return Verdict::Inconclusive };
    let (above, below) = (1.01 - 1e-9, 1.01 + 1e-9);
    match (evidence.ratio_interval, evidence.ratio_interval_rate) {
        (Some([low, _]), _) if low >= above => Verdict::Regressed,
        // Called faster, or only not slower: the rate says which question was answered.
        (Some([_, high]), Some(rate)) if high * 1.01 <= 1.0 + 1e-9 && rate <= alarm_rate_most => {
            Verdict::Improved
        }
        (Some([_, high]), _) if high <= below => Verdict::Pass,
        _ => Verdict::Inconclusive,
    }
}

#[test]
fn the_interval_shown_says_what_the_verdict_says() {
    let mut seen = std::collections::BTreeMap::new();
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let workloads = (0..4).map(|i| {
            let change = [0.0, 0.004, 0.012, 0.03, 0.2, -0.012, -0.03, -0.23][random.below(8)];
            let sd = [0.0005, 0.004, 0.02][random.below(3)];
            let mut xs = noisy(seed * 10 + i, 3 + random.below(30), change, sd);
            // A level that moves after an early answer.
            let moves = if i == 3 && seed % 4 == 0 { 0.04 } else { 0.0 };
            xs.iter_mut().skip(10).for_each(|x| *x += moves);
            let mut workload = workload(&xs);
            let units_per_process = 1 + 7 * random.below(2) as u32;
            workload.units.iter_mut().for_each(|unit| unit.process /= units_per_process);
            workload
        });
        for check in judged(workloads.collect(), Policy::Sequential).into_stated().checks {
            assert_eq!(read_verdict(&check, 0.001), check.verdict, "{seed}: {}", check.reason);
            *seen.entry(check.verdict).or_insert(0) += 1;
            if check.reason.contains("called together") {
                *seen.entry(Verdict::Broken).or_insert(0) += 1;
            }
        }
    }
    assert!(seen.len() == 5 && seen.values().all(|count| *count > 5), "each of them was seen: {seen:?}");
}

#[test]
fn a_row_that_passed_early_and_looks_slower_at_the_end_is_undecided() {
    let xs = [noisy(1, 12, 0.0, 0.002), noisy(2, 14, 0.03, 0.002)].concat();
    let passed = judged(vec![workload(&xs[..12])], Policy::Sequential).checks[0].clone();
    assert_eq!(passed.verdict, Verdict::Pass, "{}", passed.reason);
    let check = judged(vec![workload(&xs)], Policy::Sequential).checks[0].clone();
    assert_eq!(check.verdict, Verdict::Inconclusive, "{}", check.reason);
    assert!(check.reason.starts_with("looks slower: +2."), "{}", check.reason);
    assert_eq!(read_verdict(&check, 0.001), check.verdict);
}

#[test]
fn what_looks_slower_or_faster_and_is_not_sure_says_so() {
    let check = |x: f64, count| judged(vec![workload(&vec![x; count])], Policy::Sequential).checks[0].clone();
    let slower = check(0.131, 11);
    let begin = "looks slower: +14.0 % after 11 units, not yet sure at 1 in 1 000, undecided at";
    assert!(slower.reason.starts_with(begin), "{}", slower.reason);
    assert_eq!((slower.verdict, slower.evidence().unwrap().ratio_interval), (Verdict::Inconclusive, None));
    let faster = check(-0.26, 9);
    assert_eq!(
        faster.reason,
        "looks faster: -22.9 % [-22.9, -22.9], not yet sure at 1 in 1 000; not slower than the tolerance of 1.0 %"
    );
    assert_eq!(faster.verdict, Verdict::Pass);
}

#[test]
fn an_older_judgement_is_shown_with_the_interval_that_decides() {
    let report = report(vec![workload(&noisy(1, 21, 0.03, 0.005))]);
    let judgement = holdpoint_gate::judge_recorded(&report).unwrap();
    let mut older = judgement.clone().into_stated();
    let evidence = older.checks[0].paired.as_mut().unwrap().evidence.as_mut().unwrap();
    evidence.ratio_interval = Some([1.028, 1.032]);
    (evidence.ratio_interval_rate, evidence.needed) = (None, None);
    let samples = || Ok(Some(Evidence::Sides(Box::new(report.clone()))));
    let shown = rejudge(&older, samples(), None);
    assert_eq!((shown.doubt, &shown.judgement), (None, &judgement));
    older.checks[0].paired.as_mut().unwrap().evidence.as_mut().unwrap().ratio_interval_rate = Some(0.001);
    assert!(rejudge(&older, samples(), None).doubt.is_some(), "a newer one must hold");
}

#[test]
fn many_times_faster_is_to_be_checked_unless_it_was_expected() {
    let fast = || vec![workload(&noisy(1, 30, -0.993, 0.005)), workload(&[-5.0; 9])];
    for policy in [Policy::Sequential, Policy::DisjointCi] {
        let judgement = judged(fast(), policy);
        assert_eq!(judgement.verdict, Verdict::Inconclusive);
        assert_ne!(judgement.exit_code(), ExitCode::Ok);
        for check in &judgement.checks {
            assert_eq!((check.verdict, check.status), (Verdict::Inconclusive, CheckStatus::Inconclusive));
            assert!(check.reason.starts_with("check this: 14"), "{}", check.reason);
            assert!(check.reason.contains("--speedup-max 2"), "{}", check.reason);
        }
    }
    let plan = AbPlan { speedup_max: Some(200.0), ..plan() };
    let expected = judge_sides(&report(fast()), &plan, Policy::Sequential).unwrap();
    assert_eq!(expected.checks.iter().map(|check| check.verdict).max(), Some(Verdict::Pass));
    assert_eq!(expected.checks[0].verdict, Verdict::Improved);
}
