//! Catch2's XML (`--reporter xml`): the mean of each benchmark's samples, which the file leaves out.

use crate::series::{self, ByName, Series};
use crate::{Format, Source};
use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use roxmltree::{Document, Node};

pub(crate) const FORMAT: Format = Format {
    words: "a file of Catch2",
    matches: |source| source.single().is_some_and(matches),
    read: |source| match source {
        Source::File(text) => series::import("catch2", read(text)?),
        Source::Folder(_) => Ok(crate::Imported::default()),
    },
};

/// Versions 2 and 3.
const ROOTS: [&str; 2] = ["<Catch ", "<Catch2TestRun "];
/// The root comes right after the declaration.
const START_BYTES: usize = 1024;

fn matches(text: &str) -> bool {
    let start = text.trim_start().get(..START_BYTES).unwrap_or(text);
    text.trim_start().starts_with("<?xml") && ROOTS.iter().any(|root| start.contains(root))
}

/// A benchmark of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Benchmark {
    /// Its test case and the sections in it, from the outermost.
    pub place: Vec<String>,
    pub name: String,
    pub mean_ms: f64,
}

impl Benchmark {
    pub fn full_name(&self) -> String {
        [self.place.join("/").as_str(), self.name.as_str()].join("/")
    }
}

/// The mean of each benchmark.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let mut all = ByName::default();
    for found in read_places(text)? {
        all.push(&found.full_name(), found.mean_ms);
    }
    Ok(all.into_series())
}

/// The benchmarks with the test cases they are in.
pub fn read_places(text: &str) -> Result<Vec<Benchmark>, FileError> {
    let document = Document::parse(text)
        .map_err(|error| FileError::Unknown { wanted: "a file of Catch2", what: error.to_string() })?;
    let rows = document.descendants().filter(|node| node.has_tag_name("BenchmarkResults"));
    rows.map(read_row).collect()
}

fn read_row(row: Node<'_, '_>) -> Result<Benchmark, FileError> {
    let name_of = |node: Node<'_, '_>| node.attribute("name").unwrap_or_default().trim().to_owned();
    let is_place = |node: &Node<'_, '_>| node.has_tag_name("TestCase") || node.has_tag_name("Section");
    let mut place: Vec<String> = row.ancestors().filter(is_place).map(name_of).collect();
    place.reverse();
    let child = |tag: &str| row.children().find(|node| node.has_tag_name(tag));
    let mean = child("mean").and_then(|mean| mean.attribute("value")?.parse::<f64>().ok());
    let found = Benchmark { place, name: name_of(row), mean_ms: mean.unwrap_or(f64::NAN) / 1e6 };
    match (mean, child("failed")) {
        (_, Some(failed)) => {
            value_error(found.full_name(), failed.attribute("message").unwrap_or("it failed"))
        }
        (None, _) => value_error(found.full_name(), "its mean is missing or no number"),
        _ => Ok(found),
    }
}
