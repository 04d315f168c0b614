//! The table after `holdpoint run`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::summary::{DEBUG_BUILD, describe_run, measured, samples_count, stopped};
use crate::table::{Cell, Column, Grid, names, numbers};
use crate::text::{self, entry, list, near_peak, quote};
use crate::{remedy, units};
use holdpoint_model::report::{CheckedBy, Stopped};
use holdpoint_model::{Machine, Measured, Outcome, Report, RunStatus};

/// Names in the lines below the table.
const NAMES_SHOWN: usize = 4;

const COLUMNS: &[Column] = &[
    names("workload"),
    numbers("p50"),
    numbers("±95 %").drop(1),
    numbers("p95").drop(2),
    numbers("p99").drop(4),
    numbers("CV").drop(3),
    numbers("throughput").drop(5),
    numbers("CPU p50").drop(8),
    numbers("memory").drop(9),
    numbers("rounds").drop(7),
    numbers("samples").drop(6),
];

pub fn report(r: &Report, style: Style) -> String {
    paragraphs(&[
        head(r, style),
        table(r, style),
        stops(r, style) + &warnings(r, style) + &unmeasured(r, style),
        last_line(style, ink(r.status), r.status.as_str(), &describe_run(r)),
    ])
}

fn ink(status: RunStatus) -> Ink {
    match status {
        RunStatus::Ok => Ink::Calm,
        RunStatus::Partial | RunStatus::Skipped => Ink::Doubt,
        RunStatus::Failed => Ink::Bad,
    }
}

fn head(r: &Report, style: Style) -> String {
    let machine = r.machine.as_ref().map(Machine::describe).or_else(|| Some(r.environment.platform.clone()));
    text::heading(style, &r.suite, &[r.revision.as_ref().map(text::revision), machine])
}

fn table(r: &Report, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    for (name, m) in measured(r) {
        grid.push([
            Cell::new(name),
            Cell::number(Some(m.p50_ms), units::time).with(Ink::Strong),
            Cell::new(&half_width(m)),
            Cell::number(Some(m.p95_ms), units::time),
            Cell::number(Some(m.p99_ms), units::time),
            Cell::number(m.cv, units::share),
            Cell::new(&throughput(m)),
            Cell::number(m.cpu_p50_ms, units::time),
            Cell::number(own_memory_mb(m), units::memory),
            Cell::count(m.samples.rounds.len() as u64),
            Cell::count(samples_count(m)),
        ]);
    }
    grid.render(style)
}

/// The interval of the median by its farther end, `±0.4 %`.
fn half_width(m: &Measured) -> String {
    let Some([low, high]) = m.p50_interval_ms else { return units::MISSING.to_owned() };
    match units::share((high - m.p50_ms).abs().max((m.p50_ms - low).abs()) / m.p50_ms) {
        dash if dash == units::MISSING => dash,
        share => format!("±{share}"),
    }
}

/// Peak memory where it is the workload's alone: one process per call, which also has a CPU time of its own.
fn own_memory_mb(m: &Measured) -> Option<f64> {
    m.peak_memory_mb.filter(|_| m.cpu_p50_ms.is_some())
}

/// The workload's own items if it declares some, else what the machine did.
fn throughput(m: &Measured) -> String {
    let rank = |key: &str| match key {
        "gb_per_s" => 2,
        "gflops" => 1,
        _ => 0,
    };
    let best = m.throughput.iter().min_by_key(|(key, _)| rank(key));
    best.map_or_else(|| units::MISSING.to_owned(), |(key, v)| units::throughput(key, *v))
}

fn stops(r: &Report, style: Style) -> String {
    // Only the tool that took the samples knows why it stopped.
    if r.is_imported() {
        return String::new();
    }
    let whys = [Stopped::TargetWidth, Stopped::Iterations, Stopped::TimeBudget, Stopped::RoundsMax];
    let groups = whys.map(|why| (why, names_where(r, |m| m.stopped == why)));
    let total = measured(r).count();
    let lines = groups.iter().filter(|(_, names)| !names.is_empty()).map(|(why, names)| {
        let who = if names.len() == total { "all".to_owned() } else { list(names, NAMES_SHOWN) };
        entry(style, Ink::Dim, "stopped", &format!("{}: {who}", stopped(*why)))
    });
    lines.collect()
}

fn names_where(r: &Report, wanted: impl Fn(&Measured) -> bool) -> Vec<&str> {
    measured(r).filter(|(_, m)| wanted(m)).map(|(name, _)| name.as_str()).collect()
}

fn warnings(r: &Report, style: Style) -> String {
    let mut out = String::new();
    for (names, problem) in [
        (names_where(r, |m| !m.warmup.stable), "warm-up ended before the times had settled"),
        (names_where(r, |m| m.answer.is_none()), "the answer was not checked"),
    ] {
        if !names.is_empty() {
            out += &entry(style, Ink::Doubt, "warning", &format!("{problem}: {}", list(&names, NAMES_SHOWN)));
        }
    }
    if r.toolchain.profile == "debug" {
        out += &entry(style, Ink::Doubt, "warning", DEBUG_BUILD);
    }
    out
}

fn unmeasured(r: &Report, style: Style) -> String {
    let mut out = String::new();
    for (name, m) in &r.benchmarks {
        match &m.outcome {
            Outcome::Measured(measured) => {
                if let Some(reason) = &measured.distrust {
                    let body = format!("{name}: {}", remedy::with(reason));
                    out += &entry(style, Ink::Doubt, "not compared", &body);
                }
                if let Some(limited) = &measured.power_limited {
                    let cycles = measured.sm_cycles_p50.map(|cycles| units::count(cycles.round() as u64));
                    let cycles = cycles.map(|cycles| format!(", {cycles} cycles a call")).unwrap_or_default();
                    let body = format!("{name}: {}{cycles}", limited.describe());
                    out += &entry(style, Ink::Dim, "power-limited", &body);
                }
                if let Some(share) = measured.near_peak {
                    out += &entry(style, Ink::Doubt, "check this", &format!("{name}: {}", near_peak(share)));
                }
                let oracle = measured.answer.as_ref().and_then(|answer| answer.checked_by.as_ref());
                if let Some(how) = oracle.filter(|oracle| oracle.rows.is_some()).and_then(CheckedBy::describe)
                {
                    out += &entry(style, Ink::Dim, "checked", &format!("{name}: {how}"));
                }
            }
            Outcome::Skipped { reason } => {
                out += &entry(style, Ink::Doubt, "skipped", &format!("{name}: {}", remedy::with(reason)));
            }
            Outcome::Failed(failure) => {
                let body = format!("{name}: {}: {}", failure.cause.as_str(), failure.detail);
                out += &entry(style, Ink::Bad, "failed", &body);
                out += &quote(style, &failure.stderr_tail);
            }
        }
    }
    out
}
