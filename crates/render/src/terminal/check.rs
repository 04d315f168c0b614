//! The table after `holdpoint check`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::remedy;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{entry, near_peak, plural};
use crate::units;
use holdpoint_model::check::Correctness;
use holdpoint_model::{CheckDocument, FindingKind, KernelCheck};

const COLUMNS: &[Column] = &[
    names("op"),
    words("shape"),
    words("dtype"),
    words("params").drop(5),
    words("right"),
    numbers("max abs").drop(4),
    numbers("rel norm").drop(3),
    numbers("median"),
    numbers("±95 %").drop(2),
    numbers("GFLOP/s").drop(6),
    numbers("GB/s").drop(7),
    words("bound by"),
    numbers("of the roof"),
];

pub fn check(document: &CheckDocument, style: Style) -> String {
    let checks: &[KernelCheck] = match document {
        CheckDocument::One(check) => std::slice::from_ref(check),
        CheckDocument::Many(checks) => checks,
    };
    let mut grid = Grid::new(COLUMNS);
    let mut notes = String::new();
    for check in checks {
        grid.push(row(check));
        let name = format!("{} {} {}", check.text("op"), check.shape(), check.text("dtype"));
        if let Some(finding) = check.correctness.as_ref().and_then(|correctness| correctness.finding.as_ref())
        {
            let seed = check.correctness.as_ref().and_then(|correctness| correctness.seed);
            let seed = seed.map_or(String::new(), |seed| format!("; again with --seed {seed}"));
            let body = format!("{name}: {}: {}{seed}", finding.kind.name(), finding.detail);
            let is_unknown = finding.kind == FindingKind::OracleFailed;
            notes += &entry(style, Ink::Bad, if is_unknown { "broken" } else { "wrong" }, &body);
        } else if let (true, Some(reason)) = (check.broken, &check.reason) {
            notes += &entry(style, Ink::Bad, "broken", &format!("{name}: {}", remedy::with(reason)));
        } else if let Some(reason) = &check.reason {
            notes += &entry(style, Ink::Doubt, "not shown", &format!("{name}: {}", remedy::with(reason)));
        }
        let oracle = check.correctness.as_ref().and_then(|correctness| correctness.checked_by.as_ref());
        // A part is worth a line even in a matrix.
        let oracle = oracle.filter(|oracle| checks.len() == 1 || oracle.rows.is_some());
        if let Some(how) = oracle.and_then(|oracle| oracle.describe()) {
            notes += &entry(style, Ink::Dim, "checked", &format!("{name}: {how}"));
        }
        if let Some(share) = check.performance.as_ref().and_then(|performance| performance.near_peak) {
            notes += &entry(style, Ink::Doubt, "check this", &format!("{name}: {}", near_peak(share)));
        }
        // Of a matrix the table says enough.
        for advice in
            check.roofline.iter().filter(|_| checks.len() == 1).flat_map(|roofline| &roofline.recommendations)
        {
            notes += &entry(style, Ink::Dim, "roofline", &format!("{name}: {advice}"));
        }
    }
    paragraphs(&[grid.render(style), notes, end(checks, style)])
}

fn row(check: &KernelCheck) -> [Cell; 13] {
    let small = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") };
    let (correctness, performance) = (check.correctness.as_ref(), check.performance.as_ref());
    let (right, ink) = match correctness {
        Some(correctness) if correctness.passed => ("yes", Ink::Good),
        Some(correctness) if correctness.is_unknown() => ("–", Ink::Doubt),
        Some(_) => ("no", Ink::Bad),
        None => ("–", Ink::Doubt),
    };
    let half_width = |[low, high]: [f64; 2], median: f64| (high - low) / 2.0 / median;
    let interval = performance.and_then(|p| p.ci_95_ms.map(|interval| half_width(interval, p.median_ms)));
    let roofline = check.roofline.as_ref();
    [
        Cell::new(check.text("op")),
        Cell::new(&check.shape()),
        Cell::new(check.text("dtype")),
        Cell::new(&check.params()),
        Cell::new(right).with(ink),
        Cell::number(correctness.map(|c| c.max_abs_error), small),
        Cell::number(correctness.map(|c| c.rel_norm), small),
        Cell::number(performance.map(|p| p.median_ms), units::time).with(Ink::Strong),
        Cell::number(interval, |share| format!("±{}", units::share(share))),
        Cell::number(performance.and_then(|p| p.throughput_gflops), |v| format!("{v:.0}")),
        Cell::number(performance.and_then(|p| p.bandwidth_gb_s), |v| format!("{v:.1}")),
        Cell::new(roofline.map_or("–", |roofline| &roofline.bottleneck)),
        Cell::number(roofline.and_then(|roofline| roofline.efficiency_pct), |pct| format!("{pct:.1} %")),
    ]
}

fn end(checks: &[KernelCheck], style: Style) -> String {
    let count = |passed: bool| {
        let is_so = |c: &Correctness| c.passed == passed && !c.is_unknown();
        checks.iter().filter(|check| check.correctness.as_ref().is_some_and(is_so)).count()
    };
    let is_broken =
        |check: &&KernelCheck| check.broken || check.correctness.as_ref().is_some_and(|c| c.is_unknown());
    let broken = checks.iter().filter(is_broken).count();
    let unanswered = checks.iter().filter(|check| check.unanswered).count();
    let (right, wrong) = (count(true), count(false));
    let kernels = plural(checks.len(), "kernel");
    match (right, wrong) {
        (_, 1..) => last_line(style, Ink::Bad, "wrong", &format!("{wrong} of {kernels}")),
        _ if broken > 0 => {
            last_line(style, Ink::Bad, "broken", &format!("{broken} of {kernels} could not be measured"))
        }
        _ if unanswered > 0 => {
            let body =
                format!("the oracle of {unanswered} of {kernels} had no answer; {right} checked and right");
            last_line(style, Ink::Doubt, "skipped", &body)
        }
        (0, 0) => last_line(style, Ink::Doubt, "skipped", "no kernel could be run"),
        _ => last_line(style, Ink::Good, "ok", &format!("{right} of {kernels} right")),
    }
}
