//! What trials amount to.

use super::ab::{noisy, report, workload};
use super::machine;

use holdpoint_gate::HasExitCode;
use holdpoint_gate::calibrate::Trials;
use holdpoint_gate::judge_recorded;
use holdpoint_model::ab::{Ended, SideFailure};
use holdpoint_model::*;

/// Unchanged, plainly slower, plainly faster; each takes two seconds a unit.
const SAME: [f64; 20] = [0.0; 20];
const SLOWER: [f64; 20] = [0.1; 20];
const FASTER: [f64; 20] = [-0.1; 20];

fn trial(workloads: &[&[f64]]) -> AbReport {
    report(workloads.iter().map(|xs| workload(xs)).collect())
}

fn trials(inject: f64, reports: &[AbReport]) -> Trials {
    let mut trials = Trials::new(inject);
    for report in reports {
        trials.push(report, &judge_recorded(report).unwrap());
    }
    trials
}

fn summary(inject: f64, reports: &[AbReport]) -> Calibration {
    let trials = trials(inject, reports);
    assert_eq!(trials.count() as usize, reports.len());
    trials.summarise(&reports[0], machine("here"), 12.5, true).unwrap()
}

#[test]
fn no_trials_amount_to_nothing() {
    let nothing = Trials::new(0.0);
    assert_eq!(nothing.count(), 0);
    assert_eq!(nothing.summarise(&trial(&[&SAME]), machine("here"), 1.0, true), None);
}

#[test]
fn each_verdict_is_counted_as_what_it_is() {
    let reports = [trial(&[&SAME]), trial(&[&SLOWER]), trial(&[&FASTER]), trial(&[&SAME[..3]])];
    let found = summary(0.0, &reports);
    let w = &found.workloads["w0"];
    assert_eq!((w.trials, w.passed, w.false_alarms, w.faster, w.inconclusive), (4, 1, 1, 1, 1));
    assert_eq!((w.detected, w.failed, w.inject, w.tolerance), (0, 0, 0.0, 0.01));
    assert_eq!((found.trials, found.false_alarms, found.detected, found.inconclusive), (4, 1, 0, 1));
    assert_eq!((found.suite.as_str(), found.machine.fingerprint.as_str()), ("cpu", "here"));
    assert_eq!((found.tolerance, found.alarm_rate, found.inject), (0.01, 0.001, 0.0));
    assert_eq!((found.elapsed_s, found.finished), (12.5, true));
    assert_eq!(found.timestamp_utc, reports[0].timestamp_utc);
}

#[test]
fn alarms_are_counted_by_suite_and_by_workload() {
    let reports = [trial(&[&SLOWER, &SLOWER, &SAME]), trial(&[&SAME, &SAME, &SAME])];
    let found = summary(0.0, &reports);
    assert_eq!(found.false_alarms, 1, "one suite was called slower, however many of its workloads");
    let by_workload: Vec<u32> = found.workloads.values().map(|w| w.false_alarms).collect();
    assert_eq!(by_workload, [1, 1, 0]);
    // What led to them is kept.
    let alarms = &found.workloads["w1"].alarms;
    assert_eq!(alarms.len(), 1);
    let processes: Vec<u32> = alarms[0].iter().map(|unit| unit.process).collect();
    assert_eq!(processes, (0..20).collect::<Vec<u32>>());
    assert!(alarms[0].iter().all(|unit| (unit.x - 0.1).abs() < 1e-6));
    assert!(found.workloads["w2"].alarms.is_empty());
}

#[test]
fn the_rate_of_false_alarms_has_a_bound_that_trials_narrow() {
    let bound = |count: usize| summary(0.0, &vec![trial(&[&SAME]); count]).false_alarm_rate_upper.unwrap();
    // No alarm in n trials: 1 - 0.05^(1/n).
    assert!((bound(1) - 0.95).abs() < 1e-9);
    assert!((bound(20) - (1.0 - 0.05_f64.powf(1.0 / 20.0))).abs() < 1e-9);
    let alarmed = [trial(&[&SAME]), trial(&[&SLOWER])];
    assert!(summary(0.0, &alarmed).false_alarm_rate_upper.unwrap() > 0.9);
}

#[test]
fn what_was_put_in_and_found_is_detected_and_no_alarm() {
    let reports = [trial(&[&SLOWER, &SLOWER]), trial(&[&SLOWER, &SAME])];
    let found = summary(0.1, &reports);
    assert_eq!((found.detected, found.false_alarms, found.false_alarm_rate_upper), (3, 0, None));
    assert!(found.workloads.values().all(|w| w.alarms.is_empty()));
    let by_workload: Vec<[u32; 3]> =
        found.workloads.values().map(|w| [w.detected, w.passed, w.false_alarms]).collect();
    assert_eq!(by_workload, [[2, 0, 0], [1, 1, 0]]);
    assert!(found.workloads.values().all(|w| w.inject == 0.1));
}

#[test]
fn seconds_are_wall_time_over_comparisons_and_units_are_medians() {
    let mut reports = vec![trial(&[&SAME]), trial(&[&SAME]), trial(&[&SAME[..10]])];
    for (report, seconds) in reports.iter_mut().zip([1.0, 2.0, 9.0]) {
        report.elapsed_s = seconds;
    }
    let found = summary(0.0, &reports);
    let w = &found.workloads["w0"];
    assert_eq!((found.seconds, w.seconds, w.seconds_p90, w.units), (12.5 / 3.0, 4.0, 2.0, 20.0));
    assert_eq!((w.unit_sd, found.suite_seconds), (Some(0.0), Some(2.0)));
    assert_eq!((found.busy_share, w.busy_share), (None, None), "there is no device");
}

#[test]
fn the_share_in_which_a_device_was_busy_stands_beside_the_seconds() {
    let mut report = trial(&[&SAME, &SAME]);
    report.elapsed_s = 400.0;
    let rounds = report.workloads[0].units.iter_mut().flat_map(|unit| &mut unit.rounds);
    let samples_ns: u64 = rounds
        .map(|round| {
            round.state.device = Some(Default::default());
            round.base_ns.iter().chain(&round.head_ns).sum::<u64>()
        })
        .sum();
    let found = summary(0.0, &[report]);
    let busy_s = samples_ns as f64 / 1e9;
    let shares: Vec<Option<f64>> = found.workloads.values().map(|w| w.busy_share).collect();
    assert_eq!(shares, [Some(busy_s / found.workloads["w0"].seconds), None]);
    assert_eq!(found.busy_share, Some(1.0), "never more than all of the 12.5 s");
}

#[test]
fn workloads_share_the_time_that_a_user_waits() {
    let mut report = trial(&[&SAME, &SAME]);
    report.elapsed_s = 6.0;
    (report.workloads[0].spent_s, report.workloads[1].spent_s) = (0.5, 1.0);
    let found = summary(0.0, &[report]);
    let seconds: Vec<f64> = found.workloads.values().map(|w| w.seconds).collect();
    assert_eq!((seconds, found.suite_seconds), (vec![2.0, 4.0], Some(6.0)));
}

#[test]
fn only_what_was_decided_counts() {
    let reports = [trial(&[&SAME, &SAME]), trial(&[&SAME, &SAME[..3]]), trial(&[&SLOWER, &SAME[..3]])];
    let found = summary(0.0, &reports);
    assert_eq!((found.trials, found.decided, found.false_alarms), (3, Some(2), 1));
    let two = holdpoint_stats::classic::binomial_upper(1, 2, 0.95);
    assert_eq!((found.false_alarm_rate_upper, found.workloads["w1"].decided()), (two, 1));
    let nothing = summary(0.0, &[trial(&[&SAME[..3]])]);
    assert_eq!((nothing.decided, nothing.false_alarm_rate_upper), (Some(0), None));
    assert!(nothing.is_evidence() && !nothing.workloads["w0"].is_evidence());
}

#[test]
fn more_undecided_than_not_is_too_noisy() {
    let (clear, unclear) = (trial(&[&SAME]), trial(&[&SAME[..3]]));
    let noisy_of = |reports: &[AbReport]| summary(0.0, reports).workloads["w0"].too_noisy;
    assert!(!noisy_of(&[clear.clone(), unclear.clone()]));
    assert!(noisy_of(&[clear, unclear.clone(), unclear]));
}

#[test]
fn failed_and_skipped_trials_are_counted_as_failed() {
    let failure = Failure {
        cause: FailureCause::Crashed,
        detail: "exit status: 1".to_owned(),
        stderr_tail: Vec::new(),
        samples: None,
    };
    let broken = AbWorkload {
        ended: Ended::Failed,
        failure: Some(SideFailure { side: SideName::Head, failure }),
        ..workload(&[])
    };
    let skipped =
        AbWorkload { ended: Ended::Skipped, reason: "cuda_unavailable".to_owned(), ..workload(&[]) };
    let report = report(vec![broken, skipped, workload(&SAME)]);
    let found = summary(0.0, &[report]);
    let failed: Vec<u32> = found.workloads.values().map(|w| w.failed).collect();
    assert_eq!((failed, found.inconclusive, found.false_alarms), (vec![1, 1, 0], 0, 0));
    assert_eq!((found.decided, found.is_evidence()), (Some(0), false));
    assert_eq!(found.exit_code(), ExitCode::Broken);
}

#[test]
fn a_trial_that_was_cut_off_says_nothing_about_a_workload() {
    let mut cut = trial(&[&SAME, &SAME[..3]]);
    cut.workloads[1].ended = Ended::Interrupted;
    let found = summary(0.0, &[trial(&[&SAME, &SAME]), cut]);
    assert_eq!((found.workloads["w0"].trials, found.workloads["w1"].trials), (2, 1));
    assert_eq!(found.workloads["w1"].inconclusive, 0);
}

#[test]
fn what_can_be_seen_grows_with_the_time_given() {
    // 100 trials of 20 units of 50 ms: a second is 20 units, ten seconds are 200.
    let mut reports: Vec<AbReport> = (0..100).map(|seed| trial(&[&noisy(seed, 20, 0.0, 0.01)])).collect();
    reports.iter_mut().for_each(|report| report.elapsed_s = 1.0);
    let found = summary(0.0, &reports);
    let visible = &found.workloads["w0"].visible;
    assert_eq!(visible.iter().map(|v| v.seconds).collect::<Vec<_>>(), [1.0, 3.0, 10.0]);
    let slowdowns: Vec<f64> = visible.iter().map(|v| v.slowdown.unwrap()).collect();
    assert!(slowdowns.is_sorted_by(|a, b| a > b), "{slowdowns:?}");
    // Never below the tolerance, and with 200 units of 1 % noise not far above it.
    assert!(slowdowns[2] > 0.01 && slowdowns[2] < 0.02, "{slowdowns:?}");
    assert!(found.workloads["w0"].smallest_visible_slowdown.is_some());
}

#[test]
fn what_can_be_seen_in_no_trial_is_left_open() {
    // Two seconds a unit: a second is no unit, and there are not ten seconds of any workload without units.
    let found = summary(0.0, &[trial(&[&SAME])]);
    assert_eq!(found.workloads["w0"].visible[0].slowdown, None, "a second is less than a unit");
    assert_eq!(found.workloads["w0"].visible[1].slowdown, None, "one unit shows nothing");
    let mut empty = report(vec![workload(&[])]);
    empty.workloads[0].spent_s = 0.0;
    let found = summary(0.0, &[empty]);
    assert!(found.workloads["w0"].visible.iter().all(|v| v.slowdown.is_none()));
    assert_eq!((found.workloads["w0"].units, found.workloads["w0"].unit_sd), (0.0, None));
}
