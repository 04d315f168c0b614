//! Vitest's JSON (`vitest bench --outputJson`): the median of each benchmark in milliseconds; its samples are empty lists.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of Vitest",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("vitest", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        #[serde(rename = "filepath")]
        _filepath: String,
        #[serde(rename = "groups")]
        _groups: serde::de::IgnoredAny,
    }
    head.get::<Vec<Shape>>("files").is_some()
}

#[derive(Deserialize)]
struct File {
    files: Vec<BenchFile>,
}

#[derive(Deserialize)]
struct BenchFile {
    groups: Vec<Group>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    /// The file from the root of the project, and the names around the benchmarks.
    full_name: String,
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    median: f64,
}

fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let file: File = json::parse(text)?;
    let groups = file.files.into_iter().flat_map(|file| file.groups);
    let series = |group: Group| {
        let Group { full_name, benchmarks } = group;
        benchmarks.into_iter().map(move |Benchmark { name, median }| Series {
            name: format!("{full_name} > {name}"),
            times_ms: vec![median],
        })
    };
    Ok(groups.flat_map(series).collect())
}
