//! A result file of airspeed velocity, `results/<machine>/<commit>-<environment>.json`: the benchmarks of one commit, with every
//! sample where `asv run --record-samples` wrote it. Units of `track_` benchmarks are in `benchmarks.json` of the same folder.

mod rows;

use crate::{Format, Imported, Source};
use holdpoint_model::current::{Current, Unmeasured};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::machine::Revision;
use holdpoint_model::{FileError, json};
use rows::{Benchmark, Value};
use serde::Deserialize;
use serde_json::Value as Json;
use std::collections::BTreeMap;

pub(crate) const FORMAT: Format = Format {
    words: "a result of asv",
    matches: |probe| probe.any_head(matches),
    read: |source| match source {
        Source::File(text) => read(text, &BTreeMap::new()),
        Source::Folder(files) => read_folder(files),
    },
};

fn matches(head: &Head<'_>) -> bool {
    head.has("result_columns") && head.has("results")
}

#[derive(Deserialize)]
struct File {
    commit_hash: Option<String>,
    result_columns: Vec<String>,
    /// The columns of each benchmark; a bare number or list in files without parameters.
    results: BTreeMap<String, Json>,
}

/// The units of benchmarks by name.
type Units = BTreeMap<String, String>;

fn read_folder(files: &BTreeMap<String, String>) -> Result<Imported, FileError> {
    let is_result = |text: &&String| crate::top_level::foreign_head(text).is_some_and(|head| matches(&head));
    let results: Vec<&String> = files.values().filter(is_result).collect();
    match results.as_slice() {
        [text] => read(text, &units(files)),
        results => {
            let what = format!("has the results of {} commits; name the file of one", results.len());
            value_error("folder".to_owned(), &what)
        }
    }
}

/// From `benchmarks.json`, where the folder has it.
fn units(files: &BTreeMap<String, String>) -> Units {
    let is_list = |path: &&String| *path == "benchmarks.json" || path.ends_with("/benchmarks.json");
    let text = files.keys().find(is_list).and_then(|path| files.get(path));
    let list: BTreeMap<String, Json> = text.and_then(|text| json::parse(text).ok()).unwrap_or_default();
    let unit = |(name, about): (String, Json)| Some((name, about.get("unit")?.as_str()?.to_owned()));
    list.into_iter().filter_map(unit).collect()
}

fn read(text: &str, units: &Units) -> Result<Imported, FileError> {
    let File { commit_hash, result_columns, results } = json::parse(text)?;
    let mut imported = Imported::new("asv");
    let revision = commit_hash.map(|commit| Revision { commit, dirty: false });
    imported.current = Current { revision, ..imported.current };
    for (name, columns) in results {
        let Some(factor) = seconds(&name, units) else {
            imported.leave_out(&name, units.get(&name).map_or("no time", String::as_str));
            continue;
        };
        for row in Benchmark::all(&name, &result_columns, &columns)? {
            let Benchmark { name, value, samples } = row;
            match value {
                Value::Number(value) => {
                    let samples = samples.iter().map(|sample| sample * factor).collect();
                    imported.add(name, "p50_ms", value * factor, samples)?;
                }
                Value::NotApplicable => {
                    imported.add_unmeasured(
                        &name,
                        "p50_ms",
                        Unmeasured::Skipped("asv skipped it".to_owned()),
                    );
                }
                Value::Failed => {
                    let why = "asv reports that it failed".to_owned();
                    imported.add_unmeasured(&name, "p50_ms", Unmeasured::Failed(why));
                }
            }
        }
    }
    Ok(imported)
}

/// Milliseconds in one, of a benchmark that is a time: by its unit, or by the prefix that asv knows its kind by.
fn seconds(name: &str, units: &Units) -> Option<f64> {
    if let Some(unit) = units.get(name) {
        return crate::unit::time_ms(unit);
    }
    let last = name.rsplit('.').next().unwrap_or(name);
    ["time_", "timeraw_", "Time"].iter().any(|prefix| last.starts_with(prefix)).then_some(1e3)
}
