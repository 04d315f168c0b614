//! Results of load tests of inference servers. vLLM and SGLang use the same keys: latencies in milliseconds, rates per second,
//! and with their option for details the seconds of every request. A file may hold several runs, one JSON object on each line.

use crate::Imported;
use crate::imported::flat_name;
use holdpoint_model::document::Head;
use holdpoint_model::suite::Identity;
use holdpoint_model::{FileError, json};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Latencies, by the names in the keys `median_<name>_ms`, and the key of their samples in seconds.
const LATENCIES: [(&str, Option<&str>); 5] =
    [("ttft", Some("ttfts")), ("tpot", None), ("itl", Some("itls")), ("e2el", None), ("e2e_latency", None)];
/// Statistics before the name, and their names here.
const STATISTICS: [(&str, &str); 6] = [
    ("median", "p50_ms"),
    ("mean", "mean_ms"),
    ("p90", "p90_ms"),
    ("p95", "p95_ms"),
    ("p99", "p99_ms"),
    ("p99.9", "p99.9_ms"),
];
/// Rates, and what they count.
const RATES: [(&str, &str); 8] = [
    ("request_throughput", "request"),
    ("requests_per_second", "request"),
    ("input_throughput", "input_token"),
    ("output_throughput", "output_token"),
    ("total_token_throughput", "token"),
    ("total_throughput", "token"),
    ("tokens_per_second", "token"),
    ("request_goodput", "good_request"),
];
/// Settings that must be the same for two runs to be compared.
const SETTINGS: &[&str] = &[
    "backend",
    "endpoint_type",
    "model_id",
    "dataset_name",
    "num_prompts",
    "request_rate",
    "burstiness",
    "max_concurrency",
    "sharegpt_output_len",
    "random_input_len",
    "random_output_len",
    "random_range_ratio",
];

pub(crate) fn read(text: &str, tool: &str) -> Result<Imported, FileError> {
    let runs = parse_runs(text)?;
    let (differing, keys) = (differing_settings(&runs), keys());
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    let mut imported = Imported::new(tool);
    for run in &runs {
        note_failures(&mut imported, run);
        groups.entry(prefix(run, &differing)).or_default().add(run, &keys);
    }
    for (prefix, group) in groups {
        group.import(&prefix, tool, &mut imported)?;
    }
    Ok(imported)
}

/// A number of a result that is compared.
struct Key {
    key: String,
    name: String,
    metric: &'static str,
    /// Whether it is a rate, to be turned into the time per item.
    is_rate: bool,
}

/// Every latency and rate.
fn keys() -> Vec<Key> {
    let latency = |(name, _): &(&str, Option<&str>)| {
        let name = (*name).to_owned();
        STATISTICS.map(|(before, metric)| Key {
            key: format!("{before}_{name}_ms"),
            name: name.clone(),
            metric,
            is_rate: false,
        })
    };
    let rate = |(key, item): &(&str, &str)| Key {
        key: (*key).to_owned(),
        name: format!("time_per_{item}"),
        metric: "ms",
        is_rate: true,
    };
    LATENCIES.iter().flat_map(latency).chain(RATES.iter().map(rate)).collect()
}

/// The runs of one setting.
#[derive(Default)]
struct Group<'a> {
    settings: Option<Map<String, Value>>,
    /// By name and metric, a value for each run.
    values: BTreeMap<(&'a str, &'static str), Vec<f64>>,
    /// The times of requests by name.
    requests: BTreeMap<&'static str, Vec<f64>>,
}

impl<'a> Group<'a> {
    fn add(&mut self, run: &Map<String, Value>, keys: &'a [Key]) {
        self.settings.get_or_insert_with(|| run_settings(run));
        for key in keys {
            let Some(value) = run.get(&key.key).and_then(Value::as_f64) else { continue };
            let ms = if key.is_rate && value > 0.0 { 1e3 / value } else { value };
            self.values.entry((&key.name, key.metric)).or_default().push(ms);
        }
        for (name, key) in LATENCIES.iter().filter_map(|(name, key)| Some((name, (*key)?))) {
            self.requests.entry(name).or_default().extend(request_times_ms(run, key));
        }
    }

    fn import(self, prefix: &str, tool: &str, imported: &mut Imported) -> Result<(), FileError> {
        let identity = Identity {
            op: "serve".to_owned(),
            shape: Vec::new(),
            dtype: String::new(),
            timer: tool.to_owned(),
            // Settings go with the metrics, so that another load is not compared by mistake.
            params: self.settings.unwrap_or_default(),
        };
        for ((name, metric), values) in self.values {
            let median = holdpoint_stats::median(&values).unwrap_or_default();
            let full_name = format!("{prefix}{name}");
            if median == 0.0 {
                imported.leave_out(&full_name, "0: not measured");
                continue;
            }
            // Without the times of requests, the runs of one setting are the samples.
            let requests = self.requests.get(name).filter(|all| metric == "p50_ms" && !all.is_empty());
            let samples = requests.cloned().unwrap_or(values);
            imported.add(full_name.as_str(), metric, median, samples)?;
            if let Some(value) = imported.current.metrics.get_mut(&flat_name(&full_name, metric)) {
                value.identity = Some(identity.clone());
            }
        }
        Ok(())
    }
}

fn parse_runs(text: &str) -> Result<Vec<Map<String, Value>>, FileError> {
    let (first, rest) = text.trim().split_once('\n').unwrap_or((text, ""));
    if rest.is_empty() || Head::parse(first).is_err() {
        return Ok(vec![json::parse(text)?]);
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| json::parse(line).map_err(FileError::from)).collect()
}

/// Settings that are not the same in all runs.
fn differing_settings(runs: &[Map<String, Value>]) -> BTreeSet<&'static str> {
    let differs = |key: &&&str| runs.iter().any(|run| run.get(**key) != runs[0].get(**key));
    SETTINGS.iter().filter(differs).copied().collect()
}

/// The settings by which a run of the file differs from others, as the beginning of a name.
fn prefix(run: &Map<String, Value>, differing: &BTreeSet<&str>) -> String {
    let setting = |key: &&str| match run.get(*key) {
        Some(Value::String(text)) => format!("{key}={text}"),
        Some(value) => format!("{key}={value}"),
        None => format!("{key}=none"),
    };
    let settings: Vec<String> = differing.iter().map(setting).collect();
    if settings.is_empty() { String::new() } else { format!("{}/", settings.join(",")) }
}

/// The times of the requests that succeeded; of the gaps between tokens, those of each.
fn request_times_ms(run: &Map<String, Value>, key: &str) -> Vec<f64> {
    let errors = run.get("errors").and_then(Value::as_array);
    let failed = |index: usize| {
        let error = errors.and_then(|errors| errors.get(index)?.as_str());
        error.is_some_and(|error| !error.is_empty())
    };
    let all = run.get(key).and_then(Value::as_array).into_iter().flatten().enumerate();
    let times = all.filter(|(index, _)| !failed(*index)).flat_map(|(_, value)| match value {
        Value::Array(gaps) => gaps.iter().filter_map(Value::as_f64).collect(),
        value => value.as_f64().into_iter().collect::<Vec<f64>>(),
    });
    times.filter(|seconds| *seconds > 0.0).map(|seconds| seconds * 1e3).collect()
}

/// Requests that failed make the others look fast.
fn note_failures(imported: &mut Imported, run: &Map<String, Value>) {
    let count = |key: &str| run.get(key).and_then(Value::as_u64);
    let Some(completed) = count("completed") else { return };
    let failed = count("failed").or_else(|| count("num_prompts")?.checked_sub(completed)).unwrap_or(0);
    if failed > 0 {
        imported.current.status = Some("failed".to_owned());
        imported.current.notes.push(format!("{failed} requests failed, {completed} succeeded"));
    }
}

fn run_settings(run: &Map<String, Value>) -> Map<String, Value> {
    let is_known = |key: &&&str| run.get(**key).is_some_and(|value| !value.is_null());
    SETTINGS.iter().filter(is_known).map(|key| ((*key).to_owned(), run[*key].clone())).collect()
}
