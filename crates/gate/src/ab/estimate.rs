//! One number from one unit: which rounds count, and what they say.

use holdpoint_model::{PairRound, SideName, Trouble, Unit};
use holdpoint_stats as stats;

/// ln 1.2: a round in which both sides together took a fifth more or less time than in the unit's other rounds saw
/// another machine. Wider than the noise of a few samples, narrower than a lost turbo or a busy neighbour.
pub const DRIFT: f64 = 0.182_321_556_793_954_63;

/// Marks the unit's rounds that drifted and those that are left out, and sets `x = ln(head / base)`: the median over the rounds
/// kept of `ln(head) - ln(base)`, where each side's time is a quantile of its samples in the round, without the first ones.
/// Returns `x`.
///
/// Trouble other than drift and waits comes in with the rounds. A round with any trouble is left out as long as half of the
/// rounds that could count, and at least one, remain; if more are in trouble, trouble is how this machine is, and all of them count. A
/// round in which a side has no sound sample ([`PairRound::sound_ns`]) never counts: it has no times to compare.
///
/// None of this can depend on which side was slower. A round's drift is judged by the mean of both sides' logarithms,
/// in which the sides can be swapped; a round without sound samples is left out for both sides, whichever lacks them; other trouble
/// is told from the machine and both sides together; and what is
/// left out depends on these marks alone. So swapping the labels changes no mark and turns `x` into exactly `-x`, which is all
/// that the error rates of a decision rest on.
///
/// Marking again gives the same marks. Absent without a round that could count, with a side that has no samples, or with a
/// time of zero; the unit is then as it was.
pub fn unit(unit: &mut Unit) -> Option<f64> {
    let is_whole = |round: &PairRound| {
        [SideName::Base, SideName::Head].into_iter().all(|side| {
            let mut times = round.times_ns(side, unit.clock).skip(unit.skip as usize).peekable();
            times.peek().is_some() && times.all(|ns| ns > 0)
        })
    };
    if !unit.rounds.iter().all(is_whole) {
        return None;
    }
    let sides: Vec<Option<[f64; 2]>> = unit.rounds.iter().map(|round| ln_times(unit, round)).collect();
    let level = |sides: &[f64; 2]| f64::midpoint(sides[0], sides[1]);
    let usual = stats::median(&sides.iter().flatten().map(level).collect::<Vec<_>>())?;
    let rounds = &mut unit.rounds;
    for (round, sides) in rounds.iter_mut().zip(&sides) {
        round.trouble.retain(|trouble| !matches!(trouble, Trouble::Drift | Trouble::Waits));
        round.trouble.extend(match sides {
            None => Some(Trouble::Waits),
            Some(sides) if (level(sides) - usual).abs() > DRIFT => Some(Trouble::Drift),
            Some(_) => None,
        });
    }
    let calm_count = rounds.iter().filter(|round| round.trouble.is_empty()).count();
    let is_choosy = calm_count > 0 && 2 * calm_count >= sides.iter().flatten().count();
    for (round, sides) in rounds.iter_mut().zip(&sides) {
        round.left_out = sides.is_none() || is_choosy && !round.trouble.is_empty();
    }
    let kept = rounds.iter().zip(&sides).filter(|(round, _)| !round.left_out);
    unit.x = stats::median(
        &kept.filter_map(|(_, sides)| sides.map(|[base, head]| head - base)).collect::<Vec<_>>(),
    )?;
    Some(unit.x)
}

/// The logarithms of both sides' times in a round of a unit; absent where a side has no sound sample. Logarithms are subtracted,
/// not times divided: `a - b` is `-(b - a)` to the last bit.
pub(crate) fn ln_times(unit: &Unit, round: &PairRound) -> Option<[f64; 2]> {
    let [base, head] = times_ns(unit, round)?;
    Some([base.ln(), head.ln()])
}

/// The times that stand for both sides in a round.
pub(crate) fn times_ns(unit: &Unit, round: &PairRound) -> Option<[f64; 2]> {
    let [base, head] = round.sound_ns(unit.clock, unit.skip as usize).map(|times| {
        let times: Vec<f64> = times.into_iter().map(|ns| ns as f64).collect();
        stats::quantile(&times, unit.quantile).filter(|ns| *ns > 0.0)
    });
    Some([base?, head?])
}
