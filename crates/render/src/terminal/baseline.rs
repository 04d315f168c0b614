//! The table after `holdpoint baseline show`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::baseline::{describe_baseline, metrics_table};
use crate::text::{self, entry};
use holdpoint_model::{Baseline, Machine};

pub fn baseline(b: &Baseline, style: Style) -> String {
    paragraphs(&[
        head(b, style),
        metrics_table(b).render(style),
        facts(b, style),
        last_line(style, Ink::Strong, "baseline", &describe_baseline(b)),
    ])
}

fn head(b: &Baseline, style: Style) -> String {
    text::heading(style, &b.suite, &[Some("baseline".to_owned()), b.machine.as_ref().map(Machine::describe)])
}

fn facts(b: &Baseline, style: Style) -> String {
    let mut out = String::new();
    for run in &b.runs {
        let revision = run.revision.as_ref().map_or_else(|| "no revision".to_owned(), text::revision);
        out += &entry(style, Ink::Strong, "run", &format!("{}  {revision}", run.timestamp_utc));
    }
    if let Some(promoted) = &b.promoted {
        let commit = text::short_commit(&promoted.commit);
        let body = format!("{}  {commit} by {}", promoted.timestamp_utc, promoted.by);
        out += &entry(style, Ink::Strong, "promoted", &body);
    }
    out += &entry(style, Ink::Strong, "requires", &format!("a run of status {:?}", b.required_status()));
    if !b.baseline_notes.trim().is_empty() {
        out += &entry(style, Ink::Strong, "note", &b.baseline_notes);
    }
    out
}
