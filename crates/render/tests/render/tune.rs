//! The table after tuning.

use crate::values::HOSTILE;
use holdpoint_model::Tuning;
use holdpoint_render::{Style, terminal};
use insta::assert_snapshot;
use serde_json::{Value, json};

const PLAIN: Style = Style { color: false, width: Some(120), ascii: false };

fn tunings(value: Value) -> Vec<Tuning> {
    serde_json::from_value(value).expect("tunings")
}

fn mixed() -> Vec<Tuning> {
    tunings(json!([
        {
            "workload": "tile_ops.tilepack.dispatch", "status": "tuned", "kernel_name": "tile_pack_fast",
            "shape_bucket": "batch=1|dtype=f16", "selected_config": {"GROUP": 2, "ITEMS": 4, "THREADS": 128},
            "default_ms": 0.00412, "best_ms": 0.00361, "candidates_count": 19, "refused": [],
        },
        {
            "workload": "tilessm.triton_dispatch", "status": "tuned", "kernel_name": "tile_ssm_fast",
            "shape_bucket": "batch=1|dtype=f16", "selected_config": {},
            "default_ms": 0.0123, "best_ms": 0.0123, "candidates_count": 25, "refused": [
                {"config": {"ACROSS": 2, "THREADS": 512}, "reason": "tile_ssm_fast: the driver refused a call"},
                {"config": {"ACROSS": 4, "THREADS": 512}, "reason": "tile_ssm_fast: the driver refused a call"},
            ],
        },
        {"workload": "attention.fp8", "status": "skipped", "reason": "compute_capability_below_sm90"},
        {
            "workload": "attention.dispatch", "status": "failed", "cause": "wrong_answer",
            "detail": "wrong answer: out[7]",
        },
    ]))
}

#[test]
fn winners_and_what_could_not_be_tried() {
    assert_snapshot!(terminal::tune(&mixed(), PLAIN));
    let text = terminal::tune(&mixed(), Style { color: false, width: Some(60), ascii: false });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn without_a_device_the_reason_and_what_helps_are_told() {
    let all = ["tile_ops.tilepack.dispatch", "attention.dispatch"].map(|workload| {
        json!({
            "workload": workload, "status": "skipped", "reason": "cuda_unavailable",
            "detail": "there is no libcuda.so: install the NVIDIA driver, or measure on a machine that has one",
        })
    });
    assert_snapshot!(terminal::tune(&tunings(json!(all)), PLAIN));
}

#[test]
fn hostile_text_is_neutralised() {
    let tunings = tunings(json!([{"workload": HOSTILE, "status": "skipped", "reason": HOSTILE}]));
    assert!(!terminal::tune(&tunings, PLAIN).contains('\u{1b}'));
}
