//! pytest-benchmark.

use super::{Asked, Bench, Harness, read_left};
use crate::worker::WorkerError;
use holdpoint_interop::{Series, pytest_benchmark};
use holdpoint_model::{FailureCause, FileError};
use std::collections::BTreeMap;
use std::path::Path;

const LEFT: &str = "turn.json";
/// A process that leaves nothing behind and runs benchmarks only.
const QUIET: [&str; 5] = ["-q", "-p", "no:cacheprovider", "--benchmark-only", "--benchmark-warmup=off"];

pub(super) struct PytestBenchmark;

impl Harness for PytestBenchmark {
    /// Runs each benchmark as shortly as possible: which tests are benchmarks is known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let failed = |what: String| WorkerError::new(FailureCause::WorkerError, what);
        let out = tempfile::TempDir::new().map_err(|error| failed(error.to_string()))?;
        let mut words = asked.command_with(&QUIET);
        words.extend(options(out.path(), 1, "0"));
        asked.run(&words, "", &BTreeMap::new())?;
        let left = read_left(&out.path().join(LEFT)).map_err(|error| failed(error.to_string()))?;
        let all = pytest_benchmark::read(&left).map_err(|error| failed(error.to_string()))?;
        let bench = |series: Series| Bench {
            id: series.name,
            command: asked.command_with(&QUIET),
            folder: String::new(),
            env: BTreeMap::new(),
        };
        Ok(all.into_iter().map(bench).collect())
    }

    fn turn(&self, id: &str, samples: u64, out: &Path) -> Vec<String> {
        let mut words = options(out, samples, "0.05");
        words.push(id.to_owned());
        words
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        pytest_benchmark::read(&read_left(&out.join(LEFT))?)
    }
}

fn options(out: &Path, rounds: u64, seconds: &str) -> Vec<String> {
    vec![
        format!("--benchmark-json={}", out.join(LEFT).display()),
        format!("--benchmark-min-rounds={rounds}"),
        format!("--benchmark-max-time={seconds}"),
    ]
}
