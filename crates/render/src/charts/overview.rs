//! Rows on one scale: what changed against its tolerance, and other numbers of many workloads.

use crate::judged::{CheckRow, Judged};
use crate::svg::{Mark, Scale, Strips};
use crate::units;

/// Everything is drawn within this change at least: below it all would look large.
const SPAN_MIN: f64 = 0.01;
/// A scale that would reach further than this many tolerances is bent.
const BENT_FROM: f64 = 8.0;
/// Numbers along the axis of changes, in the order in which they get room.
const PERCENTS: [f64; 12] = [0.0, 1.0, 10.0, 100.0, 1000.0, 0.1, 0.2, 0.5, 2.0, 5.0, 20.0, 50.0];

/// A row's picture.
pub(crate) struct RowMark<'a> {
    pub(crate) row: CheckRow<'a>,
    pub(crate) svg: String,
}

/// A strip for each row that has a change, and the axis below them; nothing where none has.
pub(crate) fn changes<'a>(judged: Judged<'a>, rows: Vec<CheckRow<'a>>) -> Option<(Vec<RowMark<'a>>, String)> {
    let finite = |value: &f64| value.is_finite();
    let ends: Vec<f64> = rows
        .iter()
        .flat_map(|row| row.interval.into_iter().flatten().chain(row.change).chain(row.allowed))
        .filter(finite)
        .collect();
    rows.iter().find(|row| row.change.is_some_and(f64::is_finite))?;
    let allowed = rows.iter().filter_map(|row| row.allowed).map(f64::abs).filter(finite).fold(0.0, f64::max);
    let allowed = if allowed > 0.0 { allowed } else { SPAN_MIN };
    let scale = Scale::over(ends.iter().copied().chain([-allowed, allowed]), SPAN_MIN);
    let furthest = ends.iter().copied().map(f64::abs).fold(0.0, f64::max);
    let scale = if furthest > BENT_FROM * allowed { scale.bent(allowed) } else { scale };
    let strips = Strips::new(scale);
    let marked = rows.into_iter().map(|row| {
        let mark = Mark {
            class: row.verdict.as_str(),
            value: row.change,
            interval: row.interval,
            band: row.allowed.map(|allowed| [-allowed.abs(), allowed.abs()]),
            limit: row.allowed,
            others: baseline_runs(judged, &row),
        };
        let svg = strips.row(&mark, &describe(&row));
        RowMark { row, svg }
    });
    let marked = marked.collect();
    let ticks: Vec<f64> =
        PERCENTS.iter().flat_map(|percent| [*percent, -percent]).map(|p| p / 100.0).collect();
    Some((marked, strips.axis(&ticks, whole_percent)))
}

/// A change for an axis: `+2 %`.
pub(crate) fn whole_percent(change: f64) -> String {
    units::percent(change).replace(".0 %", " %")
}

/// `+1.2 %, interval -0.1 … +2.3 %, allowed +2.0 %`.
fn describe(row: &CheckRow<'_>) -> String {
    let mut words = vec![units::number(row.change, units::percent)];
    words.extend(row.interval.map(|[low, high]| format!("interval {}", units::percent_interval(low, high))));
    words.extend(row.allowed.map(|allowed| format!("allowed {}", units::percent(allowed))));
    format!("{}: {}", row.name(), words.join(", "))
}

/// The baseline's own runs, as changes from its value.
fn baseline_runs(judged: Judged<'_>, row: &CheckRow<'_>) -> Vec<f64> {
    let basis = judged.judgement.basis.as_ref().and_then(|basis| basis.baseline());
    let metric = basis.and_then(|basis| basis.baseline.metrics.get(&row.check.metric));
    metric.map_or_else(Vec::new, |metric| {
        metric.runs_ms.iter().map(|run| run / metric.value_ms - 1.0).take(40).collect()
    })
}

/// Strips of plain numbers from zero on: a dot each, and perhaps a line from it to a larger number.
pub(crate) fn dots(
    rows: &[(Option<f64>, Option<f64>)],
    limit: Option<f64>,
    format: fn(f64) -> String,
    names: &[String],
) -> Option<(Vec<String>, String)> {
    let all = rows.iter().flat_map(|(value, to)| [*value, *to]).flatten().chain(limit);
    let highest = all.filter(|value| value.is_finite()).fold(0.0, f64::max);
    if highest <= 0.0 {
        return None;
    }
    let strips = Strips::new(Scale::new(0.0, highest * 1.05));
    let strip = |((value, to), name): (&(Option<f64>, Option<f64>), &String)| {
        let mark = Mark {
            class: "dot",
            value: *value,
            interval: value.zip(*to).map(|(value, to)| [value, to]),
            limit,
            ..Mark::default()
        };
        strips.row(&mark, name)
    };
    let ticks: Vec<f64> =
        crate::svg::nice_ticks([0.0, highest * 1.05], 4).into_iter().map(|(at, _)| at).collect();
    Some((rows.iter().zip(names).map(strip).collect(), strips.axis(&ticks, format)))
}
