//! One number from one unit.

use super::*;
use proptest::prelude::*;

/// The number of a unit of these rounds, which are marked.
fn estimate(rounds: &mut [PairRound]) -> Option<f64> {
    let mut unit = unit_of(rounds.to_vec());
    let x = ab::estimate::unit(&mut unit);
    rounds.clone_from_slice(&unit.rounds);
    x
}

fn troubled(mut round: PairRound, trouble: Trouble) -> PairRound {
    round.trouble.push(trouble);
    round
}

fn left_out(rounds: &[PairRound]) -> Vec<bool> {
    rounds.iter().map(|round| round.left_out).collect()
}

#[test]
fn it_is_the_median_over_rounds_of_the_ratio_of_the_nearly_fastest() {
    let mut rounds = [round(&[100], &[110]), round(&[100], &[104, 114]), round(&[103, 100], &[100])];
    let x = estimate(&mut rounds).unwrap();
    // A tenth of the way from the fastest to the next: 105 over 100; the others are 110 over 100 and 100 over 100.3.
    assert!((x - 1.05_f64.ln()).abs() < 1e-12, "{x}");
    assert!(rounds.iter().all(|round| round.trouble.is_empty() && !round.left_out));
}

#[test]
fn the_first_samples_of_a_turn_may_be_left_out_and_the_fastest_of_the_others_counts() {
    let rounds = [round(&[90, 100, 120], &[80, 110, 130]), round(&[300, 100, 100], &[999, 120, 110])];
    let mut unit = Unit { skip: 1, quantile: 0.0, ..unit_of(rounds) };
    assert!((ab::estimate::unit(&mut unit).unwrap() - 1.1_f64.ln()).abs() < 1e-12);
    unit.skip = 3;
    assert_eq!(ab::estimate::unit(&mut unit), None, "nothing is left");
}

#[test]
fn a_unit_may_be_compared_by_cpu_time_or_by_wall_time() {
    let mut waits = round(&[100], &[150]);
    (waits.base_wait_ns, waits.head_wait_ns) = (vec![0], vec![45]);
    (waits.base_numbers.cpu_ns, waits.head_numbers.cpu_ns) = (vec![95], vec![105]);
    for (clock, ratio) in [(Clock::Unwaited, 1.05), (Clock::Wall, 1.5), (Clock::Cpu, 105.0 / 95.0)] {
        let mut unit = Unit { clock, ..unit_of([waits.clone()]) };
        assert!((ab::estimate::unit(&mut unit).unwrap() - f64::ln(ratio)).abs() < 1e-12, "{clock:?}");
    }
}

/// A round whose samples waited for so long.
fn waiting(base: [&[u64]; 2], head: [&[u64]; 2]) -> PairRound {
    PairRound { base_wait_ns: base[1].to_vec(), head_wait_ns: head[1].to_vec(), ..round(base[0], head[0]) }
}

#[test]
fn waits_that_cover_a_sample_do_not_stand_for_it() {
    // Head is four times slower, and each side has a sample of which all but a nanosecond is called a wait.
    let mut rounds = [(); 3].map(|()| waiting([&[50, 51], &[49, 0]], [&[200, 204], &[199, 0]]));
    let x = estimate(&mut rounds).unwrap();
    assert!((x - 4_f64.ln()).abs() < 1e-12, "{x}");
    assert!(rounds.iter().all(|round| round.trouble.is_empty()));
}

#[test]
fn a_round_without_a_sound_sample_on_a_side_never_counts() {
    let covered = || waiting([&[50], &[49]], [&[200], &[0]]);
    let mut rounds = [covered(), covered(), round(&[50], &[200])];
    assert!((estimate(&mut rounds).unwrap() - 4_f64.ln()).abs() < 1e-12, "two of three cannot count");
    assert_eq!(
        (rounds[0].trouble.as_slice(), left_out(&rounds)),
        (&[Trouble::Waits][..], vec![true, true, false])
    );
    assert_eq!(estimate(&mut [covered()]), None);
    assert_eq!(estimate(&mut [waiting([&[50], &[60]], [&[200], &[300]])]), None, "longer than the samples");
}

#[test]
fn long_samples_that_all_waited_are_compared_without_their_waits() {
    let mut rounds = [waiting([&[100], &[60]], [&[300], &[140]])];
    assert!((estimate(&mut rounds).unwrap() - 4_f64.ln()).abs() < 1e-12);
}

#[test]
fn a_round_in_which_both_sides_are_slow_has_drifted_and_is_left_out() {
    let mut rounds = [round(&[100], &[101]), round(&[130], &[160]), round(&[100], &[103])];
    let x = estimate(&mut rounds).unwrap();
    assert_eq!(rounds[1].trouble, [Trouble::Drift]);
    assert_eq!(left_out(&rounds), [false, true, false]);
    assert!((x - f64::midpoint(1.01_f64.ln(), 1.03_f64.ln())).abs() < 1e-12, "{x}");
}

#[test]
fn a_side_alone_that_is_slow_by_the_same_in_every_round_is_no_drift() {
    let mut rounds = [round(&[100], &[200]), round(&[101], &[202]), round(&[100], &[201])];
    estimate(&mut rounds).unwrap();
    assert!(rounds.iter().all(|round| round.trouble.is_empty()));
}

#[test]
fn half_of_the_rounds_may_be_left_out_and_not_more() {
    let calm = || round(&[100], &[101]);
    let stolen = || troubled(round(&[100], &[150]), Trouble::Steal);
    let mut rounds = [calm(), stolen(), calm(), stolen()];
    assert!((estimate(&mut rounds).unwrap() - 1.01_f64.ln()).abs() < 1e-12);
    assert_eq!(left_out(&rounds), [false, true, false, true]);
    let mut rounds = [calm(), stolen(), stolen()];
    assert!((estimate(&mut rounds).unwrap() - 1.5_f64.ln()).abs() < 1e-12);
    assert_eq!(left_out(&rounds), [false; 3], "trouble is how this machine is");
    let mut rounds = [stolen()];
    assert!(estimate(&mut rounds).is_some());
    assert_eq!(left_out(&rounds), [false]);
}

#[test]
fn nothing_in_is_nothing_out() {
    assert_eq!(estimate(&mut []), None);
    assert_eq!(estimate(&mut [round(&[1], &[1]), round(&[], &[1])]), None);
    assert_eq!(estimate(&mut [round(&[1], &[1]), round(&[1], &[0])]), None);
}

fn any_rounds() -> impl Strategy<Value = Vec<PairRound>> {
    let times = || prop::collection::vec(prop_oneof![900_u64..1100, 1_u64..1_000_000_000], 1..4);
    let trouble =
        prop_oneof![4 => Just(None), 1 => Just(Some(Trouble::Steal)), 1 => Just(Some(Trouble::Drift))];
    let share = || prop_oneof![2 => Just(0.0), 1 => 0.0..2.0_f64];
    let one =
        (times(), times(), trouble, share(), share()).prop_map(|(base_ns, head_ns, trouble, base, head)| {
            let waits = |times: &[u64], share: f64| {
                times.iter().map(|ns| (*ns as f64 * share) as u64).collect::<Vec<_>>()
            };
            let plain = waiting([&base_ns, &waits(&base_ns, base)], [&head_ns, &waits(&head_ns, head)]);
            trouble.map_or(plain.clone(), |trouble| troubled(plain, trouble))
        });
    prop::collection::vec(one, 1..8)
}

proptest! {
    #[test]
    fn swapping_the_sides_turns_the_sign_and_changes_no_mark(rounds in any_rounds()) {
        let (mut there, mut back) = (rounds.clone(), rounds);
        for round in &mut back {
            std::mem::swap(&mut round.base_ns, &mut round.head_ns);
            std::mem::swap(&mut round.base_wait_ns, &mut round.head_wait_ns);
        }
        prop_assert_eq!(estimate(&mut there), estimate(&mut back).map(|x| -x));
        let marks = |rounds: &[PairRound]| -> Vec<_> { rounds.iter().map(|r| (r.trouble.clone(), r.left_out)).collect() };
        prop_assert_eq!(marks(&there), marks(&back));
    }

    #[test]
    fn marking_again_changes_nothing(rounds in any_rounds()) {
        let mut once = rounds;
        let x = estimate(&mut once);
        let mut twice = once.clone();
        prop_assert_eq!(estimate(&mut twice), x);
        prop_assert_eq!(once, twice);
    }
}
