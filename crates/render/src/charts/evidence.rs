//! The evidence about a workload, growing unit by unit towards a decision. Nothing is decided here.

use super::{Chart, SIZE, count_ticks, describe_step, thin_out};
use crate::svg::{Frame, Plot, Scale};

/// The highest share of the needed evidence that is drawn.
const SHARE_MAX: f64 = 1.2;
/// From this share on the evidence for "faster" is worth a line.
const FASTER_MIN: f64 = 0.25;

/// The shares of what a decision takes, after each unit.
pub(crate) fn evidence(growth: &[[f64; 3]], max: usize) -> Option<Chart> {
    let shares: Vec<[f64; 3]> =
        growth.iter().map(|shares| shares.map(|share| share.min(SHARE_MAX))).collect();
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
