//! The tables of `report.md`.

use super::escape;
use crate::judged::Judged;
use crate::paint::mark;
use crate::summary::{measured, samples_count, stopped};
use crate::table::{Cell, EmptyColumns, Grid, names, numbers, words};
use crate::units::{self, MISSING};
use holdpoint_model::{Machine, Report, Revision, Toolchain};

/// Names in a list.
pub(super) const NAMES_SHOWN: usize = 20;

/// One line per measured workload.
pub(super) fn measurements(r: &Report) -> String {
    let mut grid = Grid::new(&[
        names("workload"),
        numbers("p50"),
        numbers("95 % interval"),
        numbers("p95"),
        numbers("p99"),
        numbers("CV"),
        numbers("throughput"),
        numbers("rounds"),
        numbers("samples"),
        words("stopped"),
    ]);
    for (name, m) in measured(r) {
        let interval = m.p50_interval_ms.map(|[low, high]| units::time_interval(low, high));
        let rates: Vec<String> = m.throughput.iter().map(|(key, v)| units::throughput(key, *v)).collect();
        grid.push([
            Cell::name(name),
            Cell::new(&units::time(m.p50_ms)),
            Cell::new(interval.as_deref().unwrap_or(MISSING)),
            Cell::new(&units::time(m.p95_ms)),
            Cell::new(&units::time(m.p99_ms)),
            Cell::number(m.cv, units::share),
            Cell::new(&if rates.is_empty() { MISSING.to_owned() } else { rates.join(", ") }),
            Cell::count(m.samples.rounds.len() as u64),
            Cell::count(samples_count(m)),
            Cell::new(if r.is_imported() { MISSING } else { stopped(m.stopped) }),
        ]);
    }
    grid.markdown(EmptyColumns::Keep)
}

/// Versions, machine and settings: a result without them is no result.
pub(super) fn provenance(r: &Report) -> String {
    let mut facts: Vec<(&str, String)> = vec![("began", r.timestamp_utc.clone())];
    facts.extend(r.revision.as_ref().map(|revision| ("revision", full_revision(revision))));
    match &r.machine {
        Some(machine) => facts.extend(machine_facts(machine)),
        None => facts.push(("platform", r.environment.platform.clone())),
    }
    facts.extend(tool_facts(&r.toolchain));
    facts.push(("seed", r.config.seed.to_string()));
    facts.push(("percentiles", r.config.percentile_rule.clone()));
    let clock = units::time(r.config.clock_resolution_ns as f64 / 1e6);
    facts.push(("host clock", format!("steps of {clock}")));
    fact_table(&facts)
}

/// The first lines of a page.
pub(super) fn title(suite: &str, word: &str, sentence: &str) -> String {
    let [suite, word, sentence] = [suite, word, sentence].map(escape::prose);
    format!("# holdpoint: {suite}\n\n**{word}**: {sentence}\n")
}

/// The first lines of a page about a judgement.
pub(super) fn verdict_title(judged: Judged<'_>) -> String {
    let suite = escape::prose(&judged.judgement.suite);
    format!("# holdpoint: {suite}\n\n{}\n", verdict_line(judged, &escape::prose(&judged.sentence())))
}

/// `▲ **regressed**: `, and the sentence, which is escaped already.
pub(super) fn verdict_line(judged: Judged<'_>, sentence: &str) -> String {
    let verdict = judged.judgement.verdict;
    format!("{} **{}**: {sentence}", mark(verdict), verdict.as_str())
}

/// The whole commit, and whether it was changed.
pub(super) fn full_revision(revision: &Revision) -> String {
    format!("{}{}", revision.commit, if revision.dirty { " (dirty)" } else { "" })
}

pub(super) fn machine_facts(machine: &Machine) -> [(&'static str, String); 2] {
    [("machine", machine.describe()), ("fingerprint", machine.fingerprint.clone())]
}

pub(super) fn tool_facts(tools: &Toolchain) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("holdpoint", format!("{} ({})", tools.holdpoint, tools.profile)),
        ("rustc", tools.rustc.clone()),
    ];
    facts.extend(tools.kernel.clone().map(|kernel| ("kernel", kernel)));
    facts
}

pub(super) fn fact_table(facts: &[(&str, String)]) -> String {
    let mut grid = Grid::new(&["setting", "value"].map(words));
    facts.iter().for_each(|(name, value)| grid.push([name, value.as_str()].map(Cell::new)));
    grid.markdown(EmptyColumns::Keep)
}
