//! The tables after `holdpoint history list` and `show`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text;
use crate::units;
use holdpoint_model::{Point, RunPage, Series, SeriesKey, SeriesSummary, Timestamp};

const LISTED: &[Column] = &[
    words("series"),
    names("workload"),
    words("metric"),
    names("suite").drop(1),
    names("machine").drop(3),
    numbers("points"),
    words("last").drop(2),
];

const RUNS: &[Column] = &[
    words("time"),
    words("run").drop(3),
    words("revision"),
    names("branch").drop(1),
    names("suite").drop(2),
    names("machine").drop(4),
    words("verdict"),
];

const SHOWN: &[Column] = &[
    words("time"),
    words("revision"),
    numbers("value"),
    numbers("95 % interval").drop(2),
    numbers("samples").drop(3),
    words("verdict").drop(1),
    names("accepted").drop(4),
];

/// A line for each series.
pub fn history(all: &[SeriesSummary], style: Style) -> String {
    if all.is_empty() {
        return last_line(style, Ink::Strong, "history", "no series yet");
    }
    let mut grid = Grid::new(LISTED);
    for series in all {
        let machine = if series.machine.is_empty() { "not known" } else { &series.machine };
        let cells = vec![
            Cell::new(&series.id),
            Cell::name(&series.key.workload),
            Cell::new(&series.key.metric),
            Cell::name(&series.key.suite),
            Cell::name(machine),
            Cell::count(series.points_count),
            Cell::new(&series.last_utc.map(day).unwrap_or_default()),
        ];
        grid.push(cells);
    }
    let points: u64 = all.iter().map(|series| series.points_count).sum();
    let noun = if points == 1 { "point" } else { "points" };
    let sentence = format!("{} series with {} {noun}", units::count(all.len() as u64), units::count(points));
    paragraphs(&[grid.render(style), last_line(style, Ink::Strong, "history", &sentence)])
}

/// A line for each run of a page, the newest first.
pub fn runs(page: &RunPage, style: Style) -> String {
    if page.runs.is_empty() {
        return last_line(style, Ink::Strong, "history", "no run matches");
    }
    let mut grid = Grid::new(RUNS);
    for run in &page.runs {
        grid.push(vec![
            Cell::new(&time(run.at)),
            Cell::new(&run.run.to_string()[..12]),
            Cell::new(&run.revision.as_ref().map(text::revision).unwrap_or_default()),
            Cell::name(run.branch.as_deref().unwrap_or_default()),
            Cell::name(&run.suite),
            Cell::name(if run.machine_words.is_empty() { &run.machine } else { &run.machine_words }),
            run.verdict.map_or_else(|| Cell::new(""), Cell::verdict),
        ]);
    }
    let count = text::plural(page.runs.len() as u64, "run");
    let sentence = match page.next {
        Some(next) => format!("{count}, older ones with --after {next}"),
        None => count,
    };
    paragraphs(&[grid.render(style), last_line(style, Ink::Strong, "history", &sentence)])
}

/// The newest points of each series.
pub fn series(all: &[Series], points_shown: usize, style: Style) -> String {
    let parts: Vec<String> = all.iter().map(|series| one(series, points_shown, style)).collect();
    paragraphs(&parts)
}

fn one(series: &Series, points_shown: usize, style: Style) -> String {
    let SeriesKey { suite, workload, metric, taken, .. } = &series.key;
    let machine = Some(series.machine.clone()).filter(|words| !words.is_empty());
    let taken = (!taken.is_alone()).then(|| "beside base".to_owned());
    let facts = [Some(metric.clone()), Some(suite.clone()), machine, taken, Some(series.id.clone())];
    let left_out = series.points.len().saturating_sub(points_shown);
    let mut grid = Grid::new(SHOWN);
    for point in &series.points[left_out..] {
        grid.push(row(series, point));
    }
    let more = match left_out {
        0 => String::new(),
        more => style.paint(Ink::Dim, &format!("{} before these", text::plural(more as u64, "point"))) + "\n",
    };
    paragraphs(&[text::heading(style, workload, &facts), grid.render(style), more])
}

fn row(series: &Series, point: &Point) -> Vec<Cell> {
    let metric = &series.key.metric;
    let value = |value: f64| units::metric(metric, value);
    let interval = point.interval.map(|[low, high]| format!("{} … {}", value(low), value(high)));
    let accepted = series.accepted.iter().find(|accepted| accepted.run == point.run);
    let accepted = accepted.map(|accepted| format!("{}: {}", accepted.by, accepted.why));
    vec![
        Cell::new(&time(point.at)),
        Cell::new(&point.revision.as_ref().map(text::revision).unwrap_or_default()),
        Cell::new(&value(point.value)),
        Cell::new(&interval.unwrap_or_default()),
        match point.samples_count {
            0 => Cell::new(""),
            count => Cell::count(count),
        },
        point.verdict.map_or_else(|| Cell::new(""), Cell::verdict),
        Cell::name(&accepted.unwrap_or_default()),
    ]
}

fn time(at: Timestamp) -> String {
    at.to_string().replace('T', " ")[..19].to_owned()
}

fn day(at: Timestamp) -> String {
    at.to_string()[..10].to_owned()
}
