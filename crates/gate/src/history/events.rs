//! Changes that belong together: several series that moved at the same revision are one event.

use holdpoint_model::{
    Cause, ChangeEvent, EventMember, LevelChange, RunPlace, SeriesChanges, Track, Tracks, VersionChange,
};
use std::collections::BTreeSet;

/// The changes of a series, with what is needed of its points to tell which of them belong together.
pub(super) struct ChangesOfSeries {
    pub(super) series: SeriesChanges,
    /// One for each change.
    pub(super) moves: Vec<Move>,
}

pub(super) struct Move {
    place: Place,
    /// Versions that changed with it.
    versions: BTreeSet<VersionChange>,
}

impl Move {
    pub(super) fn of(track: &Track, change: &LevelChange) -> Self {
        Self { place: Place::of(track, change), versions: version_changes(track, change) }
    }
}

/// The runs among which a change must lie. Commits tell most: machines measure the same ones at different times.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    Commits(BTreeSet<Box<str>>),
    /// After the first and not after the second, in milliseconds.
    Times([i64; 2]),
    Indices([usize; 2]),
}

impl Place {
    fn of(track: &Track, change: &LevelChange) -> Self {
        let [earliest, latest] = change.range;
        let points = track.points.get(earliest..=latest).unwrap_or_default();
        if let Some(commits) = points.iter().map(|point| point.commit.clone()).collect() {
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
                let shared: BTreeSet<Box<str>> = a.intersection(b).cloned().collect();
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
pub(super) fn group<'a, T: Tracks<'a>>(
    tracks: &mut T,
    found: &[ChangesOfSeries],
) -> Result<Vec<ChangeEvent>, T::Error> {
    let mut members: Vec<EventMember> = Vec::new();
    for (series, one) in found.iter().enumerate() {
        members.extend((0..one.moves.len()).map(|change| EventMember { series, change }));
    }
    members.sort_by_key(|member| {
        let change = change(found, member);
        (change.after.at, change.index, member.series)
    });
    let mut events: Vec<(Place, Vec<EventMember>)> = Vec::new();
    for member in members {
        let suite = &found[member.series].series.suite;
        let place = &found[member.series].moves[member.change].place;
        let shares = |(shared, others): &(Place, Vec<EventMember>)| {
            let is_same_suite = others.iter().all(|other| found[other.series].series.suite == *suite);
            let is_new = others.iter().all(|other| other.series != member.series);
            if is_same_suite && is_new { shared.meet(place) } else { None }
        };
        // The newest few: an event that is over is not joined any more.
        let joined = events
            .iter()
            .enumerate()
            .rev()
            .take(EVENTS_OPEN)
            .find_map(|(at, event)| Some((at, shares(event)?)));
        match joined {
            Some((at, shared)) => {
                events[at].0 = shared;
                events[at].1.push(member);
            }
            None => events.push((place.clone(), vec![member])),
        }
    }
    let finish = |(_, members): (Place, Vec<EventMember>)| {
        let cause = cause(tracks, found, &members)?;
        Ok(ChangeEvent { members, cause })
    };
    events.into_iter().map(finish).collect()
}

fn change<'f>(found: &'f [ChangesOfSeries], member: &EventMember) -> &'f LevelChange {
    &found[member.series].series.changes[member.change]
}

/// Events that a further change may still belong to.
const EVENTS_OPEN: usize = 32;

fn cause<'a, T: Tracks<'a>>(
    tracks: &mut T,
    found: &[ChangesOfSeries],
    members: &[EventMember],
) -> Result<Cause, T::Error> {
    let mut changed = members.iter().map(|member| &found[member.series].moves[member.change].versions);
    let first = changed.next().cloned().unwrap_or_default();
    let shared: Vec<VersionChange> = changed
        .fold(first, |shared, other| shared.intersection(other).cloned().collect())
        .into_iter()
        .collect();
    if !shared.is_empty() {
        return Ok(Cause::Versions { changed: shared });
    }
    let machines: BTreeSet<Option<&str>> =
        members.iter().map(|member| found[member.series].series.machine.as_deref()).collect();
    let (1, Some(Some(machine))) = (machines.len(), machines.first().copied()) else {
        return Ok(Cause::Code);
    };
    for member in members {
        if !is_steady_elsewhere(tracks, found, member)? {
            return Ok(Cause::Code);
        }
    }
    Ok(Cause::Machine { machine: machine.to_owned() })
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
fn is_steady_elsewhere<'a, T: Tracks<'a>>(
    tracks: &mut T,
    found: &[ChangesOfSeries],
    member: &EventMember,
) -> Result<bool, T::Error> {
    let own = &found[member.series].series;
    let is_same = |other: &SeriesChanges| {
        other.machine.is_some()
            && other.machine != own.machine
            && (&other.suite, &other.name) == (&own.suite, &own.name)
    };
    let change = change(found, member);
    for (index, other) in found.iter().enumerate() {
        if !is_same(&other.series) {
            continue;
        }
        let mut track = tracks.track(index)?;
        let last = track.points.len().saturating_sub(1);
        tracks.fill(index, &mut track, &[0..=last])?;
        let places = position(&track, &change.before).zip(position(&track, &change.after));
        if places.is_some_and(|(before, after)| before < after && after + RUNS_AFTER <= last) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn position(track: &Track, place: &RunPlace) -> Option<usize> {
    match (&place.commit, place.at) {
        (Some(commit), _) => track.points.iter().position(|point| point.commit.as_deref() == Some(commit)),
        (None, Some(at)) => track.points.iter().rposition(|point| point.at.is_some_and(|time| time <= at)),
        (None, None) => None,
    }
}

/// Runs after the change that another machine must have to be called steady: fewer show no change.
const RUNS_AFTER: usize = 3;
