//! The table after `holdpoint check`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::remedy;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{entry, plural};
use crate::units;
use holdpoint_model::{CheckDocument, KernelCheck};

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
            let body = format!("{name}: {}: {}", finding.kind.name(), finding.detail);
            notes += &entry(style, Ink::Bad, "wrong", &body);
        } else if let Some(reason) = &check.reason {
            notes += &entry(style, Ink::Doubt, "not shown", &format!("{name}: {}", remedy::with(reason)));
        }
        let oracle = check.correctness.as_ref().and_then(|correctness| correctness.checked_by.as_ref());
        // A part is worth a line even in a matrix.
        let oracle = oracle.filter(|oracle| checks.len() == 1 || oracle.rows.is_some());
        if let Some(how) = oracle.and_then(|oracle| oracle.describe()) {
            notes += &entry(style, Ink::Dim, "checked", &format!("{name}: {how}"));
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
        checks.iter().filter(|check| check.correctness.as_ref().is_some_and(|c| c.passed == passed)).count()
    };
    let (right, wrong) = (count(true), count(false));
    let kernels = plural(checks.len(), "kernel");
    match (right, wrong) {
        (_, 1..) => last_line(style, Ink::Bad, "wrong", &format!("{wrong} of {kernels}")),
        (0, 0) => last_line(style, Ink::Doubt, "skipped", "no kernel could be run"),
        _ => last_line(style, Ink::Good, "ok", &format!("{right} of {kernels} right")),
    }
}
