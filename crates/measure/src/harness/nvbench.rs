//! NVIDIA's nvbench. A turn is one benchmark with one value of each axis, on one device.

use super::{Asked, Bench, Harness, owned, read_left};
use crate::worker::WorkerError;
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
        // It stops once it has the samples, however much they differ.
        let short = ["--min-samples", &samples, "--min-time", "1e-9", "--max-noise", "1e9", "--no-batch"];
        [owned(&short), owned(&["--jsonbin", &left])].concat()
    }

    fn read(&self, out: &Path, _: &str) -> Result<Vec<Series>, FileError> {
        let states = nvbench::read_states(&read_left(&out.join(LEFT))?)?;
        states.iter().map(|state| read_samples(state, &out.join(SAMPLES))).collect()
    }
}

/// Words that choose a state.
fn choose(state: &State) -> Vec<String> {
    let device = state.device.to_string();
    let mut words = owned(&["--benchmark", &state.benchmark, "--devices", &device]);
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

    #[test]
    fn a_turn_of_a_state_is_read_from_its_file_of_samples() {
        let out = tempfile::tempdir().unwrap();
        let json = r#"{"benchmarks": [{"name": "copy", "states": [{"device": 0, "is_skipped": false,
            "axis_values": [{"name": "Elements", "type": "int64", "value": "256"}],
            "summaries": [{"tag": "nv/json/bin:nv/cold/sample_times", "data": [
                {"name": "filename", "type": "string", "value": "elsewhere/turn.json-bin/0.bin"},
                {"name": "size", "type": "int64", "value": "2"}]}]}]}]}"#;
        std::fs::write(out.path().join(LEFT), json).unwrap();
        assert!(Nvbench.read(out.path(), "").unwrap_err().to_string().contains("0.bin"));
        std::fs::create_dir(out.path().join(SAMPLES)).unwrap();
        let bytes = [1e-3_f32, 2e-3].map(f32::to_le_bytes).concat();
        std::fs::write(out.path().join(SAMPLES).join("0.bin"), bytes).unwrap();
        let all = Nvbench.read(out.path(), "").unwrap();
        assert_eq!((all[0].name.as_str(), all[0].times_ms.len()), ("copy/Elements=256", 2));
        assert!((all[0].times_ms[1] - 2.0).abs() < 1e-6);
    }

    #[test]
    fn a_state_is_chosen_by_benchmark_device_and_axes() {
        let axes = vec![("T".to_owned(), "I32".to_owned()), ("Elements".to_owned(), "256".to_owned())];
        let state = State { benchmark: "copy".to_owned(), device: 1, axes, time_s: None, file: None };
        let expected = "--benchmark copy --devices 1 --axis T=I32 --axis Elements=256";
        assert_eq!(choose(&state).join(" "), expected);
        assert_eq!(state.full_name(), "copy/T=I32/Elements=256/Device=1");
    }
}
