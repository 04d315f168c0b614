//! What the sequential rule promises: symmetry, scale, and error rates at any time of stopping.

use holdpoint_stats::random::Random;
use holdpoint_stats::sequential::{
    Decision, Evidence, Plan, Sequential, e_bh, ln_e_of_signs, median_interval,
};
use proptest::prelude::*;

fn decide(plan: Plan, units: impl IntoIterator<Item = f64>) -> Sequential {
    let mut sequential = Sequential::new(plan).expect("a plan that makes sense");
    units.into_iter().for_each(|x| {
        sequential.push(x);
    });
    sequential
}

fn eight() -> Plan {
    Plan { workloads_count: 8, ..Plan::default() }
}

#[test]
fn clear_cases_are_clear() {
    assert_eq!(decide(eight(), vec![0.05; 13]).decision(), Decision::Undecided);
    assert_eq!(decide(eight(), vec![0.05; 15]).decision(), Decision::Slower);
    assert_eq!(decide(eight(), vec![-0.05; 8]).decision(), Decision::NotSlower);
    assert_eq!(decide(eight(), vec![-0.05; 15]).decision(), Decision::Faster);
    assert_eq!(decide(eight(), vec![0.0; 9]).decision(), Decision::NotSlower);
    // Neither slower than the tolerance nor faster: no number of units makes it more than that.
    assert_eq!(decide(eight(), vec![0.0; 500]).decision(), Decision::NotSlower);
}

#[test]
fn a_call_needs_three_pairs_of_processes_that_say_so() {
    for (x, call) in [(0.05, Decision::Slower), (-0.05, Decision::Faster)] {
        let mut units = Sequential::new(eight()).expect("a plan that makes sense");
        (0..100).for_each(|i| _ = units.push_from(i == 0, x));
        assert!(units.decision() != call && units.lacks_pairs());
        assert_eq!(units.e_to_call(call), 0.0, "not by others' calls either");
        units.push_from(true, x);
        assert_ne!(units.decision(), call);
        assert_eq!(units.push_from(true, x), call);
        assert!(!units.lacks_pairs());
    }
    // One pair is enough for what is not slower.
    let mut unchanged = Sequential::new(eight()).expect("a plan that makes sense");
    (0..9).for_each(|i| _ = unchanged.push_from(i == 0, 0.0));
    assert_eq!(unchanged.decision(), Decision::NotSlower);
}

#[test]
fn where_pairs_of_processes_differ_each_is_one_piece_of_evidence() {
    for (x, call) in [(0.05, Decision::Slower), (-0.05, Decision::Faster)] {
        // As a kernel of two speeds gives them, by where its process happens to lie: five of eight pairs, eight units each.
        let mut units = Sequential::new(eight()).expect("a plan that makes sense");
        for pair in [1.0, 1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0] {
            (0..8).for_each(|i| _ = units.push_from(i == 0, pair * x));
        }
        assert!(units.decision() != call && units.lacks_pairs());
        assert!(units.e_to_call(call) < 10.0, "{}", units.e_to_call(call));
        // A change shows in them all the same.
        let more = (0..40).position(|_| units.push_from(true, x) == call);
        assert!(more.is_some_and(|more| more > 8), "{more:?}");
    }
}

/// The worked example of METHODOLOGY, in percent: about 2 % slower, one unit short of the tolerance.
const EXAMPLE: [f64; 20] =
    [2.1, 2.6, 1.4, 3.0, 0.7, 2.2, 1.9, 2.8, 2.4, 1.2, 2.0, 2.7, 1.6, 2.3, 3.1, 1.8, 2.5, 2.1, 1.5, 2.9];

#[test]
fn the_worked_example_is_decided_as_written() {
    let after = |units_count: usize| decide(eight(), EXAMPLE[..units_count].iter().map(|x| x / 100.0));
    for (units_count, want) in [(1, 1.59), (4, 8.04), (5, 4.17), (10, 50.5), (18, 6187.0), (19, 10_882.0)] {
        let got = after(units_count).e_slower();
        assert!((got / want - 1.0).abs() < 0.005, "{units_count}: {got}");
    }
    assert_eq!(after(18).decision(), Decision::Undecided);
    assert_eq!(after(19).decision(), Decision::Slower);
    let [low, high] = after(19).interval().unwrap().ends;
    assert!((low - 1.0107).abs() < 1e-4 && (high - 1.0310).abs() < 1e-4, "{low} {high}");
    assert!((after(19).smallest_visible_slowdown().unwrap() - 0.0206).abs() < 1e-4);
}

#[test]
fn exactly_at_the_tolerance_nothing_is_ever_decided() {
    let plan = eight();
    assert_eq!(decide(plan, vec![plan.line(); 300]).decision(), Decision::Undecided);
}

#[test]
fn slower_and_faster_are_final_and_not_slower_is_not() {
    let slow_then_fast = [vec![0.05; 20], vec![-0.05; 500]].concat();
    assert_eq!(decide(eight(), slow_then_fast).decision(), Decision::Slower);
    let fast_then_slow = [vec![-0.05; 9], vec![0.05; 300]].concat();
    assert_eq!(decide(eight(), fast_then_slow).decision(), Decision::Slower);
}

#[test]
fn no_number_is_no_evidence() {
    let with = decide(eight(), [0.02, f64::NAN, 0.03, f64::INFINITY]);
    assert_eq!(with, decide(eight(), [0.02, 0.03]));
    assert_eq!(decide(eight(), []).median_ratio(), None);
    assert_eq!(decide(eight(), []).smallest_visible_slowdown(), None);
}

#[test]
fn the_smallest_visible_slowdown_shrinks_with_units_and_grows_with_noise() {
    let visible = |units_count: usize, sd: f64| {
        let mut random = Random::new(5);
        decide(eight(), (0..units_count).map(|_| sd * random.normal())).smallest_visible_slowdown()
    };
    assert_eq!(visible(13, 0.01), None);
    let (few, many, noisy) =
        (visible(25, 0.01).unwrap(), visible(100, 0.01).unwrap(), visible(100, 0.05).unwrap());
    assert!(0.01 < many && many < few && few < 0.05, "{many} {few}");
    assert!(noisy > many, "{noisy}");
}

#[test]
fn the_maximum_of_the_evidence_keeps_its_rate_under_optional_stopping() {
    // Symmetric, and as unpleasant as symmetry allows: the size of each unit depends on the past, and has no variance.
    let (mut random, trials_count, alpha) = (Random::new(11), 20_000, 0.05);
    let reaches = |random: &mut Random| {
        let (mut evidence, mut scale) = (Evidence::default(), 0.01_f64);
        (0..60).any(|_| {
            let x = scale * random.normal() / random.uniform();
            evidence.push(x, scale);
            scale = if x > 0.0 { 0.02 } else { 0.005 };
            evidence.e() >= 1.0 / alpha
        })
    };
    let count = (0..trials_count).filter(|_| reaches(&mut random)).count() as f64;
    let rate = count / f64::from(trials_count);
    assert!(rate < alpha, "{rate}");
    assert!(rate > alpha / 10.0, "{rate}: so careful that it cannot see anything");
}

#[test]
fn the_interval_covers_the_median_at_all_times_together() {
    let (mut random, trials_count, misses_max) = (Random::new(12), 4_000, 0.05);
    let ever_misses = |random: &mut Random| {
        let mut sorted: Vec<f64> = Vec::new();
        (0..100).any(|_| {
            // Exponential: skewed, median ln 2.
            let x = -random.uniform().ln();
            sorted.insert(sorted.partition_point(|other| *other < x), x);
            median_interval(&sorted, 1.0 - misses_max)
                .is_some_and(|[low, high]| !(low..=high).contains(&2_f64.ln()))
        })
    };
    let rate =
        (0..trials_count).filter(|_| ever_misses(&mut random)).count() as f64 / f64::from(trials_count);
    assert!(rate < misses_max && rate > 0.002, "{rate}");
}

#[test]
fn both_error_rates_hold_at_the_line() {
    // The worst case for both: a change exactly as large as the tolerance.
    let plan = Plan { alarm_rate: 0.05, miss_rate: 0.05, ..Plan::default() };
    let (mut random, trials_count) = (Random::new(13), 4_000);
    let mut count = [0, 0];
    for _ in 0..trials_count {
        let mut sequential = Sequential::new(plan).unwrap();
        let first = (0..80)
            .map(|_| sequential.push(plan.line() + 0.01 * random.normal()))
            .find(|d| *d != Decision::Undecided);
        match first {
            Some(Decision::Slower) => count[0] += 1,
            Some(Decision::NotSlower) => count[1] += 1,
            _ => {}
        }
    }
    assert!(count.iter().all(|c| *c < trials_count / 20), "{count:?}");
}

#[test]
fn e_bh_over_an_unchanged_suite_keeps_its_rate() {
    let (mut random, suites_count, rate) = (Random::new(14), 5_000, 0.1);
    let is_alarm = |random: &mut Random| {
        // Workloads share the machine's noise: dependence is allowed.
        let mut e_values = [0.0; 4];
        let mut suite = vec![Evidence::default(); 4];
        for _ in 0..30 {
            let common = random.normal();
            for evidence in &mut suite {
                evidence.push(0.01 * (common + random.normal()), 0.014);
            }
        }
        suite.iter().zip(&mut e_values).for_each(|(evidence, e)| *e = evidence.e());
        !e_bh(&e_values, rate).is_empty()
    };
    let count = (0..suites_count).filter(|_| is_alarm(&mut random)).count() as f64;
    assert!(count / f64::from(suites_count) < rate, "{count}");
}

fn units() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-0.1_f64..0.1, 1..60)
}

proptest! {
    #[test]
    fn swapping_base_and_head_swaps_slower_and_faster(units in units(), shift in -0.05_f64..0.05) {
        let units: Vec<f64> = units.iter().map(|x| x + shift).collect();
        let there = decide(eight(), units.iter().copied());
        let back = decide(eight(), units.iter().map(|x| -x));
        prop_assert_eq!(there.e_slower(), back.e_faster());
        prop_assert_eq!(there.e_faster(), back.e_slower());
        prop_assert_eq!(there.decision() == Decision::Slower, back.decision() == Decision::Faster);
        let product = there.median_ratio().unwrap() * back.median_ratio().unwrap();
        prop_assert!((product - 1.0).abs() < 1e-12);
        if let Some([low, high]) = there.median_ratio_interval(0.95) {
            let [back_low, back_high] = back.median_ratio_interval(0.95).unwrap();
            prop_assert!((low * back_high - 1.0).abs() < 1e-12 && (high * back_low - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn signs_and_the_interval_do_not_care_about_order(units in units()) {
        let reversed: Vec<f64> = units.iter().rev().copied().collect();
        let (there, back) = (decide(eight(), units), decide(eight(), reversed));
        prop_assert_eq!(there.median_ratio_interval(0.9), back.median_ratio_interval(0.9));
        prop_assert_eq!(there.median_ratio(), back.median_ratio());
    }

    #[test]
    fn a_coarser_unit_of_noise_and_tolerance_changes_nothing(units in units()) {
        let plan = eight();
        let wide = Plan { tolerance: (4.0 * plan.line()).exp_m1(), ..plan };
        let there = decide(plan, units.iter().copied());
        let scaled = decide(wide, units.iter().map(|x| 4.0 * x));
        prop_assert!((there.e_slower() / scaled.e_slower() - 1.0).abs() < 1e-6);
        prop_assert!((there.e_not_slower() / scaled.e_not_slower() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn slower_units_are_never_less_evidence_for_slower(units in units(), shift in 0.0_f64..0.05) {
        let there = decide(eight(), units.iter().copied());
        let slower = decide(eight(), units.iter().map(|x| x + shift));
        prop_assert!(slower.e_slower() >= there.e_slower() * (1.0 - 1e-6));
        prop_assert!(slower.e_not_slower() <= there.e_not_slower() * (1.0 + 1e-6));
    }

    #[test]
    fn a_slowdown_that_could_be_seen_is_seen(units in prop::collection::vec(-0.03_f64..0.03, 20..60)) {
        let plan = eight();
        let noise = decide(plan, units.iter().copied());
        if let Some(slowdown) = noise.smallest_visible_slowdown() {
            let shift = slowdown.ln_1p() - noise.median_ratio().unwrap().ln() + 1e-9;
            prop_assert_eq!(decide(plan, units.iter().map(|x| x + shift)).decision(), Decision::Slower);
        }
    }

    #[test]
    fn the_interval_holds_the_median_and_widens_with_confidence(units in units()) {
        let sequential = decide(eight(), units);
        if let Some([low, high]) = sequential.median_ratio_interval(0.99) {
            let middle = sequential.median_ratio().unwrap();
            prop_assert!(low <= middle && middle <= high);
            let [inner_low, inner_high] = sequential.median_ratio_interval(0.8).unwrap();
            prop_assert!(low <= inner_low && inner_high <= high);
        }
    }

    #[test]
    fn one_more_beyond_is_worth_more(n in 1_usize..400, share in 0.0_f64..1.0) {
        let k = (share * n as f64) as usize;
        prop_assert!(ln_e_of_signs(n, k) < ln_e_of_signs(n, (k + 1).min(n)) || k == n);
        prop_assert!(ln_e_of_signs(n + 1, k) < ln_e_of_signs(n, k));
        prop_assert!(ln_e_of_signs(n + 1, k + 1) > ln_e_of_signs(n, k));
    }
}
