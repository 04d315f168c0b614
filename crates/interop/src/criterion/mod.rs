//! Criterion's folder, `target/criterion`: for each benchmark `new/benchmark.json` with its name and `new/sample.json` with the
//! calls and the nanoseconds of each sample.

use crate::series::{self, Series};
use crate::{Format, Source};
use holdpoint_model::document::value_error;
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The folder of a whole run.
pub(crate) const FORMAT: Format = Format {
    words: "a folder of Criterion",
    matches: |probe| probe.folder().is_some_and(|files| files.keys().any(|path| is_sample(path))),
    read: |source| match source {
        Source::Folder(files) => series::import("criterion", read(files)?),
        Source::File(_) => value_error("file".to_owned(), "Criterion writes a folder, target/criterion"),
    },
};

const SAMPLE: &str = "new/sample.json";

fn is_sample(path: &str) -> bool {
    path == SAMPLE || path.ends_with(&format!("/{SAMPLE}"))
}

#[derive(Deserialize)]
struct Sample {
    /// Calls of each sample.
    iters: Vec<f64>,
    /// Nanoseconds of each.
    times: Vec<f64>,
}

#[derive(Deserialize)]
struct Benchmark {
    full_id: String,
}

/// The benchmarks of a folder, by their files' paths below it.
pub fn read(files: &BTreeMap<String, String>) -> Result<Vec<Series>, FileError> {
    let mut all = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| is_sample(path)) {
        let folder = path.strip_suffix("sample.json").unwrap_or_default();
        let Some(about) = files.get(&format!("{folder}benchmark.json")) else {
            return value_error(path.clone(), "has no benchmark.json beside it");
        };
        let (sample, about): (Sample, Benchmark) = (json::parse(text)?, json::parse(about)?);
        if sample.iters.len() != sample.times.len() || sample.iters.iter().any(|calls| *calls < 1.0) {
            return value_error(path.clone(), "needs as many `iters`, each at least 1, as `times`");
        }
        let times_ms = sample.times.iter().zip(&sample.iters).map(|(ns, calls)| ns / calls / 1e6).collect();
        all.push(Series { name: about.full_id, times_ms });
    }
    Ok(all)
}
