//! The tables of `triton.testing.perf_report` (`save_path`): a row for each size, a column for each line, with the unit in its name.

use crate::table::{self, Records};
use crate::unit::Unit;
use crate::{Format, csv};

pub(crate) const FORMAT: Format = Format {
    words: "a table of triton.testing",
    matches: |probe| probe.any_text(".csv", matches),
    read: |source| table::read_each(source, matches, |text| csv::read(text, "triton_testing")),
};

/// Triton puts the label of the y axis behind the name of each line: `Triton (GB/s)`.
fn matches(text: &str) -> bool {
    let mut records = Records::new(text);
    let has_unit = |name: &String| {
        let unit = name.strip_suffix(')').and_then(|inner| inner.rsplit_once(" ("));
        unit.is_some_and(|(_, unit)| Unit::parse(unit).is_some())
    };
    records.separator == ',' && records.header().is_ok_and(|header| header.iter().skip(1).any(has_unit))
}
