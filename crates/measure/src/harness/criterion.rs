//! Rust's Criterion, driven through its own executables.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, cargo, exactly, owned};
use crate::program::WorkerError;
use holdpoint_interop::{Series, criterion};
use holdpoint_model::FileError;
use std::path::Path;

/// Criterion takes no fewer samples.
const SAMPLES_LEAST: u64 = 10;

pub(super) struct Criterion;

impl Harness for Criterion {
    fn name(&self) -> &'static str {
        "criterion"
    }

    fn command(&self) -> &'static [&'static str] {
        &["cargo", "bench"]
    }

    fn build(&self, command: &[String]) -> Option<Vec<String>> {
        Some(cargo::build(command))
    }

    fn files(&self) -> &'static [&'static str] {
        cargo::FILES
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["criterion"]];
        Some(Trace { names: &["Cargo.toml"], texts, runs: Runs::ByItself })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, dir: &Path) -> bool {
        cargo::runs_benches(line, dir, false)
    }

    fn marks(&self) -> &'static [&'static str] {
        &["Criterion.rs| ERROR: "]
    }

    fn folder_variable(&self) -> Option<&'static str> {
        Some("CRITERION_HOME")
    }

    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let mut all = Vec::new();
        for target in cargo::bench_targets(asked)? {
            for id in parse_list(&target.run(asked, "--list")?) {
                all.push(target.bench(asked, id));
            }
        }
        Ok(all)
    }

    fn turn(&self, id: &str, samples: u64, _: &Path) -> Vec<String> {
        options(id, samples, ["0.02", "0.04"])
    }

    /// Before 0.4, times are whole seconds.
    fn older_turn(&self, id: &str, samples: u64) -> Option<Vec<String>> {
        Some(options(id, samples, ["1", "1"]))
    }

    /// Settings of a group in the code go before the command line's; only this option goes before them.
    fn quick_turn(&self, id: &str, _: &Path) -> Option<Vec<String>> {
        let options = ["--noplot", "--quick", "--nresamples", "2"].map(str::to_owned);
        Some(options.into_iter().chain([exactly(id)]).collect())
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        match holdpoint_store::read_source(out) {
            Ok(holdpoint_interop::Source::Folder(files)) => criterion::read(&files),
            Ok(holdpoint_interop::Source::File(_)) => Ok(Vec::new()),
            Err(error) => {
                Err(FileError::Unknown { wanted: "a folder of Criterion", what: error.to_string() })
            }
        }
    }
}

/// Of a turn that warms up and measures for so many seconds. Resampling is for Criterion's own report, which nobody reads.
fn options(id: &str, samples: u64, [warm_up, measurement]: [&str; 2]) -> Vec<String> {
    let (samples, id) = (samples.max(SAMPLES_LEAST).to_string(), exactly(id));
    let seconds = ["--warm-up-time", warm_up, "--measurement-time", measurement];
    let rest = ["--noplot", "--nresamples", "2", "--sample-size", &samples, &id];
    owned(&[&seconds[..], &rest].concat())
}

/// The benchmarks of one executable; none of one that uses Rust's own harness, whose list ends with a count.
fn parse_list(text: &str) -> Vec<&str> {
    let counts = |line: &str| line.contains(" tests, ") || line.contains(" test, ");
    if text.lines().last().is_some_and(counts) {
        return Vec::new();
    }
    text.lines()
        .filter_map(|line| line.strip_suffix(": benchmark").or_else(|| line.strip_suffix(": bench")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_criterions_own_lists_count() {
        assert_eq!(parse_list("fib 20: benchmark\ngroup/a: bench\n"), ["fib 20", "group/a"]);
        assert!(parse_list("a: benchmark\n\n0 tests, 1 benchmark\n").is_empty());
        assert!(parse_list("").is_empty());
    }
}
