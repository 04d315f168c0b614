//! The evidence about a workload, growing unit by unit towards a decision.

use super::{Chart, SIZE, count_ticks, describe_step, thin_out};
use crate::svg::{Frame, Plot, Scale};
use holdpoint_model::ab::NeededEvidence;
use holdpoint_stats::sequential::{Decision, Plan, Sequential};

/// The highest share of the needed evidence that is drawn.
const SHARE_MAX: f64 = 1.2;
/// From this share on the evidence for "faster" is worth a line.
const FASTER_MIN: f64 = 0.25;

/// The shares of what a decision needs, after each unit: of evidence, or of pairs of processes while fewer of those say so. Nothing is
/// decided here: what is needed stands in the judgement. A unit is whether its pair of processes is fresh, and x.
pub(crate) fn evidence(
    tolerance: f64,
    needed: &NeededEvidence,
    units: impl Iterator<Item = (bool, f64)>,
    max: usize,
) -> Option<Chart> {
    let mut known = Sequential::new(Plan { tolerance, ..Plan::default() }).ok()?;
    let share = |e: f64, needed: f64| (e.ln() / needed.ln()).clamp(0.0, SHARE_MAX);
    let shares: Vec<[f64; 3]> = units
        .map(|(is_fresh, x)| {
            known.push_from(is_fresh, x);
            let pairs = |to| f64::from(known.pairs_count(to)) / f64::from(needed.pairs.max(1));
            [
                share(known.e_slower(), needed.call).min(pairs(Decision::Slower)),
                share(known.e_not_slower(), needed.not_slower),
                share(known.e_faster(), needed.call).min(pairs(Decision::Faster)),
            ]
        })
        .collect();
    let count = shares.len();
    let last = *shares.last()?;
    let (mut places, step) = thin_out(shares.iter().enumerate().collect::<Vec<_>>(), max);
    // The end is what decided.
    if places.last().is_some_and(|(i, _)| i + 1 < count) {
        places.push((count - 1, &last));
    }
    let frame = Frame {
        size: SIZE,
        x: Scale::new(0.0, count as f64 + 1.0),
        y: Scale::new(0.0, SHARE_MAX),
        lane: 0.0,
    };
    let mut plot = Plot::new(frame);
    let ticks = [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")].map(|(at, text)| (at, text.to_owned()));
    plot.axes(&count_ticks(count), &ticks, ["evidence", "unit"]);
    plot.level("level", 1.0, "enough to decide");
    let has_faster = shares.iter().any(|[_, _, faster]| *faster >= FASTER_MIN);
    let classes = [("slower", "━ slower"), ("passed", "╌ not slower"), ("faster", "┈ faster")];
    let shown = &classes[..if has_faster { 3 } else { 2 }];
    for (i, (class, _)) in shown.iter().enumerate() {
        plot.line(class, places.iter().map(|(at, shares)| Some([*at as f64 + 1.0, shares[i]])));
    }
    plot.legend(shown);
    Some(Chart {
        plot,
        caption: format!("Evidence, as a share of what a decision needs{}", describe_step(step, count)),
    })
}
