//! hyperfine's JSON (`--export-json`): the seconds of each run of each command.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use serde::de::IgnoredAny;

pub(crate) const FORMAT: Format = Format {
    words: "a file of hyperfine",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("hyperfine", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    let results: Option<Vec<Named>> = head.get("results");
    results.is_some_and(|rows| rows.iter().all(|row| row.command.is_some()) && !rows.is_empty())
}

/// A row by its name, its times unread.
#[derive(Deserialize)]
struct Named {
    command: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct File {
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    command: String,
    times: Option<Vec<f64>>,
    mean: f64,
}

/// The runs of each command; where a file has none, their mean.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let series = |row: Row| {
        let seconds = row.times.filter(|times| !times.is_empty()).unwrap_or_else(|| vec![row.mean]);
        Series { name: row.command, times_ms: seconds.iter().map(|s| s * 1e3).collect() }
    };
    Ok(file.results.into_iter().map(series).collect())
}
