//! The raw page of Nsight Compute as CSV: a row of names, a row of units, a row for each launch.

use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use holdpoint_model::limits::clean_text;
use std::collections::BTreeMap;

/// One launch of a kernel, as it was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NcuLaunch {
    pub kernel: String,
    pub grid: String,
    /// Threads of a block.
    pub block: String,
    /// Every counter that is a number.
    pub metrics: BTreeMap<String, f64>,
    /// Counters that are there and are no numbers: `n/a`, `nan`, texts.
    pub not_numbers: Vec<String>,
}

/// Most launches read: a call that takes more would be profiled for hours.
const LAUNCHES_MAX: usize = 100_000;

/// Reads the page. Lines of the tool's own before the table are skipped.
pub fn ncu_page(text: &str) -> Result<Vec<NcuLaunch>, FileError> {
    // The names of the first columns are those of every version so far.
    let start = text.lines().position(|line| line.starts_with("\"ID\",") || line.starts_with("ID,"));
    let Some(start) = start else {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        let what = format!("no row of names that begins with \"ID\"; it begins with {:?}", excerpt(first));
        return Err(FileError::Unknown { wanted: "a raw page of ncu", what });
    };
    let table: String = text.split_inclusive('\n').skip(start).collect();
    let mut records = records(&table).into_iter();
    let names = records.next().unwrap_or_default();
    let column = |wanted: &str| names.iter().position(|name| name == wanted);
    let Some(kernel) = column("Kernel Name") else {
        return value_error("row 1".to_owned(), "no column \"Kernel Name\"");
    };
    let (grid, block) = (column("Grid Size"), column("Block Size"));
    let mut launches = Vec::new();
    for (row, record) in (2..).zip(records) {
        if record.len() == 1 {
            // Words of the tool's own after the table.
            continue;
        }
        if record.len() != names.len() {
            let what = format!("{} values under {} names; is the file cut off?", record.len(), names.len());
            return value_error(format!("row {row}"), &what);
        }
        // The row of units names no kernel.
        if record[kernel].trim().is_empty() {
            continue;
        }
        if launches.len() == LAUNCHES_MAX {
            return value_error(format!("row {row}"), &format!("more than {LAUNCHES_MAX} launches"));
        }
        let text_at = |at: Option<usize>| at.map(|at| clean_text(record[at].trim())).unwrap_or_default();
        let mut launch = NcuLaunch {
            kernel: text_at(Some(kernel)),
            grid: text_at(grid),
            block: text_at(block),
            ..NcuLaunch::default()
        };
        for (name, value) in names.iter().zip(&record).filter(|(name, _)| is_metric(name)) {
            match number(value) {
                Some(number) => drop(launch.metrics.insert(clean_text(name), number)),
                None => launch.not_numbers.push(clean_text(name)),
            }
        }
        launches.push(launch);
    }
    Ok(launches)
}

/// Counters are named `unit__counter`; the columns before them are words.
fn is_metric(name: &str) -> bool {
    name.contains("__")
}

/// A finite number, with commas between thousands or without.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || "+-.,eE".contains(c));
    if !is_plain {
        return None;
    }
    text.replace(',', "").parse().ok().filter(|number: &f64| number.is_finite())
}

/// The records of a CSV text: fields in double quotes may hold commas, line ends, and quotes written twice.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut is_quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if is_quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => record.push(std::mem::take(&mut field)),
            '\n' if !is_quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            '\r' if !is_quoted => {}
            _ => field.push(c),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        records.push(record);
    }
    records
}

fn excerpt(text: &str) -> String {
    clean_text(text).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "\"ID\",\"Kernel Name\",\"Block Size\",\"Grid Size\",\"a__b.sum\",\"c__d.pct\"\n";
    const UNITS: &str = "\"\",\"\",\"\",\"\",\"byte\",\"%\"\n";

    #[test]
    fn numbers_have_separators_and_what_is_no_number_is_absent() {
        let rows = "\"0\",\"f(int, \"\"x\"\")\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"1,234,567.50\",\"n/a\"\n\
                    \"1\",\"g\",\"(1, 1, 1)\",\"(2, 1, 1)\",\"nan\",\"inf\"\n";
        let page = format!("==PROF== Disconnected\n\n{HEAD}{UNITS}{rows}");
        let launches = ncu_page(&page).unwrap();
        assert_eq!(launches.len(), 2);
        assert_eq!((launches[0].kernel.as_str(), launches[0].grid.as_str()), ("f(int, \"x\")", "(2, 1, 1)"));
        assert_eq!(launches[0].metrics, BTreeMap::from([("a__b.sum".to_owned(), 1_234_567.5)]));
        assert_eq!(launches[0].not_numbers, ["c__d.pct"]);
        assert!(launches[1].metrics.is_empty());
        assert_eq!(ncu_page(&page.replace('\n', "\r\n")).unwrap(), launches);
    }

    #[test]
    fn a_page_without_launches_is_empty_and_one_without_a_table_is_refused() {
        assert_eq!(ncu_page(&format!("{HEAD}{UNITS}")).unwrap(), []);
        for text in ["", "==WARNING== No kernels were profiled.\n", "\u{1b}[31mID"] {
            let error = ncu_page(text).unwrap_err().to_string();
            assert!(error.contains("raw page of ncu") && !error.contains('\u{1b}'), "{error:?}");
        }
        assert!(ncu_page("\"ID\",\"Name\"\n").unwrap_err().to_string().contains("Kernel Name"));
        let cut = format!("{HEAD}{UNITS}\"0\",\"f\",\"(1, 1, 1)\"\n");
        assert!(ncu_page(&cut).unwrap_err().to_string().contains("row 3: 3 values under 6 names"));
    }
}
