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
/// Trouble other than drift comes in with the rounds. A round with any trouble is left out as long as half of the rounds,
/// and at least one, remain; if more are in trouble, trouble is how this machine is, and all rounds count.
///
/// None of this can depend on which side was slower. A round's drift is judged by the mean of both sides' logarithms,
/// in which the sides can be swapped; other trouble is told from the machine and both sides together; and what is
/// left out depends on these marks alone. So swapping the labels changes no mark and turns `x` into exactly `-x`, which is all
/// that the error rates of a decision rest on.
///
/// Marking again gives the same marks. Absent without rounds, with a side that has no samples, or with a time of
/// zero; the unit is then as it was.
pub fn unit(unit: &mut Unit) -> Option<f64> {
    let sides: Vec<[f64; 2]> =
        unit.rounds.iter().map(|round| ln_times(unit, round)).collect::<Option<_>>()?;
    let levels: Vec<f64> = sides.iter().map(|[base, head]| f64::midpoint(*base, *head)).collect();
    let usual = stats::median(&levels)?;
    let rounds = &mut unit.rounds;
    for (round, level) in rounds.iter_mut().zip(&levels) {
        round.trouble.retain(|trouble| *trouble != Trouble::Drift);
        if (level - usual).abs() > DRIFT {
            round.trouble.push(Trouble::Drift);
        }
    }
    let calm_count = rounds.iter().filter(|round| round.trouble.is_empty()).count();
    let is_choosy = calm_count > 0 && 2 * calm_count >= rounds.len();
    for round in rounds.iter_mut() {
        round.left_out = is_choosy && !round.trouble.is_empty();
    }
    let kept = rounds.iter().zip(&sides).filter(|(round, _)| !round.left_out);
    unit.x = stats::median(&kept.map(|(_, [base, head])| head - base).collect::<Vec<_>>())?;
    Some(unit.x)
}

/// The logarithms of both sides' times in a round of a unit. Logarithms are subtracted, not times divided: `a - b` is
/// `-(b - a)` to the last bit.
pub(super) fn ln_times(unit: &Unit, round: &PairRound) -> Option<[f64; 2]> {
    let ln_time = |side| {
        let times = round.times_ns(side, unit.clock).skip(unit.skip as usize);
        let times: Vec<f64> = times.map(|ns| ns as f64).collect();
        stats::quantile(&times, unit.quantile).filter(|ns| *ns > 0.0).map(f64::ln)
    };
    Some([ln_time(SideName::Base)?, ln_time(SideName::Head)?])
}
