//! NVIDIA's nvbench. A turn is one benchmark with one value of each axis, on one device.

use super::{Asked, Bench, Harness, Runs, Trace, owned, read_left};
use crate::program::WorkerError;
use holdpoint_interop::Series;
use holdpoint_interop::nvbench::{self, State};
use holdpoint_model::FileError;
use holdpoint_model::document::value_error;
use std::path::Path;

const LEFT: &str = "turn.json";
/// Beside the JSON, where nvbench writes files of samples.
const SAMPLES: &str = "turn.json-bin";

pub(super) struct Nvbench;

impl Harness for Nvbench {
    fn name(&self) -> &'static str {
        "nvbench"
    }

    fn trace(&self) -> Option<Trace> {
        let texts: &[&[&str]] = &[&["nvbench/nvbench.cuh"]];
        Some(Trace { names: &[".cu"], texts, runs: Runs::Program })
    }

    fn marks(&self) -> &'static [&'static str] {
        &["N7nvbench|14benchmark_baseE"]
    }

    /// Runs each benchmark once: combinations that it skips are known by then only.
    fn list(&self, asked: &Asked<'_>) -> Result<Vec<Bench>, WorkerError> {
        let words = |out: &Path| {
            let left = out.join(LEFT).display().to_string();
            asked.command_with(&["--profile", "--json", &left])
        };
        let found = asked.run_into(words, |out| nvbench::read_states(&read_left(&out.join(LEFT))?))?;
        let bench = |state: State| {
            Bench::new(state.full_name(), [asked.spec.command.clone(), choose(&state)].concat())
        };
        Ok(found.into_iter().map(bench).collect())
    }

    fn turn(&self, _: &str, samples: u64, out: &Path) -> Vec<String> {
        let (samples, left) = (samples.to_string(), out.join(LEFT).display().to_string());
        // It stops once it has the samples, however much they differ. The criterion is named, because one that a benchmark sets for itself
        // may not know these limits.
        let stop = ["--stopping-criterion", "stdrel", "--min-time", "1e-9", "--max-noise", "1e9"];
        let rest = ["--min-samples", &samples, "--no-batch", "--jsonbin", &left];
        [owned(&stop), owned(&rest)].concat()
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        let states = nvbench::read_states(&read_left(&out.join(LEFT))?)?;
        states.iter().map(|state| read_samples(state, &out.join(SAMPLES))).collect()
    }
}

/// Words that choose a state.
fn choose(state: &State) -> Vec<String> {
    let mut words = owned(&["--benchmark", &state.benchmark]);
    if let Some(device) = state.device {
        words.extend(["--devices".to_owned(), device.to_string()]);
    }
    for (axis, value) in &state.axes {
        words.extend(["--axis".to_owned(), format!("{axis}={value}")]);
    }
    words
}

fn read_samples(state: &State, folder: &Path) -> Result<Series, FileError> {
    let name = state.full_name();
    // Versions differ in how much of the path they give.
    let Some(file) = state.file.as_ref().and_then(|file| Path::new(file).file_name()) else {
        return value_error(name, "no file of samples is named; has nvbench `--jsonbin`?");
    };
    let bytes = holdpoint_store::read_binary(&folder.join(file))
        .map_err(|error| FileError::Unknown { wanted: "samples of nvbench", what: error.to_string() })?;
    Ok(Series { name, times_ms: nvbench::read_samples(&bytes)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A turn's folder, as nvbench left it on an H200.
    fn turn(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/data/tools").join(name)
    }

    #[test]
    fn a_turn_of_a_state_is_read_from_its_file_of_samples() {
        for (folder, name, median_ms) in [
            ("nvbench", "copy/T=F32/Elements=16777216", 0.048_624),
            ("nvbench-host", "sum_on_host/Values=200000", 0.064_566),
        ] {
            let all = Nvbench.read(&turn(folder), "").unwrap();
            let mut times = all[0].times_ms.clone();
            times.sort_by(f64::total_cmp);
            assert_eq!((all.len(), all[0].name.as_str(), times.len()), (1, name, 20));
            assert!((f64::midpoint(times[9], times[10]) / median_ms - 1.0).abs() < 1e-4, "{times:?}");
        }
    }

    #[test]
    fn a_turn_without_its_file_of_samples_is_an_error_that_names_it() {
        let out = tempfile::tempdir().unwrap();
        std::fs::copy(turn("nvbench").join(LEFT), out.path().join(LEFT)).unwrap();
        assert!(Nvbench.read(out.path(), "").unwrap_err().to_string().contains("0.bin"));
    }

    #[test]
    fn a_turn_names_the_stopping_rule_before_its_limits() {
        // nvbench refuses limits that the benchmark's own rule does not know, and a rule that comes after the limits.
        let words = Nvbench.turn("copy", 20, Path::new("out")).join(" ");
        let expected = "--stopping-criterion stdrel --min-time 1e-9 --max-noise 1e9 --min-samples 20 --no-batch --jsonbin out/turn.json";
        assert_eq!(words, expected);
    }

    #[test]
    fn a_state_is_chosen_by_benchmark_device_and_axes() {
        let axes = vec![("T".to_owned(), "I32".to_owned()), ("Elements".to_owned(), "256".to_owned())];
        let state = State { benchmark: "copy".to_owned(), device: Some(1), axes, time_s: None, file: None };
        let expected = "--benchmark copy --devices 1 --axis T=I32 --axis Elements=256";
        assert_eq!(choose(&state).join(" "), expected);
        assert_eq!(state.full_name(), "copy/T=I32/Elements=256/Device=1");
        let state = State { device: None, ..state };
        assert_eq!(choose(&state).join(" "), "--benchmark copy --axis T=I32 --axis Elements=256");
    }
}
