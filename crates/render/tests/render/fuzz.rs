//! What `holdpoint fuzz` prints.

use crate::values::HOSTILE;
use holdpoint_model::FuzzReport;
use holdpoint_model::fuzz::Replayed;
use holdpoint_render::{Style, terminal};
use insta::assert_snapshot;
use serde_json::{Value, json};

const WIDE: Style = Style { color: false, width: Some(120), ascii: false };
const NARROW: Style = Style { color: false, width: Some(60), ascii: false };

fn kernel(op: &str, dtype: &str, passed: u64, failures: Value) -> Value {
    json!({
        "op": op, "dtype": dtype, "worker": "mine", "cases_count": 10_000, "passed_count": passed,
        "sizes": [{"name": "batch", "min": 1, "max": 8}, {"name": "steps", "min": 16, "max": 16}],
        "errors": {
            "values_count": 5, "max_abs_err": 0.0012, "max_rel_err": null, "rel_norm": 0.0, "correlation": 0.99998,
        },
        "failures": failures,
    })
}

fn report(kernels: Value) -> FuzzReport {
    serde_json::from_value(json!({
        "schema_version": 1, "suite": "mine", "timestamp_utc": "2026-01-01T00:00:00Z", "seed": 1,
        "kernels": kernels, "elapsed_s": 12.5,
    }))
    .expect("a report")
}

fn mixed() -> FuzzReport {
    let case = json!({
        "op": "attention", "shape": [1, 1, 61, 16], "dtype": "f16", "params": {"causal": true}, "seed": 7,
        "values": "large", "offset": 1,
    });
    let failure = |kind: &str, detail: &str, file: &str| {
        json!({
            "finding": {"kind": kind, "detail": detail}, "case": case, "first": case, "found_after": 87, "file": file,
            "shown": {"runs_count": 150, "failed_count": 3},
        })
    };
    let failures = json!([
        failure(
            "wrong_answer",
            "out[0,0,60,0]: got 0.298, want 0.285; 1 of 976 values are wrong",
            ".holdpoint/fuzz/mine-attention-f16-wrong_answer.json"
        ),
        failure("failed", HOSTILE, ".holdpoint/fuzz/mine-attention-f16-failed.json"),
    ]);
    let mut refused = kernel("tile_ssm", "f32", 10_000, json!([]));
    (refused["refused_count"], refused["skipped"]) = (12.into(), "at most 20 steps".into());
    let mut absent = kernel("softmax", "f32", 0, json!([]));
    (absent["cases_count"], absent["skipped"]) = (0.into(), "no cases are known".into());
    report(json!([kernel("attention", "f16", 9_990, failures), refused, absent]))
}

#[test]
fn failing_cases_have_a_line_each_for_what_the_case_and_how_to_see_it_again() {
    assert_snapshot!(terminal::fuzz(&mixed(), WIDE));
}

#[test]
fn a_narrow_terminal_loses_columns_and_wraps_words() {
    assert_snapshot!(terminal::fuzz(&mixed(), NARROW));
}

#[test]
fn where_all_passed_the_table_is_all_there_is() {
    assert_snapshot!(terminal::fuzz(&report(json!([kernel("tile_ssm", "bf16", 10_000, json!([]))])), WIDE));
}

#[test]
fn replayed_cases_have_a_line_each() {
    let shown = |failed: u64, runs: u64| json!({"runs_count": runs, "failed_count": failed});
    let finding = json!({"kind": "unwritten", "detail": "out[256] of 260 was not written"});
    let outcomes: Vec<(String, Replayed)> = [
        json!({"shown": shown(0, 8)}),
        json!({"skipped": "cuda_driver_missing", "shown": shown(0, 0)}),
        json!({"finding": finding, "shown": shown(3, 150)}),
        json!({"finding": finding, "shown": shown(1, 1)}),
    ]
    .into_iter()
    .enumerate()
    .map(|(at, outcome)| (format!("case-{at}.json"), serde_json::from_value(outcome).expect("an outcome")))
    .collect();
    assert_snapshot!(terminal::replayed(&outcomes, WIDE));
}
