//! How the next unit is measured.

use super::*;
use holdpoint_gate::ab::plan_unit;

/// Processes that take as long as ten rounds.
const COST: UnitCost = UnitCost {
    fixed_s: 0.2,
    round_s: 0.0,
    sample_s: 0.0005,
    unit_s_max: 100.0,
    may_overlap: false,
    one_sample: false,
    long_turns: false,
};

fn plan_with(units: &[Unit], cost: &UnitCost) -> UnitPlan {
    plan_unit(units, cost, 0.01, 1)
}

/// Units of eight rounds, with noise between rounds and between units.
fn units(within: f64, between: f64) -> Vec<Unit> {
    units_with(within, between, 0.0)
}

/// The same, and samples that take up to so much longer.
fn units_with(within: f64, between: f64, longer: f64) -> Vec<Unit> {
    let mut random = Random::new(7);
    let mut unit = || {
        let level = between * random.normal();
        let mut turn = |x: f64| {
            let turn = x + within * random.normal() / 2_f64.sqrt();
            let mut sample = || (BASE_NS * (turn + longer * random.uniform()).exp()) as u64;
            (0..20).map(|_| sample()).collect::<Vec<_>>()
        };
        let mut unit = unit_of((0..8).map(|_| round(&turn(0.0), &turn(level))).collect::<Vec<_>>());
        ab::estimate::unit(&mut unit).unwrap();
        unit
    };
    (0..25).map(|_| unit()).collect()
}

/// The same with base and head exchanged.
fn swap(units: &[Unit]) -> Vec<Unit> {
    let mut swapped = units.to_vec();
    for unit in &mut swapped {
        for round in &mut unit.rounds {
            std::mem::swap(&mut round.base_ns, &mut round.head_ns);
            std::mem::swap(&mut round.base_numbers, &mut round.head_numbers);
        }
        ab::estimate::unit(unit).unwrap();
    }
    swapped
}

#[test]
fn a_turn_has_one_sample_where_each_takes_a_process() {
    let cost = UnitCost { one_sample: true, ..COST };
    let plan = plan_with(&[], &cost);
    assert_eq!((plan.samples, plan.skip), (1, 0));
    assert!(plan.rounds > 1, "{plan:?}");
    assert_eq!(plan_with(&units(0.0005, 0.0), &cost).samples, 1);
}

#[test]
fn turns_of_a_harness_may_be_long() {
    let cost = UnitCost { sample_s: 0.02, ..COST };
    assert_eq!(plan_with(&[], &cost).samples, 1);
    assert_eq!(plan_with(&[], &UnitCost { long_turns: true, ..cost }).samples, 20);
}

#[test]
fn before_anything_is_known_a_unit_is_one_call_of_each_side() {
    let plan = plan_with(&[], &UnitCost { unit_s_max: 20.0, ..UnitCost::default() });
    assert_eq!((plan.rounds, plan.samples, plan.skip), (1, 1, 0));
}

#[test]
fn noise_between_rounds_asks_for_more_of_them_and_noise_between_units_for_fewer() {
    let rounds = |within, between| plan_with(&units(within, between), &COST).rounds;
    let (noisy_rounds, noisy_units) = (rounds(0.05, 0.0), rounds(0.002, 0.03));
    assert!(noisy_rounds >= 12, "{noisy_rounds}");
    assert_eq!(noisy_units, 2, "two, so that rounds can be told from units");
    let calm = rounds(0.0005, 0.0);
    assert_eq!(calm, 2, "a unit without noise need not be long");
}

#[test]
fn noisy_samples_ask_for_more_of_them_and_noisy_turns_for_more_turns() {
    let plan = |units: &[Unit]| plan_with(units, &UnitCost { round_s: 0.0002, fixed_s: 0.02, ..COST });
    let noisy_turns = plan(&units(0.05, 0.0));
    assert_eq!(noisy_turns.samples, 1, "all samples of a turn are alike");
    let noisy_samples = plan(&units_with(0.001, 0.0, 0.1));
    assert!(noisy_samples.samples >= 5, "{noisy_samples:?}");
    assert!(noisy_samples.rounds < noisy_turns.rounds, "{noisy_samples:?} {noisy_turns:?}");
    // Now and then a look at what more samples would do.
    assert_eq!(plan(&units(0.05, 0.0)[1..]).samples, 2);
}

#[test]
fn the_plan_does_not_depend_on_which_side_is_which() {
    for (within, between) in [(0.05, 0.0), (0.002, 0.03), (0.01, 0.01)] {
        let units = units(within, between);
        assert_eq!(plan_with(&units, &COST), plan_with(&swap(&units), &COST));
    }
}

#[test]
fn samples_are_left_out_until_they_have_levelled_off() {
    let turn: Vec<u64> = [1_900, 1_400, 1_100, 1_010].into_iter().chain([1_000; 16]).collect();
    let cold = unit_of(vec![round(&turn, &turn); 4]);
    let plan = plan_with(&[cold], &COST);
    assert_eq!((plan.skip, plan.samples), (4, 24));
    let flat = unit_of(vec![round(&[1_000; 20], &[1_010; 20]); 4]);
    assert_eq!(plan_with(&[flat], &COST).skip, 0);
    // Few samples fit into a turn, so none can be spared.
    let slow = UnitCost { sample_s: 0.02, ..COST };
    assert_eq!(plan_with(&[unit_of(vec![round(&turn, &turn); 4])], &slow).skip, 0);
}

#[test]
fn a_long_call_is_a_unit_by_itself_and_the_budget_is_kept() {
    let long = UnitCost { fixed_s: 0.0, sample_s: 5.0, unit_s_max: 9.0, ..COST };
    assert_eq!(plan_with(&[], &long).rounds, 1);
    let late = UnitCost { unit_s_max: 0.2035, ..COST };
    assert_eq!(plan_with(&units(0.05, 0.0), &late).rounds, 3, "what is left of the budget has room for 3");
}

#[test]
fn a_quantile_gets_the_samples_it_needs() {
    let plan = plan_unit(&units(0.0005, 0.0), &UnitCost { sample_s: 0.001, ..COST }, 0.01, 100);
    assert!(plan.rounds * plan.samples >= 100, "{plan:?}");
}

/// A round of one call a side, of 100 ms of wall time, with its CPU times and, if told, its waits.
fn call(cpu_ms: [u64; 2], waits_ms: Option<[u64; 2]>) -> PairRound {
    let mut round = round(&[100_000_000], &[100_000_000]);
    round.base_numbers.cpu_ns = vec![cpu_ms[0] * 1_000_000];
    round.head_numbers.cpu_ns = vec![cpu_ms[1] * 1_000_000];
    if let Some([base, head]) = waits_ms {
        (round.base_wait_ns, round.head_wait_ns) = (vec![base * 1_000_000], vec![head * 1_000_000]);
    }
    round
}

#[test]
fn cpu_time_is_compared_where_both_sides_compute_and_their_waits_are_not_known() {
    let clock = |rounds: &[PairRound]| plan_with(&[unit_of(rounds.to_vec())], &COST).clock;
    assert_eq!(clock(&[call([97, 99], None)]), Clock::Cpu);
    assert_eq!(clock(&[call([50, 60], None), call([97, 99], None)]), Clock::Cpu, "it waited for a CPU once");
    assert_eq!(clock(&[call([97, 60], None)]), Clock::Unwaited, "head also waits for something else");
    assert_eq!(clock(&[call([190, 190], None)]), Clock::Unwaited, "it computes on several CPUs");
    assert_eq!(clock(&[call([57, 59], Some([41, 40]))]), Clock::Unwaited, "waits are known");
    assert_eq!(clock(&[round(&[100], &[100])]), Clock::Unwaited, "CPU time is not known");
}

#[test]
fn long_calls_that_only_compute_run_at_the_same_time() {
    let long = UnitCost { sample_s: 0.05, may_overlap: true, ..COST };
    let clock = |round: PairRound, cost: &UnitCost| plan_with(&[unit_of([round])], cost).clock;
    let computes = || call([57, 59], Some([41, 40]));
    assert_eq!(clock(computes(), &long), Clock::Tandem);
    assert_eq!(clock(call([97, 99], None), &long), Clock::Tandem);
    assert_eq!(clock(computes(), &UnitCost { may_overlap: false, ..long }), Clock::Unwaited);
    assert_eq!(clock(computes(), &UnitCost { sample_s: 0.001, ..long }), Clock::Unwaited, "too short");
    assert_eq!(
        clock(call([57, 30], Some([41, 40])), &long),
        Clock::Unwaited,
        "head waits for something else"
    );
    assert_eq!(plan_with(&[], &long).clock, Clock::Unwaited, "nothing is known");
    // At the same time each has half a CPU, which says nothing about what it waits for.
    let tandem = Unit { clock: Clock::Tandem, ..unit_of([call([50, 50], None)]) };
    assert_eq!(plan_with(std::slice::from_ref(&tandem), &long).clock, Clock::Tandem);
    assert_eq!(plan_with(&[tandem], &UnitCost { may_overlap: false, ..long }).clock, Clock::Unwaited);
}
