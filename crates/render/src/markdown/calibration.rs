//! The page of a calibration.

use super::tables::{self, left, right};
use super::{escape, joined, section};
use crate::summary::calibration as said;
use crate::units;
use holdpoint_model::Calibration;

/// How often the rule was wrong, and what it sees, by workload.
#[must_use]
pub fn calibration(c: &Calibration) -> String {
    joined(&[
        title(c),
        section("Workloads", workloads(c)),
        section("Notes", notes(c)),
        section("Where and with what", provenance(c)),
    ])
}

fn title(c: &Calibration) -> String {
    let suite = escape::prose(&c.suite);
    let (word, sentence) = said::of_calibration(c);
    let facts = format!("{} · {}", said::facts(c).join(" · "), c.machine.describe());
    format!(
        "# holdpoint: {suite}, calibration\n\n**{}**: {}\n\n{}\n",
        escape::prose(&word),
        escape::prose(&sentence),
        escape::prose(&facts)
    )
}

fn workloads(c: &Calibration) -> String {
    let times_s = said::times_s(c);
    let mut columns = vec![left("workload")];
    columns.extend(said::titles(c).map(right));
    columns.extend(said::time_titles(&times_s).map(|title| right(&title)));
    columns.push(left("remark"));
    let rows = c.workloads.iter().map(|(name, w)| {
        let mut row = vec![escape::name(name)];
        row.extend(said::cells(c, w, &times_s));
        row.push(said::mark(w).to_owned());
        row
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}

fn notes(c: &Calibration) -> String {
    let line = |(label, note): &(&str, String)| format!("- **{label}**: {}\n", escape::prose(note));
    said::notes(c).iter().map(line).collect()
}

fn provenance(c: &Calibration) -> String {
    let mut facts = vec![("began", c.timestamp_utc.clone())];
    facts.push(("took", format!("{} s", units::seconds(c.elapsed_s))));
    facts.extend(tables::machine_facts(&c.machine));
    facts.extend(tables::tool_facts(&c.toolchain));
    facts.push(("false alarms per suite, stated", units::setting(c.alarm_rate)));
    tables::fact_table(&facts)
}
