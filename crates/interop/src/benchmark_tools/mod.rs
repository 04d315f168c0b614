//! BenchmarkTools.jl's JSON (`BenchmarkTools.save`): groups of trials, each with the nanoseconds of every sample, or estimates,
//! which are one number each.

use crate::series::Series;
use crate::{Format, Imported};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) const FORMAT: Format = Format {
    words: "a file of BenchmarkTools.jl",
    matches: |probe| probe.any_head(matches),
    read: |source| source.read_each(matches, read),
};

/// The file begins with the versions of what wrote it.
fn matches(head: &Head<'_>) -> bool {
    head.has("BenchmarkTools") && head.has("Julia")
}

/// A value with the name of its type before it.
type Typed = (String, Body);

/// The fields that are used, of any of the types.
#[derive(Deserialize)]
struct Body {
    /// Of a group.
    data: Option<BTreeMap<String, Typed>>,
    /// Nanoseconds of each sample of a trial, per evaluation.
    times: Option<Vec<f64>>,
    /// Nanoseconds of an estimate.
    time: Option<f64>,
}

fn read(text: &str) -> Result<Imported, FileError> {
    let (_, values): (BTreeMap<String, String>, Vec<Typed>) = json::parse(text)?;
    let mut imported = Imported::new("benchmark_tools");
    let is_one = values.len() == 1;
    for (index, value) in values.into_iter().enumerate() {
        let path = if is_one { String::new() } else { (index + 1).to_string() };
        add(&mut imported, &path, value)?;
    }
    Ok(imported)
}

fn add(imported: &mut Imported, path: &str, (kind, body): Typed) -> Result<(), FileError> {
    let name = if path.is_empty() { "trial" } else { path };
    match (kind.trim_start_matches("BenchmarkTools."), body) {
        ("BenchmarkGroup", Body { data: Some(data), .. }) => {
            for (key, value) in data {
                let slash = if path.is_empty() { "" } else { "/" };
                add(imported, &format!("{path}{slash}{key}"), value)?;
            }
            Ok(())
        }
        ("Trial", Body { times: Some(times), .. }) => {
            let times_ms = times.iter().map(|ns| ns / 1e6).collect();
            imported.add_series(Series { name: name.to_owned(), times_ms })
        }
        // The statistic of an estimate is not in the file.
        ("TrialEstimate", Body { time: Some(ns), .. }) => imported.add(name, "ms", ns / 1e6, Vec::new()),
        (kind, _) => value_error(name.to_owned(), &format!("{kind:?} has no times; save a Trial or a group")),
    }
}
