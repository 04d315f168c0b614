//! The page and the picture of a suite's history.

use super::{Banner, Extras, Links, banner_page, escape, figure, ink_class};
use crate::charts::{self, Chart};
use crate::paint::Ink;
use crate::summary::trend::Standing;
use crate::summary::{group, trend as summary};
use crate::svg::Plot;
use crate::{text, units};
use holdpoint_model::trend::UNJUDGED;
use holdpoint_model::{Changes, Trend};

/// Runs drawn per metric, and listed.
const RUNS_DRAWN: usize = 120;
const RUNS_LISTED: usize = 50;
const METRICS_MAX: usize = 60;

/// A chart per metric, then the runs with their commits.
pub fn trend(points: &[Trend], changes: Option<&Changes>, extras: &Extras<'_>) -> String {
    let starts = summary::LevelStarts::new(changes);
    let suites = group(points.iter().map(|point| (point.suite.as_str(), point)));
    let names: Vec<&str> = suites.iter().map(|(suite, _)| *suite).collect();
    let last =
        suites.iter().filter_map(|(_, points)| points.last()).map(|point| summary::standing(point)).max();
    let (ink, word) = match last {
        None => (Ink::Doubt, "nothing"),
        Some(Standing::Failed) => (Ink::Bad, "the last run did not pass"),
        Some(Standing::Undecided) => (Ink::Doubt, "the last run was not decided"),
        Some(Standing::Unjudged) => (Ink::Plain, "trend"),
        Some(Standing::Passed) => (Ink::Calm, "the last run passed"),
    };
    let sentences: Vec<String> = suites.iter().map(|(_, points)| summary::describe_trend(points)).collect();
    let sentence = if points.is_empty() { "no points yet".to_owned() } else { sentences.join("; ") };
    let span = points.first().zip(points.last());
    let facts = span.map(|(first, last)| format!("{} to {}", first.timestamp_utc, last.timestamp_utc));
    let title = format!("holdpoint: {}, trend", text::list(&names, 3));
    let banner =
        Banner { title, ink: ink_class(ink), word, sentence: &sentence, facts: facts.into_iter().collect() };
    let parts: Vec<String> = suites
        .iter()
        .map(|(suite, points)| {
            let charts = charts_of(suite, points, &starts, &extras.links);
            let figures: String = charts
                .iter()
                .map(|(name, chart)| format!("<section><h3>{}</h3>\n{}</section>\n", escape(name), figure(chart)))
                .collect();
            format!(
                "<h2>{}</h2>\n<div class=\"charts\">\n{figures}</div>\n<p class=\"reading\">The line joins the runs; the shaded band is what was allowed and the dashed line the baseline; a ring marks a run that did not pass. A dotted line marks the first run of a new level, the shade before it the runs where the change may lie, the thick lines the levels. A dot leads to its commit, where that is known.</p>\n{}",
                escape(suite),
                runs_table(points, &extras.links)
            )
        })
        .collect();
    banner_page(&banner, &parts, extras, &[])
}

/// The same charts as a picture of their own; absent where there is nothing to draw.
pub fn picture(points: &[Trend], changes: Option<&Changes>, links: &Links) -> Option<String> {
    let starts = summary::LevelStarts::new(changes);
    let suites = group(points.iter().map(|point| (point.suite.as_str(), point)));
    let plots: Vec<(String, Plot)> = suites
        .iter()
        .flat_map(|(suite, points)| {
            charts_of(suite, points, &starts, links)
                .into_iter()
                .map(move |(name, chart)| (format!("{suite}: {name}"), chart.plot))
        })
        .collect();
    (!plots.is_empty()).then(|| Plot::document(&plots))
}

fn charts_of<'a>(
    suite: &str,
    points: &[&'a Trend],
    starts: &summary::LevelStarts<'_>,
    links: &Links,
) -> Vec<(&'a str, Chart)> {
    let times = summary::times(points);
    let series = summary::series(points).into_iter().take(METRICS_MAX);
    series
        .filter_map(|(name, metrics)| {
            let series = points.iter().copied().zip(metrics).collect();
            let levels = charts::Levels { changes: starts.of(suite, name), times: &times };
            Some((name, charts::history(series, levels, links, RUNS_DRAWN)?))
        })
        .collect()
}

/// The newest runs first.
fn runs_table(points: &[&Trend], links: &Links) -> String {
    let mut rows = String::new();
    for point in points.iter().rev().take(RUNS_LISTED) {
        let commit = point.revision.as_ref().map(|at| {
            let words = escape(&text::revision(at));
            links.in_text(&words, &[at.commit.as_str()])
        });
        let (ink, status) = match summary::standing(point) {
            Standing::Failed => (Ink::Bad, point.overall_status.as_str()),
            Standing::Undecided => (Ink::Doubt, "undecided"),
            Standing::Unjudged => (Ink::Plain, UNJUDGED),
            Standing::Passed => (Ink::Calm, "pass"),
        };
        let (class, status) = (ink_class(ink), escape(status));
        let failed = match point.failed_metrics {
            0 => units::MISSING.to_owned(),
            n => units::count(n as u64),
        };
        rows.push_str(&format!(
            "<tr><td>{}</td><td><span class=\"v {class}\">{status}</span></td><td>{}</td><td>{}</td><td>{failed}</td></tr>\n",
            escape(&point.timestamp_utc),
            commit.unwrap_or_else(|| units::MISSING.to_owned()),
            units::count(point.total_metrics as u64),
        ));
    }
    let more = match points.len().saturating_sub(RUNS_LISTED) {
        0 => String::new(),
        n => format!("<p class=\"reading\">{} earlier ones are not listed.</p>\n", text::plural(n, "run")),
    };
    format!(
        "<h3>Runs, the newest first</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"runs\"><table><thead><tr><th>began</th><th>status</th><th>commit</th><th>metrics</th><th>not passed</th></tr></thead><tbody>\n{rows}</tbody></table></div>\n{more}"
    )
}
