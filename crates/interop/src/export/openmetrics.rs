//! OpenMetrics text: gauges in seconds, a line for each workload and statistic. Without time stamps, which Prometheus' collector
//! of text files refuses.

use super::Export;
use holdpoint_model::limits::one_line;
use std::fmt::Write;

pub fn openmetrics(export: &Export<'_>) -> String {
    let mut text = String::from(
        "# TYPE holdpoint_time_seconds gauge\n\
         # UNIT holdpoint_time_seconds seconds\n\
         # HELP holdpoint_time_seconds Time of one call.\n",
    );
    let suite = escape(export.suite);
    for value in &export.values {
        let workload = escape(value.name);
        let p50 = [("p50", value.p50_ms)];
        for (statistic, ms) in p50.iter().chain(&value.others) {
            let labels = format!("suite=\"{suite}\",workload=\"{workload}\",statistic=\"{statistic}\"");
            let _ = writeln!(text, "holdpoint_time_seconds{{{labels}}} {:e}", ms / 1e3);
        }
    }
    text += "# TYPE holdpoint_samples gauge\n# HELP holdpoint_samples Samples behind the times.\n";
    for value in export.values.iter().filter(|value| value.samples_count > 0) {
        let labels = format!("suite=\"{suite}\",workload=\"{}\"", escape(value.name));
        let _ = writeln!(text, "holdpoint_samples{{{labels}}} {}", value.samples_count);
    }
    text + "# EOF\n"
}

/// A label's value between quotes.
fn escape(text: &str) -> String {
    one_line(text).replace('\\', "\\\\").replace('"', "\\\"")
}
