//! Metrics beside the median time.

use super::*;
use holdpoint_model::ab::{ExactValues, SideKernels};
use holdpoint_model::metric::{Better, MetricPlan};
use holdpoint_model::report::KernelInfo;

const SAMPLES: usize = 100;

/// A plan that compares these metrics of `w0`.
fn plan_with(metrics: &[(&str, f64, Better)]) -> AbPlan {
    let metrics = metrics.iter().map(|(name, tolerance, better)| {
        ((*name).to_owned(), MetricPlan { tolerance: *tolerance, better: *better })
    });
    AbPlan { metrics: [("w0".to_owned(), metrics.collect())].into(), ..plan() }
}

/// A unit of one round of many samples, three of them slow on each side by their own factor.
fn unit_with(tails: [f64; 2], numbers: [SideNumbers; 2]) -> Unit {
    let times = |tail: f64| {
        let time =
            |i: usize| if i % 33 == 7 { BASE_NS * tail } else { BASE_NS * (1.0 + 1e-4 * (i % 7) as f64) };
        (0..SAMPLES).map(|i| time(i).round() as u64).collect::<Vec<_>>()
    };
    let [base_numbers, head_numbers] = numbers;
    let round = PairRound { base_numbers, head_numbers, ..round(&times(tails[0]), &times(tails[1])) };
    let rounds = vec![round];
    let mut unit = unit_of(rounds);
    ab::estimate::unit(&mut unit).unwrap();
    unit
}

fn judged_with(units: Vec<Unit>, metrics: &[(&str, f64, Better)]) -> Judgement {
    let (plan, workload) = (plan_with(metrics), AbWorkload { units, ..workload(&[]) });
    let report = AbReport { plan: plan.clone(), ..report(vec![workload]) };
    judge_sides(&report, &plan, Policy::Sequential).unwrap()
}

fn check<'a>(judgement: &'a Judgement, name: &str) -> &'a Check {
    judgement.checks.iter().find(|check| check.metric == name).unwrap()
}

fn none() -> [SideNumbers; 2] {
    [SideNumbers::default(), SideNumbers::default()]
}

#[test]
fn samples_that_mostly_waited_are_no_part_of_a_metric() {
    // A wait that was booked late leaves a nanosecond of every second sample, on both sides alike.
    let waits = |unit: Unit| {
        let wait =
            |times: &[u64]| (0..).zip(times).map(|(i, ns)| if i % 2 == 1 { ns - 1 } else { 0 }).collect();
        let late = |round: &PairRound| PairRound {
            base_wait_ns: wait(&round.base_ns),
            head_wait_ns: wait(&round.head_ns),
            ..round.clone()
        };
        Unit { rounds: unit.rounds.iter().map(late).collect(), ..unit }
    };
    let units = (0..20).map(|_| waits(unit_with([1.0, 1.0], none()))).collect();
    let judgement = judged_with(units, &[("mean_ms", 0.1, Better::Lower), ("p99_ms", 0.1, Better::Lower)]);
    for name in ["w0_mean_ms", "w0_p99_ms"] {
        let head = check(&judgement, name).metric_keys().unwrap().head.unwrap();
        assert!((10.0..10.1).contains(&head), "{name}: {head}");
    }
    let times = &check(&judgement, "w0_p50_ms").evidence().unwrap().head;
    assert!((10.0..10.1).contains(&times.p50_ms), "{}", times.p50_ms);
}

#[test]
fn a_worse_p99_is_found_where_the_median_is_the_same() {
    let units = |tails| (0..20).map(|_| unit_with(tails, none())).collect();
    let metrics = [("p99_ms", 0.1, Better::Lower), ("p95_ms", 0.1, Better::Lower)];
    let judged = judged_with(units([2.0, 2.4]), &metrics);
    let verdicts = ["w0_p50_ms", "w0_p95_ms", "w0_p99_ms"].map(|name| check(&judged, name).verdict);
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Pass, Verdict::Regressed]);
    let p99 = check(&judged, "w0_p99_ms");
    assert!((p99.regression_ratio.unwrap() - 0.2).abs() < 1e-6, "{p99:?}");
    // Ten calls a sample.
    assert!((p99.baseline_ms.unwrap() - 20.0).abs() < 1e-3 && (p99.current_ms.unwrap() - 24.0).abs() < 1e-3);
    assert_eq!((p99.name(), judged.checks[0].name()), ("w0_p99_ms", "w0"));
    assert_eq!(p99.reason, "+20.0 % [+20.0, +20.0], worse than the tolerance of 10.0 %");
    let swapped = judged_with(units([2.4, 2.0]), &metrics);
    assert_eq!(check(&swapped, "w0_p99_ms").verdict, Verdict::Improved);
    let same = judged_with(units([2.0, 2.0]), &metrics);
    assert_eq!((same.verdict, same.checks.len()), (Verdict::Pass, 3));
}

#[test]
fn one_percent_more_memory_is_found_and_the_same_memory_passes() {
    let with = |bytes: [u64; 2]| {
        let numbers = bytes.map(|bytes| SideNumbers { peak_rss_bytes: Some(bytes), ..Default::default() });
        (0..16).map(|_| unit_with([1.0, 1.0], numbers.clone())).collect()
    };
    let metrics = [("peak_memory_mb", 0.005, Better::Lower)];
    let more = judged_with(with([50_000_000, 50_500_000]), &metrics);
    let keys = check(&more, "w0_peak_memory_mb").metric_keys().unwrap();
    assert_eq!(check(&more, "w0_peak_memory_mb").verdict, Verdict::Regressed);
    assert!((keys.base.unwrap() - 50.0).abs() < 1e-9 && (keys.head.unwrap() - 50.5).abs() < 1e-9);
    let same = judged_with(with([50_000_000; 2]), &metrics);
    assert_eq!(check(&same, "w0_peak_memory_mb").verdict, Verdict::Pass);
}

#[test]
fn more_is_better_where_the_suite_says_so() {
    let printed = |value: f64| SideNumbers {
        printed: [("tokens".to_owned(), vec![value; 3])].into(),
        ..Default::default()
    };
    let units = |base, head| (0..20).map(|_| unit_with([1.0, 1.0], [printed(base), printed(head)])).collect();
    let verdict = |base, head, better| {
        check(&judged_with(units(base, head), &[("tokens", 0.03, better)]), "w0_tokens").verdict
    };
    assert_eq!(verdict(100.0, 95.0, Better::Higher), Verdict::Regressed);
    assert_eq!(verdict(100.0, 95.0, Better::Lower), Verdict::Improved);
    assert_eq!(verdict(100.0, 99.0, Better::Higher), Verdict::Pass);
    let judged = judged_with(units(100.0, 95.0), &[("tokens", 0.03, Better::Higher)]);
    let tokens = check(&judged, "w0_tokens");
    assert!(tokens.regression_ratio.unwrap() > 0.05);
    assert!((tokens.change_of_value(tokens.regression_ratio.unwrap()) + 0.05).abs() < 1e-9);
    assert!(tokens.reason.starts_with("-5.0 % [-5.0, -5.0], worse than the tolerance"), "{}", tokens.reason);
}

#[test]
fn a_metric_that_nobody_tells_is_inconclusive_and_asks_for_no_units() {
    let metrics = [("cpu_p50_ms", 0.03, Better::Lower), ("p99_ms", 0.1, Better::Lower)];
    let plan = plan_with(&metrics);
    let mut deciding = Deciding::new(&plan, ["w0"].into_iter()).unwrap();
    // Units of nine samples, too few for a p99.
    while deciding.wants_more(0) {
        deciding.push(0, &unit(0, 0.0));
    }
    assert!(deciding.evidence(0).unwrap().units_count() < plan.units_max as usize);
    let report = AbReport { plan: plan.clone(), ..report(vec![workload(&[0.0; 12])]) };
    let judged = judge_sides(&report, &plan, Policy::Sequential).unwrap();
    assert_eq!(judged.verdict, Verdict::Inconclusive);
    assert_eq!(check(&judged, "w0_cpu_p50_ms").reason, "the worker reports no CPU time");
    assert!(check(&judged, "w0_p99_ms").reason.contains("too few samples"));
}

#[test]
fn metrics_share_the_alarm_rate_with_the_workloads() {
    let deciding = Deciding::new(
        &plan_with(&[("p99_ms", 0.1, Better::Lower), ("registers", 0.0, Better::Lower)]),
        ["w0", "w1"].into_iter(),
    )
    .unwrap();
    // Two medians and a p99; what is exact takes no share.
    assert_eq!(deciding.plan(0).unwrap().workloads_count, 3);
    assert_eq!(
        deciding.metric_rows().map(|(row, workload, _)| (row, workload)).collect::<Vec<_>>(),
        [(2, 0)]
    );
}

#[test]
fn what_is_exact_is_counted_and_compared() {
    let kernel = |registers| KernelInfo {
        op_name: "copy".to_owned(),
        kernel_name: "copy".to_owned(),
        shape_bucket: String::new(),
        selected_config: Default::default(),
        selection_source: "heuristic".to_owned(),
        backend: None,
        launches_per_call: 1,
        registers: Some(registers),
        local_bytes: Some(0),
        code_bytes: None,
        shared_bytes: None,
        code_sha256: None,
        functions: Vec::new(),
        launches: Vec::new(),
    };
    let counts = |base: &[u64], head: &[u64]| ExactValues {
        base: base.to_vec(),
        head: head.to_vec(),
        reason: String::new(),
    };
    let workload = AbWorkload {
        kernels: Some(SideKernels { base: kernel(32), head: kernel(40) }),
        exact: [
            ("instructions".to_owned(), counts(&[1_000_000, 1_000_100], &[1_004_000, 1_004_000])),
            ("file_bytes".to_owned(), counts(&[1_000], &[900])),
        ]
        .into(),
        ..workload(&[0.0; 12])
    };
    let verdict = |name: &str, tolerance| {
        let plan = plan_with(&[(name, tolerance, Better::Lower)]);
        let report = AbReport { plan: plan.clone(), ..report(vec![workload.clone()]) };
        let judged = judge_sides(&report, &plan, Policy::Sequential).unwrap();
        let check = check(&judged, &format!("w0_{name}"));
        (check.verdict, check.reason.clone())
    };
    assert_eq!(
        verdict("registers", 0.0),
        (Verdict::Regressed, "40 instead of 32, more than the tolerance of 0 %".to_owned())
    );
    assert_eq!(verdict("registers", 0.25).0, Verdict::Pass);
    assert_eq!(verdict("spill_bytes", 0.0).0, Verdict::Pass);
    assert_eq!(verdict("code_bytes", 0.0), (Verdict::Inconclusive, "it was not counted".to_owned()));
    assert_eq!(verdict("instructions", 0.005).0, Verdict::Pass);
    assert_eq!(verdict("instructions", 0.003).0, Verdict::Regressed);
    assert!(verdict("instructions", 0.0001).1.contains("differs by 0.01 % from one call to the next"));
    assert_eq!(verdict("file_bytes", 0.01).0, Verdict::Improved);
}
