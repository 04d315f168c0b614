//! Valid documents of every kind, to start from.

use crate::bodies::{self, Body};
use holdpoint_interop::{ncu::ncu_page, sanitizer};
use holdpoint_model::notify::NotifyConfig;
use holdpoint_model::protocol::{Message, Request, Response};
use holdpoint_model::{
    AbReport, Attestation, Calibration, Profile, ReleasePolicy, ReplayManifest, Report, Stated, Suite, Trend,
    Waivers, document, json,
};
use std::sync::LazyLock;

/// A valid document.
#[derive(Clone)]
pub struct Document {
    /// Its file's name, or what it is.
    pub name: &'static str,
    /// Its content.
    pub text: String,
    /// The parser it is for; the error as text.
    pub accept: fn(&str) -> Result<(), String>,
    /// What must hold for that parser.
    pub body: Body,
    /// Whether a part of it can never be whole: true of JSON, not of TOML.
    pub is_closed: bool,
}

const SUITE: &str = r#"schema_version = 1
name = "mine"
description = "ünïcode and \"quotes\""
seed = 7

[measure]
rounds_min = 5
time_budget_ms = 250.0

[workers.gpu]
command = ["python", "worker.py"]

[[workload]]
name = "pack"
op = "tile_pack"
shape = [1, 64, 128, 128]
metrics = ["p50_ms", "p95_ms"]
params = { tile_size = 16, order = "hilbert", nested = { list = [1, 2.5, "x", true] } }
check = { atol = 1e-6, rtol = 1e-5 }
work = { bytes = 4096, items = 10, item = "tiles" }

[[workload]]
name = "on_gpu"
op = "tile_pack"
worker = "gpu"
iterations = 100

[[workload]]
name = "list"
command = ["ls", "-l"]
expect_stdout = ""
"#;

const WAIVERS: &str = r#"schema_version = 1

[[waiver]]
owner = "@ada"
reason = "bounds are checked now"
metric = "sort_*"
limit = "8%"
expires = 2026-12-31
"#;

const NOTIFY: &str = r#"schema_version = 1
on = ["regressed", "broken"]

[[mail]]
name = "team"
server = "smtp.example.org"
from = "holdpoint <perf@example.org>"
to = ["team@example.org"]
username_env = "SMTP_USER"
password_env = "SMTP_PASSWORD"

[[slack]]
name = "room"
url_env = "SLACK_URL"

[[webhook]]
name = "hook"
url = "https://example.org/hook"
secret_env = "HOOK_KEY"
on = ["improved"]
"#;

const REQUESTS: [&str; 7] = [
    r#"{"id": 1, "type": "hello", "protocol": 2}"#,
    r#"{"type": "list"}"#,
    r#"{"type": "prepare", "workload": "a", "seed": 18446744073709551615}"#,
    r#"{"type": "run", "workload": "a", "seed": 7, "samples_count": 10, "calls_per_sample": 4}"#,
    r#"{"type": "verify", "workload": "a"}"#,
    r#"{"type": "release", "workload": "a"}"#,
    r#"{"type": "bye"}"#,
];

const RESPONSES: [&str; 11] = [
    r#"{"id": 1, "type": "hello", "protocol": 2, "name": "w", "version": "1", "timer": "host_monotonic", "clock_resolution_ns": 20}"#,
    r#"{"type": "workloads", "workloads": [{"name": "a", "op": "x", "shape": [1, 2], "dtype": "f32"}, {"name": "b", "op": "y"}]}"#,
    r#"{"type": "prepared", "workload": "a", "work": {"bytes": 1, "flops": 2, "items": 3, "item": "tiles"}}"#,
    r#"{"type": "samples", "workload": "a", "calls_per_sample": 4, "elapsed_ns": [1, 2, 3], "cpu_ns": [1, 2, 3]}"#,
    r#"{"type": "verified", "workload": "a", "answer": {"passed": true, "values_count": 4, "max_abs_err": 0.5, "max_rel_err": 0.1}}"#,
    r#"{"type": "verified", "workload": "a", "answer": {"passed": false, "values_count": 4, "max_abs_err": null, "max_rel_err": null, "first_bad": "value 0 is NaN"}}"#,
    r#"{"type": "verified", "workload": "a", "answer": null}"#,
    r#"{"type": "released", "workload": "a"}"#,
    r#"{"type": "skipped", "workload": "a", "reason": "cuda_unavailable"}"#,
    r#"{"type": "error", "message": "no"}"#,
    r#"{"type": "bye"}"#,
];

/// The files of `tests/data`, a suite, and one line of each kind of the protocol.
pub fn documents() -> Vec<Document> {
    static DOCUMENTS: LazyLock<Vec<Document>> = LazyLock::new(read_documents);
    DOCUMENTS.clone()
}

fn read_documents() -> Vec<Document> {
    type Kind = (&'static [&'static str], fn(&str) -> Result<(), String>, Body);
    let kinds: [Kind; 11] = [
        (
            &["report-gpu-h200.json", "report-outcomes.json", "report-v1.json"],
            |text| accepted(document::read::<Report>(text)),
            bodies::report_json,
        ),
        (
            &[
                "apex-cpu-report.json",
                "apex-gpu-report.json",
                "apex-trt-report.json",
                "dent-legacy-result.json",
                "dent-result.json",
                "dent-summary.json",
                "tools/asv/runner/8578dec4-existing-py_python3.json",
                "tools/benchmark-tools.json",
                "tools/bmf.json",
                "tools/github-action-benchmark-data.js",
                "tools/github-action-benchmark.json",
                "tools/hyperfine.json",
                "tools/torch-benchmark.json",
                "tools/trtexec-profile.json",
                "tools/trtexec-times.json",
                "tools/vitest.json",
                "tools/vllm-latency.json",
                "tools/vllm-serve-detailed.json",
                "tools/vllm-serve.json",
                "tools/vllm-throughput.json",
            ],
            |text| accepted(bodies::current(text)),
            bodies::report_json,
        ),
        (
            &[
                "apex-cpu-baseline.json",
                "apex-gpu-baseline.json",
                "apex-trt-baseline.json",
                "baseline-v1.json",
                "dent-ratchet-baseline.json",
                "dent-result.json",
                "report-v1.json",
            ],
            |text| accepted(bodies::baseline(text)),
            bodies::baseline_json,
        ),
        (&["comparison-v1.json"], |text| accepted(document::read::<Stated>(text)), bodies::comparison_json),
        (&["ab-v1.json"], |text| accepted(document::read::<AbReport>(text)), bodies::ab_json),
        (
            &["calibration-v1.json"],
            |text| accepted(document::read::<Calibration>(text)),
            bodies::calibration_json,
        ),
        (&["profile-v1.json"], |text| accepted(document::read::<Profile>(text)), bodies::profile_json),
        (&["trend-v1.json"], |text| accepted(document::read::<Trend>(text)), bodies::trend_json),
        (&["replay-v1.json"], |text| accepted(document::read::<ReplayManifest>(text)), bodies::replay_json),
        (
            &["attestation-v1.json"],
            |text| accepted(document::read::<Attestation>(text)),
            bodies::attestation_json,
        ),
        (&["envelope-v1.json"], |text| accepted(document::read_envelope(text)), bodies::envelope_json),
    ];
    let files = kinds.into_iter().flat_map(|(names, accept, body)| {
        names.iter().map(move |name| Document { name, text: data(name), accept, body, is_closed: true })
    });
    let line = |name, text: &str, accept, body| Document {
        name,
        text: text.to_owned(),
        accept,
        body,
        is_closed: true,
    };
    let requests = REQUESTS.iter().map(|text| {
        line(
            "a request",
            text,
            |text| accepted(json::parse::<Message<Request>>(text)),
            bodies::protocol_request,
        )
    });
    let responses = RESPONSES.iter().map(|text| {
        line(
            "a response",
            text,
            |text| accepted(json::parse::<Message<Response>>(text)),
            bodies::protocol_response,
        )
    });
    let suite = Document {
        is_closed: false,
        ..line("a suite", SUITE, |text| accepted(Suite::parse(text)), bodies::suite_toml)
    };
    let waivers = Document {
        is_closed: false,
        ..line("waivers", WAIVERS, |text| accepted(Waivers::parse(text)), bodies::waivers_toml)
    };
    let policy = Document {
        is_closed: false,
        ..line(
            "a release policy",
            include_str!("../../../../examples/release-policy.toml"),
            |text| accepted(ReleasePolicy::parse(text)),
            bodies::release_policy_toml,
        )
    };
    let notify = Document {
        is_closed: false,
        ..line("notifications", NOTIFY, |text| accepted(NotifyConfig::parse(text)), bodies::notify_toml)
    };
    let page = Document {
        is_closed: false,
        ..line(
            "a profiler's table",
            &data("tools/ncu-pack.csv"),
            |text| accepted(ncu_page(text)),
            bodies::ncu_csv,
        )
    };
    let log = Document {
        is_closed: false,
        ..line(
            "a sanitizer's log",
            &data("tools/sanitizer-synccheck.txt"),
            |text| {
                let log = sanitizer::sanitizer_log(text);
                log.errors_count.map(drop).ok_or_else(|| "no summary".to_owned())
            },
            bodies::sanitizer_log,
        )
    };
    // Half of a table, or of several runs, is a smaller one.
    let tables = ["sglang-serving.jsonl", "samples.csv", "tritonbench.csv", "triton-testing/builtins.csv"];
    let tables = tables.into_iter().map(|name| Document {
        is_closed: false,
        ..line(
            name,
            &data(&format!("tools/{name}")),
            |text| accepted(bodies::current(text)),
            bodies::report_json,
        )
    });
    files
        .chain(tables)
        .chain(requests)
        .chain(responses)
        .chain([suite, waivers, policy, notify, page, log])
        .collect()
}

fn accepted<T, E: std::fmt::Display>(outcome: Result<T, E>) -> Result<(), String> {
    outcome.map(drop).map_err(|error| error.to_string())
}

fn data(name: &str) -> String {
    let path = format!("{}/../model/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}
