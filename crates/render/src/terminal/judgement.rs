//! The table after `holdpoint gate`, `holdpoint compare` and `holdpoint ab`.

use super::{last_line, paragraphs};
use crate::judged::Judged;
use crate::paint::{Ink, Style, mark};
use crate::summary::judgement::{Failed, checks_table, failures, notes, reasons};
use crate::summary::{NAMES_SHOWN, sides};
use crate::text::{self, entry, list, quote};
use crate::{remedy, units};
use holdpoint_model::Machine;

/// Metrics named in the line about those that have no baseline.
const UNGATED_SHOWN: usize = 5;

/// The judgement, with the failures from its samples where they are there.
pub fn judgement(judged: Judged<'_>, style: Style) -> String {
    let verdict = judged.judgement.verdict;
    paragraphs(&[
        head(judged, style),
        checks_table(judged).render(style),
        explain(judged, style) + &describe_failures(judged, style) + &describe_notes(judged, style),
        last_line(style, verdict.into(), &word(judged, style), &judged.sentence()),
    ])
}

/// The verdict's word, with its mark where somebody looks; in a file or a log the word is enough.
fn word(judged: Judged<'_>, style: Style) -> String {
    let verdict = judged.judgement.verdict;
    let has_mark = style.color && !style.ascii;
    if has_mark { format!("{} {}", mark(verdict), verdict.as_str()) } else { verdict.as_str().to_owned() }
}

fn head(judged: Judged<'_>, style: Style) -> String {
    let j = judged.judgement;
    let least = j.threshold.as_ref().map(|keys| units::percent(keys.threshold / 100.0));
    let least = least.map(|least| format!(" (at least {least})")).unwrap_or_default();
    let policy = Some(format!("policy {}{least}", j.policy));
    let machine = j.machine.as_ref().map(Machine::describe);
    let facts = if judged.is_sides() {
        vec![policy, Some(sides::describe_sides(judged)), machine, Some(sides::describe_promise(judged))]
    } else {
        vec![policy, j.revision.as_ref().map(text::revision), machine]
    };
    text::heading(style, &j.suite, &facts)
}

/// The reasons, a paragraph for each.
fn explain(judged: Judged<'_>, style: Style) -> String {
    let entries = reasons(judged).into_iter().map(|group| {
        let reason = remedy::with(group.reason);
        let body = match group.names.as_slice() {
            [] => reason,
            names => format!("{}: {reason}", list(names, NAMES_SHOWN)),
        };
        entry(style, group.verdict.into(), group.verdict.as_str(), &body)
    });
    entries.collect()
}

/// The failures, with the last lines that each wrote.
fn describe_failures(judged: Judged<'_>, style: Style) -> String {
    let mut out = String::new();
    for Failed { name, side, failure, is_explained } in failures(judged) {
        let side = side.map(|side| format!(" on {}", side.as_str())).unwrap_or_default();
        if !is_explained {
            let body = format!("{name}{side}: {}: {}", failure.cause.as_str(), failure.detail);
            out += &entry(style, Ink::Bad, "failed", &body);
        } else if !failure.stderr_tail.is_empty() {
            out += &entry(style, Ink::Bad, "stderr", &format!("{name}{side}, its last lines:"));
        }
        out += &quote(style, &failure.stderr_tail);
    }
    out
}

fn describe_notes(judged: Judged<'_>, style: Style) -> String {
    let ink = |label| match label {
        "note" => Ink::Strong,
        "rounds" => Ink::Dim,
        _ => Ink::Doubt,
    };
    let notes = notes(judged);
    let mut out: String = notes.iter().map(|(label, note)| entry(style, ink(label), label, note)).collect();
    let ungated = &judged.judgement.ungated;
    if !ungated.is_empty() {
        let names = list(ungated, UNGATED_SHOWN);
        let body = format!(
            "{names}: not in the baseline, not judged; \"holdpoint baseline record\" takes in what is new"
        );
        out += &entry(style, Ink::Strong, "ungated", &body);
    }
    out
}

/// The times of both sides and the evidence behind the verdicts; nothing where there is none.
pub fn evidence_of_sides(judged: Judged<'_>, style: Style) -> String {
    let times = sides::times_table(judged).blank_repeated_names().render(style);
    let evidence = sides::evidence_table(judged).render(style);
    let remarks = sides::remarks(judged, &[&evidence]).into_iter();
    let remarks = remarks.map(|remark| entry(style, Ink::Dim, "reading", remark)).collect();
    paragraphs(&[times, evidence, remarks])
}
