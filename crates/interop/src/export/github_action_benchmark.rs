//! The input of github-action-benchmark's tool `customSmallerIsBetter`: the median of each workload in milliseconds.

use super::Export;
use serde_json::{Value, json};

pub fn github_action_benchmark(export: &Export<'_>) -> Value {
    let benches = export.values.iter().map(|value| {
        let mut bench = json!({"name": value.name, "unit": "ms", "value": value.p50_ms});
        if let Some([lower, upper]) = value.p50_interval_ms {
            bench["range"] = json!(format!("± {:.6}", (upper - value.p50_ms).max(value.p50_ms - lower)));
        }
        if value.samples_count > 0 {
            bench["extra"] = json!(format!("{} samples", value.samples_count));
        }
        bench
    });
    Value::Array(benches.collect())
}
