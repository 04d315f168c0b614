//! The changes of whole series, and the alerts that the rule of `gate --history` would have given.

use super::events::{self, ChangesOfSeries, Move};
use super::rule::{HistoryRule, LEVEL_POINTS, OnWorse, Standing, is_positive};
use crate::checks::status_of;
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{
    Changes, Effect, HistoryLevel, LevelChange, Point, RunPlace, SCHEMA_VERSION, Series, SeriesChanges,
    Taken, Timestamp, Track, TrackPoint, Tracks, Verdict,
};
use holdpoint_stats::changes::{self, Change};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Whether the rule of `gate --history` is replayed over each series as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alerts {
    Leave,
    Replay,
}

/// The changes of level in each of the series, and which of them belong together.
pub fn find_changes(mut tracks: &[Track]) -> Changes {
    match find_changes_in(&mut tracks, Alerts::Leave) {
        Ok(changes) => changes,
        Err(never) => match never {},
    }
}

/// The same, with one series in memory at a time.
pub fn find_changes_in<'a, T: Tracks<'a>>(tracks: &mut T, alerts: Alerts) -> Result<Changes, T::Error> {
    let found = (0..tracks.count()).map(|index| changes_of(tracks, index, alerts));
    let found = found.collect::<Result<Vec<ChangesOfSeries>, _>>()?;
    let events = events::group(tracks, &found)?;
    let series = found.into_iter().map(|found| found.series).collect();
    Ok(Changes { schema_version: SCHEMA_VERSION, series, events })
}

/// Replays the rule over a series, point by point; every worsening is accepted at once. The indices at which it is reported.
pub(crate) fn find_alerts(track: &Track) -> Vec<usize> {
    let mut rule = HistoryRule::new(track.better);
    let is_alert = |standing: Option<Standing>| matches!(standing, Some(Standing::Worse | Standing::Drifted));
    let points = track.points.iter().enumerate();
    points
        .filter(|(_, point)| is_alert(rule.push(point.value, OnWorse::Accept)))
        .map(|(index, _)| index)
        .collect()
}

/// Points that a level is found from: an older worsening that nobody accepted is forgotten.
const LEVEL_HISTORY: usize = 2_000;

/// The level that a series expects of its next point: a worse one counts only if it was accepted. Absent while it is too short.
pub fn level_of(track: &Track) -> Option<HistoryLevel> {
    replay(track).level()
}

fn replay(track: &Track) -> HistoryRule {
    let mut rule = HistoryRule::new(track.better);
    for (index, point) in level_points(track) {
        if track.accepted.contains(&index) {
            rule.accept();
        }
        rule.push(point.value, OnWorse::Keep);
    }
    rule
}

fn level_points(track: &Track) -> impl Iterator<Item = (usize, &TrackPoint)> {
    let from = track.points.len().saturating_sub(LEVEL_HISTORY);
    track.points.iter().enumerate().skip(from)
}

/// The revision that series which have drifted are compared with: the oldest at which one of their levels began. A newer one that
/// passed may have drifted as far already.
pub fn accepted_revision_of<'a>(series: impl Iterator<Item = &'a Series>) -> Option<String> {
    let first = |series: &'a Series| {
        let track = Track::from(series);
        let judged = level_points(&track).filter(|(_, point)| is_positive(point.value));
        let level = judged.skip(replay(&track).start()).take(LEVEL_POINTS);
        let mut points = level.map(|(index, _)| &series.points[index]);
        points.find_map(|point| Some((point.at, point.revision.as_ref().filter(|revision| !revision.dirty)?)))
    };
    series.filter_map(first).min_by_key(|(at, _)| *at).map(|(_, revision)| revision.commit.clone())
}

/// The revision that a run in doubt is compared with, other than the run's own and without changes of its own: the newest of which every
/// metric that was judged passed, by the side-by-side comparison where there was one. Where none has, as in a history too noisy to judge a
/// run alone, the oldest that is not known to be worse: slowdowns too small to be seen from run to run then add up.
pub fn last_good_of<'a>(
    series: impl Iterator<Item = &'a Series> + Clone,
    here: Option<&str>,
) -> Option<String> {
    let mut revisions = BTreeMap::<&str, Revision<'_>>::new();
    for taken in [Taken::Alone, Taken::SideBySide] {
        for series in series.clone().filter(|series| series.key.taken == taken) {
            for point in &series.points {
                let clean = point.revision.as_ref().filter(|revision| !revision.dirty);
                let Some(commit) = clean.map(|revision| revision.commit.as_str()) else { continue };
                let known =
                    revisions.entry(commit).or_insert(Revision { at: point.at, verdicts: BTreeMap::new() });
                known.at = known.at.max(point.at);
                let metric = (series.key.workload.as_str(), series.key.metric.as_str());
                known.verdicts.extend(point.verdict.map(|verdict| (metric, verdict)));
            }
        }
    }
    revisions.retain(|commit, _| Some(*commit) != here);
    let passed = revisions.iter().filter(|(_, revision)| revision.worst() <= Some(Verdict::Pass));
    let newest =
        passed.filter(|(_, revision)| revision.worst().is_some()).max_by_key(|(_, revision)| revision.at);
    let open = revisions.iter().filter(|(_, revision)| revision.worst() <= Some(Verdict::Inconclusive));
    let (commit, _) = newest.or_else(|| open.min_by_key(|(_, revision)| revision.at))?;
    Some((*commit).to_owned())
}

/// The verdicts that a revision got, by workload and metric.
struct Revision<'a> {
    at: Timestamp,
    verdicts: BTreeMap<(&'a str, &'a str), Verdict>,
}

impl Revision<'_> {
    fn worst(&self) -> Option<Verdict> {
        self.verdicts.values().copied().max()
    }
}

/// The status of a point as a trend has it.
pub fn trend_status(point: &Point) -> &'static str {
    point.verdict.map_or(UNJUDGED, |verdict| status_of(verdict).as_str())
}

fn changes_of<'a, T: Tracks<'a>>(
    tracks: &mut T,
    index: usize,
    alerts: Alerts,
) -> Result<ChangesOfSeries, T::Error> {
    let mut track = tracks.track(index)?;
    let found = changes::find_changes(&track.values());
    if !found.is_empty() {
        let around = |change: &Change| change.range[0].saturating_sub(1)..=change.range[1];
        let around: Vec<RangeInclusive<usize>> = found.iter().map(around).collect();
        tracks.fill(index, &mut track, &around)?;
    }
    let changes: Vec<LevelChange> = found.iter().map(|change| describe(&track, change)).collect();
    Ok(ChangesOfSeries {
        moves: changes.iter().map(|change| Move::of(&track, change)).collect(),
        series: SeriesChanges {
            suite: track.suite.clone(),
            name: track.name.clone(),
            machine: track.machine.clone(),
            better: track.better,
            points_count: track.points.len(),
            changes,
            alerts: (alerts == Alerts::Replay).then(|| find_alerts(&track)),
        },
    })
}

fn describe(track: &Track, change: &Change) -> LevelChange {
    let place = |index: usize| {
        let point = track.points.get(index);
        RunPlace {
            at: point.and_then(|point| point.at),
            commit: point.and_then(|point| point.commit.as_deref()).map(str::to_owned),
        }
    };
    let [before, after] = change.levels;
    let is_worse = track.better.sign() * (after - before) > 0.0;
    let [earliest, latest] = change.range;
    LevelChange {
        index: change.index,
        range: change.range,
        effect: if is_worse { Effect::Worse } else { Effect::Better },
        levels: change.levels,
        ratio: change.ratio,
        interval: change.interval,
        before: place(earliest.saturating_sub(1)),
        after: place(change.index),
        accepted: track.accepted.iter().any(|index| (earliest..=latest).contains(index)),
    }
}
