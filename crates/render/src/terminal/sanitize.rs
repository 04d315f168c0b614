//! The table after `holdpoint sanitize`.

use super::profile::{because, grouped};
use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, words};
use crate::text::{self, entry, plural};
use holdpoint_model::profile::{SanitizeOutcome, SanitizeReport, SanitizerError};

/// Errors told of one workload under one tool; the others are in the file.
const ERRORS_SHOWN: usize = 3;

/// What each tool said of each workload.
#[must_use]
pub fn sanitize(r: &SanitizeReport, style: Style) -> String {
    let mut tools: Vec<&str> = Vec::new();
    for tool in r.sanitized.values().flat_map(|tools| tools.keys()) {
        if !tools.contains(&tool.as_str()) {
            tools.push(tool);
        }
    }
    let mut columns: Vec<Column> = vec![names("workload")];
    columns.extend(tools.iter().map(|tool| words("").titled((*tool).to_owned())));
    let mut grid = Grid::new(&columns);
    let (mut errors, mut others) = (String::new(), Vec::new());
    for (workload, outcomes) in &r.sanitized {
        let mut row = vec![Cell::new(workload)];
        row.extend(tools.iter().map(|tool| outcomes.get(*tool).map_or(Cell::new(""), cell)));
        grid.push(row);
        for (tool, outcome) in outcomes {
            match outcome {
                SanitizeOutcome::Clean => {}
                SanitizeOutcome::Errors { errors: found, errors_count, .. } => {
                    for error in found.iter().take(ERRORS_SHOWN) {
                        errors +=
                            &entry(style, Ink::Bad, "error", &format!("{workload}, {tool}: {}", told(error)));
                    }
                    let more = errors_count.saturating_sub(found.len().min(ERRORS_SHOWN) as u64);
                    if more > 0 {
                        errors +=
                            &entry(style, Ink::Bad, "error", &format!("{workload}, {tool}: {more} more"));
                    }
                }
                SanitizeOutcome::Unavailable(why) => {
                    others.push((Ink::Doubt, "unavailable", because(why), workload))
                }
                SanitizeOutcome::Failed(failure) => {
                    let why = format!("{}: {}", failure.cause.as_str(), failure.detail);
                    others.push((Ink::Bad, "failed", why, workload));
                }
            }
        }
    }
    // A reason that is the same for all tools is told once.
    others.dedup_by(|a, b| (a.1, &a.2, a.3) == (b.1, &b.2, b.3));
    paragraphs(&[head(r, style), grid.render(style), errors, grouped(&others, style), end(r, style)])
}

fn head(r: &SanitizeReport, style: Style) -> String {
    let tool = r.sanitizer.as_ref().map(|tool| format!("{} {}", tool.name, tool.version));
    let device =
        r.device.as_ref().map(|device| format!("{}, driver {}", device.name, device.versions.driver));
    let revision = r.revision.as_ref().map(text::revision);
    text::heading(style, &r.suite, &[tool, revision, device])
}

fn cell(outcome: &SanitizeOutcome) -> Cell {
    match outcome {
        SanitizeOutcome::Clean => Cell::inked(Ink::Calm, "clean"),
        SanitizeOutcome::Errors { errors_count, .. } => {
            Cell::inked(Ink::Bad, &plural(usize::try_from(*errors_count).unwrap_or(usize::MAX), "error"))
        }
        SanitizeOutcome::Unavailable(_) => Cell::inked(Ink::Doubt, "unavailable"),
        SanitizeOutcome::Failed(_) => Cell::inked(Ink::Bad, "failed"),
    }
}

fn told(error: &SanitizerError) -> String {
    let place = error.place.as_ref().map(|place| format!(" at {place}")).unwrap_or_default();
    let thread = error.thread.as_ref().map(|thread| format!(", {thread}")).unwrap_or_default();
    // Races name their place in the first line.
    let place = if error.what.contains(place.trim_start_matches(" at ")) { String::new() } else { place };
    format!("{}{place}{thread}", error.what)
}

fn end(r: &SanitizeReport, style: Style) -> String {
    let outcomes = || r.sanitized.values().flat_map(|tools| tools.values());
    let count = |is: fn(&SanitizeOutcome) -> bool| outcomes().filter(|outcome| is(outcome)).count();
    let clean = count(|outcome| matches!(outcome, SanitizeOutcome::Clean));
    let errors = count(|outcome| matches!(outcome, SanitizeOutcome::Errors { .. }));
    let failed = count(|outcome| matches!(outcome, SanitizeOutcome::Failed(_)));
    let unavailable = count(|outcome| matches!(outcome, SanitizeOutcome::Unavailable(_)));
    let mut parts = vec![format!("{} clean", plural(clean, "check"))];
    parts.extend((errors > 0).then(|| format!("{errors} with errors")));
    parts.extend((unavailable > 0).then(|| format!("{unavailable} unavailable")));
    parts.extend((failed > 0).then(|| format!("{failed} failed")));
    let ink = match (errors + failed, clean) {
        (1.., _) => Ink::Bad,
        (0, 0) => Ink::Doubt,
        _ => Ink::Calm,
    };
    last_line(style, ink, "sanitize", &parts.join(", "))
}
