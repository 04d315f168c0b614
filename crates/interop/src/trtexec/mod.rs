//! trtexec's JSON: `--exportTimes` has the times of every inference, `--exportProfile` one average for each layer.

use crate::series::Series;
use crate::{Format, Imported};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a file of trtexec",
    matches: |probe| probe.any_head(matches),
    read: |source| {
        source.read_each(matches, |text| {
            if text.contains("\"latencyMs\"") { read_times(text) } else { read_profile(text) }
        })
    },
};

fn matches(head: &Head<'_>) -> bool {
    is_times(head) || head.has("count") && head.keys().count() == 1
}

fn is_times(head: &Head<'_>) -> bool {
    head.has("computeMs") && head.has("latencyMs")
}

/// One inference.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Inference {
    latency_ms: f64,
    compute_ms: f64,
    h2d_ms: Option<f64>,
    d2h_ms: Option<f64>,
    start_enq_ms: Option<f64>,
    end_enq_ms: Option<f64>,
}

/// One of the times of an inference, where the file has it.
type Time = fn(&Inference) -> Option<f64>;

fn read_times(text: &str) -> Result<Imported, FileError> {
    let all: Vec<Inference> = json::parse(text)?;
    let mut imported = Imported::new("trtexec");
    let columns: [(&str, Time); 5] = [
        ("latency", |one| Some(one.latency_ms)),
        ("gpu_compute", |one| Some(one.compute_ms)),
        ("h2d", |one| one.h2d_ms),
        ("d2h", |one| one.d2h_ms),
        ("enqueue", |one| Some(one.end_enq_ms? - one.start_enq_ms?)),
    ];
    for (name, time) in columns {
        let times_ms: Vec<f64> = all.iter().filter_map(time).collect();
        // Without transfers (--noDataTransfers) their times are 0.
        match times_ms.iter().any(|ms| *ms != 0.0) {
            true => imported.add_series(Series { name: name.to_owned(), times_ms })?,
            false => imported.leave_out(name, "all 0"),
        }
    }
    Ok(imported)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Layer {
    /// Absent from the first entry, which counts the inferences.
    name: Option<String>,
    average_ms: Option<f64>,
    /// Of newer versions.
    median_ms: Option<f64>,
}

fn read_profile(text: &str) -> Result<Imported, FileError> {
    let layers: Vec<Layer> = json::parse(text)?;
    let mut imported = Imported::new("trtexec_profile");
    for layer in layers {
        let Some(name) = layer.name else { continue };
        match (layer.median_ms, layer.average_ms) {
            (Some(ms), _) | (None, Some(ms)) if ms == 0.0 => imported.leave_out(&name, "0 ms"),
            (Some(ms), _) => imported.add(name, "p50_ms", ms, Vec::new())?,
            (None, Some(ms)) => imported.add(name, "mean_ms", ms, Vec::new())?,
            (None, None) => return value_error(name, "has no averageMs"),
        }
    }
    Ok(imported)
}
