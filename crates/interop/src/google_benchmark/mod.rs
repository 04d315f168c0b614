//! Google Benchmark's JSON (`--benchmark_out`): a row for each repetition.

use crate::Format;
use crate::series::{self, ByName, Series};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of Google Benchmark",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("google_benchmark", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    let context: Option<serde_json::Map<String, serde_json::Value>> = head.get("context");
    head.has("benchmarks") && context.is_some_and(|context| context.contains_key("library_build_type"))
}

#[derive(Deserialize)]
struct File {
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    /// The name without the suffix of an aggregate; absent in old versions.
    run_name: Option<String>,
    /// `aggregate` for the mean and the like of other rows.
    run_type: Option<String>,
    real_time: Option<f64>,
    time_unit: Option<String>,
    error_message: Option<String>,
}

/// The repetitions of each benchmark.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let mut all = ByName::default();
    for row in file.benchmarks.iter().filter(|row| row.run_type.as_deref() != Some("aggregate")) {
        if let Some(error) = &row.error_message {
            return value_error(row.name.clone(), error);
        }
        let factor = match row.time_unit.as_deref() {
            Some("ns") | None => 1e-6,
            Some("us") => 1e-3,
            Some("ms") => 1.0,
            Some("s") => 1e3,
            Some(_) => return value_error(row.name.clone(), "time_unit must be ns, us, ms or s"),
        };
        let Some(time) = row.real_time else { return value_error(row.name.clone(), "real_time is missing") };
        all.push(row.run_name.as_ref().unwrap_or(&row.name), time * factor);
    }
    Ok(all.into_series())
}
