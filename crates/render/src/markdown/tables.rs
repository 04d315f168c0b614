//! The tables of `report.md`.

use super::escape;
use crate::summary;
use crate::terminal::stopped;
use crate::units::{self, MISSING};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{Check, Judgement, Machine, Measured, Outcome, Report, Toolchain, Verdict};

/// Names in a list.
pub(super) const NAMES_SHOWN: usize = 20;

const CHECKS: &str = "\
| verdict | metric | baseline | current | change | allowed | headroom | spread |
|:--|:--|--:|--:|--:|--:|--:|--:|
";
const THRESHOLD_CHECKS: &str = "\
| verdict | metric | baseline | current | change | speedup | label |
|:--|:--|--:|--:|--:|--:|:--|
";
const MEASUREMENTS: &str = "\
| workload | p50 | 95 % interval | p95 | p99 | CV | throughput | rounds | samples | stopped |
|:--|--:|--:|--:|--:|--:|--:|--:|--:|:--|
";

/// One line per check.
pub(super) fn checks(j: &Judgement) -> String {
    if j.checks.is_empty() {
        return String::new();
    }
    let by_threshold = j.checks.iter().any(|check| check.threshold.is_some());
    let mut out = if by_threshold { THRESHOLD_CHECKS } else { CHECKS }.to_owned();
    let (shown, left_out) = summary::shown(&j.checks, |check| check.verdict);
    for check in shown {
        let mut cells = common_cells(check);
        if by_threshold {
            cells.extend(threshold_cells(check));
        } else {
            cells.extend(allowed_cells(check));
        }
        out.push_str(&row(&cells));
    }
    if let Some(line) = summary::more_passed(left_out) {
        out.push_str(&format!("\n{line}\n"));
    }
    out
}

fn row(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn number(value: Option<f64>, format: fn(f64) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), format)
}

/// The word, strong where something is to be done.
pub(super) fn verdict(verdict: Verdict) -> String {
    let word = verdict.as_str();
    if verdict > Verdict::Pass { format!("**{word}**") } else { word.to_owned() }
}

fn common_cells(check: &Check) -> Vec<String> {
    let foreign = |text: &Option<String>| text.as_deref().map_or_else(|| MISSING.to_owned(), escape::text);
    let (was, is) = if check.metric == STATUS_METRIC {
        (foreign(&check.expected), foreign(&check.current))
    } else {
        (number(check.baseline_ms, units::time), number(check.current_ms, units::time))
    };
    vec![
        verdict(check.verdict),
        escape::name(&check.metric),
        was,
        is,
        number(check.regression_ratio, units::percent),
    ]
}

fn allowed_cells(check: &Check) -> [String; 3] {
    [
        number(check.allowed_max_ms, units::time),
        number(summary::headroom(check), units::percent),
        number(check.baseline_spread, units::share),
    ]
}

fn threshold_cells(check: &Check) -> [String; 2] {
    let keys = check.threshold.as_ref();
    let label = keys.map_or_else(|| MISSING.to_owned(), |keys| escape::text(&keys.label));
    [number(keys.map(|keys| keys.speedup), units::factor), label]
}

/// One line per measured workload.
pub(super) fn measurements(r: &Report) -> String {
    let rows = r.benchmarks.iter().filter_map(|(name, m)| match &m.outcome {
        Outcome::Measured(measured) => Some(measurement(name, measured)),
        _ => None,
    });
    let rows: String = rows.collect();
    if rows.is_empty() { rows } else { MEASUREMENTS.to_owned() + &rows }
}

fn measurement(name: &str, m: &Measured) -> String {
    let samples: usize = m.samples.rounds.iter().map(|round| round.elapsed_ns.len()).sum();
    let interval = m.p50_interval_ms.map(|[low, high]| units::time_interval(low, high));
    let rates: Vec<String> =
        m.throughput.iter().map(|(key, v)| escape::prose(&units::throughput(key, *v))).collect();
    row(&[
        escape::name(name),
        units::time(m.p50_ms),
        interval.unwrap_or_else(|| MISSING.to_owned()),
        units::time(m.p95_ms),
        units::time(m.p99_ms),
        number(m.cv, units::share),
        if rates.is_empty() { MISSING.to_owned() } else { rates.join(", ") },
        units::count(m.samples.rounds.len() as u64),
        units::count(samples as u64),
        stopped(m.stopped).to_owned(),
    ])
}

/// Versions, machine and settings: a result without them is no result.
pub(super) fn provenance(r: &Report) -> String {
    let mut facts: Vec<(&str, String)> = vec![("began", r.timestamp_utc.clone())];
    facts.extend(r.revision.as_ref().map(|revision| {
        ("revision", format!("{}{}", revision.commit, if revision.dirty { " (dirty)" } else { "" }))
    }));
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
    let rows = facts.iter().map(|(what, is)| row(&[(*what).to_owned(), escape::prose(is)]));
    format!("| what | is |\n|:--|:--|\n{}", rows.collect::<String>())
}

/// A column: its title, and whether its numbers stand to the right.
pub(super) struct Column {
    title: String,
    right: bool,
}

pub(super) fn left(title: &str) -> Column {
    Column { title: title.to_owned(), right: false }
}

pub(super) fn right(title: &str) -> Column {
    Column { title: title.to_owned(), right: true }
}

/// A table of cells that are escaped already, without the columns that say nothing; nothing where there is no row.
pub(super) fn table(columns: &[Column], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let speaks = |i: &usize| rows.iter().any(|row| !row[*i].is_empty() && row[*i] != MISSING);
    let kept: Vec<usize> = (0..columns.len()).filter(speaks).collect();
    let titles: Vec<String> = kept.iter().map(|i| columns[*i].title.clone()).collect();
    let marks = kept.iter().map(|i| if columns[*i].right { "--:" } else { ":--" });
    let mut out = row(&titles) + &format!("|{}|\n", marks.collect::<Vec<_>>().join("|"));
    for cells in rows {
        out.push_str(&row(&kept.iter().map(|i| cells[*i].clone()).collect::<Vec<_>>()));
    }
    out
}
