//! The table after `holdpoint sanitize`.

use super::{
    counted, describe_device, describe_tool, describe_unavailable, group_by_reason, ink_of_counts, last_line,
    paragraphs,
};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, words};
use crate::text::{self, entry, plural};
use holdpoint_model::profile::{SanitizeOutcome, SanitizeReport, SanitizerError};

/// Errors shown of one workload under one tool; the others are in the file.
const ERRORS_SHOWN: usize = 3;

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
                    let shown = found.iter().take(ERRORS_SHOWN).map(describe_error);
                    let more = errors_count.saturating_sub(found.len().min(ERRORS_SHOWN) as u64);
                    for error in shown.chain((more > 0).then(|| format!("{more} more"))) {
                        errors += &entry(style, Ink::Bad, "error", &format!("{workload}, {tool}: {error}"));
                    }
                }
                SanitizeOutcome::Unavailable(why) => {
                    others.push((Ink::Doubt, "unavailable", describe_unavailable(why), workload))
                }
                SanitizeOutcome::Failed(failure) => {
                    let why = format!("{}: {}", failure.cause.as_str(), failure.detail);
                    others.push((Ink::Bad, "failed", why, workload));
                }
            }
        }
    }
    // A reason that is the same for all tools is shown once.
    others.dedup_by(|a, b| (a.1, &a.2, a.3) == (b.1, &b.2, b.3));
    let facts = [
        r.sanitizer.as_ref().map(describe_tool),
        r.revision.as_ref().map(text::revision),
        r.device.as_ref().map(describe_device),
    ];
    paragraphs(&[
        text::heading(style, &r.suite, &facts),
        grid.render(style),
        errors,
        group_by_reason(&others, style),
        end(r, style),
    ])
}

fn cell(outcome: &SanitizeOutcome) -> Cell {
    match outcome {
        SanitizeOutcome::Clean => Cell::inked(Ink::Calm, "clean"),
        SanitizeOutcome::Errors { errors_count, .. } => {
            Cell::inked(Ink::Bad, &plural(*errors_count, "error"))
        }
        SanitizeOutcome::Unavailable(_) => Cell::inked(Ink::Doubt, "unavailable"),
        SanitizeOutcome::Failed(_) => Cell::inked(Ink::Bad, "failed"),
    }
}

fn describe_error(error: &SanitizerError) -> String {
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
    parts.extend(counted([(errors, "with errors"), (unavailable, "unavailable"), (failed, "failed")]));
    last_line(style, ink_of_counts(errors + failed, clean), "sanitize", &parts.join(", "))
}
