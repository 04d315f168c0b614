//! The table after a suite was measured on several devices.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::table::{Cell, Column, Grid, names, numbers};
use crate::text::plural;
use crate::units;
use holdpoint_model::{Outcome, Report};

/// The median of each workload on each device, and how far the devices are apart.
pub fn devices(reports: &[(u32, Report)], style: Style) -> String {
    let mut columns: Vec<Column> = vec![names("workload")];
    columns.extend(reports.iter().map(|(ordinal, _)| numbers("").titled(format!("device {ordinal}"))));
    columns.push(numbers("spread"));
    let mut grid = Grid::new(&columns);
    let workloads: Vec<&String> =
        reports.first().map(|(_, r)| r.benchmarks.keys().collect()).unwrap_or_default();
    for name in &workloads {
        let medians: Vec<Option<f64>> = reports.iter().map(|(_, report)| median(report, name)).collect();
        let mut row = vec![Cell::new(name)];
        row.extend(medians.iter().map(|median| Cell::number(*median, units::time)));
        row.push(Cell::number(spread(&medians), units::share).with(Ink::Strong));
        grid.push(row);
    }
    let widest = workloads.iter().filter_map(|name| {
        let medians: Vec<Option<f64>> = reports.iter().map(|(_, report)| median(report, name)).collect();
        Some((spread(&medians)?, *name))
    });
    let sentence = match widest.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((spread, name)) => format!(
            "{} measured on {}; farthest apart is {name}, by {}",
            plural(workloads.len(), "workload"),
            plural(reports.len(), "device"),
            units::share(spread)
        ),
        None => "nothing was measured on two devices".to_owned(),
    };
    paragraphs(&[grid.render(style), last_line(style, Ink::Strong, "devices", &sentence)])
}

fn median(report: &Report, name: &str) -> Option<f64> {
    match &report.benchmarks.get(name)?.outcome {
        Outcome::Measured(measured) => Some(measured.p50_ms),
        _ => None,
    }
}

/// By how much the slowest device takes longer than the quickest; absent with fewer than two.
fn spread(medians: &[Option<f64>]) -> Option<f64> {
    let known: Vec<f64> = medians.iter().copied().flatten().collect();
    let (low, high) = (known.iter().copied().reduce(f64::min)?, known.iter().copied().reduce(f64::max)?);
    (known.len() > 1 && low > 0.0).then(|| high / low - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_compared_only_where_two_were_measured() {
        assert_eq!(spread(&[Some(1.0), None, Some(1.25)]), Some(0.25));
        assert_eq!(spread(&[Some(1.0), None]), None);
        assert_eq!(spread(&[]), None);
    }
}
