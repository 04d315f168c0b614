//! The series of a store, one after the other, for finding their changes.
//!
//! Values and times are read of all points; commits and versions only of those around a change.

use crate::error::HistoryError;
use crate::store::{RunAt, Store, Values};
use holdpoint_model::{SeriesSummary, TimeRange, Timestamp, Track, TrackPoint, Tracks};
use std::borrow::Cow;
use std::ops::RangeInclusive;

pub struct StoreTracks<'s> {
    store: &'s dyn Store,
    ids: Vec<String>,
}

impl<'s> StoreTracks<'s> {
    pub fn new(store: &'s dyn Store, series: &[SeriesSummary]) -> Self {
        Self { store, ids: series.iter().map(|series| series.id.clone()).collect() }
    }
}

impl<'a> Tracks<'a> for StoreTracks<'_> {
    type Error = HistoryError;

    fn count(&self) -> usize {
        self.ids.len()
    }

    fn track(&mut self, index: usize) -> Result<Cow<'a, Track>, HistoryError> {
        let values = self.store.values(&self.ids[index])?;
        // Points of one moment are in the order of their runs, which are not among the values.
        if values.points.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Ok(Cow::Owned(Track::from(&self.store.read(&self.ids[index], TimeRange::default())?)));
        }
        Ok(Cow::Owned(track(values)))
    }

    fn fill(
        &mut self,
        index: usize,
        track: &mut Cow<'a, Track>,
        points: &[RangeInclusive<usize>],
    ) -> Result<(), HistoryError> {
        let missing = |point: &&TrackPoint| point.versions.is_none();
        let asked = points.iter().flat_map(|range| track.points.get(range.clone()).unwrap_or_default());
        let times: Vec<Timestamp> = asked.filter(missing).filter_map(|point| point.at).collect();
        if times.is_empty() {
            return Ok(());
        }
        // Looking up one run takes as long as reading several in order.
        if times.len() > track.points.len() / LOOKED_UP_FOR_ONE {
            *track = Cow::Owned(Track::from(&self.store.read(&self.ids[index], TimeRange::default())?));
            return Ok(());
        }
        complete(track.to_mut(), &self.store.runs_at(&self.ids[index], &times)?);
        Ok(())
    }
}

/// A series is read whole where more than one in so many of its points are asked for.
const LOOKED_UP_FOR_ONE: usize = 8;

fn track(values: Values) -> Track {
    let index = |at: Timestamp| values.points.partition_point(|(time, _)| *time < at);
    // A point that was pruned: the next one begins the level.
    let accepted = values.accepted.iter().map(|accepted| index(accepted.at));
    let mut accepted: Vec<usize> = accepted.filter(|index| *index < values.points.len()).collect();
    accepted.sort_unstable();
    let point = |(at, value): &(Timestamp, f64)| TrackPoint {
        value: *value,
        at: Some(*at),
        commit: None,
        versions: None,
    };
    Track {
        name: values.key.metric_name(),
        suite: values.key.suite,
        machine: values.key.machine,
        better: values.better,
        points: values.points.iter().map(point).collect(),
        versions: Vec::new(),
        accepted,
    }
}

/// Gives points, no two of one moment, the commits and versions of their runs.
fn complete(track: &mut Track, runs: &[RunAt]) {
    for run in runs {
        let Ok(index) = track.points.binary_search_by_key(&Some(run.at), |point| point.at) else { continue };
        let known = track.versions.iter().position(|known| *known == run.versions);
        let place = known.unwrap_or_else(|| {
            track.versions.push(run.versions.clone());
            track.versions.len() - 1
        });
        let point = &mut track.points[index];
        point.versions = u32::try_from(place).ok();
        point.commit = run.commit.as_deref().map(Into::into);
    }
}
