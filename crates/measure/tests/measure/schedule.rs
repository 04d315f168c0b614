//! Who runs when, how often, and what is recorded of it.

use crate::builtin::SMALL;
use crate::common::{PATIENT, PLAN, failure, measure, measured, run_patiently, suite};
use holdpoint_model::report::Stopped;
use holdpoint_model::{FailureCause, Report, RunStatus};
use std::collections::{BTreeMap, BTreeSet};

fn small(keys: &str) -> Report {
    measure(&suite(&format!("{PLAN}{PATIENT}"), &format!("{SMALL}{keys}")))
}

/// Samples of each round of a workload.
fn counts(report: &Report, name: &str) -> Vec<usize> {
    measured(report, name).samples.rounds.iter().map(|round| round.elapsed_ns.len()).collect()
}

#[test]
fn a_fixed_number_of_iterations_is_spread_over_the_least_number_of_rounds() {
    for (iterations, expected) in [
        (1, vec![1]),
        (5, vec![1; 5]),
        (7, vec![2, 1, 1, 1, 1, 1]),
        (12, vec![2; 6]),
        (40, vec![7, 7, 7, 7, 6, 6]),
    ] {
        // The key belongs to the last workload of the suite, the command.
        let report = small(&format!("iterations = {iterations}\n"));
        assert_eq!(counts(&report, "true"), expected);
        assert_eq!(measured(&report, "true").stopped, Stopped::Iterations);
    }
}

#[test]
fn the_least_number_of_rounds_is_taken_whatever_the_budget() {
    let plan =
        "rounds_min = 9\nrounds_max = 9\ntime_budget_ms = 0.000001\ntarget_width = 1.0\nwarmup_ms_max = 0\n";
    let report = measure(&suite(plan, SMALL));
    for name in ["pack", "gate", "true"] {
        assert_eq!(counts(&report, name).len(), 9, "{name}");
        assert!(counts(&report, name).iter().all(|count| (1..=20).contains(count)));
    }
}

#[test]
fn the_cap_on_rounds_holds() {
    let plan = "rounds_min = 2\nrounds_max = 3\nround_ms = 0.01\ntarget_width = 1e-12\nwarmup_ms_max = 0\n";
    let report = measure(&suite(plan, SMALL));
    assert_eq!(counts(&report, "pack").len(), 3);
    assert_eq!(measured(&report, "pack").stopped, Stopped::RoundsMax);
    assert_eq!(measured(&report, "pack").p50_interval_ms, None);
}

#[test]
fn every_round_is_a_permutation_of_the_workloads() {
    let report = small("");
    let mut orders: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for name in ["pack", "gate", "true"] {
        let rounds = &measured(&report, name).samples.rounds;
        for (index, round) in rounds.iter().enumerate() {
            assert_eq!((round.round as usize, round.process), (index, 0));
            orders.entry(round.round).or_default().push(round.order);
        }
    }
    assert_eq!(orders.len(), 6);
    for order in orders.values() {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
    }
    assert!(orders.values().any(|order| *order != orders[&0]), "the order should change: {orders:?}");
}

#[test]
fn the_same_seed_gives_the_same_order() {
    let orders = |report: &Report| -> Vec<u32> {
        measured(report, "pack").samples.rounds.iter().map(|round| round.order).collect()
    };
    assert_eq!(orders(&small("")), orders(&small("")));
}

#[test]
fn every_run_has_other_inputs_so_that_none_is_answered_from_a_disk() {
    let seeds = || -> BTreeSet<String> {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("requests");
        run_patiently(&format!("bad_run() {{ echo \"$line\" >> '{}'; ok_run; }}", file.display()))
            .measured(&["bad"]);
        let requests = std::fs::read_to_string(file).unwrap();
        let seed = |request: &str| {
            request
                .split("\"seed\":")
                .nth(1)
                .and_then(|rest| rest.split([',', '}']).next())
                .map(str::to_owned)
        };
        requests.lines().map(|request| seed(request).unwrap()).collect()
    };
    let (first, second) = (seeds(), seeds());
    assert!(first.len() >= 6 && first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn a_sample_of_a_fast_op_lasts_many_steps_of_the_clock() {
    let report = small("");
    for name in ["pack", "gate"] {
        let samples = &measured(&report, name).samples;
        let mut elapsed_ns: Vec<u64> =
            samples.rounds.iter().flat_map(|round| round.elapsed_ns.clone()).collect();
        elapsed_ns.sort_unstable();
        let median_ns = elapsed_ns[elapsed_ns.len() / 2];
        let least_ns = 500 * report.config.clock_resolution_ns.min(100);
        assert!(median_ns >= least_ns, "{name}: {median_ns} ns of {} calls", samples.calls_per_sample);
    }
}

#[test]
fn an_op_that_fails_leaves_the_others_measured() {
    let bad = "[[workload]]\nname = \"bad\"\nop = \"tile_pack\"\nshape = [1, 4, 32, 32]\nparams = { tile_size = 7, indices = [0] }\n";
    let report = small(bad);
    let failure = failure(&report, "bad");
    assert_eq!(failure.cause, FailureCause::WorkerError);
    assert!(failure.detail.contains("tile_size"), "{}", failure.detail);
    assert_eq!((report.status, report.reason.as_deref()), (RunStatus::Failed, Some("bad: worker_error")));
    assert_eq!(report.metrics.keys().collect::<Vec<_>>(), ["gate_p50_ms", "pack_p50_ms", "true_p50_ms"]);
    for (metric, value_ms) in &report.metrics {
        assert_eq!(*value_ms, measured(&report, metric.strip_suffix("_p50_ms").unwrap()).p50_ms);
    }
}

#[test]
fn more_workloads_than_are_held_at_once_come_back_in_the_suites_order() {
    let workloads: String = (0..18)
        .map(|i| {
            format!(
                "[[workload]]\nname = \"w{i}\"\nop = \"fusion_gate\"\nshape = [1, 4, 8, 8]\niterations = 2\n"
            )
        })
        .collect();
    let report = measure(&suite(&format!("{PLAN}{PATIENT}"), &workloads));
    assert_eq!(report.status, RunStatus::Ok);
    let expected: Vec<String> = (0..18).map(|i| format!("w{i}")).collect();
    assert_eq!(report.benchmarks.keys().collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
    let orders: Vec<u32> =
        report.benchmarks.keys().map(|n| measured(&report, n).samples.rounds[0].order).collect();
    assert!(orders.iter().all(|order| *order < 16));
}

#[test]
fn warm_up_is_counted_and_its_cap_may_be_zero() {
    assert_eq!(measured(&small(""), "pack").warmup.calls_count, 0);
    let plan = PLAN.replace("warmup_ms_max = 0", "warmup_ms_max = 20");
    let report = measure(&suite(&plan, SMALL));
    assert!(measured(&report, "pack").warmup.calls_count > 0);
}
