//! The page of a calibration.

use super::{escape, joined, section, tables};
use crate::summary::calibration::{describe_calibration, facts, notes, workloads_table};
use crate::table::EmptyColumns;
use crate::units;
use holdpoint_model::Calibration;

pub fn calibration(c: &Calibration) -> String {
    joined(&[title(c), calibration_sections(c)])
}

/// The page without its title.
pub(crate) fn calibration_sections(c: &Calibration) -> String {
    joined(&[
        section("Workloads", workloads_table(c).markdown(EmptyColumns::Drop)),
        section("Notes", describe_notes(c)),
        section("Machine and settings", provenance(c)),
    ])
}

fn title(c: &Calibration) -> String {
    let (word, sentence) = describe_calibration(c);
    let title = tables::title(&format!("{}, calibration", c.suite), &word, &sentence);
    let facts = format!("{} · {}", facts(c).join(" · "), c.machine.describe());
    format!("{title}\n{}\n", escape::prose(&facts))
}

fn describe_notes(c: &Calibration) -> String {
    let line = |(label, note): &(&str, String)| format!("- **{label}**: {}\n", escape::prose(note));
    notes(c).iter().map(line).collect()
}

fn provenance(c: &Calibration) -> String {
    let mut facts = vec![("began", c.timestamp_utc.clone())];
    facts.push(("took", format!("{} s", units::seconds(c.elapsed_s))));
    facts.extend(tables::machine_facts(&c.machine));
    facts.extend(tables::tool_facts(&c.toolchain));
    facts.push(("false alarms per suite, stated", units::setting(c.alarm_rate)));
    tables::fact_table(&facts)
}
