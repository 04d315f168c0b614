//! The files that come out: the originals' keys, and nothing lost on the way back in.

use super::*;
use serde_json::Value;

/// A judgement with every kind of check in it.
fn everything(policy: Policy) -> Judgement {
    let names = ["failed_ms", "fast_ms", "gone_ms", "skipped_ms", "slow_ms"];
    let mut baseline = baseline(&names.map(|name| (name, 1.0, 0.5, 0.0)));
    for metric in baseline.metrics.values_mut() {
        metric.spread = Some(0.1 + 0.2);
    }
    let mut current = run(&[("fast_ms", 1.0 / 3.0), ("new_ms", 1.0), ("slow_ms", 2.0)]);
    current.status = Some("failed".to_owned());
    current.revision = Some(Revision { commit: "c0ffee".to_owned(), dirty: true });
    current.unmeasured.insert("failed_ms".to_owned(), Unmeasured::Failed("crashed: signal 11".to_owned()));
    current.unmeasured.insert("skipped_ms".to_owned(), Unmeasured::Skipped("cuda_unavailable".to_owned()));
    judge(&compare(&current, &baseline, Allow::default()), policy)
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn assert_has(value: &Value, keys: &[&str]) {
    for key in keys {
        assert!(value.get(key).is_some(), "{key} is not among {:?}", names(value));
    }
}

#[test]
fn a_judgement_has_the_first_seeds_keys() {
    let value = json(&everything(ALLOWED_MAX));
    assert_has(&value, &["suite", "status", "checks", "required_status", "current_status"]);
    let checks = value["checks"].as_array().unwrap();
    for check in checks {
        assert_has(
            check,
            &["metric", "status", "baseline_ms", "allowed_max_ms", "current_ms", "regression_ratio"],
        );
    }
    assert_has(&checks[0], &["expected", "current"]);
    let words: Vec<&str> = checks.iter().filter_map(|check| check["status"].as_str()).collect();
    assert_eq!(words, ["fail", "fail", "pass", "missing", "skipped", "fail"]);
    assert!(!names(&value).contains(&"speedup") && !names(&checks[2]).contains(&"speedup"));
}

#[test]
fn a_judgement_by_threshold_has_the_second_seeds_keys_at_the_top() {
    const KEYS: [&str; 6] =
        ["speedup", "improvement_pct", "is_regression", "baseline_time_ms", "current_time_ms", "threshold"];
    let value = json(&everything(Policy::Threshold { threshold_pct: -3.0 }));
    assert_has(&value, &KEYS);
    assert_eq!(value["is_regression"], true);
    assert_eq!(value["current_time_ms"], 2.0);
    assert_has(&value["checks"][2], &KEYS);
    assert_eq!(value["checks"][3].get("speedup"), None);
    assert_eq!(value["checks"][3]["allowed_max_ms"], 1.03, "the same policy for what is missing");
}

#[test]
fn a_trend_has_the_seeds_keys_and_the_revision_beside_them() {
    let mut trend = Trend::new(&everything(ALLOWED_MAX), "2026-02-14T10:00:00Z");
    let value = json(&trend);
    assert!(names(&value).contains(&"revision"));
    trend.revision = None;
    let value = json(&trend);
    let mut keys = names(&value);
    keys.sort_unstable();
    let expected = [
        "failed_metrics",
        "metrics",
        "overall_status",
        "schema_version",
        "suite",
        "timestamp_utc",
        "total_metrics",
    ];
    assert_eq!(keys, expected);
    for metric in value["metrics"].as_array().unwrap() {
        let mut keys = names(metric);
        keys.sort_unstable();
        let expected =
            ["allowed_max_ms", "baseline_ms", "current_ms", "metric", "regression_ratio", "status"];
        assert_eq!(keys, expected);
    }
}

#[test]
fn a_trend_is_sorted_and_counts_all_that_did_not_pass() {
    let trend = Trend::new(&everything(ALLOWED_MAX), "2026-02-14T10:00:00Z");
    assert_eq!((trend.total_metrics, trend.failed_metrics, trend.overall_status.as_str()), (6, 5, "fail"));
    assert!(trend.metrics.is_sorted_by(|a, b| a.metric <= b.metric));
    assert_eq!(trend.metrics[0].metric, "__status__");
    assert_eq!(trend.metrics[0].baseline_ms, None, "absent numbers are null");
}

#[test]
fn a_judgement_survives_its_file() {
    for policy in [ALLOWED_MAX, Policy::Threshold { threshold_pct: -3.0 }] {
        let judgement = everything(policy);
        let text = holdpoint_model::json::to_pretty(&judgement).unwrap();
        let back: holdpoint_model::Stated = holdpoint_model::json::parse(&text).unwrap();
        assert_eq!(back, *judgement);
    }
}

#[test]
fn a_trend_survives_its_file() {
    let trend = Trend::new(&everything(ALLOWED_MAX), "2026-02-14T10:00:00Z");
    let text = holdpoint_model::json::to_pretty(&trend).unwrap();
    assert_eq!(holdpoint_model::document::read::<Trend>(&text).unwrap(), trend);
}
