//! cudadent42's result files: times of one attention kernel, with its shape but no version and no machine.

use crate::{Format, Imported, text_at};
use holdpoint_model::current::{Current, MetricValue};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::suite::Identity;
use holdpoint_model::{FileError, json};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Results of one kernel, the statistical baseline, and the ratchet's baseline.
pub(crate) const FORMAT: Format = Format {
    words: "a file of cudadent42",
    matches: |source| source.any_head(matches),
    read: |source| source.read_each(matches, |text| read(&Head::parse(text)?, &json::parse(text)?)),
};

fn matches(head: &Head<'_>) -> bool {
    let is_other = || ["metrics", "benchmarks", "cases"].iter().any(|key| head.has(key));
    is_result(head) || ((head.has("results") || head.has("configs")) && !is_other())
}

/// Whether it is of one kernel. Apex-X's CPU report has `metrics` too, of other names.
fn is_result(head: &Head<'_>) -> bool {
    let metrics: Option<Map<String, Value>> = head.get("metrics");
    head.has("performance") || metrics.is_some_and(|m| m.get("mean_time_ms").is_some_and(Value::is_number))
}

fn read(head: &Head<'_>, file: &Value) -> Result<Imported, FileError> {
    match () {
        () if is_result(head) => result(file),
        () if head.has("results") => summary(file),
        () => ratchet(file),
    }
}

/// Times come from CUDA events around each call.
const TIMER: &str = "cuda_event";

/// One kernel, one shape: `performance` in newer files, `metrics` in older ones.
fn result(file: &Value) -> Result<Imported, FileError> {
    let (block, place) = match (file.get("performance"), file.get("metrics")) {
        (Some(block), _) => (block, "performance"),
        (None, Some(block)) => (block, "metrics"),
        (None, None) => return value_error("performance".to_owned(), "missing, and so is metrics"),
    };
    let Some(value_ms) = block.get("mean_time_ms").and_then(Value::as_f64) else {
        return value_error(format!("{place}.mean_time_ms"), "missing or not a number");
    };
    let kernel = text_at(file, "kernel_name").or_else(|| text_at(file, "name"));
    let shape_block = [file.get("config"), block.get("config"), file.get("parameters")];
    let identity = kernel.as_ref().and_then(|kernel| {
        shape_block.into_iter().flatten().find_map(|config| parse_identity(kernel, config))
    });
    let mut current = head(file, "cudadent42");
    let metric =
        MetricValue { value_ms, workload: kernel, identity, answer_checked: None, slow_stretches: None };
    current.metrics.insert("mean_time_ms".to_owned(), metric);
    Ok(Imported { current, ..Imported::default() })
}

/// The statistical baseline: several shapes with their raw times; the median is compared.
fn summary(file: &Value) -> Result<Imported, FileError> {
    let (mut current, mut samples_ms) = (head(file, "cudadent42_baseline"), BTreeMap::new());
    let Some(results) = file.get("results").and_then(Value::as_array) else {
        return value_error("results".to_owned(), "must be an array");
    };
    for (index, result) in results.iter().enumerate() {
        let Some(value_ms) = result.get("statistics").and_then(|s| s.get("median_ms")?.as_f64()) else {
            return value_error(format!("results[{index}].statistics.median_ms"), "missing or not a number");
        };
        let identity = result.get("config").and_then(|config| parse_identity("attention", config));
        let Some(identity) = identity else {
            return value_error(format!("results[{index}].config"), "needs batch, heads, seq and dim");
        };
        let name = format!(
            "B{}_H{}_S{}_D{}",
            identity.shape[0], identity.shape[1], identity.shape[2], identity.shape[3]
        );
        let (workload, identity) = (Some(name.clone()), Some(identity));
        let metric = MetricValue { value_ms, workload, identity, answer_checked: None, slow_stretches: None };
        let name = format!("{name}_p50_ms");
        let raw = result.get("raw_latencies").and_then(Value::as_array);
        if let Some(raw) = raw {
            samples_ms.insert(name.clone(), raw.iter().filter_map(Value::as_f64).collect());
        }
        current.metrics.insert(name, metric);
    }
    Ok(Imported { current, samples_ms, ..Imported::default() })
}

/// The ratchet's baseline: the best time ever of each configuration.
fn ratchet(file: &Value) -> Result<Imported, FileError> {
    let Some(configs) = file.get("configs").and_then(Value::as_object) else {
        return value_error("configs".to_owned(), "must be an object");
    };
    let current = Current { suite: "cudadent42_ratchet".to_owned(), ..Current::default() };
    let mut imported = Imported { current, is_baseline: true, ..Imported::default() };
    for (name, config) in configs {
        let Some(value_ms) = config.get("median_ms").and_then(Value::as_f64) else {
            return value_error(format!("configs.{name}.median_ms"), "missing or not a number");
        };
        let workload = Some(name.clone());
        let metric =
            MetricValue { value_ms, workload, identity: None, answer_checked: None, slow_stretches: None };
        imported.current.metrics.insert(format!("{name}_p50_ms"), metric);
    }
    Ok(imported)
}

fn head(file: &Value, suite: &str) -> Current {
    Current { suite: suite.to_owned(), timestamp_utc: text_at(file, "timestamp"), ..Current::default() }
}

/// Three spellings of the same four sizes.
fn parse_identity(op: &str, config: &Value) -> Option<Identity> {
    let spellings = [
        ["batch_size", "num_heads", "seq_len", "head_dim"],
        ["batch", "heads", "seq", "dim"],
        ["B", "H", "S", "d"],
    ];
    let sizes = |keys: [&str; 4]| -> Option<Vec<usize>> {
        keys.iter().map(|key| config.get(key)?.as_u64().and_then(|n| usize::try_from(n).ok())).collect()
    };
    let shape = spellings.into_iter().find_map(sizes)?;
    let dtype = text_at(config, "dtype").unwrap_or_default().trim_start_matches("torch.").to_owned();
    Some(Identity { op: op.to_owned(), shape, dtype, timer: TIMER.to_owned(), params: Map::new() })
}
