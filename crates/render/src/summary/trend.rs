//! A suite's history in words and series.

use crate::text::plural;
use crate::units;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{Changes, LevelChange, Timestamp, Trend, TrendMetric};
use std::collections::BTreeMap;

/// How a run of a trend came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Passed,
    Unjudged,
    /// It did not pass, and none of its metrics failed: the evidence did not suffice.
    Undecided,
    Failed,
}

pub(crate) fn standing(point: &Trend) -> Standing {
    let is_open =
        |metric: &TrendMetric| ["pass", UNJUDGED, "inconclusive", "skipped"].contains(&&*metric.status);
    match point.overall_status.as_str() {
        "pass" => Standing::Passed,
        UNJUDGED => Standing::Unjudged,
        _ if !point.metrics.is_empty() && point.metrics.iter().all(is_open) => Standing::Undecided,
        _ => Standing::Failed,
    }
}

/// `13 runs, 2 did not pass, 1 undecided`.
pub(crate) fn describe_trend(points: &[&Trend]) -> String {
    let count = |wanted: Standing| points.iter().filter(|point| standing(point) == wanted).count();
    let [failed, undecided, unjudged] =
        [Standing::Failed, Standing::Undecided, Standing::Unjudged].map(count);
    let mut sentence = match failed {
        0 if undecided + unjudged == 0 => format!("{}, all passed", plural(points.len(), "run")),
        0 => plural(points.len(), "run"),
        n => format!("{}, {} did not pass", plural(points.len(), "run"), units::count(n as u64)),
    };
    if undecided > 0 {
        sentence += &format!(", {} undecided", units::count(undecided as u64));
    }
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

/// The changes of a trend's metrics, found again among its runs by their times: not every run may be shown.
pub(crate) struct LevelStarts<'a> {
    changes: BTreeMap<(&'a str, &'a str), &'a [LevelChange]>,
}

impl<'a> LevelStarts<'a> {
    pub(crate) fn new(found: Option<&'a Changes>) -> Self {
        let series = found.into_iter().flat_map(|found| &found.series);
        let changes = series.map(|one| ((one.suite.as_str(), one.name.as_str()), one.changes.as_slice()));
        Self { changes: changes.collect() }
    }

    pub(crate) fn of(&self, suite: &str, metric: &str) -> &'a [LevelChange] {
        self.changes.get(&(suite, metric)).copied().unwrap_or_default()
    }

    /// For each run, whether a new level of the metric begins there.
    pub(crate) fn among(&self, suite: &str, metric: &str, points: &[&Trend]) -> Vec<bool> {
        let mut starts = vec![false; points.len()];
        let changes = self.of(suite, metric);
        if !changes.is_empty() {
            let times = times(points);
            for place in changes.iter().filter_map(|change| place_of(&times, change.after.at)) {
                starts[place] = true;
            }
        }
        starts
    }
}

/// When each run began; of one without a time, when the one before it did.
pub(crate) fn times(points: &[&Trend]) -> Vec<Option<Timestamp>> {
    let mut last = None;
    let time = |point: &&Trend| {
        last = Timestamp::parse(&point.timestamp_utc).max(last);
        last
    };
    points.iter().map(time).collect()
}

/// The first run that began at that time or later.
pub(crate) fn place_of(times: &[Option<Timestamp>], at: Option<Timestamp>) -> Option<usize> {
    let at = at?;
    let place = times.partition_point(|time| *time < Some(at));
    (place < times.len()).then_some(place)
}
