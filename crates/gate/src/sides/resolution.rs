//! Whether the times of a workload could have shown a change: units most of which agree to the last bit are no evidence by themselves.

use crate::ab::estimate;
use holdpoint_model::ab::Clock;
use holdpoint_model::metric::Metric;
use holdpoint_model::{AbWorkload, SideName, Unit};

/// Why a row most of whose units have the same x shows nothing: its times move in steps that are coarser than the tolerance, or
/// not at all. Absent where units differ, where the steps are fine enough, and for what is not a time. Coarse steps round a change
/// away in most units, and show it as a whole step in a few.
///
/// Swapping the sides swaps the steps, and the coarser ones count.
pub(super) fn why_blind(
    workload: &AbWorkload,
    metric: Option<&str>,
    xs: impl Iterator<Item = f64>,
    tolerance: f64,
) -> Option<String> {
    let mut xs = xs.collect::<Vec<f64>>();
    xs.sort_by(f64::total_cmp);
    let same = xs.chunk_by(|a, b| a.to_bits() == b.to_bits()).max_by_key(|same| same.len())?;
    if 2 * same.len() <= xs.len() {
        return None;
    }
    let clock = match metric.map(Metric::from_name) {
        None => None,
        Some(Metric::Quantile(_) | Metric::Mean | Metric::Throughput) => Some(Clock::Unwaited),
        Some(Metric::Cpu) => Some(Clock::Cpu),
        Some(Metric::PeakMemory | Metric::Printed | Metric::Energy | Metric::Exact(_)) => return None,
    };
    let sides = [SideName::Base, SideName::Head].map(|side| steps(&workload.units, side, clock));
    let what = match sides {
        [None, _] | [_, None] => "all times of a side are the same".to_owned(),
        [Some(base), Some(head)] if base.max(head) > tolerance => {
            format!("its times move in steps of {:.1} %", base.max(head) * 100.0)
        }
        _ => return None,
    };
    let units = match (same.len(), xs.len()) {
        (most, all) if most < all => format!("{most} of {all} units"),
        (_, all) => format!("all {all} units"),
    };
    Some(format!(
        "{units} give exactly {:+.1} % and {what}, so the tolerance of {:.1} % cannot be seen: look at how it is timed, or \
         time longer calls",
        same[0].exp_m1() * 100.0,
        tolerance * 100.0
    ))
}

/// The smallest step between two times of a side, as a share of the shortest that stands for a round; absent if all are the same.
fn steps(units: &[Unit], side: SideName, clock: Option<Clock>) -> Option<f64> {
    let rounds = || units.iter().flat_map(|unit| unit.rounds.iter().map(move |round| (unit, round)));
    let mut times: Vec<u64> =
        rounds().flat_map(|(unit, round)| round.times_ns(side, clock.unwrap_or(unit.clock))).collect();
    times.sort_unstable();
    let step = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0).min()?;
    let of_round = |(unit, round)| estimate::times_ns(unit, round).map(|sides| sides[side as usize]);
    let shortest = match clock {
        None => rounds().filter_map(of_round).fold(f64::INFINITY, f64::min),
        Some(_) => times.first().map_or(f64::INFINITY, |ns| *ns as f64),
    };
    Some(step as f64 / shortest.max(1.0))
}
