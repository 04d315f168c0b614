//! vLLM's benchmark results: `vllm bench serve --save-result`, `vllm bench latency --output-json` and `vllm bench throughput
//! --output-json`.

use crate::series::Series;
use crate::{Format, Imported, serving};
use holdpoint_model::document::Head;
use holdpoint_model::{FileError, json};
use serde::Deserialize;

pub(crate) const FORMAT: Format = Format {
    words: "a benchmark result of vLLM",
    matches: |probe| probe.any_head(matches),
    read: |source| source.read_each(matches, read),
};

fn matches(head: &Head<'_>) -> bool {
    let has = |keys: &[&str]| keys.iter().all(|key| head.has(key));
    has(&["request_throughput", "total_token_throughput"]) || is_throughput(head) || is_latency(head)
}

fn is_latency(head: &Head<'_>) -> bool {
    head.has("avg_latency") && head.has("latencies")
}

fn is_throughput(head: &Head<'_>) -> bool {
    ["elapsed_time", "requests_per_second", "tokens_per_second"].iter().all(|key| head.has(key))
}

#[derive(Deserialize)]
struct Latency {
    /// Seconds of each batch.
    latencies: Vec<f64>,
}

fn read(text: &str) -> Result<Imported, FileError> {
    if !text.contains("\"avg_latency\"") {
        return serving::read(text, "vllm");
    }
    let Latency { latencies } = json::parse(text)?;
    let mut imported = Imported::new("vllm");
    let times_ms = latencies.iter().map(|seconds| seconds * 1e3).collect();
    imported.add_series(Series { name: "latency".to_owned(), times_ms })?;
    Ok(imported)
}
