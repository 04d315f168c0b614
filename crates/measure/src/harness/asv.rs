//! airspeed velocity, driven by the part of it that runs one benchmark in the process that was started.

use super::{Asked, Bench, CommandLine, Harness, Runs, Trace, read_left};
use crate::program::WorkerError;
use holdpoint_interop::Series;
use holdpoint_model::document::value_error;
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

const LEFT: &str = "turn.json";
/// Lists the timed benchmarks with their parameters, by asv's own code.
const LIST: &str = include_str!("asv_list.py");

pub(super) struct Asv;

/// A benchmark with one choice of its parameters.
#[derive(Deserialize)]
struct Listed {
    /// As asv prints it.
    name: String,
    /// As asv's runner takes it.
    id: String,
    benchmark_dir: String,
    /// Where what its `setup_cache` left is.
    folder: String,
}

/// What a turn leaves. Samples are seconds a call.
#[derive(Deserialize)]
struct Left {
    samples: Vec<f64>,
}

impl Harness for Asv {
    fn name(&self) -> &'static str {
        "asv"
    }

    fn command(&self) -> &'static [&'static str] {
        &["python3", "-m", "asv.benchmark"]
    }

    fn trace(&self) -> Option<Trace> {
        Some(Trace { names: &["asv.conf.json"], texts: &[], runs: Runs::ByItself })
    }

    fn is_run_by(&self, line: &CommandLine<'_>, _: &Path) -> bool {
        line.runs_module("asv") && (line.has("run") || line.has("continuous"))
    }

    /// Runs the set-up of each benchmark: which choices of parameters it does without is known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        // What starts Python: an interpreter, `uv run python`.
        let python = asked.spec.command.iter().take_while(|word| *word != "-m").cloned();
        let words = |out: &Path| {
            let script = ["-c".to_owned(), LIST.to_owned(), out.join(LEFT).display().to_string()];
            python.chain(script).collect()
        };
        let listed: Vec<Listed> =
            asked.run_into(words, |out| Ok(json::parse(&read_left(&out.join(LEFT))?)?))?;
        Ok(listed.into_iter().map(|listed| bench(asked, listed)).collect())
    }

    fn turn(&self, _: &str, samples: u64, out: &Path) -> Vec<String> {
        // `rounds` and `repeat` would make a process take more; the rest keeps it short.
        let settings = json!({
            "repeat": samples, "rounds": 1, "min_run_count": 1, "warmup_time": 0.01, "sample_time": 0.002,
        });
        vec![settings.to_string(), "None".to_owned(), out.join(LEFT).display().to_string()]
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        let text = read_left(&out.join(LEFT))?;
        if text.trim() == "NaN" {
            let what = "asv skips it: its set-up raises NotImplementedError in this revision, now and then";
            return value_error(LEFT.to_owned(), what);
        }
        let left: Left = json::parse(&text)?;
        let times_ms = left.samples.iter().map(|seconds| seconds * 1e3).collect();
        Ok(vec![Series { name: String::new(), times_ms }])
    }
}

fn bench(asked: &Asked<'_>, listed: Listed) -> Bench {
    let run = ["run".to_owned(), listed.benchmark_dir, listed.id];
    // asv looks for modules there, and not where PYTHONPATH says; a turn may run in another folder than the suite's.
    let dir = asked.dir.canonicalize().unwrap_or_else(|_| asked.dir.to_owned());
    let own = std::env::var("PYTHONPATH").map(|path| format!(":{path}")).unwrap_or_default();
    let env = BTreeMap::from([("ASV_PYTHONPATH".to_owned(), format!("{}{own}", dir.display()))]);
    Bench {
        id: listed.name,
        command: asked.spec.command.iter().cloned().chain(run).collect(),
        folder: listed.folder,
        env,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_leaves_its_samples_in_seconds_a_call() {
        let out = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            std::fs::write(out.path().join(LEFT), text).unwrap();
            Asv.read(out.path(), "").map(|all| all[0].times_ms.clone()).map_err(|error| error.to_string())
        };
        assert_eq!(read(r#"{"samples": [0.001, 0.0015], "number": 20}"#).unwrap(), [1.0, 1.5]);
        assert!(read("NaN").unwrap_err().contains("NotImplementedError"));
        assert!(read("{}").unwrap_err().contains("samples"));
    }
}
