//! A baseline in words and cells.

use crate::paint::Ink;
use crate::table::{Cell, Column, Grid, names, numbers};
use crate::text::plural;
use crate::units;
use holdpoint_model::{Baseline, BaselineMetric};

const COLUMNS: &[Column] = &[
    names("metric"),
    numbers("value"),
    numbers("tolerance").drop(1),
    numbers("allowed"),
    numbers("spread").drop(2),
    numbers("runs").drop(3),
];

pub(crate) fn metrics_table(b: &Baseline) -> Grid {
    let mut grid = Grid::new(COLUMNS);
    for (name, metric) in &b.metrics {
        let runs = match metric.runs_ms.len() {
            0 => units::MISSING.to_owned(),
            n => units::count(n as u64),
        };
        grid.push([
            Cell::new(name),
            Cell::number(Some(metric.value_ms), units::time).with(Ink::Strong),
            Cell::new(&tolerance(metric)),
            Cell::number(Some(metric.allowed_max_ms()), units::time),
            Cell::number(metric.spread, units::share).with(Ink::Dim),
            Cell::new(&runs),
        ]);
    }
    grid
}

/// `+50.0 %`, `+50.0 % + 20.00 µs`.
fn tolerance(metric: &BaselineMetric) -> String {
    let ratio = units::percent(metric.max_regression_ratio);
    if metric.max_regression_abs_ms == 0.0 {
        return ratio;
    }
    format!("{ratio} + {}", units::time(metric.max_regression_abs_ms))
}

/// `9 metrics, from 5 runs, on machine 0123456789ab`.
pub(crate) fn describe_baseline(b: &Baseline) -> String {
    let runs = match b.runs.len() {
        0 => "origin unknown".to_owned(),
        n => format!("from {}", plural(n, "run")),
    };
    let machine = match &b.machine {
        Some(machine) => format!("on machine {:.12}", machine.fingerprint),
        None => "on an unnamed machine".to_owned(),
    };
    format!("{}, {runs}, {machine}", plural(b.metrics.len(), "metric"))
}
