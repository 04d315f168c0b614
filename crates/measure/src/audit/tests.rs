use super::*;
use crate::schedstat::WorkerTime;

/// Samples of a millisecond each, in a request that costs another millisecond.
fn result(samples: usize, reported_share: f64) -> RunResult {
    let elapsed_ns = vec![(1e6 * reported_share) as u64; samples];
    RunResult { calls_per_sample: 1, elapsed_ns, ..RunResult::default() }
}

fn seen(samples: usize, more_ns: u64) -> Observation {
    let cpu_ns = 1_000_000 * samples as u64;
    let worker = Some(WorkerTime { cpu_ns, busiest_ns: cpu_ns, wait_ns: 0 });
    Observation { wall_ns: 1_000_000 * (samples as u64 + 1) + more_ns, worker, own_wait_ns: 0 }
}

fn audit(reported_share: f64) -> Audit {
    let mut audit = Audit::default();
    audit.set_cost(&AuditedRun { result: &result(1, reported_share), seen: seen(1, 0) });
    audit
}

/// The accusation after enough such requests in a row.
fn accuse(audit: &mut Audit, result: &RunResult, seen: Observation) -> Option<WorkerError> {
    (0..DOUBTS_MAX).find_map(|_| audit.check(&AuditedRun { result, seen }).err())
}

fn seen_waiting(wait_ns: u64, more_ns: u64) -> Observation {
    let seen = seen(20, more_ns);
    Observation { worker: seen.worker.map(|worker| WorkerTime { wait_ns, ..worker }), ..seen }
}

#[test]
fn a_clock_that_misses_half_is_caught_and_an_honest_one_is_not() {
    for (share, is_caught) in [(1.0, false), (0.9, false), (0.5, true), (0.1, true), (0.01, true)] {
        for samples in [10, 20] {
            let found = accuse(&mut audit(share), &result(samples, share), seen(samples, 0));
            assert_eq!(found.is_some(), is_caught, "{share} of {samples} samples: {found:?}");
        }
    }
}

#[test]
fn a_slow_call_before_a_single_long_sample_is_not_held_against_it() {
    let one = RunResult { calls_per_sample: 1, elapsed_ns: vec![3_000_000], ..RunResult::default() };
    let late = Observation { wall_ns: 11_500_000, ..seen(1, 0) };
    assert_eq!(accuse(&mut audit(1.0), &one, late), None);
    let hidden = RunResult { elapsed_ns: vec![100_000], ..one };
    assert!(accuse(&mut audit(1.0), &hidden, late).is_some(), "a hundredth of the time is");
}

#[test]
fn reported_work_between_the_samples_is_explained() {
    let result = RunResult { untimed_ns: Some(10_000_000), ..result(20, 0.5) };
    assert_eq!(accuse(&mut audit(0.5), &result, seen(20, 0)), None);
}

#[test]
fn untimed_work_that_is_time_of_the_calls_explains_nothing() {
    // Half of each call is called untimed: in samples of twice the calls, twice as much.
    let request = |samples: usize, calls: u64| RunResult {
        calls_per_sample: calls,
        elapsed_ns: vec![500_000 * calls; samples],
        untimed_ns: Some(500_000 * calls * samples as u64),
        ..RunResult::default()
    };
    let mut audit = Audit { is_by_host: true, ..audit(0.5) };
    for calls in [1, 2] {
        audit.learn_untimed(&request(1, calls), &request(20, calls));
        assert_eq!(audit.wants_other_calls(500_000), calls == 1);
    }
    let error = accuse(&mut audit, &request(20, 1), seen(20, 0)).unwrap();
    assert!(error.detail.contains("may not grow with their calls"), "{error}");
    let mut of_a_device = Audit { is_by_host: false, ..audit };
    assert_eq!(accuse(&mut of_a_device, &request(20, 1), seen(20, 0)), None);
}

#[test]
fn trust_does_not_outlive_a_process() {
    let (mut audit, honest) = (audit(1.0), result(20, 1.0));
    for _ in 0..TRUSTED_FROM {
        audit.check(&AuditedRun { result: &honest, seen: seen(20, 0) }).unwrap();
    }
    audit.begin_look();
    assert!(audit.is_trusted() && !audit.wants_look());
    audit.begin_process(true);
    assert!(!audit.is_settled() && audit.wants_look());
    audit.begin_look();
    assert!(!audit.is_trusted() && audit.is_settled(), "a look without a clear result ends, others follow");
    let lies = RunResult { elapsed_ns: vec![100_000; 20], ..honest.clone() };
    audit.check(&AuditedRun { result: &lies, seen: seen(20, 0) }).unwrap();
    audit.check(&AuditedRun { result: &honest, seen: seen(20, 0) }).unwrap();
    assert!(!audit.is_settled(), "a doubt takes as many looks as at first");
    assert!(accuse(&mut audit, &lies, seen(20, 0)).is_some());
}

#[test]
fn looks_take_a_small_share_of_short_units_and_a_process_in_eight_of_long_ones() {
    assert!((look_chance(0.005) - 0.01).abs() < 1e-12, "25 ms in every hundredth unit of 5 ms");
    assert_eq!((look_chance(0.5), look_chance(0.0)), (0.125, 0.0));
}

#[test]
fn short_turns_that_drift_from_the_true_times_are_caught_together() {
    // Twenty samples of 30 µs, each reported a little shorter than the one before; a request costs 100 µs.
    let turn = |samples: u64, share: f64| RunResult {
        calls_per_sample: 1,
        elapsed_ns: vec![(30_000.0 * share) as u64; samples as usize],
        ..RunResult::default()
    };
    let seen = |samples: u64| Observation { wall_ns: 100_000 + 30_000 * samples, ..Observation::default() };
    let caught = |drift: f64| {
        let mut audit = Audit { is_by_host: true, ..Audit::default() };
        (0..200).find(|at| {
            let share = f64::max(1.0 - drift * f64::from(*at), 0.05);
            audit.add_cost(&AuditedRun { result: &turn(1, share), seen: seen(1) });
            audit.check(&AuditedRun { result: &turn(20, share), seen: seen(20) }).is_err()
        })
    };
    assert_eq!(caught(0.0), None);
    assert!(caught(0.01).is_some_and(|at| at < 60), "{:?}", caught(0.01));
}

#[test]
fn unlucky_requests_among_good_ones_accuse_nobody() {
    let mut audit = audit(1.0);
    let result = result(20, 1.0);
    for at in 0..100 {
        let more_ns = if at % 3 == 0 { 50_000_000 } else { 0 };
        audit.check(&AuditedRun { result: &result, seen: seen(20, more_ns) }).unwrap();
    }
}

#[test]
fn a_worker_that_lies_in_three_of_four_requests_is_caught() {
    let mut audit = audit(1.0);
    let caught = (0..16).find(|at| {
        let share = if at % 4 == 0 { 1.0 } else { 0.125 };
        audit.check(&AuditedRun { result: &result(20, share), seen: seen(20, 0) }).is_err()
    });
    assert_eq!(caught, Some(10));
}

#[test]
fn unlucky_requests_on_a_machine_that_is_always_busy_accuse_nobody() {
    let mut audit = audit(1.0);
    let result = result(20, 1.0);
    for at in 0..100 {
        let unlucky_ns = if at % 3 == 0 { 50_000_000 } else { 0 };
        let seen = seen_waiting(50_000_000, 50_000_000 + unlucky_ns);
        audit.check(&AuditedRun { result: &result, seen }).unwrap();
    }
    let lies = RunResult { elapsed_ns: vec![100_000; 20], ..result.clone() };
    let seen = seen_waiting(50_000_000, 50_000_000);
    let caught = (0..100).find_map(|_| audit.check(&AuditedRun { result: &lies, seen }).err());
    assert!(caught.is_some(), "a worker that begins to lie there is caught");
}

#[test]
fn a_clock_that_misses_half_is_caught_on_a_machine_that_is_busy_in_every_look() {
    // Of two processes on a CPU each waits as long as it runs, in its samples and before its first one.
    let request = |samples: usize, share: f64, wake_ns: u64| {
        let result = result(samples, 2.0 * share);
        let cpu_ns = 1_000_000 * (samples as u64 + 1);
        let wait_ns = 1_000_000 * samples as u64 + wake_ns;
        let worker = WorkerTime { cpu_ns, busiest_ns: cpu_ns, wait_ns };
        let wall_ns = 2_000_000 * samples as u64 + 1_000_000 + wake_ns;
        (result, Observation { wall_ns, worker: Some(worker), own_wait_ns: 0 })
    };
    let is_caught = |share: f64| {
        let mut audit = Audit { is_by_host: true, ..Audit::default() };
        (0..24).any(|at| {
            let (one, seen_one) = request(1, share, at * 7 % 5 * 1_000_000);
            let (several, seen) = request(20, share, at * 3 % 5 * 1_000_000);
            let one = AuditedRun { result: &one, seen: seen_one };
            audit.check_look(&one, &AuditedRun { result: &several, seen }).is_err()
        })
    };
    assert!(!is_caught(1.0) && is_caught(0.5) && is_caught(0.1));
}

#[test]
fn a_busy_machine_accuses_nobody() {
    let seen = seen_waiting(50_000_000, 50_000_000);
    assert_eq!(accuse(&mut audit(1.0), &result(20, 1.0), seen), None);
}

#[test]
fn waits_that_the_kernel_did_not_record_are_caught() {
    let result = RunResult { wait_ns: vec![500_000; 20], ..result(20, 1.0) };
    assert_eq!(accuse(&mut audit(1.0), &result, seen_waiting(10_000_000, 0)), None);
    let error = accuse(&mut audit(1.0), &result, seen_waiting(0, 0)).unwrap();
    let expected = "10.000 ms of waiting for a CPU, the kernel booked 0.000 ms";
    assert!(error.detail.contains(expected), "{error}");
}

#[test]
fn unreported_cpu_time_is_caught() {
    for untimed_ns in [None, Some(1)] {
        let mut audit = Audit::default();
        let with_cpu =
            |samples: usize| RunResult { cpu_ns: vec![100_000; samples], untimed_ns, ..result(samples, 1.0) };
        audit.set_cost(&AuditedRun { result: &with_cpu(1), seen: seen(1, 0) });
        let error = accuse(&mut audit, &with_cpu(20), seen(20, 0)).unwrap();
        assert!(error.detail.contains("2.000 ms of CPU time"), "{error}");
        // Where requests for one sample have none, nothing is known of what they cost.
        let mut audit = self::audit(1.0);
        assert!(accuse(&mut audit, &with_cpu(20), seen(20, 0)).is_some());
    }
}

#[test]
fn cpu_time_of_untimed_work_is_explained_by_it() {
    for threads in [1, 4] {
        let result = RunResult { cpu_ns: vec![100_000; 20], untimed_ns: Some(18_000_000), ..result(20, 0.1) };
        let worker = Some(WorkerTime { cpu_ns: threads * 20_000_000, busiest_ns: 20_000_000, wait_ns: 0 });
        let seen = Observation { worker, ..seen(20, 0) };
        let result = RunResult { cpu_ns: vec![threads * 100_000; 20], ..result };
        assert_eq!(accuse(&mut audit(0.1), &result, seen), None, "{threads}");
    }
}

#[test]
fn a_worker_that_waits_for_a_cpu_explains_no_more_than_its_waits() {
    let mut audit = Audit { is_by_host: true, ..audit(0.1) };
    let request = |samples: usize| RunResult { untimed_ns: Some(1_000), ..result(samples, 0.1) };
    audit.learn_untimed(&request(1), &request(20));
    let lies = RunResult { untimed_ns: Some(40_000_000), ..request(20) };
    assert!(accuse(&mut audit, &lies, seen_waiting(4_000_000, 4_000_000)).is_some());
}
