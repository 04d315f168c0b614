//! A suite's history in words and series.

use crate::text::plural;
use crate::units;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{Trend, TrendMetric};
use std::collections::BTreeMap;

/// `13 runs, 2 did not pass`.
pub(crate) fn describe_trend(points: &[&Trend]) -> String {
    let count =
        |wanted: fn(&str) -> bool| points.iter().filter(|point| wanted(&point.overall_status)).count();
    let unjudged = count(|status| status == UNJUDGED);
    let failed = count(|status| status != "pass") - unjudged;
    let mut sentence = match failed {
        0 if unjudged == 0 => format!("{}, all passed", plural(points.len(), "run")),
        0 => plural(points.len(), "run"),
        n => format!("{}, {} did not pass", plural(points.len(), "run"), units::count(n as u64)),
    };
    if unjudged > 0 {
        sentence += &format!(", {} not judged", units::count(unjudged as u64));
    }
    sentence
}

/// Each metric by name, with its value in every run that has one.
pub(crate) fn series<'a>(points: &[&'a Trend]) -> BTreeMap<&'a str, Vec<Option<&'a TrendMetric>>> {
    let mut series: BTreeMap<&str, Vec<Option<&TrendMetric>>> = BTreeMap::new();
    for (i, point) in points.iter().enumerate() {
        for metric in &point.metrics {
            let row = series.entry(&metric.metric).or_insert_with(|| vec![None; points.len()]);
            row[i] = Some(metric);
        }
    }
    series
}
