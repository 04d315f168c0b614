//! Change points of series, `holdpoint changes`, and the level that a run is held against by `gate --history`.

use crate::history::{Series, Versions};
use crate::metric::Better;
use crate::timestamp::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::RangeInclusive;

/// The values of one metric in order, wherever they come from: a store, a trend, a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Track {
    pub suite: String,
    /// Name of the metric, such as `sort_p50_ms`.
    pub name: String,
    /// Class of the machine; absent where a file does not say.
    pub machine: Option<String>,
    pub better: Better,
    pub points: Vec<TrackPoint>,
    /// The versions that its points were taken with, each once.
    pub versions: Vec<Versions>,
    /// Indices of the points from which on somebody accepted a new level, in order.
    pub accepted: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TrackPoint {
    /// Not finite where the run has no value.
    pub value: f64,
    pub at: Option<Timestamp>,
    pub commit: Option<Box<str>>,
    /// Place in [`Track::versions`].
    pub versions: Option<u32>,
}

/// Series that are looked at one after the other, so that only one of them is in memory.
pub trait Tracks<'a> {
    type Error;

    fn count(&self) -> usize;

    /// A series. Its points may lack commits and versions until [`Tracks::fill`] is asked for them.
    fn track(&mut self, index: usize) -> Result<Cow<'a, Track>, Self::Error>;

    /// Gives these points of a series their commits and versions.
    fn fill(
        &mut self,
        index: usize,
        track: &mut Cow<'a, Track>,
        points: &[RangeInclusive<usize>],
    ) -> Result<(), Self::Error>;
}

/// Series that are in memory, complete.
impl<'a> Tracks<'a> for &'a [Track] {
    type Error = Infallible;

    fn count(&self) -> usize {
        self.len()
    }

    fn track(&mut self, index: usize) -> Result<Cow<'a, Track>, Infallible> {
        Ok(Cow::Borrowed(&self[index]))
    }

    fn fill(
        &mut self,
        _: usize,
        _: &mut Cow<'a, Track>,
        _: &[RangeInclusive<usize>],
    ) -> Result<(), Infallible> {
        Ok(())
    }
}

impl Track {
    pub fn values(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.value).collect()
    }
}

impl From<&Series> for Track {
    fn from(series: &Series) -> Self {
        let points = series.points.iter().map(|point| TrackPoint {
            value: point.value,
            at: Some(point.at),
            commit: point.revision.as_ref().map(|revision| revision.commit.as_str().into()),
            versions: Some(point.versions),
        });
        let place = |at: &crate::Acceptance| {
            let is_it = |point: &crate::Point| point.run == at.run && point.at == at.at;
            // A point that was pruned: the next one begins the level.
            series
                .points
                .iter()
                .position(is_it)
                .or_else(|| series.points.iter().position(|point| point.at >= at.at))
        };
        let mut accepted: Vec<usize> = series.accepted.iter().filter_map(place).collect();
        accepted.sort_unstable();
        Self {
            suite: series.key.suite.clone(),
            name: series.key.metric_name(),
            machine: series.key.machine.clone(),
            better: series.better,
            points: points.collect(),
            versions: series.versions.clone(),
            accepted,
        }
    }
}

/// The changes of level in some series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "changes")]
pub struct Changes {
    pub schema_version: u32,
    /// Every series that was looked at, those without a change among them.
    pub series: Vec<SeriesChanges>,
    /// Changes that belong together, in order of time.
    pub events: Vec<ChangeEvent>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesChanges {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suite: String,
    /// Name of the metric, such as `sort_p50_ms`.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(default, skip_serializing_if = "Better::is_lower")]
    pub better: Better,
    pub points_count: usize,
    pub changes: Vec<LevelChange>,
    /// Indices at which `gate --history` would have reported a worsening, each accepted at once; absent where that was not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alerts: Option<Vec<usize>>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LevelChange {
    /// The first point of the new level.
    pub index: usize,
    /// The earliest and the latest index that explain the points nearly as well.
    pub range: [usize; 2],
    pub effect: Effect,
    /// Levels before and after, in the metric's unit.
    pub levels: [f64; 2],
    /// The new level over the old one; absent where a level is not positive.
    #[serde(default)]
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio.
    #[serde(default)]
    pub interval: Option<[f64; 2]>,
    /// The last run before the change for certain.
    pub before: RunPlace,
    /// The first run of the new level.
    pub after: RunPlace,
    /// Whether somebody accepted it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepted: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Better,
    Worse,
}

/// A run of a series, as far as its file says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunPlace {
    #[serde(default, rename = "timestamp_utc", skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Changes that happened at the same revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangeEvent {
    pub members: Vec<EventMember>,
    pub cause: Cause,
}

/// A change by its place in [`Changes::series`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EventMember {
    pub series: usize,
    pub change: usize,
}

/// Where an event comes from, as far as the runs around it show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing but the code is known to have changed.
    Code,
    /// One machine alone: others have the same series, and no change there.
    Machine { machine: String },
    /// These changed at the same time: driver, kernel, compiler.
    Versions { changed: Vec<VersionChange> },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct VersionChange {
    pub name: String,
    #[serde(default)]
    pub before: Option<String>,
    #[serde(default)]
    pub after: Option<String>,
}
