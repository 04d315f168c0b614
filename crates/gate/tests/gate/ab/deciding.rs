//! When a workload has units enough, and what they decide.

use super::*;
use holdpoint_gate::ab::Decision;

/// A unit of which nothing but its number is looked at.
fn with_x(x: f64) -> Unit {
    Unit { x, ..unit_of([]) }
}

/// Pushes into workload 0 until it wants no more; the units it took.
fn run_one(deciding: &mut Deciding, mut next: impl FnMut() -> f64) -> usize {
    let mut units_count = 0;
    while deciding.wants_more(0) {
        let x = next();
        units_count += 1;
        if !deciding.push(0, &with_x(x)) {
            break;
        }
    }
    units_count
}

/// One of eight workloads, with a change and normal noise: what was decided after how many units.
fn simulate(seed: u64, change: f64, sd: f64) -> (Decision, usize) {
    let (mut deciding, mut random) = (Deciding::new(&plan(), names(8)).unwrap(), Random::new(seed));
    let units_count = run_one(&mut deciding, || (1.0 + change).ln() + sd * random.normal());
    (deciding.decision(0), units_count)
}

/// As many workloads, whose names say nothing.
fn names(count: usize) -> std::vec::IntoIter<&'static str> {
    vec!["w"; count].into_iter()
}

#[test]
fn the_same_code_on_both_sides_is_not_slower() {
    let outcomes: Vec<_> = (0..200).map(|seed| simulate(seed, 0.0, 0.01)).collect();
    let count = |decision| outcomes.iter().filter(|(found, _)| *found == decision).count();
    assert_eq!(count(Decision::Slower) + count(Decision::Faster), 0);
    assert!(count(Decision::NotSlower) >= 198, "{}", count(Decision::NotSlower));
}

#[test]
fn two_percent_slower_is_slower_and_ends_at_once() {
    for seed in 0..20 {
        let (decision, units_count) = simulate(seed, 0.02, 0.005);
        assert_eq!(decision, Decision::Slower, "{seed}");
        assert!((15..40).contains(&units_count), "{units_count}");
    }
}

#[test]
fn what_sticks_to_one_pair_of_processes_is_no_alarm() {
    let mut deciding = Deciding::new(&plan(), names(8)).unwrap();
    for _ in 0..30 {
        assert!(deciding.push(0, &Unit { process: 0, ..with_x(0.02) }), "it goes on");
    }
    assert!(deciding.lacks_pairs(0) && !deciding.lacks_pairs(1));
    deciding.finish();
    assert_eq!(deciding.decision(0), Decision::Undecided);
    deciding.push(0, &Unit { process: 1, ..with_x(0.02) });
    deciding.push(0, &Unit { process: 2, ..with_x(0.02) });
    assert_eq!(deciding.decision(0), Decision::Slower);
    assert!(!deciding.lacks_pairs(0));
}

#[test]
fn five_percent_faster_goes_on_beyond_not_slower_and_is_faster() {
    for seed in 0..20 {
        let (decision, units_count) = simulate(seed, -0.05, 0.005);
        assert_eq!((decision, units_count), (Decision::Faster, 15), "{seed}");
    }
}

#[test]
fn what_is_not_slower_and_looks_faster_goes_on_to_twice_the_units_and_no_further() {
    let mut deciding = Deciding::new(&plan(), names(1000)).unwrap();
    let least = deciding.plan(0).unwrap().units_count_min();
    let mut pass = None;
    let mut units_count = 0;
    // One in five is within the tolerance: it looks faster, and is never certain.
    let mut wants_more = true;
    while wants_more {
        wants_more = deciding.push(0, &with_x(if units_count % 5 == 3 { -0.005 } else { -0.02 }));
        units_count += 1;
        if deciding.decision(0) == Decision::NotSlower {
            pass.get_or_insert(units_count);
        }
    }
    assert_eq!(deciding.decision(0), Decision::NotSlower);
    assert!(deciding.evidence(0).unwrap().e_faster() >= 1.0);
    assert_eq!(units_count, (2 * pass.unwrap()).max(least));
}

#[test]
fn what_is_not_slower_and_does_not_look_faster_ends() {
    let mut deciding = Deciding::new(&plan(), names(8)).unwrap();
    run_one(&mut deciding, || -0.005);
    assert_eq!(deciding.decision(0), Decision::NotSlower);
    assert!(deciding.evidence(0).unwrap().units_count() < deciding.plan(0).unwrap().units_count_min());
}

#[test]
fn units_max_ends_what_is_undecided() {
    let mut deciding = Deciding::new(&AbPlan { units_max: 7, ..plan() }, names(1)).unwrap();
    let mut sign = 1.0;
    let units_count = run_one(&mut deciding, || {
        sign = -sign;
        0.01 + sign * 0.05
    });
    assert_eq!((units_count, deciding.decision(0)), (7, Decision::Undecided));
}

#[test]
fn what_dropped_out_or_does_not_exist_wants_nothing() {
    let mut deciding = Deciding::new(&plan(), names(2)).unwrap();
    deciding.drop_out(1);
    assert!(deciding.wants_more(0) && !deciding.wants_more(1) && !deciding.wants_more(2));
    assert!(!deciding.push(2, &with_x(0.1)));
    assert_eq!(deciding.decision(2), Decision::Undecided);
    assert!(Deciding::new(&plan(), names(0)).is_ok());
    assert!(Deciding::new(&AbPlan { alarm_rate: 0.0, ..plan() }, names(1)).is_err());
}

#[test]
fn replaying_the_units_of_a_report_is_as_if_they_were_taken_now() {
    let changes = [0.0, 0.02, -0.05, 0.01];
    let mut live = Deciding::new(&plan(), names(changes.len())).unwrap();
    let mut workloads: Vec<AbWorkload> = changes.iter().map(|_| workload(&[])).collect();
    let mut random = Random::new(11);
    for (index, change) in changes.iter().enumerate() {
        while live.wants_more(index) {
            let units = &mut workloads[index].units;
            units.push(unit(0, f64::ln(1.0 + change) + 0.008 * random.normal()));
            live.push(index, units.last().unwrap());
        }
    }
    workloads[3].ended = Ended::Failed;
    live.drop_out(3);
    let mut replayed = Deciding::replay(&report(workloads), &plan()).unwrap();
    for _ in 0..2 {
        for index in 0..changes.len() {
            assert_eq!(replayed.decision(index), live.decision(index));
            assert_eq!(replayed.wants_more(index), live.wants_more(index));
            assert_eq!(replayed.evidence(index), live.evidence(index));
        }
        live.finish();
        replayed.finish();
    }
}

#[test]
fn the_labels_can_be_swapped() {
    for (seed, change) in [(1, 0.03), (2, 0.05), (3, -0.04)] {
        let xs = noisy(seed, 60, change, 0.005);
        let decided = |sign: f64| {
            let (mut deciding, mut xs) = (Deciding::new(&plan(), names(4)).unwrap(), xs.iter());
            run_one(&mut deciding, || sign * xs.next().unwrap());
            (deciding.decision(0), deciding.evidence(0).unwrap().units_count())
        };
        let (there, back) = (decided(1.0), decided(-1.0));
        let both = [there.0, back.0];
        assert!(both.contains(&Decision::Slower) && both.contains(&Decision::Faster), "{both:?}");
        assert_eq!(there.1, back.1);
    }
}

/// As many clear units as give one of `workloads_count` about half of what an alarm takes.
fn nearly(workloads_count: usize) -> usize {
    let deciding = Deciding::new(&plan(), names(workloads_count)).unwrap();
    deciding.plan(0).unwrap().units_count_min() - 1
}

#[test]
fn company_calls_what_alone_would_stay_undecided() {
    for x in [0.5, -0.5] {
        let mut alone = Deciding::new(&plan(), names(4)).unwrap();
        (0..nearly(4)).for_each(|_| _ = alone.push(0, &with_x(x)));
        let before = alone.decision(0);
        alone.finish();
        assert_eq!((alone.decision(0), alone.is_called_together(0)), (before, false));

        let mut company = Deciding::new(&plan(), names(4)).unwrap();
        (0..nearly(4)).for_each(|_| _ = company.push(0, &with_x(x)));
        (0..=nearly(4)).for_each(|_| _ = company.push(1, &with_x(x)));
        let called = if x > 0.0 { Decision::Slower } else { Decision::Faster };
        assert_eq!((company.decision(0), company.decision(1)), (before, called));
        company.finish();
        assert_eq!((company.decision(0), company.is_called_together(0)), (called, true));
        assert_eq!((company.decision(1), company.is_called_together(1)), (called, false));
        assert!(!company.wants_more(0));
        assert_eq!(company.decision(2), Decision::Undecided);
    }
}

#[test]
fn what_dropped_out_is_no_company() {
    let mut deciding = Deciding::new(&plan(), names(4)).unwrap();
    (0..nearly(4)).for_each(|_| _ = deciding.push(0, &with_x(0.5)));
    (0..40).for_each(|_| _ = deciding.push(1, &with_x(0.5)));
    deciding.drop_out(1);
    deciding.finish();
    assert_eq!(deciding.decision(0), Decision::Undecided);
}

#[test]
fn finishing_an_unchanged_suite_calls_nothing() {
    for seed in 0..50 {
        let (mut deciding, mut random) = (Deciding::new(&plan(), names(8)).unwrap(), Random::new(seed));
        for index in 0..8 {
            while deciding.wants_more(index) {
                deciding.push(index, &with_x(0.02 * random.normal()));
            }
        }
        deciding.finish();
        assert!(
            (0..8).all(|i| !matches!(deciding.decision(i), Decision::Slower | Decision::Faster)),
            "{seed}"
        );
    }
}
