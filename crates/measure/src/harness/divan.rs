//! Rust's divan, driven through its own executables. It writes no samples, so a process gives one: its fastest.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, cargo, owned};
use crate::program::WorkerError;
use holdpoint_interop::Series;
use holdpoint_interop::divan::{self, Column};
use holdpoint_model::FileError;
use std::path::Path;

pub(super) struct Divan;

impl Harness for Divan {
    fn name(&self) -> &'static str {
        "divan"
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
        let texts: &[&[&str]] = &[&["divan"]];
        Some(Trace { names: &["Cargo.toml"], texts, runs: Runs::ByItself })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, dir: &Path) -> bool {
        cargo::runs_benches(line, dir, true)
    }

    fn marks(&self) -> &'static [&'static str] {
        &["DIVAN_SAMPLE|_COUNT"]
    }

    /// Runs each benchmark once: its list leaves out arguments and numbers of threads.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let mut all = Vec::new();
        for target in cargo::bench_targets(asked)? {
            let names = divan::read_names(&target.run(asked, "--test")?);
            all.extend(names.iter().map(|name| target.bench(asked, name)));
        }
        Ok(all)
    }

    fn turn(&self, id: &str, _: u64, _: &Path) -> Vec<String> {
        // A shorter limit would end at the first sample, a cold one, where the machine is busy.
        let mut words = owned(&["--color", "never", "--sample-count", "100", "--max-time", "0.3", "--exact"]);
        words.push(id.to_owned());
        // Numbers of threads are leaves of the tree, though filters do not know them.
        let threads = id.rsplit_once("::t=").filter(|(_, count)| count.parse::<u32>().is_ok());
        words.extend(threads.map(|(name, _)| name.to_owned()));
        words
    }

    fn read(&self, _: &Path, stdout: &str) -> Result<Vec<Series>, FileError> {
        divan::read_column(stdout, Column::Fastest)
    }

    fn has_one_sample(&self) -> bool {
        true
    }
}
