//! nvbench's JSON (`--json`, `--jsonbin`): states of benchmarks with summaries, and with `--jsonbin` the seconds of each sample in
//! files of their own.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of nvbench",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("nvbench", read(text)?)),
};

/// Times of single launches on the device, and of code that runs on the host only. Older versions have no medians.
const TIMES: [&str; 4] = [
    "nv/cold/time/gpu/median",
    "nv/cold/time/gpu/mean",
    "nv/cpu_only/time/cpu/median",
    "nv/cpu_only/time/cpu/mean",
];
/// Summaries of code that runs on the host only.
const HOST: &str = "nv/cpu_only/";
/// Summaries with the name of a file of samples.
const FILES: [&str; 2] = ["nv/json/bin:nv/cold/sample_times", "nv/json/bin:nv/cpu_only/sample_times"];

fn matches(head: &Head<'_>) -> bool {
    let meta: Option<Meta> = head.get("meta");
    head.has("benchmarks") && head.has("devices") && meta.is_some_and(|meta| meta.version.nvbench.is_object())
}

#[derive(Deserialize)]
struct Meta {
    version: Versions,
}

#[derive(Deserialize)]
struct Versions {
    nvbench: serde_json::Value,
}

#[derive(Deserialize)]
struct File {
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    name: String,
    states: Option<Vec<StateRow>>,
}

#[derive(Deserialize)]
struct StateRow {
    /// Any number where the benchmark runs on the host only.
    device: Option<i64>,
    axis_values: Option<Vec<Named>>,
    summaries: Option<Vec<Summary>>,
    #[serde(default)]
    is_skipped: bool,
}

#[derive(Deserialize)]
struct Summary {
    tag: String,
    data: Option<Vec<Named>>,
}

/// Numbers are written as text.
#[derive(Clone, Debug, Deserialize)]
struct Named {
    name: String,
    value: String,
}

/// A benchmark with one value of each of its axes.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub benchmark: String,
    /// None where it runs on the host only.
    pub device: Option<i64>,
    pub axes: Vec<(String, String)>,
    /// The median of its samples or their mean, in seconds.
    pub time_s: Option<f64>,
    /// The name of the file that has its samples.
    pub file: Option<String>,
}

impl State {
    /// `copy/T=I32/Elements=65536`; with its device where that is not the first.
    pub fn full_name(&self) -> String {
        let axes = self.axes.iter().map(|(axis, value)| format!("{axis}={value}"));
        let device = self.device.filter(|device| *device != 0).map(|device| format!("Device={device}"));
        std::iter::once(self.benchmark.clone()).chain(axes).chain(device).collect::<Vec<_>>().join("/")
    }
}

impl StateRow {
    fn read(self, benchmark: &str) -> State {
        let axes = self.axis_values.unwrap_or_default().into_iter().map(|axis| (axis.name, axis.value));
        let summaries = self.summaries.unwrap_or_default();
        let value = |tag: &str, name: &str| {
            let data = summaries.iter().find(|summary| summary.tag == tag)?.data.as_ref()?;
            data.iter().find(|named| named.name == name).map(|named| named.value.clone())
        };
        let is_on_host = summaries.iter().any(|summary| summary.tag.starts_with(HOST));
        State {
            benchmark: benchmark.to_owned(),
            device: Some(self.device.unwrap_or(0)).filter(|_| !is_on_host),
            axes: axes.collect(),
            time_s: TIMES.iter().find_map(|tag| value(tag, "value")?.parse().ok()),
            file: FILES.iter().find_map(|tag| value(tag, "filename")),
        }
    }
}

/// The median or mean of each state: a file alone does not have the samples.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let series = |state: State| match state.time_s {
        Some(seconds) => Ok(Series { name: state.full_name(), times_ms: vec![seconds * 1e3] }),
        None => value_error(state.full_name(), "has no median or mean of cold GPU or CPU-only times"),
    };
    read_states(text)?.into_iter().map(series).collect()
}

/// The states that were not skipped.
pub fn read_states(text: &str) -> Result<Vec<State>, FileError> {
    let file: File = json::parse(text)?;
    let states = |benchmark: Benchmark| {
        let rows = benchmark.states.unwrap_or_default().into_iter().filter(|row| !row.is_skipped);
        rows.map(|row| row.read(&benchmark.name)).collect::<Vec<_>>()
    };
    Ok(file.benchmarks.into_iter().flat_map(states).collect())
}

/// Milliseconds from the bytes of a file of samples: seconds as little-endian `f32`.
pub fn read_samples(bytes: &[u8]) -> Result<Vec<f64>, FileError> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return value_error(
            "file of samples".to_owned(),
            "is cut off: its size must be a multiple of 4 bytes",
        );
    }
    Ok(words.iter().map(|word| f64::from(f32::from_le_bytes(*word)) * 1e3).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_little_endian_seconds() {
        let bytes = [0.5_f32, 0.25].map(f32::to_le_bytes).concat();
        assert_eq!(read_samples(&bytes).unwrap(), [500.0, 250.0]);
        assert!(read_samples(&bytes[1..]).unwrap_err().to_string().contains("cut off"));
    }
}
