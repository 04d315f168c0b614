//! Bencher Metric Format: the median of each workload as the measure `latency`, in nanoseconds as Bencher has it.

use super::Export;
use serde_json::{Map, Value, json};

pub fn bmf(export: &Export<'_>) -> Value {
    let benchmarks = export.values.iter().map(|value| {
        let mut latency = json!({"value": value.p50_ms * 1e6});
        if let Some([lower, upper]) = value.p50_interval_ms {
            latency["lower_value"] = json!(lower * 1e6);
            latency["upper_value"] = json!(upper * 1e6);
        }
        (value.name.to_owned(), json!({"latency": latency}))
    });
    Value::Object(benchmarks.collect::<Map<String, Value>>())
}
