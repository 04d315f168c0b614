//! hyperfine's JSON (`--export-json`): the seconds of each run of each command.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

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

/// Values by their names.
pub(crate) type Parameters = BTreeMap<String, String>;

#[derive(Deserialize)]
struct File {
    results: Vec<CommandTimes>,
}

#[derive(Deserialize)]
struct CommandTimes {
    command: String,
    times: Option<Vec<f64>>,
    mean: f64,
    /// Those of a scan, such as `--parameter-list`.
    #[serde(default)]
    parameters: Parameters,
}

impl CommandTimes {
    /// The command, or the name that `--command-name` gives it. Of a scan, all commands may have the same.
    fn name(&self) -> String {
        let parameters = self.parameters.iter().map(|(key, value)| format!("{key} = {value}"));
        match self.parameters.is_empty() {
            true => self.command.clone(),
            false => format!("{} ({})", self.command, parameters.collect::<Vec<_>>().join(", ")),
        }
    }
}

/// The commands of a file, with the parameters of each.
pub fn read_parameters(text: &str) -> Result<Vec<(String, Parameters)>, FileError> {
    let file: File = json::parse(text)?;
    Ok(file.results.into_iter().map(|row| (row.name(), row.parameters)).collect())
}

/// The runs of each command; where a file has none, their mean.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let series = |row: CommandTimes| {
        let name = row.name();
        let seconds = row.times.filter(|times| !times.is_empty()).unwrap_or_else(|| vec![row.mean]);
        Series { name, times_ms: seconds.iter().map(|s| s * 1e3).collect() }
    };
    Ok(file.results.into_iter().map(series).collect())
}
