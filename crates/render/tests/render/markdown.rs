//! `report.md`.

use crate::values::*;
use holdpoint_model::Verdict;
use holdpoint_render::markdown;
use insta::assert_snapshot;
use serde_json::json;

#[test]
fn a_judged_run() {
    let checks = vec![
        pass("fusion_gate_p50_ms", 1.842, 1.839),
        regressed("infer_p50_ms", 1.373, 1.841),
        missing("sort_merge_p50_ms"),
        improved("tile_pack_p50_ms", 0.1652, 0.1234),
    ];
    let mut j = judgement(Verdict::Regressed, checks);
    j.notes = vec!["compared across machines, as allowed".to_owned()];
    j.ungated = vec!["new_op_p50_ms".to_owned()];
    assert_snapshot!(markdown::report(&mixed_report(), Some(&j)));
}

#[test]
fn a_run_without_a_judgement() {
    assert_snapshot!(markdown::report(&mixed_report(), None));
}

#[test]
fn the_threshold_policy_shows_speedup_and_label() {
    let checks = vec![
        by_threshold("infer_p50_ms", Verdict::Regressed, 1.373, 1.841, "REGRESSION DETECTED"),
        by_threshold("tile_pack_p50_ms", Verdict::Improved, 0.1652, 0.1234, "SIGNIFICANT IMPROVEMENT"),
    ];
    let r = report("ok", json!({"tile_pack": measured(0.1234, "target_width")}));
    assert_snapshot!(markdown::report(&r, Some(&judgement(Verdict::Regressed, checks))));
}

#[test]
fn an_empty_run() {
    let mut r = report("skipped", json!({}));
    (r.machine, r.revision) = (None, None);
    assert_snapshot!(markdown::report(&r, Some(&judgement(Verdict::Inconclusive, vec![]))));
}

#[test]
fn hostile_text_is_escaped() {
    let text = markdown::report(&hostile_report(), Some(&hostile_judgement()));
    let (before, quoted) = text.split_once("<pre>").unwrap();
    let (quoted, after) = quoted.split_once("</pre>").unwrap();
    for harm in ["<script>", "\u{1b}", "\u{202e}", "https://", "![x](y)", "@all"] {
        assert!(!before.contains(harm) && !after.contains(harm), "{harm:?}");
    }
    assert!(!quoted.contains(['<', '>', '\u{1b}']));
    assert_snapshot!(text);
}
