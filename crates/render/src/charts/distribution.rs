//! How often which time was seen: of two sides base above the axis and head below it.

use super::{Chart, SIZE};
use crate::svg::{Frame, Plot, Scale, nice_ticks};
use crate::{text, units};
use holdpoint_stats as stats;

const BINS: usize = 26;
/// Times beyond these quantiles are counted, not drawn: one hiccup would squeeze all others into a bin.
const QUANTILES: [f64; 2] = [0.001, 0.98];

/// Times of one side.
#[derive(Clone, Debug)]
pub(crate) struct Samples {
    pub(crate) class: &'static str,
    pub(crate) times_ms: Vec<f64>,
}

/// One side, or base and head; a limit and a range of other values, where there are.
pub(crate) fn distribution(
    sides: &[Samples],
    limit_ms: Option<(f64, &str)>,
    before_ms: Option<[f64; 2]>,
) -> Option<Chart> {
    let all: Vec<f64> = sides.iter().flat_map(|side| side.times_ms.iter().copied()).collect();
    let middle = stats::median(&all)?;
    let [low, high] = QUANTILES.map(|q| stats::quantile(&all, q).unwrap_or(middle));
    let limit_ms = limit_ms.filter(|(limit, _)| *limit < high + 2.0 * (high - low));
    let others = limit_ms.iter().map(|(limit, _)| *limit).chain(before_ms.into_iter().flatten());
    let others =
        others.filter(|value| *value > low - 2.0 * (high - low) && *value < high + 3.0 * (high - low));
    let x = Scale::over([low, high].into_iter().chain(others), middle * 0.005);
    let [from, to] = x.ends();
    let width = (to - from) / BINS as f64;
    let counts: Vec<Vec<f64>> = sides.iter().map(|side| bin_shares(&side.times_ms, from, width)).collect();
    let highest = counts.iter().flatten().copied().fold(0.0, f64::max).max(f64::MIN_POSITIVE);
    let is_pairs = sides.len() == 2;
    let y = if is_pairs { Scale::new(-1.1, 1.1) } else { Scale::new(0.0, 1.1) };
    let mut plot = Plot::new(Frame { size: SIZE, x, y, lane: 0.0 });
    if let Some([low, high]) = before_ms {
        plot.band("band", [low, high], y.ends());
    }
    for (i, (side, shares)) in sides.iter().zip(&counts).enumerate() {
        let sign = if i == 0 { 1.0 } else { -1.0 };
        let heights: Vec<f64> = shares.iter().map(|share| sign * share / highest).collect();
        plot.steps(&format!("fill {}", side.class), 0.0, from, width, &heights);
        if let Some(median) = stats::median(&side.times_ms) {
            plot.spans("ci", [(median, [0.0, sign * 1.08])]);
        }
    }
    let (per_ms, unit) = units::axis_unit(to);
    let ticks = nice_ticks([from * per_ms, to * per_ms], 5).into_iter();
    let ticks: Vec<(f64, String)> = ticks.map(|(at, text)| (at / per_ms, text)).collect();
    plot.axes(&ticks, &[], ["samples", unit]);
    if is_pairs {
        plot.level("axis", 0.0, "");
        plot.legend(&[("base", "▲ base"), ("head", "▼ head"), ("", "| median")]);
    } else {
        plot.legend(&[("", "| median")]);
    }
    if let Some((limit, _)) = limit_ms {
        plot.upright("bound", limit);
    }
    let beyond = all.iter().filter(|time| !x.holds(**time)).count();
    let beyond =
        if beyond == 0 { String::new() } else { format!(", {} beyond", units::count(beyond as u64)) };
    Some(Chart { plot, caption: format!("Distribution of {}{beyond}", text::plural(all.len(), "sample")) })
}

/// The share of the times in each bin.
fn bin_shares(times: &[f64], from: f64, width: f64) -> Vec<f64> {
    let mut shares = vec![0.0; BINS];
    for time in times {
        let bin = ((time - from) / width).floor();
        if (0.0..BINS as f64).contains(&bin) {
            shares[bin as usize] += 1.0 / times.len() as f64;
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_lies_in_one_bin() {
        let shares = bin_shares(&[1.0, 1.5, 2.0, f64::NAN, 99.0], 1.0, 0.5);
        assert_eq!(&shares[..3], [0.2, 0.2, 0.2]);
        assert!((shares.iter().sum::<f64>() - 0.6).abs() < 1e-9);
    }

    #[test]
    fn nothing_is_no_chart_and_one_sample_is() {
        let side = |times_ms| Samples { class: "base", times_ms };
        assert!(distribution(&[side(vec![])], None, None).is_none());
        assert!(distribution(&[side(vec![1.0]), side(vec![1.0])], Some((1.1, "")), None).is_some());
    }
}
