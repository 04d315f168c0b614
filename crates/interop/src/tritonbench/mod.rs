//! Tritonbench's table (`--csv --output FILE`): a row for each input, a column `<kernel>-<metric>`. Its latencies are medians in
//! milliseconds; it keeps no samples.

use crate::table::{self, Cells, Records};
use crate::{Format, Imported};
use holdpoint_model::FileError;
use holdpoint_model::current::Unmeasured;
use holdpoint_model::document::value_error;
use holdpoint_model::limits::clean_text;

pub(crate) const FORMAT: Format = Format {
    words: "a table of tritonbench",
    matches: |probe| probe.any_text(".csv", matches),
    read: |source| table::read_each(source, matches, read),
};

/// Metrics in milliseconds, and their names here.
const TIMES: [(&str, &str); 2] = [("-latency", "p50_ms"), ("-walltime", "walltime_ms")];
/// Metrics that show a table is tritonbench's.
const KNOWN: &[&str] =
    &["-latency", "-walltime", "-tflops", "-gbps", "-speedup", "-accuracy", "-compile_time"];
/// Rows that are made of the others.
const SUMMARIES: &[&str] = &["average", "hashes"];

fn matches(text: &str) -> bool {
    let mut records = Records::new(text);
    let is_known = |name: &String| KNOWN.iter().any(|end| name.ends_with(end));
    records.separator == ';' && records.header().is_ok_and(|header| header.iter().skip(1).any(is_known))
}

fn read(text: &str) -> Result<Imported, FileError> {
    let mut imported = Imported::new("tritonbench");
    let mut records = Records::new(text);
    let header = records.header()?;
    for column in header.iter().skip(1).filter(|column| time_of(column).is_none()) {
        imported.leave_out(column, "no time");
    }
    let mut cells = Vec::new();
    while records.read(&mut cells)? {
        if cells.len() != header.len() {
            let what = format!("has {} cells, the first line {}", cells.len(), header.len());
            return records.refuse(&what);
        }
        if !SUMMARIES.contains(&&*cells[0]) {
            add_row(&mut imported, &header, &records, &cells)?;
        }
    }
    if imported.current.metrics.is_empty() {
        return value_error("file".to_owned(), "has no latencies; run tritonbench with --metrics latency");
    }
    Ok(imported)
}

/// The kernel and the metric of a column of times.
fn time_of(column: &str) -> Option<(&str, &'static str)> {
    TIMES.iter().find_map(|(end, metric)| Some((column.strip_suffix(end)?, *metric)))
}

fn add_row(
    imported: &mut Imported,
    header: &[String],
    records: &Records<'_>,
    cells: &Cells<'_>,
) -> Result<(), FileError> {
    for (column, cell) in header.iter().zip(cells).skip(1) {
        let Some((kernel, metric)) = time_of(column) else { continue };
        let name = format!("{kernel}/{}", cells[0]);
        // With its spread behind it in some versions: `0.012 (±1.2%)`.
        let number = cell.split(" (").next().unwrap_or_default().trim();
        if number.is_empty() {
            imported.add_unmeasured(&name, metric, Unmeasured::Skipped("its cell is empty".to_owned()));
        } else if number.starts_with(|c: char| c.is_ascii_digit()) {
            imported.add(name, metric, records.number(column, number)?, Vec::new())?;
        } else {
            // Tritonbench writes the message of a kernel that failed in place of its first number.
            imported.add_unmeasured(&name, metric, Unmeasured::Failed(clean_text(cell)));
        }
    }
    Ok(())
}
