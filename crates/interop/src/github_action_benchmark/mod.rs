//! github-action-benchmark's files: the input of its tools `customSmallerIsBetter` and `customBiggerIsBetter`, and its history
//! `data.js`, of which the newest run is read. The unit of a value says which direction is better.

use crate::unit::Unit;
use crate::values::Values;
use crate::{Format, Imported, Probe, Source};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) const FORMAT: Format = Format {
    words: "a file of github-action-benchmark",
    matches: |probe| is_history(probe) || probe.any_head(matches),
    read: |source| match source {
        Source::File(text) if text.trim_start().starts_with(HISTORY) => read_history(text),
        _ => source.read_each(matches, read),
    },
};

/// How the history begins; the rest is JSON.
const HISTORY: &str = "window.BENCHMARK_DATA";

fn is_history(probe: &Probe<'_>) -> bool {
    probe.single().is_some_and(|text| text.trim_start().starts_with(HISTORY))
}

fn matches(head: &Head<'_>) -> bool {
    ["name", "unit", "value"].iter().all(|key| head.has(key))
}

#[derive(Deserialize)]
struct Bench {
    name: String,
    value: f64,
    unit: String,
}

#[derive(Deserialize)]
struct History {
    entries: BTreeMap<String, Vec<Run>>,
}

#[derive(Deserialize)]
struct Run {
    benches: Vec<Bench>,
}

fn read(text: &str) -> Result<Imported, FileError> {
    let benches: Vec<Bench> = json::parse(text)?;
    import(benches.iter().map(|bench| (bench.name.clone(), bench)))
}

/// The newest run of each suite.
fn read_history(text: &str) -> Result<Imported, FileError> {
    let Some((_, rest)) = text.split_once('=') else {
        return value_error(HISTORY.to_owned(), "has no value; is the file cut off?");
    };
    let history: History = json::parse(rest.trim().trim_end_matches(';'))?;
    let runs: Vec<(&String, &Run)> =
        history.entries.iter().filter_map(|(suite, runs)| Some((suite, runs.last()?))).collect();
    let is_one = runs.len() == 1;
    let name = |suite: &str, bench: &Bench| match is_one {
        true => bench.name.clone(),
        false => format!("{suite}/{}", bench.name),
    };
    let benches =
        runs.iter().flat_map(|(suite, run)| run.benches.iter().map(move |bench| (name(suite, bench), bench)));
    let mut imported = import(benches)?;
    let count: usize = history.entries.values().map(Vec::len).sum();
    imported.current.notes.push(format!("the newest of {count} runs of the history"));
    Ok(imported)
}

fn import<'a>(benches: impl Iterator<Item = (String, &'a Bench)>) -> Result<Imported, FileError> {
    let mut values = Values::default();
    for (name, bench) in benches {
        match Unit::parse(&bench.unit) {
            None => values.leave_out(&name, &bench.unit),
            Some(unit) if values.push(&name, &unit, bench.value) => {}
            Some(_) => return value_error(name, "a rate must be above 0"),
        }
    }
    let mut imported = Imported::new("github_action_benchmark");
    values.import(&mut imported, "")?;
    Ok(imported)
}
