//! A row for each raw sample.

use super::{Export, UNIT};
use holdpoint_model::limits::one_line;
use std::fmt::Write;

pub fn csv(export: &Export<'_>) -> String {
    let mut text = String::from("name,metric,value,unit,side,process,round,position\n");
    for sample in &export.samples {
        let (name, metric, side) = (quote(sample.name), sample.metric, sample.side);
        let (value, process, round, position) =
            (sample.value_ns, sample.process, sample.round, sample.position);
        let _ = writeln!(text, "{name},{metric},{value},{UNIT},{side},{process},{round},{position}");
    }
    text
}

/// A cell of text: on one line, without what paints or hides, and never a formula to a spreadsheet.
pub(super) fn quote(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let mark = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !is_number { "'" } else { "" };
    let cell = format!("{mark}{}", one_line(cell));
    match cell.contains([',', '"']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell,
    }
}
