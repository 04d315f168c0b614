//! The tables of `report.md`.

use super::escape;
use crate::summary;
use crate::terminal::stopped;
use crate::units::{self, MISSING};
use holdpoint_model::judgement::STATUS_METRIC;
use holdpoint_model::{Check, Judgement, Measured, Outcome, Report, Verdict};

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
    let (shown, left_out) = summary::shown(&j.checks);
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

fn common_cells(check: &Check) -> Vec<String> {
    let word = check.verdict.as_str();
    let verdict = if check.verdict > Verdict::Pass { format!("**{word}**") } else { word.to_owned() };
    let foreign = |text: &Option<String>| text.as_deref().map_or_else(|| MISSING.to_owned(), escape::text);
    let (was, is) = if check.metric == STATUS_METRIC {
        (foreign(&check.expected), foreign(&check.current))
    } else {
        (number(check.baseline_ms, units::time), number(check.current_ms, units::time))
    };
    vec![verdict, escape::name(&check.metric), was, is, number(check.regression_ratio, units::percent)]
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
        Some(machine) => {
            facts.push(("machine", machine.describe()));
            facts.push(("fingerprint", machine.fingerprint.clone()));
        }
        None => facts.push(("platform", r.environment.platform.clone())),
    }
    let tools = &r.toolchain;
    facts.push(("holdpoint", format!("{} ({})", tools.holdpoint, tools.profile)));
    facts.push(("rustc", tools.rustc.clone()));
    facts.extend(tools.kernel.clone().map(|kernel| ("kernel", kernel)));
    facts.push(("seed", r.config.seed.to_string()));
    facts.push(("percentiles", r.config.percentile_rule.clone()));
    let clock = units::time(r.config.clock_resolution_ns as f64 / 1e6);
    facts.push(("host clock", format!("steps of {clock}")));
    let rows = facts.iter().map(|(what, is)| row(&[(*what).to_owned(), escape::prose(is)]));
    format!("| what | is |\n|:--|:--|\n{}", rows.collect::<String>())
}
