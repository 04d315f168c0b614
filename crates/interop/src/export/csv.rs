//! A row for each raw sample.

use super::{Export, UNIT};
use std::borrow::Cow;
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

pub(super) fn quote(cell: &str) -> Cow<'_, str> {
    match cell.contains([',', '"', '\n', '\r']) {
        true => Cow::Owned(format!("\"{}\"", cell.replace('"', "\"\""))),
        false => Cow::Borrowed(cell),
    }
}
