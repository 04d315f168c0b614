//! pytest-benchmark's JSON (`--benchmark-json`): the seconds of each round, where it was told to keep them.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of pytest-benchmark",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("pytest_benchmark", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    head.has("benchmarks") && head.has("machine_info") && head.has("commit_info")
}

#[derive(Deserialize)]
struct File {
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    fullname: String,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    median: f64,
    /// Seconds per call of each round; absent from saved files unless asked for.
    data: Option<Vec<f64>>,
}

/// The rounds of each benchmark; where a file has none, their median.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let series = |Benchmark { fullname, stats }: Benchmark| {
        let seconds = stats.data.filter(|data| !data.is_empty()).unwrap_or_else(|| vec![stats.median]);
        Series { name: fullname, times_ms: seconds.iter().map(|s| s * 1e3).collect() }
    };
    Ok(file.benchmarks.into_iter().map(series).collect())
}
