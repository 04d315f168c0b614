//! Plain tables (docs/imports.md): `name,value,unit` with a row for each sample, or wide ones whose columns of times carry their
//! unit in their name, such as `latency_ms`.

mod columns;

use crate::table::{self, Cells, Records};
use crate::unit::Unit;
use crate::values::Values;
use crate::{Format, Imported};
use columns::Columns;
use holdpoint_model::FileError;
use holdpoint_model::current::Unmeasured;
use holdpoint_model::document::value_error;
use std::collections::BTreeSet;

pub(crate) const FORMAT: Format = Format {
    words: "a table of comma-separated values",
    matches: |probe| probe.any_text(".csv", matches),
    read: |source| table::read_each(source, matches, |text| read(text, "csv")),
};

/// Whether the first line has a name and a value, or any column that is a time or a rate.
fn matches(text: &str) -> bool {
    let mut records = Records::new(text);
    let header = if text.trim_start().starts_with(['{', '[', '<']) { None } else { records.header().ok() };
    header.is_some_and(|header| header.len() > 1 && Columns::new(&header).is_table())
}

/// The samples of a table.
#[derive(Default)]
struct Rows {
    values: Values,
    empty: BTreeSet<String>,
}

/// Reads a table whose metrics are medians over the rows of a name.
pub(crate) fn read(text: &str, suite: &str) -> Result<Imported, FileError> {
    let mut records = Records::new(text);
    let header = records.header()?;
    let columns = Columns::new(&header);
    if columns.values.is_empty() {
        let what = "no column is a time: name one \"value\", or with its unit, such as \"latency_ms\"";
        return value_error("line 1".to_owned(), what);
    }
    let (mut rows, mut cells) = (Rows::default(), Vec::new());
    while records.read(&mut cells)? {
        if cells.len() != header.len() {
            let what = format!("has {} cells, the first line {}", cells.len(), header.len());
            return records.refuse(&what);
        }
        rows.add(&columns, &records, &cells)?;
    }
    rows.import(suite, &columns)
}

impl Rows {
    fn add(&mut self, columns: &Columns, records: &Records<'_>, cells: &Cells<'_>) -> Result<(), FileError> {
        for column in &columns.values {
            let (name, cell) = (columns.name(column, cells), cells[column.index].trim());
            if name.is_empty() {
                return records.refuse("has no name");
            }
            if cell.is_empty() {
                self.empty.insert(name);
                continue;
            }
            let value = records.number(&column.header, cell)?;
            let named = columns.unit.map(|unit| &*cells[unit]);
            let unit = match (&column.unit, named) {
                (Some(unit), _) => Some(unit.clone()),
                (None, Some(named)) => Unit::parse(named),
                (None, None) => Some(Unit::Time(1.0)),
            };
            match unit {
                None => self.values.leave_out(&name, named.unwrap_or_default()),
                Some(unit) if self.values.push(&name, &unit, value) => {}
                Some(_) => return records.refuse("a rate must be above 0"),
            }
        }
        Ok(())
    }

    fn import(self, suite: &str, columns: &Columns) -> Result<Imported, FileError> {
        let mut imported = Imported::new(suite);
        self.values.import(&mut imported, "p50")?;
        for name in self.empty {
            imported.add_unmeasured(&name, "p50_ms", Unmeasured::Skipped("its cell is empty".to_owned()));
        }
        if columns.lacks_unit() {
            imported
                .current
                .notes
                .push("the table has no units: its values are read as milliseconds".to_owned());
        }
        if imported.current.metrics.is_empty() && imported.left_out.is_empty() {
            return value_error("line 1".to_owned(), "has no rows below it");
        }
        Ok(imported)
    }
}

#[cfg(test)]
mod tests;
