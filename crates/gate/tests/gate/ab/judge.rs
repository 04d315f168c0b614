//! Verdicts, reasons and evidence.

use super::*;
use holdpoint_gate::Evidence;
use holdpoint_gate::judge_recorded;
use holdpoint_gate::rejudge::rejudge;
use holdpoint_model::ab::{SideFailure, SideKernels};
use holdpoint_model::report::KernelInfo;

/// The worked example of METHODOLOGY.md, in percent.
const EXAMPLE_PCT: [f64; 19] =
    [2.1, 2.6, 1.4, 3.0, 0.7, 2.2, 1.9, 2.8, 2.4, 1.2, 2.0, 2.7, 1.6, 2.3, 3.1, 1.8, 2.5, 2.1, 1.5];

fn one(xs: &[f64], policy: Policy) -> Judgement {
    judged(vec![workload(xs)], policy)
}

#[track_caller]
fn assert_reason(workload: &Check, verdict: Verdict, parts: &[&str]) {
    assert_eq!(workload.verdict, verdict, "{}", workload.reason);
    for part in parts {
        assert!(workload.reason.contains(part), "{:?} should contain {part:?}", workload.reason);
    }
}

#[test]
fn the_worked_example_is_a_regression_with_its_figures() {
    let report = one(&EXAMPLE_PCT.map(|pct| pct / 100.0), Policy::Sequential);
    let workload = &report.checks[0];
    assert_eq!(workload.reason, "+2.1 % [+1.3, +2.9], slower than the tolerance of 1.0 %");
    assert_eq!((workload.verdict, report.verdict), (Verdict::Regressed, Verdict::Regressed));
    assert_eq!((report.policy.as_str(), report.exit_code()), ("sequential", ExitCode::Failed));
    let evidence = workload.evidence().unwrap();
    assert_eq!((evidence.units_count, evidence.rounds_count, evidence.rounds_left_out), (19, 57, 0));
    assert!(evidence.e_slower > 1000.0 && evidence.e_not_slower < 1.0 && evidence.e_faster < 1.0);
    let sd = evidence.unit_sd.unwrap();
    assert!((0.004..0.012).contains(&sd), "{sd}");
    // Per call: 100 ms are the time of ten calls; the middle of three samples is 1 % above the least.
    assert!((evidence.base.p50_ms - 10.1).abs() < 1e-6, "{}", evidence.base.p50_ms);
    assert_eq!(evidence.base.p50_interval_ms.unwrap().map(|v| (v * 1e4).round() / 1e4), [10.1, 10.1]);
    assert!(evidence.head.p50_ms > 10.25 && evidence.head.p99_ms >= evidence.head.p95_ms);
    assert_eq!((evidence.cliffs_delta, evidence.hedges_g.unwrap() > 1.0), (Some(1.0), true));
    assert!(evidence.mann_whitney_p.unwrap() < 1e-3);
    assert_eq!(workload.paired.as_ref().unwrap().disjoint_ci, None);
}

#[test]
fn the_same_is_a_pass_and_faster_is_improved() {
    let workloads = vec![workload(&noisy(1, 40, 0.0, 0.003)), workload(&noisy(2, 40, -0.05, 0.003))];
    let report = judged(workloads, Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Pass, &["not slower than the tolerance of 1.0 %"]);
    assert_reason(&report.checks[1], Verdict::Improved, &["-5.", "[-5", "faster than the tolerance"]);
    assert_eq!((report.verdict, report.exit_code()), (Verdict::Pass, ExitCode::Ok));
}

/// Forty units of these rounds each.
fn of_rounds(rounds: &[PairRound]) -> AbWorkload {
    let mut measured = workload(&[]);
    measured.units = (0..40).map(|_| Unit { quantile: 0.0, ..unit_of(rounds.to_vec()) }).collect();
    measured.units.iter_mut().for_each(|unit| assert!(ab::estimate::unit(unit).is_some()));
    measured
}

#[test]
fn a_side_four_times_slower_does_not_pass_by_waits_that_cover_samples_of_both() {
    let covered = PairRound {
        base_wait_ns: vec![49_999, 0],
        head_wait_ns: vec![199_999, 0],
        ..round(&[50_000, 50_100], &[200_000, 200_300])
    };
    let report = judged(vec![of_rounds(&[covered.clone(), covered])], Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Regressed, &["+299."]);
}

#[test]
fn units_that_agree_to_the_last_bit_pass_only_if_the_times_could_differ() {
    let judge = |base: &[u64], head: &[u64]| {
        let there =
            judged(vec![of_rounds(&[round(base, head)])], Policy::Sequential).into_stated().checks.remove(0);
        let back =
            judged(vec![of_rounds(&[round(head, base)])], Policy::Sequential).into_stated().checks.remove(0);
        assert!(there.verdict == Verdict::Pass || !matches!(back.verdict, Verdict::Pass | Verdict::Improved));
        there
    };
    // A clock of 10 ms beside calls of 50, a sample that was cut to a nanosecond, and one that tells no time.
    let steps = ["all 40 units give exactly +0.0 %", "its times move in steps of 40.0 %", "cannot be seen"];
    assert_reason(
        &judge(&[50_000_000, 60_000_000], &[50_000_000, 70_000_000]),
        Verdict::Inconclusive,
        &steps,
    );
    assert_reason(&judge(&[1, 50_000], &[1, 200_000]), Verdict::Inconclusive, &["cannot be seen"]);
    assert_reason(
        &judge(&[2000; 4], &[2000; 4]),
        Verdict::Inconclusive,
        &["all times of a side are the same"],
    );
    assert_reason(&judge(&[3000, 3001], &[1000; 2]), Verdict::Inconclusive, &["exactly -66.7 %"]);
    // A harness that prints whole nanoseconds: 12.0 beside 12.45 is the same in nine units of ten, and a step in the tenth.
    let printed = |unit: usize| round(&[12], &[if unit % 10 == 4 { 13 } else { 12 }]);
    let mut units: Vec<Unit> = (0..40).map(|unit| unit_of([printed(unit)])).collect();
    units.iter_mut().for_each(|unit| assert!(ab::estimate::unit(unit).is_some()));
    let rounded = judged(vec![AbWorkload { units, ..workload(&[]) }], Policy::Sequential);
    let steps = ["36 of 40 units give exactly +0.0 %", "cannot be seen"];
    assert_reason(&rounded.checks[0], Verdict::Inconclusive, &steps);
    // A thousand steps of a clock of 42 ns, and a harness that prints four digits.
    assert_eq!(judge(&[42_000, 42_042], &[42_000, 42_042]).verdict, Verdict::Pass);
    assert_eq!(judge(&[12_340, 12_350], &[12_340, 12_360]).verdict, Verdict::Pass);
}

#[test]
fn what_is_undecided_says_what_would_have_been_seen_and_how_long_it_would_take() {
    let report = one(&noisy(3, 20, 0.0, 0.02), Policy::Sequential);
    let workload = &report.checks[0];
    assert_reason(
        workload,
        Verdict::Inconclusive,
        &[
            "after 20 units",
            "a slowdown of",
            "would have been seen",
            "s would decide, 40 s were spent",
            "--budget",
        ],
    );
    assert!(workload.evidence().unwrap().smallest_visible_slowdown.unwrap() > 0.02);
    assert_eq!(report.exit_code(), ExitCode::Inconclusive);
}

#[test]
fn what_one_pair_of_processes_says_is_undecided_and_says_so() {
    let mut of_one_pair = workload(&[0.1; 20]);
    of_one_pair.units.iter_mut().for_each(|unit| unit.process = 0);
    let report = judged(vec![of_one_pair], Policy::Sequential);
    let parts = ["+10.5 %", "after 20 units", "fewer than 3 pairs of processes say so", "s would decide"];
    assert_reason(&report.checks[0], Verdict::Inconclusive, &parts);
}

#[test]
fn the_advised_time_decides() {
    // A unit takes 2 s.
    for (change, sd) in [(0.0, 0.008), (0.03, 0.01), (0.1, 0.0)] {
        let report = one(&noisy(3, 6, change, sd), Policy::Sequential);
        let reason = &report.checks[0].reason;
        let advised = reason.split("--budget ").nth(1).unwrap_or_else(|| panic!("{reason}"));
        let units = advised.parse::<usize>().unwrap() / 2;
        let decided = (0..20).filter(|seed| {
            let report = one(&noisy(100 + seed, units, change, sd), Policy::Sequential);
            report.verdict != Verdict::Inconclusive
        });
        assert!(decided.count() >= 12, "{change} {sd}: {units} units");
    }
}

#[test]
fn what_time_would_not_decide_is_told_a_tolerance() {
    let mut hopeless = workload(&noisy(4, 20, 0.0, 0.2));
    for round in hopeless.units.iter_mut().flat_map(|unit| &mut unit.rounds) {
        round.trouble.push(Trouble::Steal);
    }
    let report = judged(vec![hopeless], Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Inconclusive, &["--tolerance of", "(steal in most rounds)"]);
    let mut at_the_end = workload(&noisy(3, 20, 0.0, 0.02));
    at_the_end.ended = Ended::UnitsMax;
    let report = judged(vec![at_the_end], Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Inconclusive, &["--budget", "--units-max"]);
}

#[test]
fn a_change_at_the_tolerance_gets_a_tolerance_that_decides() {
    let xs = noisy(5, 60, 0.01, 0.003);
    let report = one(&xs, Policy::Sequential);
    assert_reason(
        &report.checks[0],
        Verdict::Inconclusive,
        &["a --tolerance of 1.2 % would have been decided"],
    );
    let plan = AbPlan { tolerance: 0.0125, ..plan() };
    let again = judge_sides(&super::report(vec![workload(&xs)]), &plan, Policy::Sequential).unwrap();
    assert_eq!(again.verdict, Verdict::Pass);
}

#[test]
fn too_few_units_see_nothing() {
    let report = one(&noisy(6, 3, 0.0, 0.02), Policy::Sequential);
    assert_reason(
        &report.checks[0],
        Verdict::Inconclusive,
        &["no slowdown could have been seen in fewer than", "--budget"],
    );
    let report = one(&[0.001], Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Inconclusive, &["after 1 unit,"]);
    assert_eq!(report.checks[0].evidence().unwrap().unit_sd, None);
}

#[test]
fn what_was_interrupted_can_go_on() {
    let mut interrupted = workload(&noisy(7, 5, 0.0, 0.02));
    interrupted.ended = Ended::Interrupted;
    let mut not_begun = workload(&[]);
    not_begun.ended = Ended::Interrupted;
    let report = judged(vec![interrupted, not_begun], Policy::Sequential);
    for workload in report.checks.iter() {
        assert_reason(workload, Verdict::Inconclusive, &["interrupted", "--resume"]);
    }
    assert_eq!(report.checks[1].evidence(), None);
}

#[test]
fn a_side_that_failed_is_named_and_broken_is_the_worst() {
    let mut broken = workload(&noisy(8, 5, 0.0, 0.01));
    broken.ended = Ended::Failed;
    broken.failure = Some(SideFailure {
        side: SideName::Head,
        failure: Failure {
            cause: FailureCause::WrongAnswer,
            detail: "value 3 is 4, not 5".to_owned(),
            stderr_tail: Vec::new(),
            samples: None,
        },
    });
    let mut skipped = workload(&[]);
    (skipped.ended, skipped.reason) = (Ended::Skipped, "base does not have it".to_owned());
    let slow = workload(&noisy(9, 40, 0.05, 0.005));
    for policy in [Policy::Sequential, Policy::DisjointCi] {
        let report = judged(vec![broken.clone(), skipped.clone(), slow.clone()], policy);
        assert_eq!(report.checks[0].reason, "head failed: wrong_answer: value 3 is 4, not 5");
        let verdicts: Vec<Verdict> = report.checks.iter().map(|workload| workload.verdict).collect();
        assert_eq!(verdicts, [Verdict::Broken, Verdict::Skipped, Verdict::Regressed]);
        assert_eq!((report.verdict, report.exit_code()), (Verdict::Broken, ExitCode::Broken));
        assert_eq!(report.checks[1].reason, "base does not have it");
        assert!(report.checks[0].evidence().is_some() && report.checks[1].evidence().is_none());
    }
}

#[test]
fn the_same_machine_code_passes_and_says_so() {
    let mut same = workload(&[]);
    (same.ended, same.reason) = (Ended::SameCode, "the same machine code".to_owned());
    same.identity.timer = "cuda_graph".to_owned();
    let kernel: KernelInfo = serde_json::from_value(serde_json::json!({
        "op_name": "x", "kernel_name": "k", "shape_bucket": "", "selection_source": "heuristic",
        "launches_per_call": 1, "code_sha256": "a", "launches": ["k 1 32 0"]
    }))
    .unwrap();
    same.kernels = Some(SideKernels { base: kernel.clone(), head: kernel });
    for policy in [Policy::Sequential, Policy::DisjointCi] {
        let report = judged(vec![same.clone()], policy);
        assert_eq!((report.verdict, report.exit_code()), (Verdict::Pass, ExitCode::Ok));
        assert_eq!(report.checks[0].reason, "the same machine code");
    }
    same.kernels = None;
    let unproven = judged(vec![same], Policy::Sequential);
    assert_reason(&unproven.checks[0], Verdict::Inconclusive, &["hashes of both sides' code are not there"]);
}

#[test]
fn nothing_judged_is_nothing_known() {
    let report = judged(Vec::new(), Policy::Sequential);
    assert_eq!((report.verdict, report.exit_code()), (Verdict::Inconclusive, ExitCode::Inconclusive));
}

#[test]
fn what_is_called_in_company_says_so() {
    let slow = |count| workload(&vec![0.5; count]);
    let report = judged(vec![slow(13), slow(14), workload(&[]), workload(&[])], Policy::Sequential);
    assert_reason(&report.checks[0], Verdict::Regressed, &["called together with others"]);
    assert_reason(&report.checks[1], Verdict::Regressed, &["slower than the tolerance of 1.0 %"]);
    assert!(!report.checks[1].reason.contains("together"));
}

#[test]
fn swapping_the_sides_swaps_the_verdicts() {
    for change in [0.05, -0.05] {
        let there = workload(&noisy(10, 40, change, 0.005));
        let mut back = there.clone();
        for unit in &mut back.units {
            unit.rounds.iter_mut().for_each(|round| std::mem::swap(&mut round.base_ns, &mut round.head_ns));
            ab::estimate::unit(unit).unwrap();
        }
        let [there, back] =
            [there, back].map(|workload| judged(vec![workload], Policy::Sequential).checks[0].clone());
        let verdicts = [there.verdict, back.verdict];
        assert!(verdicts.contains(&Verdict::Regressed) && verdicts.contains(&Verdict::Improved));
        let [there, back] = [there, back].map(|workload| workload.evidence().unwrap().clone());
        assert!((there.ratio * back.ratio - 1.0).abs() < 1e-12);
        assert_eq!((there.cliffs_delta, &there.base), (back.cliffs_delta.map(|d| -d), &back.head));
    }
}

#[test]
fn judging_twice_gives_the_same_bytes_and_survives_them() {
    for policy in [Policy::Sequential, Policy::DisjointCi] {
        let workloads = || vec![workload(&noisy(1, 20, 0.0, 0.01)), workload(&noisy(2, 30, 0.04, 0.01))];
        let (once, twice) = (judged(workloads(), policy), judged(workloads(), policy));
        let text = json::to_pretty(&once).unwrap();
        assert_eq!(text, json::to_pretty(&twice).unwrap());
        let back = json::parse::<Stated>(&text).unwrap();
        assert_eq!((json::to_pretty(&back).unwrap(), &back.checks[0].reason), (text, &once.checks[0].reason));
    }
}

#[test]
fn policies_have_names() {
    for policy in Policy::ALL {
        assert_eq!(Policy::from_name(policy.name(), Some(-3.0)), Some(policy));
    }
    assert_eq!(Policy::from_name("threshold", None), None);
}

#[test]
fn samples_answer_another_question_or_say_that_they_do_not_suffice() {
    let mut decided = workload(&noisy(1, 40, 0.03, 0.003));
    decided.ended = Ended::Decided;
    let report = report(vec![decided]);
    let ask = |tolerance| judge_sides(&report, &AbPlan { tolerance, ..plan() }, Policy::Sequential).unwrap();
    assert_eq!(ask(0.01).verdict, Verdict::Regressed);
    assert_eq!(ask(0.10).verdict, Verdict::Pass);
    assert_eq!(ask(0.10).into_stated().basis.unwrap().plan().unwrap().tolerance, 0.10);
    let close = ask(0.03);
    assert_reason(
        &close.checks[0],
        Verdict::Inconclusive,
        &["do not suffice for this question: measure again"],
    );
}

#[test]
fn a_policy_for_baselines_does_not_judge_two_sides() {
    let error = judge_sides(&report(Vec::new()), &plan(), Policy::AllowedMax).unwrap_err();
    assert!(error.to_string().contains("allowed-max needs a baseline"), "{error}");
}

#[test]
fn a_comparison_that_was_cut_short_is_never_a_pass() {
    let mut report = report(vec![workload(&noisy(1, 40, 0.0, 0.003))]);
    report.finished = false;
    let judgement = judge_sides(&report, &plan(), Policy::Sequential).unwrap();
    assert_eq!((judgement.verdict, judgement.status.as_str()), (Verdict::Inconclusive, "fail"));
}

#[test]
fn a_unit_that_its_rounds_do_not_give_is_refused() {
    let mut report = report(vec![workload(&noisy(1, 5, 0.0, 0.003))]);
    report.workloads[0].units[2].x = 0.5;
    let error = judge_sides(&report, &plan(), Policy::Sequential).unwrap_err();
    assert!(error.to_string().contains("w0: unit 2 says x is 0.5"), "{error}");
}

#[test]
fn a_workload_may_have_a_tolerance_of_its_own() {
    let slow = || workload(&noisy(1, 40, 0.03, 0.003));
    let plan = AbPlan { tolerances: [("w1".to_owned(), 0.10)].into(), ..plan() };
    let judgement = judge_sides(&report(vec![slow(), slow()]), &plan, Policy::Sequential).unwrap();
    assert_reason(&judgement.checks[0], Verdict::Regressed, &["slower than the tolerance of 1.0 %"]);
    assert_reason(&judgement.checks[1], Verdict::Pass, &["not slower than the tolerance of 10.0 %"]);
}

#[test]
fn a_row_never_contradicts_itself() {
    for seed in 0..50 {
        // The second half of the units is slower on both sides, so that the medians of all samples lie anywhere between.
        let mut workload = workload(&noisy(seed, 21, 0.0, 0.05));
        for round in workload.units.iter_mut().skip(10).flat_map(|unit| &mut unit.rounds) {
            round.base_ns.iter_mut().chain(&mut round.head_ns).for_each(|ns| *ns *= 2);
        }
        let judged = judge_recorded(&report(vec![workload])).unwrap();
        let check = &judged.checks[0];
        let (base_ms, head_ms) = (check.baseline_ms.unwrap(), check.current_ms.unwrap());
        assert!(
            (head_ms / base_ms - 1.0 - check.regression_ratio.unwrap()).abs() < 1e-9,
            "{seed}: {check:?}"
        );
        let evidence = check.evidence().unwrap();
        let level = (evidence.base.p50_ms * evidence.head.p50_ms).sqrt();
        assert!(((base_ms * head_ms).sqrt() / level - 1.0).abs() < 1e-9);
    }
}

#[test]
fn times_of_older_judgements_hold() {
    let report = report(vec![workload(&noisy(1, 21, 0.0, 0.05))]);
    let mut stated = judge_recorded(&report).unwrap().into_stated();
    let check = &mut stated.checks[0];
    let [base, head] =
        [&check.evidence().unwrap().base, &check.evidence().unwrap().head].map(|times| times.p50_ms);
    let tolerance = check.allowed_max_ms.unwrap() / check.baseline_ms.unwrap();
    (check.baseline_ms, check.current_ms, check.allowed_max_ms) =
        (Some(base), Some(head), Some(base * tolerance));
    let evidence = |report: &AbReport| Ok(Some(Evidence::Sides(Box::new(report.clone()))));
    assert_eq!(rejudge(&stated, evidence(&report), None).doubt, None);
    stated.checks[0].current_ms = Some(head * 0.9);
    assert!(rejudge(&stated, evidence(&report), None).doubt.is_some());
}
