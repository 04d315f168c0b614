//! Changes that belong together: several series that moved at the same revision are one event.

use holdpoint_model::{Cause, ChangeEvent, EventMember, LevelChange, SeriesChanges, Track, VersionChange};
use std::collections::BTreeSet;

/// The runs among which a change must lie. Commits tell most: machines measure the same ones at different times.
#[derive(Clone, Debug, PartialEq)]
enum Place<'a> {
    Commits(BTreeSet<&'a str>),
    /// After the first and not after the second, in milliseconds.
    Times([i64; 2]),
    Indices([usize; 2]),
}

impl<'a> Place<'a> {
    fn of(track: &'a Track, change: &LevelChange) -> Self {
        let [earliest, latest] = change.range;
        let points = &track.points[earliest..=latest];
        if let Some(commits) = points.iter().map(|point| point.commit.as_deref()).collect() {
            return Self::Commits(commits);
        }
        let time = |index: usize| Some(track.points.get(index)?.at?.millis());
        match (earliest.checked_sub(1).and_then(time), time(latest)) {
            (Some(from), Some(to)) => Self::Times([from, to]),
            _ => Self::Indices(change.range),
        }
    }

    /// The runs of both; absent where there is none.
    fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Commits(a), Self::Commits(b)) => {
                let shared: BTreeSet<&str> = a.intersection(b).copied().collect();
                (!shared.is_empty()).then_some(Self::Commits(shared))
            }
            (Self::Times(a), Self::Times(b)) => {
                let shared = [a[0].max(b[0]), a[1].min(b[1])];
                (shared[0] < shared[1]).then_some(Self::Times(shared))
            }
            (Self::Indices(a), Self::Indices(b)) => {
                let shared = [a[0].max(b[0]), a[1].min(b[1])];
                (shared[0] <= shared[1]).then_some(Self::Indices(shared))
            }
            _ => None,
        }
    }
}

/// Groups the changes of the series into events, in order of time.
pub(super) fn group<'a>(tracks: &'a [Track], series: &[SeriesChanges]) -> Vec<ChangeEvent> {
    let mut members: Vec<EventMember> = Vec::new();
    for (at, one) in series.iter().enumerate() {
        members.extend((0..one.changes.len()).map(|change| EventMember { series: at, change }));
    }
    let change = |member: &EventMember| &series[member.series].changes[member.change];
    members.sort_by_key(|member| (change(member).after.at, change(member).index, member.series));
    let mut events: Vec<(Place<'a>, Vec<EventMember>)> = Vec::new();
    for member in members {
        let (track, place) = (&tracks[member.series], Place::of(&tracks[member.series], change(&member)));
        let shares = |(shared, others): &(Place<'a>, Vec<EventMember>)| {
            let is_same_suite = others.iter().all(|other| tracks[other.series].suite == track.suite);
            let is_new = others.iter().all(|other| other.series != member.series);
            if is_same_suite && is_new { shared.meet(&place) } else { None }
        };
        // The newest few: an event that is over is not joined any more.
        let found = events
            .iter()
            .enumerate()
            .rev()
            .take(EVENTS_OPEN)
            .find_map(|(at, event)| Some((at, shares(event)?)));
        match found {
            Some((at, shared)) => {
                events[at].0 = shared;
                events[at].1.push(member);
            }
            None => events.push((place, vec![member])),
        }
    }
    let finish = |(_, members): (Place<'_>, Vec<EventMember>)| {
        let cause = cause(tracks, series, &members);
        ChangeEvent { members, cause }
    };
    events.into_iter().map(finish).collect()
}

/// Events that a further change may still belong to.
const EVENTS_OPEN: usize = 32;

fn cause(tracks: &[Track], series: &[SeriesChanges], members: &[EventMember]) -> Cause {
    let change = |member: &EventMember| &series[member.series].changes[member.change];
    let mut changed = members.iter().map(|member| version_changes(&tracks[member.series], change(member)));
    let first = changed.next().unwrap_or_default();
    let shared: Vec<VersionChange> = changed
        .fold(first, |shared, other| shared.intersection(&other).cloned().collect())
        .into_iter()
        .collect();
    if !shared.is_empty() {
        return Cause::Versions { changed: shared };
    }
    let machines: BTreeSet<Option<&str>> =
        members.iter().map(|member| tracks[member.series].machine.as_deref()).collect();
    let only = if let (1, Some(Some(machine))) = (machines.len(), machines.first().copied()) {
        Some(machine)
    } else {
        None
    };
    match only {
        Some(machine) if members.iter().all(|member| is_steady_elsewhere(tracks, member, change(member))) => {
            Cause::Machine { machine: machine.to_owned() }
        }
        _ => Cause::Code,
    }
}

/// The versions that differ between the last run before the change for certain and the first after it for certain.
fn version_changes(track: &Track, change: &LevelChange) -> BTreeSet<VersionChange> {
    let versions = |index: usize| track.versions.get(track.points.get(index)?.versions? as usize);
    let [earliest, latest] = change.range;
    let (Some(before), Some(after)) = (versions(earliest.saturating_sub(1)), versions(latest)) else {
        return BTreeSet::new();
    };
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differing = names.into_iter().filter(|name| before.get(*name) != after.get(*name));
    differing
        .map(|name| VersionChange {
            name: name.clone(),
            before: before.get(name).cloned(),
            after: after.get(name).cloned(),
        })
        .collect()
}

/// Whether another machine has the same series with runs on either side of the change. It has no part in the event, so it is steady.
fn is_steady_elsewhere(tracks: &[Track], member: &EventMember, change: &LevelChange) -> bool {
    let own = &tracks[member.series];
    let is_same = |track: &&Track| {
        track.machine.is_some()
            && track.machine != own.machine
            && (&track.suite, &track.name) == (&own.suite, &own.name)
    };
    let (before, after) = (&change.before, &change.after);
    tracks.iter().filter(is_same).any(|track| {
        let position = |place: &holdpoint_model::RunPlace| match (&place.commit, place.at) {
            (Some(commit), _) => {
                track.points.iter().position(|point| point.commit.as_deref() == Some(commit))
            }
            (None, Some(at)) => {
                track.points.iter().rposition(|point| point.at.is_some_and(|time| time <= at))
            }
            (None, None) => None,
        };
        let last = track.points.len().saturating_sub(1);
        position(before)
            .zip(position(after))
            .is_some_and(|(before, after)| before < after && after + RUNS_AFTER <= last)
    })
}

/// Runs after the change that another machine must have to be called steady: fewer show no change.
const RUNS_AFTER: usize = 3;
