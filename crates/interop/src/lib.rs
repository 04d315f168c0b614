//! Other tools' files: one folder per format, read and written.
//!
//! Pure: the caller opens files and hands their text in. A reader takes a file, or a folder as a set of files, and keeps raw
//! samples where the format has them. Nothing here decides.

pub mod apex;
mod asv;
mod benchmark_tools;
mod bmf;
pub mod catch2;
pub mod criterion;
mod csv;
pub mod cudadent42;
pub mod divan;
pub mod export;
mod github_action_benchmark;
pub mod go_test;
pub mod google_benchmark;
#[cfg(test)]
mod harness_tests;
pub mod hyperfine;
#[cfg(test)]
mod import_tests;
mod imported;
pub mod jmh;
mod loose;
pub mod ncu;
pub mod nvbench;
mod probe;
pub mod pyperf;
pub mod pytest_benchmark;
mod report;
pub mod sanitizer;
mod series;
mod serving;
mod sglang;
mod source;
mod table;
#[cfg(test)]
mod tests;
mod top_level;
mod torch_benchmark;
mod tracks;
mod triton_testing;
mod tritonbench;
mod trtexec;
mod unit;
mod values;
mod vitest;
mod vllm;

pub use imported::Imported;
pub use probe::Probe;
pub use series::Series;
pub use source::Source;
pub use tracks::read_tracks;

use holdpoint_model::document::{self, Head};
use holdpoint_model::{Baseline, Current, FileError, Kind, Report};
use serde_json::Value;

/// Every format whose times can be compared, tried in this order. A further one is a folder and a line here.
const FORMATS: &[Format] = &[
    criterion::FORMAT,
    google_benchmark::FORMAT,
    pytest_benchmark::FORMAT,
    vitest::FORMAT,
    pyperf::FORMAT,
    hyperfine::FORMAT,
    jmh::FORMAT,
    nvbench::FORMAT,
    catch2::FORMAT,
    divan::FORMAT,
    go_test::FORMAT,
    asv::FORMAT,
    benchmark_tools::FORMAT,
    trtexec::FORMAT,
    torch_benchmark::FORMAT,
    vllm::FORMAT,
    sglang::FORMAT,
    github_action_benchmark::FORMAT,
    cudadent42::FORMAT,
    apex::FORMAT,
    bmf::FORMAT,
    tritonbench::FORMAT,
    triton_testing::FORMAT,
    csv::FORMAT,
];

/// How to recognise and read a format.
pub struct Format {
    /// The name in sentences, such as "a report of Apex-X".
    pub words: &'static str,
    /// Whether these files look like the format.
    pub matches: fn(&Probe<'_>) -> bool,
    pub read: fn(&Source) -> Result<Imported, FileError>,
}

/// Reads a file or a folder of another tool.
pub fn import(source: &Source) -> Result<Imported, FileError> {
    let json = loose::as_json(source);
    let probe = Probe::new(&json);
    match probe.own_kind()? {
        Some(found) => Err(FileError::OtherKind { found, wanted: Kind::Report }),
        None => import_as(source, &json, &probe).map(|(_, imported)| imported),
    }
}

fn import_as(
    source: &Source,
    json: &Source,
    probe: &Probe<'_>,
) -> Result<(&'static Format, Imported), FileError> {
    let Some(format) = FORMATS.iter().find(|format| (format.matches)(probe)) else {
        let what = match source.single() {
            Some(text) => Head::parse(text)?.describe(),
            None => "no file of the folder is of a known format".to_owned(),
        };
        return Err(FileError::Unknown { wanted: "a report or baseline", what });
    };
    Ok((format, (format.read)(json)?.finish()?))
}

/// Reads whatever can be compared with a baseline: a report of ours or another tool's.
pub fn read_current(source: &Source) -> Result<Current, FileError> {
    let json = loose::as_json(source);
    let probe = Probe::new(&json);
    match (probe.own_kind()?, source.single()) {
        (Some(Kind::Report), Some(text)) => Ok(Current::from(&document::read::<Report>(text)?)),
        (Some(found), _) => Err(FileError::OtherKind { found, wanted: Kind::Report }),
        (None, _) => match import_as(source, &json, &probe)? {
            (format, Imported { is_baseline: true, .. }) => {
                Err(FileError::Unknown { wanted: "a report", what: format!("it is {}", format.words) })
            }
            (_, imported) => Ok(imported.current),
        },
    }
}

/// Reads a baseline, or any file that [`read_current`] reads, whose values then become the baseline's with the tolerance of one run.
pub fn read_baseline(source: &Source) -> Result<Baseline, FileError> {
    let json = loose::as_json(source);
    let probe = Probe::new(&json);
    match (probe.own_kind()?, source.single()) {
        (Some(Kind::Baseline), Some(text)) => document::read(text),
        (Some(Kind::Report), Some(text)) => Ok(Current::from(&document::read::<Report>(text)?).into()),
        (Some(found), _) => Err(FileError::OtherKind { found, wanted: Kind::Baseline }),
        (None, _) => Ok(import_as(source, &json, &probe)?.1.current.into()),
    }
}

fn text_at(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}
