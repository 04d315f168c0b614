use super::*;
use crate::random::Random;
use proptest::prelude::*;

/// Noise of 1 % around levels that begin at the given indices.
fn series(random: &mut Random, levels: &[(usize, f64)], count: usize) -> Vec<f64> {
    let level = |i: usize| levels.iter().rev().find(|(from, _)| *from <= i).map_or(1.0, |(_, level)| *level);
    (0..count).map(|i| level(i) * (0.01 * random.normal()).exp()).collect()
}

fn indices(values: &[f64]) -> Vec<usize> {
    find_changes(values).iter().map(|change| change.index).collect()
}

#[test]
fn a_step_is_found_where_it_is_with_its_size() {
    let mut random = Random::new(1);
    let values = series(&mut random, &[(0, 100.0), (60, 112.0), (150, 90.0)], 240);
    let changes = find_changes(&values);
    assert_eq!(changes.iter().map(|change| change.index).collect::<Vec<_>>(), [60, 150]);
    for (change, ratio) in changes.iter().zip([1.12, 90.0 / 112.0]) {
        let [low, high] = change.interval.unwrap();
        assert!(low < ratio && ratio < high && high / low < 1.02, "{change:?}");
        assert!((change.ratio.unwrap() / ratio - 1.0).abs() < 0.01, "{change:?}");
        assert!(change.range[0] <= change.index && change.index <= change.range[1], "{change:?}");
    }
}

#[test]
fn a_few_bad_runs_are_no_change_and_a_lasting_one_is() {
    let mut random = Random::new(2);
    let mut values = series(&mut random, &[(0, 10.0)], 200);
    for i in [30, 31, 90, 91, 92, 198, 199] {
        values[i] *= 5.0;
    }
    assert_eq!(indices(&values), []);
    for value in &mut values[120..132] {
        *value *= 1.2;
    }
    assert_eq!(indices(&values), [120, 132]);
}

#[test]
fn steps_too_small_to_matter_are_merged() {
    let mut random = Random::new(3);
    let values = series(&mut random, &[(0, 10.0), (1000, 10.1)], 2000);
    assert_eq!(indices(&values), [], "1 % is below the least step");
    let values = series(&mut random, &[(0, 10.0), (1000, 10.3)], 2000);
    assert_eq!(find_changes(&values).len(), 1, "3 % is not");
}

#[test]
fn unchanged_noise_of_any_kind_seldom_has_a_change() {
    let trials = 60;
    let count = |noise: &dyn Fn(&mut Random) -> f64, correlation: f64| -> usize {
        (0..trials)
            .map(|seed| {
                let mut random = Random::new(seed);
                let mut slow = 0.0;
                let values: Vec<f64> = (0..600)
                    .map(|_| {
                        slow = correlation * slow + noise(&mut random);
                        (0.02 * slow).exp()
                    })
                    .collect();
                find_changes(&values).len()
            })
            .sum()
    };
    assert_eq!(count(&Random::normal, 0.0), 0, "normal");
    assert_eq!(count(&|random| -random.uniform().ln(), 0.0), 0, "skewed");
    assert_eq!(count(&|random| random.normal() / random.uniform().max(0.05), 0.0), 0, "long tails");
    let correlated = count(&Random::normal, 0.3);
    assert!(correlated <= 3, "correlated: {correlated} in {trials} series of 600");
}

#[test]
fn intervals_and_ranges_cover_at_their_rate() {
    let trials = 400;
    let (mut covered, mut inside, mut found) = (0, 0, 0);
    for seed in 0..trials {
        let mut random = Random::new(1_000 + seed);
        let values = series(&mut random, &[(0, 1.0), (70, 1.025)], 140);
        let changes = find_changes(&values);
        let [change] = changes.as_slice() else { continue };
        found += 1;
        covered += usize::from(change.interval.is_some_and(|[low, high]| low < 1.025 && 1.025 < high));
        inside += usize::from((change.range[0]..=change.range[1]).contains(&70));
    }
    assert!(found > trials * 9 / 10, "{found} of {trials} found");
    assert!(covered * 100 > found as usize * 92, "the size's interval covers in {covered} of {found}");
    assert!(inside * 100 > found as usize * 94, "the range covers in {inside} of {found}");
}

#[test]
fn odd_series_are_no_trouble() {
    for values in [vec![], vec![1.0], vec![0.0; 50], vec![7.0; 50], vec![f64::NAN; 50], vec![-3.0; 50]] {
        assert_eq!(find_changes(&values), [], "{values:?}");
    }
    let step: Vec<f64> = (0..80).map(|i| if i < 40 { -4.0 } else { 2.0 }).collect();
    let changes = find_changes(&step);
    assert_eq!(
        (changes.len(), changes[0].index, changes[0].ratio),
        (1, 40, None),
        "no ratio of a negative level"
    );
    let huge: Vec<f64> = (0..80).map(|i| if i < 40 { 1e-300 } else { 1e300 }).collect();
    assert_eq!(indices(&huge), [40]);
    // From zero: the level exists, a ratio does not.
    let zero: Vec<f64> = (0..80).map(|i| if i < 40 { 0.0 } else { 3.0 }).collect();
    assert_eq!(
        find_changes(&zero).iter().map(|change| (change.index, change.ratio)).collect::<Vec<_>>(),
        [(40, None)]
    );
}

#[test]
fn reversed_series_have_reversed_changes() {
    for seed in 0..100 {
        let mut random = Random::new(seed);
        let at = 20 + random.below(80);
        let mut values = series(&mut random, &[(0, 1.0), (at, 1.3)], 120);
        let forward = indices(&values);
        values.reverse();
        let backward = indices(&values);
        // A point that fits neither side belongs to either.
        assert!(forward.len() == 1 && forward[0].abs_diff(at) <= 1, "{seed}: {forward:?}");
        assert!(backward.len() == 1 && backward[0].abs_diff(120 - at) <= 1, "{seed}: {backward:?}");
    }
}

#[test]
fn one_outlier_adds_no_change() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut values = series(&mut random, &[(0, 1.0), (60, 1.3)], 120);
        values[random.below(120)] *= (3.0 * random.normal()).exp();
        let found = indices(&values);
        // At the step itself the outlier belongs to either side.
        assert!(found.len() == 1 && found[0].abs_diff(60) <= 1, "{seed}: {found:?}");
    }
}

proptest! {
    #[test]
    fn the_unit_of_the_values_does_not_matter(seed: u64, at in 30_usize..90, step in 0.7_f64..1.4, unit in -30_i32..30) {
        let mut random = Random::new(seed);
        let values = series(&mut random, &[(0, 1.0), (at, step)], 120);
        let scaled: Vec<f64> = values.iter().map(|value| value * 10_f64.powi(unit)).collect();
        prop_assert_eq!(indices(&scaled), indices(&values));
    }

    #[test]
    fn no_input_makes_it_panic(values in prop::collection::vec(any::<f64>(), 0..200)) {
        let changes = find_changes(&values);
        prop_assert!(changes.windows(2).all(|pair| pair[0].index < pair[1].index));
    }
}
