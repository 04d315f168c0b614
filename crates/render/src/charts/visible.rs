//! The slowdowns that are detected in a given time, for each calibrated workload.

use super::Chart;
use crate::svg::{Frame, Plot, Scale, nice_ticks};
use holdpoint_model::calibration::Visible;

const SIZE: [f64; 2] = [440.0, 160.0];

/// Nothing where fewer than two times have a slowdown.
pub(crate) fn visible(seen: &[Visible], tolerance: f64) -> Option<Chart> {
    let points: Vec<[f64; 2]> =
        seen.iter().filter_map(|v| Some([v.seconds, v.slowdown.filter(|s| s.is_finite())?])).collect();
    if points.len() < 2 {
        return None;
    }
    let y = Scale::over(points.iter().map(|[_, slowdown]| *slowdown).chain([0.0, tolerance]), 0.01);
    let x = Scale::new(0.0, points.iter().map(|[seconds, _]| *seconds).fold(0.0, f64::max) * 1.04);
    let mut plot = Plot::new(Frame { size: SIZE, x, y, lane: 0.0 });
    let percents = nice_ticks(y.ends().map(|end| end * 100.0), 4).into_iter();
    let percents: Vec<(f64, String)> = percents.map(|(at, text)| (at / 100.0, format!("{text} %"))).collect();
    plot.axes(&nice_ticks(x.ends(), 5), &percents, ["slowdown", "seconds"]);
    plot.level("level", tolerance, "tolerance");
    plot.line("base", points.iter().map(|point| Some(*point)));
    plot.dots("base", points);
    Some(Chart { plot, caption: "Smallest slowdown that is detected in a given time".to_owned() })
}
