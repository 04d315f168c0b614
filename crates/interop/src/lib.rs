//! Other tools' files: one folder per format, read and written.
//!
//! Pure: the caller opens files and hands their text in. A reader takes a file, or a folder as a set of files, and keeps raw
//! samples where the format has them. Nothing here decides.

pub mod apex;
pub mod catch2;
pub mod criterion;
pub mod cudadent42;
pub mod divan;
pub mod go_test;
pub mod google_benchmark;
#[cfg(test)]
mod harness_tests;
pub mod hyperfine;
pub mod jmh;
pub mod ncu;
pub mod nvbench;
pub mod pyperf;
pub mod pytest_benchmark;
pub mod sanitizer;
mod series;
mod source;
#[cfg(test)]
mod tests;

pub use series::Series;
pub use source::Source;

use holdpoint_model::document::{self, Head, check_time};
use holdpoint_model::{Baseline, Current, FileError, Kind, Report};
use serde_json::Value;
use std::collections::BTreeMap;

/// Every format whose times can be compared, tried in this order. A further one is a folder and a line here.
const FORMATS: &[Format] = &[
    criterion::FORMAT,
    google_benchmark::FORMAT,
    pytest_benchmark::FORMAT,
    pyperf::FORMAT,
    hyperfine::FORMAT,
    jmh::FORMAT,
    nvbench::FORMAT,
    catch2::FORMAT,
    divan::FORMAT,
    go_test::FORMAT,
    cudadent42::FORMAT,
    apex::FORMAT,
];

/// How to recognise and read a format.
pub struct Format {
    /// The name in sentences, such as "a report of Apex-X".
    pub words: &'static str,
    /// Whether these files look like the format.
    pub matches: fn(&Source) -> bool,
    pub read: fn(&Source) -> Result<Imported, FileError>,
}

/// Another tool's measurements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Imported {
    pub current: Current,
    /// The raw times behind a metric, in the order they were taken, where the format has them.
    pub samples_ms: BTreeMap<String, Vec<f64>>,
    /// Whether it can only be a baseline: no single run had all these values.
    pub is_baseline: bool,
}

/// Reads a file or a folder of another tool.
pub fn import(source: &Source) -> Result<Imported, FileError> {
    import_as(source).map(|(_, imported)| imported)
}

fn import_as(source: &Source) -> Result<(&'static Format, Imported), FileError> {
    let Some(format) = FORMATS.iter().find(|format| (format.matches)(source)) else {
        let what = match source.single() {
            Some(text) => Head::parse(text)?.describe(),
            None => "no file of the folder is of a known format".to_owned(),
        };
        return Err(FileError::Unknown { wanted: "a report or baseline", what });
    };
    let imported = (format.read)(source)?;
    for (name, metric) in &imported.current.metrics {
        check_time(name, metric.value_ms)?;
    }
    Ok((format, imported))
}

fn own_kind(source: &Source) -> Result<Option<Kind>, FileError> {
    match source.single().map(document::kind) {
        Some(Ok(kind)) => Ok(kind.filter(|kind| *kind != Kind::Check)),
        // Other tools' files need not be JSON.
        None | Some(Err(FileError::Json(_))) => Ok(None),
        Some(Err(error)) => Err(error),
    }
}

/// Reads whatever can be compared with a baseline: a report of ours or another tool's.
pub fn read_current(source: &Source) -> Result<Current, FileError> {
    match (own_kind(source)?, source.single()) {
        (Some(Kind::Report), Some(text)) => Ok(Current::from(&document::read::<Report>(text)?)),
        (Some(found), _) => Err(FileError::OtherKind { found, wanted: Kind::Report }),
        (None, _) => match import_as(source)? {
            (format, Imported { is_baseline: true, .. }) => {
                Err(FileError::Unknown { wanted: "a report", what: format!("it is {}", format.words) })
            }
            (_, imported) => Ok(imported.current),
        },
    }
}

/// Reads a baseline, or any file that [`read_current`] reads, whose values then become the baseline's with the default tolerance.
pub fn read_baseline(source: &Source) -> Result<Baseline, FileError> {
    match (own_kind(source)?, source.single()) {
        (Some(Kind::Baseline), Some(text)) => document::read(text),
        (Some(Kind::Report), Some(text)) => Ok(Current::from(&document::read::<Report>(text)?).into()),
        (Some(found), _) => Err(FileError::OtherKind { found, wanted: Kind::Baseline }),
        (None, _) => Ok(import(source)?.current.into()),
    }
}

fn text_at(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}
