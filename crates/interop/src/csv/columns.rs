//! The roles of a table's columns, by their names.

use crate::table::Cells;
use crate::unit::{Unit, time_ms};

/// Columns that say where in a run a sample was taken, not of what.
const PLACES: &[&str] = &[
    "",
    "index",
    "iteration",
    "iter",
    "sample",
    "round",
    "process",
    "position",
    "order",
    "run",
    "rep",
    "repetition",
    "timestamp",
    "time_utc",
    "date",
];
/// Columns whose cells are names by themselves.
const NAMES: &[&str] = &["name", "benchmark", "workload", "metric"];
/// The metric that needs no word beside the name; `report --as csv` writes it.
const PLAIN_METRIC: &str = "time";

pub(super) struct Columns {
    pub values: Vec<ValueColumn>,
    /// Where the unit of `value` stands.
    pub unit: Option<usize>,
    keys: Vec<Key>,
}

pub(super) struct ValueColumn {
    pub index: usize,
    pub header: String,
    /// The header without its unit.
    label: String,
    /// The unit in the header; of `value` it stands in a column of its own.
    pub unit: Option<Unit>,
}

struct Key {
    index: usize,
    header: String,
    is_name: bool,
}

impl Columns {
    pub fn new(header: &[String]) -> Self {
        let mut columns = Self { values: Vec::new(), unit: None, keys: Vec::new() };
        for (index, header) in header.iter().enumerate() {
            let lower = header.to_lowercase();
            if let Some((label, unit)) = split_unit(header) {
                columns.values.push(ValueColumn { index, header: header.clone(), label, unit: Some(unit) });
            } else if lower == "value" {
                let (header, label) = (header.clone(), String::new());
                columns.values.push(ValueColumn { index, header, label, unit: None });
            } else if lower == "unit" {
                columns.unit = Some(index);
            } else if !PLACES.contains(&lower.as_str()) {
                let is_name = NAMES.contains(&lower.as_str());
                columns.keys.push(Key { index, header: header.clone(), is_name });
            }
        }
        columns
    }

    /// Whether it looks like a table of times.
    pub fn is_table(&self) -> bool {
        let has_name = self.keys.iter().any(|key| key.is_name);
        self.values.iter().any(|column| column.unit.is_some() || has_name)
    }

    /// Whether values are given without any unit.
    pub(crate) fn lacks_unit(&self) -> bool {
        self.unit.is_none() && self.values.iter().any(|column| column.unit.is_none())
    }

    /// The name of what a cell is a time of.
    pub fn name(&self, column: &ValueColumn, cells: &Cells<'_>) -> String {
        let mut name = String::new();
        let mut add = |words: &[&str]| {
            let slash = if name.is_empty() { "" } else { "/" };
            [slash].iter().chain(words).for_each(|word| name.push_str(word));
        };
        if (self.values.len() > 1 || self.keys.is_empty()) && !column.label.is_empty() {
            add(&[&column.label]);
        }
        for key in &self.keys {
            let cell = cells[key.index].trim();
            let is_plain = key.header == "metric" && cell == PLAIN_METRIC;
            if !key.is_name {
                add(&[&key.header, "=", plain_number(cell)]);
            } else if !cell.is_empty() && !is_plain {
                add(&[cell]);
            }
        }
        name
    }
}

/// `latency_ms`, `Triton (GB/s)`, `time [us]`, `tokens_per_s`: the label and the unit.
fn split_unit(header: &str) -> Option<(String, Unit)> {
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some((label, unit)) = header.strip_suffix(close).and_then(|inner| inner.rsplit_once(open)) {
            return Unit::parse(unit).map(|unit| (label.trim().to_owned(), unit));
        }
    }
    if let Some(rate) = header.strip_suffix("_per_s").or_else(|| header.strip_suffix("_per_sec")) {
        let unit = Unit::parse(&format!("{}/s", rate.rsplit('_').next().unwrap_or(rate)))?;
        return Some((rate.to_owned(), unit));
    }
    let (label, unit) = header.rsplit_once('_').unwrap_or(("", header));
    // A lone `s` is too little to be a time.
    let ms = time_ms(unit).filter(|_| !label.is_empty() || unit != "s")?;
    Some((label.to_owned(), Unit::Time(ms)))
}

/// `128.000000` is written by pandas for 128.
fn plain_number(cell: &str) -> &str {
    match cell.split_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|byte| byte == b'0') => whole,
        _ => cell,
    }
}
