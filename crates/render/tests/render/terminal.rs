//! The terminal, without colour unless the test is about colour.

use crate::values::*;
use holdpoint_model::{Source, Trend, Verdict};
use holdpoint_render::{Judged, Style, terminal};
use insta::assert_snapshot;
use serde_json::json;

const PLAIN: Style = Style { color: false, width: Some(100), ascii: false };
const COLOR: Style = Style { color: true, width: Some(100), ascii: false };

fn mixed_checks() -> Vec<holdpoint_model::Check> {
    vec![
        pass("fusion_gate_p50_ms", 1.842, 1.839),
        regressed("infer_p50_ms", 1.373, 1.841),
        missing("sort_merge_p50_ms"),
        improved("tile_pack_p50_ms", 0.1652, 0.1234),
        pass("tile_unpack_p50_ms", 0.000_731, 0.000_734),
    ]
}

#[test]
fn every_metric_passes() {
    let checks = vec![pass("infer_p50_ms", 1.373, 1.374), pass("tile_pack_p50_ms", 0.1234, 0.1219)];
    assert_snapshot!(terminal::judgement(Judged::new(&judgement(Verdict::Pass, checks), None), PLAIN));
}

#[test]
fn the_only_metric_improved() {
    let j = judgement(Verdict::Improved, vec![improved("infer_p50_ms", 1.373, 0.9)]);
    assert_snapshot!(terminal::judgement(Judged::new(&j, None), PLAIN));
}

#[test]
fn regressed_and_missing_metrics_have_reasons() {
    let mut j = judgement(Verdict::Regressed, mixed_checks());
    j.notes = vec!["the baseline names no machine; judged as if it were this one".to_owned()];
    j.ungated = vec!["new_op_p50_ms".to_owned(), "new_op_p95_ms".to_owned()];
    assert_snapshot!(terminal::judgement(Judged::new(&j, None), PLAIN));
}

#[test]
fn colours_say_what_the_words_say() {
    let mut checks = mixed_checks();
    checks.push(skipped("infer_cuda_p50_ms"));
    assert_snapshot!(terminal::judgement(Judged::new(&judgement(Verdict::Regressed, checks), None), COLOR));
}

#[test]
fn without_colour_there_is_no_escape() {
    let text = terminal::judgement(
        Judged::new(&judgement(Verdict::Regressed, mixed_checks()), Some(Source::Run(&mixed_report()))),
        PLAIN,
    );
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn a_narrow_terminal_keeps_the_columns_that_matter() {
    let j = judgement(Verdict::Regressed, mixed_checks());
    let text =
        terminal::judgement(Judged::new(&j, None), Style { color: false, width: Some(60), ascii: false });
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert_snapshot!(text);
}

#[test]
fn a_terminal_of_any_width_gets_something() {
    let j = judgement(Verdict::Regressed, mixed_checks());
    for width in [0, 1, 7, 20, 40, u16::MAX] {
        assert!(
            !terminal::judgement(
                Judged::new(&j, None),
                Style { color: true, width: Some(width), ascii: false }
            )
            .is_empty()
        );
    }
}

#[test]
fn another_machine_is_one_reason_for_all() {
    let names = ["fusion_gate_p50_ms", "infer_p50_ms", "sort_merge_p50_ms", "tile_pack_p50_ms"];
    let j = judgement(Verdict::Inconclusive, names.map(elsewhere).to_vec());
    assert_snapshot!(terminal::judgement(Judged::new(&j, None), PLAIN));
}

#[test]
fn a_skipped_run_shows_its_status() {
    let checks =
        vec![status("skipped", Verdict::Skipped), skipped("infer_p50_ms"), skipped("tile_pack_p50_ms")];
    assert_snapshot!(terminal::judgement(Judged::new(&judgement(Verdict::Skipped, checks), None), PLAIN));
}

#[test]
fn a_broken_workload_shows_what_it_said_last() {
    let mut broken = missing("infer_p50_ms");
    broken.verdict = Verdict::Broken;
    broken.reason = "crashed: the worker ended with signal 11 after 3 of 24 rounds".to_owned();
    let checks = vec![status("failed", Verdict::Broken), broken, pass("tile_pack_p50_ms", 0.12, 0.1234)];
    let j = judgement(Verdict::Broken, checks);
    let r = report(
        "failed",
        json!({
            "infer": crashed(),
            "not_in_the_baseline": failure("timed_out", "no answer within 60 s", &[]),
            "tile_pack": measured(0.1234, "target_width"),
        }),
    );
    assert_snapshot!(terminal::judgement(Judged::new(&j, Some(Source::Run(&r))), PLAIN));
}

#[test]
fn the_threshold_policy_shows_speedup_and_label() {
    let checks = vec![
        by_threshold("infer_p50_ms", Verdict::Regressed, 1.373, 1.841, "REGRESSION DETECTED"),
        by_threshold("sort_merge_p50_ms", Verdict::Pass, 0.512, 0.514, "PERFORMANCE SIMILAR"),
        by_threshold("tile_pack_p50_ms", Verdict::Improved, 0.1652, 0.1234, "SIGNIFICANT IMPROVEMENT"),
    ];
    let mut j = judgement(Verdict::Regressed, checks);
    j.policy = "threshold".to_owned();
    assert_snapshot!(terminal::judgement(Judged::new(&j, None), PLAIN));
}

#[test]
fn nothing_judged_says_so() {
    assert_snapshot!(terminal::judgement(
        Judged::new(&judgement(Verdict::Inconclusive, vec![]), None),
        PLAIN
    ));
}

#[test]
fn ten_thousand_checks_show_what_matters() {
    let mut checks: Vec<_> = (0..9_999).map(|i| pass(&format!("op_{i:04}_p50_ms"), 1.0, 1.01)).collect();
    checks.push(regressed("slow_p50_ms", 1.0, 1.5));
    let text = terminal::judgement(Judged::new(&judgement(Verdict::Regressed, checks), None), PLAIN);
    assert!(text.contains("\n… and 9 949 more passed\n"), "{text}");
    assert_eq!(text.matches("\npass ").count(), 50);
    assert!(text.ends_with("regressed: 1 of 10 000 metrics is slower than allowed (slow_p50_ms +50.0 %)\n"));
}

#[test]
fn hostile_text_is_neutralised() {
    let text =
        terminal::judgement(Judged::new(&hostile_judgement(), Some(Source::Run(&hostile_report()))), PLAIN)
            + &terminal::report(&hostile_report(), PLAIN);
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\r']));
    assert_snapshot!(text);
}

#[test]
fn a_report_with_every_outcome() {
    assert_snapshot!(terminal::report(&mixed_report(), PLAIN));
}

#[test]
fn a_report_in_colour() {
    assert_snapshot!(terminal::report(&mixed_report(), COLOR));
}

#[test]
fn an_empty_report() {
    let mut r = report("skipped", json!({}));
    assert_snapshot!("an_empty_report", terminal::report(&r, PLAIN));
    r.reason = Some("cuda_unavailable".to_owned());
    assert_snapshot!("an_empty_report_with_its_reason", terminal::report(&r, PLAIN));
}

#[test]
fn a_baseline_with_its_runs() {
    assert_snapshot!(terminal::baseline(&baseline(), PLAIN));
}

#[test]
fn a_baseline_of_the_seeds_names_no_machine() {
    let mut b = baseline();
    (b.machine, b.runs, b.baseline_notes) = (None, Vec::new(), String::new());
    for metric in b.metrics.values_mut() {
        (metric.spread, metric.runs_ms) = (None, Vec::new());
    }
    assert_snapshot!(terminal::baseline(&b, PLAIN));
}

#[test]
fn a_trend_has_a_sparkline_per_metric() {
    assert_snapshot!(terminal::trend(&trend_points(12), None, PLAIN));
}

#[test]
fn trends_of_two_suites_are_two_tables() {
    let mut points: Vec<Trend> = trend_points(2);
    points[1].suite = "gpu".to_owned();
    assert_snapshot!(terminal::trend(&points, None, PLAIN));
}

#[test]
fn an_empty_trend() {
    assert_snapshot!(terminal::trend(&[], None, PLAIN));
}

#[test]
fn the_doctor_names_a_remedy_for_each_reason() {
    assert_snapshot!(terminal::caps(&caps(false), PLAIN));
}

#[test]
fn the_doctor_on_a_gpu_machine() {
    assert_snapshot!(terminal::caps(&caps(true), PLAIN));
}
