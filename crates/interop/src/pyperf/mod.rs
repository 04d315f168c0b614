//! pyperf's JSON (`--output`): the seconds per loop of each value, in the runs of each benchmark.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of pyperf",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("pyperf", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    let metadata: Option<serde_json::Map<String, serde_json::Value>> = head.get("metadata");
    head.has("benchmarks") && metadata.is_some_and(|metadata| metadata.contains_key("perf_version"))
}

#[derive(Deserialize)]
struct File {
    benchmarks: Vec<Benchmark>,
    /// Whatever all benchmarks have in common; of a single one, everything.
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Benchmark {
    #[serde(default)]
    metadata: Metadata,
    runs: Vec<Run>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    name: Option<String>,
    loops: Option<u64>,
    unit: Option<String>,
}

#[derive(Deserialize)]
struct Run {
    /// None of a run that only looked for the number of loops.
    #[serde(default)]
    values: Vec<f64>,
}

impl Benchmark {
    fn name(&self, common: &Metadata) -> Result<String, FileError> {
        match self.metadata.name.as_ref().or(common.name.as_ref()) {
            Some(name) => Ok(name.clone()),
            None => value_error("benchmarks".to_owned(), "one has no name; give it one in its script"),
        }
    }
}

/// The values of each benchmark, one run after the other.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let mut all = Vec::new();
    for row in &file.benchmarks {
        let name = row.name(&file.metadata)?;
        let unit = row.metadata.unit.as_ref().or(file.metadata.unit.as_ref());
        if unit.is_some_and(|unit| unit != "second") {
            return value_error(name, "unit must be second; only times are read");
        }
        let values = row.runs.iter().flat_map(|run| &run.values);
        all.push(Series { name, times_ms: values.map(|s| s * 1e3).collect() });
    }
    Ok(all)
}

/// The loops of each benchmark, in the order of the script.
pub fn read_loops(text: &str) -> Result<Vec<(String, u64)>, FileError> {
    let file: File = json::parse(text)?;
    let loops = |row: &Benchmark| row.metadata.loops.or(file.metadata.loops).unwrap_or(1);
    file.benchmarks.iter().map(|row| Ok((row.name(&file.metadata)?, loops(row)))).collect()
}
