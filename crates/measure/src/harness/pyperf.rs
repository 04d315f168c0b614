//! pyperf: a script with a `Runner`, driven through its worker mode, which measures in the process that was started.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::{Series, pyperf};
use holdpoint_model::FileError;
use std::path::Path;

const LEFT: &str = "turn.json";

pub(super) struct Pyperf;

impl Harness for Pyperf {
    fn name(&self) -> &'static str {
        "pyperf"
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["pyperf.Runner("]];
        Some(Trace { names: &[".py"], texts, runs: Runs::Script })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, dir: &Path) -> bool {
        line.runs_module("pyperf") || line.script(dir).contains("pyperf.Runner(")
    }

    /// Runs each benchmark until pyperf knows how many loops make a value long enough. A worker runs one by its number.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let short = ["--processes", "1", "--values", "1", "--warmups", "1", "--min-time", "0.005"];
        let words = |out: &Path| [asked.command_with(&short), output(out)].concat();
        let found = asked.run_into(words, |out| pyperf::read_loops(&read_left(&out.join(LEFT))?))?;
        let bench = |(number, (name, loops)): (usize, (String, u64))| {
            let (number, loops) = (number.to_string(), loops.to_string());
            let worker = ["--worker", "--worker-task", number.as_str(), "--loops", loops.as_str()];
            Bench::new(name, asked.command_with(&worker))
        };
        Ok(found.into_iter().enumerate().map(bench).collect())
    }

    fn turn(&self, _: &str, samples: u64, out: &Path) -> Vec<String> {
        let values = samples.to_string();
        [owned(&["--warmups", "1", "--values", &values]), output(out)].concat()
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        pyperf::read(&read_left(&out.join(LEFT))?)
    }
}

fn output(out: &Path) -> Vec<String> {
    owned(&["--quiet", "--output", &out.join(LEFT).display().to_string()])
}
