//! JMH's JSON (`-rf json`): the score of each iteration, as time per operation or operations per time.

use crate::Format;
use crate::series::{self, Series};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::Deserialize;
use std::collections::BTreeMap;

pub(crate) const FORMAT: Format = Format {
    words: "a file of JMH",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| series::import("jmh", read(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    head.has("benchmark") && head.has("primaryMetric")
}

#[derive(Deserialize)]
struct Benchmark {
    benchmark: String,
    mode: String,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(rename = "primaryMetric")]
    metric: Metric,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    score_unit: String,
    /// Of each fork, the score of each iteration.
    #[serde(default)]
    raw_data: Vec<Vec<f64>>,
    /// Of each fork, for each iteration, times and how often each was seen.
    #[serde(default)]
    raw_data_histogram: Vec<Vec<Vec<(f64, f64)>>>,
}

/// The iterations of each benchmark. Where one was run in several modes, those after the first have theirs behind their names.
pub fn read(text: &str) -> Result<Vec<Series>, FileError> {
    let rows: Vec<Benchmark> = json::parse(text)?;
    let mut all: Vec<Series> = Vec::new();
    for row in rows {
        let mut name = full_name(&row.benchmark, &row.params);
        if all.iter().any(|series| series.name == name) {
            name = format!("{name}:{}", row.mode);
        }
        let Some(scale) = Scale::parse(&row.metric.score_unit) else {
            let what = format!("scoreUnit must be a time/op or ops/time, not {:?}", row.metric.score_unit);
            return value_error(name, &what);
        };
        let times_ms = scores(&row.metric).into_iter().map(|score| scale.time_ms(score)).collect();
        all.push(Series { name, times_ms });
    }
    Ok(all)
}

/// A benchmark with its parameters: `Words.count:kind=x,words=200`.
pub fn full_name(benchmark: &str, params: &BTreeMap<String, String>) -> String {
    let params: Vec<String> = params.iter().map(|(key, value)| format!("{key}={value}")).collect();
    match params.is_empty() {
        true => benchmark.to_owned(),
        false => format!("{benchmark}:{}", params.join(",")),
    }
}

/// A score for each iteration: of sampled ones their mean.
fn scores(metric: &Metric) -> Vec<f64> {
    let mean = |seen: &Vec<(f64, f64)>| {
        let (sum, count) = seen.iter().fold((0.0, 0.0), |(sum, all), (time, n)| (sum + time * n, all + n));
        sum / count
    };
    match metric.raw_data.is_empty() {
        true => metric.raw_data_histogram.iter().flatten().map(mean).collect(),
        false => metric.raw_data.concat(),
    }
}

/// How a score becomes a time.
struct Scale {
    unit_ms: f64,
    is_rate: bool,
}

impl Scale {
    fn parse(unit: &str) -> Option<Self> {
        let (unit, is_rate) = match (unit.strip_suffix("/op"), unit.strip_prefix("ops/")) {
            (Some(unit), _) => (unit, false),
            (None, rate) => (rate?, true),
        };
        let unit_ms = match unit {
            "ns" => 1e-6,
            "us" => 1e-3,
            "ms" => 1.0,
            "s" => 1e3,
            "min" => 60e3,
            "hr" => 3600e3,
            "day" => 86400e3,
            _ => return None,
        };
        Some(Self { unit_ms, is_rate })
    }

    fn time_ms(&self, score: f64) -> f64 {
        if self.is_rate { self.unit_ms / score } else { self.unit_ms * score }
    }
}
