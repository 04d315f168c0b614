//! Google Benchmark.

use super::{Asked, Bench, Harness, Runs, Trace, exactly, read_left};
use crate::program::WorkerError;
use holdpoint_interop::{Series, google_benchmark};
use holdpoint_model::FileError;
use std::path::Path;

const LEFT: &str = "turn.json";

pub(super) struct GoogleBenchmark;

impl Harness for GoogleBenchmark {
    fn name(&self) -> &'static str {
        "google-benchmark"
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["benchmark/benchmark.h"]];
        Some(Trace { names: &[".cc", ".cpp", ".cxx"], texts, runs: Runs::Program })
    }

    /// The second is of programs that are linked to its library.
    fn marks(&self) -> &'static [&'static str] {
        &["[--benchmark_list_|tests=", "9benchmark8internal|25RegisterBenchmarkInternal"]
    }

    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let listed = asked.run(&asked.command_with(&["--benchmark_list_tests=true"]), "")?;
        let bench = |id: &str| Bench::new(id.to_owned(), asked.spec.command.clone());
        Ok(listed.lines().map(str::trim).filter(|id| !id.is_empty()).map(bench).collect())
    }

    fn turn(&self, id: &str, samples: u64, out: &Path) -> Vec<String> {
        vec![
            format!("--benchmark_filter={}", exactly(id)),
            // Short turns: what disturbs the machine for a tenth of a second is to hit both sides.
            "--benchmark_min_time=0.002".to_owned(),
            format!("--benchmark_repetitions={samples}"),
            "--benchmark_report_aggregates_only=false".to_owned(),
            format!("--benchmark_out={}", out.join(LEFT).display()),
            "--benchmark_out_format=json".to_owned(),
        ]
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        google_benchmark::read(&read_left(&out.join(LEFT))?)
    }
}
