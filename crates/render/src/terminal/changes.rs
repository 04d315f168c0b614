//! The table after `holdpoint changes`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::NAMES_SHOWN;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::{text, units};
use holdpoint_model::{Cause, ChangeEvent, Changes, Effect, LevelChange, RunPlace, SeriesChanges};

const COLUMNS: &[Column] = &[
    numbers("event"),
    words("effect"),
    names("series"),
    numbers("change"),
    numbers("95 % interval").drop(1),
    words("revisions"),
    numbers("index").drop(2),
    numbers("between").drop(3),
];

/// The changes by event, then what else is known of the events.
pub fn changes(found: &Changes, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for (number, event) in found.events.iter().enumerate() {
        for (i, (series, change)) in members(found, event).enumerate() {
            let number = if i == 0 { units::count(number as u64 + 1) } else { String::new() };
            grid.push(row(&number, series, change));
        }
    }
    let table = if found.events.is_empty() { String::new() } else { grid.render(style) };
    let causes = found.events.iter().enumerate().filter_map(|(number, event)| {
        Some(text::entry(style, Ink::Doubt, &format!("event {}", number + 1), &describe_cause(&event.cause)?))
    });
    let alerts = found
        .series
        .iter()
        .filter_map(|series| Some(describe_alerts(series, series.alerts.as_ref()?, style)));
    paragraphs(&[
        table,
        causes.collect(),
        alerts.collect(),
        last_line(style, Ink::Strong, "changes", &describe(found)),
    ])
}

fn members<'a>(
    found: &'a Changes,
    event: &'a ChangeEvent,
) -> impl Iterator<Item = (&'a SeriesChanges, &'a LevelChange)> {
    event.members.iter().filter_map(|member| {
        let series = found.series.get(member.series)?;
        Some((series, series.changes.get(member.change)?))
    })
}

fn row(event: &str, series: &SeriesChanges, change: &LevelChange) -> [Cell; 8] {
    let (ink, word) = match change.effect {
        Effect::Worse if change.accepted => (Ink::Plain, "accepted"),
        Effect::Worse => (Ink::Bad, "worse"),
        Effect::Better => (Ink::Good, "better"),
    };
    let interval = change.interval.map(|[low, high]| units::percent_interval(low - 1.0, high - 1.0));
    let [earliest, latest] = change.range.map(|index| units::count(index as u64));
    [
        Cell::new(event),
        Cell::inked(ink, word),
        Cell::name(&series_name(series)),
        match change.ratio {
            Some(ratio) => Cell::inked(ink, &units::percent(ratio - 1.0)),
            None => Cell::new(&format!("{:.4} to {:.4}", change.levels[0], change.levels[1])),
        },
        Cell::new(interval.as_deref().unwrap_or(units::MISSING)),
        Cell::new(&format!("{} to {}", describe_run(&change.before), describe_run(&change.after))),
        Cell::count(change.index as u64),
        Cell::new(&format!("{earliest} … {latest}")),
    ]
}

fn series_name(series: &SeriesChanges) -> String {
    let suite = if series.suite.is_empty() { String::new() } else { format!("{}: ", series.suite) };
    let machine =
        series.machine.as_ref().map(|machine| format!(" on {}", text::clip(machine, MACHINE_CHARS)));
    format!("{suite}{}{}", series.name, machine.unwrap_or_default())
}

/// Enough of a fingerprint to tell a team's machines apart.
const MACHINE_CHARS: usize = 8;

/// The commit, or the time, or nothing.
fn describe_run(place: &RunPlace) -> String {
    match (&place.commit, place.at) {
        (Some(commit), _) => text::short_commit(commit),
        (None, Some(at)) => at.to_string().chars().take("2026-12-31T23:59".len()).collect(),
        (None, None) => units::MISSING.to_owned(),
    }
}

fn describe_cause(cause: &Cause) -> Option<String> {
    match cause {
        Cause::Code => None,
        Cause::Machine { machine } => Some(format!(
            "on machine {} alone; others have these series and did not move, so it is the machine rather than the code",
            text::clip(machine, MACHINE_CHARS)
        )),
        Cause::Versions { changed } => {
            let none = || "none".to_owned();
            let all: Vec<String> = changed
                .iter()
                .map(|change| {
                    let [before, after] =
                        [&change.before, &change.after].map(|version| version.clone().unwrap_or_else(none));
                    format!("{} {before} to {after}", change.name)
                })
                .collect();
            Some(format!("came with a change of {}", text::list(&all, NAMES_SHOWN)))
        }
    }
}

fn describe_alerts(series: &SeriesChanges, alerts: &[usize], style: Style) -> String {
    let at: Vec<String> = alerts.iter().map(|index| units::count(*index as u64)).collect();
    let at = if at.is_empty() { "none".to_owned() } else { text::list(&at, ALERTS_SHOWN) };
    text::entry(style, Ink::Dim, "alerts", &format!("{}: {at}", series_name(series)))
}

const ALERTS_SHOWN: usize = 20;

fn describe(found: &Changes) -> String {
    let changes: Vec<&LevelChange> = found.series.iter().flat_map(|series| &series.changes).collect();
    let worse = changes.iter().filter(|change| change.effect == Effect::Worse).count();
    let points: usize = found.series.iter().map(|series| series.points_count).sum();
    let looked = format!("{} with {}", series_count(found.series.len()), text::plural(points, "point"));
    if changes.is_empty() {
        return format!("none in {looked}");
    }
    format!(
        "{} in {} ({worse} worse, {} better); looked at {looked}",
        text::plural(changes.len(), "change"),
        text::plural(found.events.len(), "event"),
        changes.len() - worse,
    )
}

fn series_count(count: usize) -> String {
    format!("{} series", units::count(count as u64))
}
