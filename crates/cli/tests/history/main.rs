//! Histories from the outside: what is measured is added, found again, exported and pruned; stores that fail cost nothing else.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../cli/common.rs"]
mod common;
mod git;
#[path = "../../../process/tests/support/program.rs"]
#[allow(dead_code)]
mod program;
#[allow(dead_code)]
#[path = "../cli/repository.rs"]
mod repository;

use common::{Here, data};
use serde_json::Value;

fn list(here: &Here, more: &[&str]) -> Vec<Value> {
    let shown = here.run(&[&["--format", "json", "history", "list"], more].concat());
    serde_json::from_str(&shown.ends(0).stdout).unwrap()
}

fn points(series: &[Value]) -> u64 {
    series.iter().map(|series| series["points_count"].as_u64().unwrap()).sum()
}

#[test]
fn runs_and_gates_are_added_once_each() {
    let here = Here::new();
    here.run(&["run", "--suite", "suite.toml", "--history"])
        .ends(0)
        .notes(&["history: .holdpoint/history.db"]);
    let series = list(&here, &[]);
    assert_eq!((series.len(), points(&series)), (2, 2));
    // The file is the run that is there already.
    here.run(&["history", "add"]).ends(0).prints(&["0 runs with 0 points added, 1 known already"]);
    // Gates with a baseline are judged by it, and added where the suite says so.
    let suite = here.read("suite.toml").replace("[measure]", "[history]\nstore = \"other.db\"\n[measure]");
    here.write("suite.toml", &suite);
    here.gate(&[]).ends(0);
    here.edit_times(1e9);
    here.gate(&[]).ends(0);
    assert_eq!(points(&list(&here, &["--store", "other.db"])), 4);
    let shown = here.run(&["history", "show", "--store", "other.db", "--workload", "pack"]);
    shown.ends(0).prints(&["pack", "p50_ms", "improved"]);
}

#[test]
fn a_suite_names_its_history() {
    let here = Here::new();
    let suite =
        here.read("suite.toml").replace("[measure]", "[history]\nstore = \"kept/runs.db\"\n[measure]");
    here.write("perf.toml", &suite);
    std::fs::create_dir(here.path("below")).unwrap();
    let mut below = here.command(&["run"]);
    common::ran(below.current_dir(here.path("below")).output().unwrap()).ends(0);
    assert!(here.path("kept/runs.db").is_file());
    assert_eq!(points(&list(&here, &[])), 2);
    here.write("perf.toml", &suite.replace("kept/runs.db", " "));
    here.run(&["run"]).refuses(64, &["history", "store is empty"]);
}

#[test]
fn sides_are_added_with_level_and_ratio() {
    let here = Here::new();
    let sides = ["ab", "--base", "true", "--head", "true", "--budget", "1", "--history"];
    here.run(&sides).notes(&["history: .holdpoint/history.db"]);
    let metrics: Vec<String> =
        list(&here, &[]).iter().map(|series| series["key"]["metric"].as_str().unwrap().to_owned()).collect();
    assert!(metrics.iter().any(|metric| metric.ends_with("p50_ms")), "{metrics:?}");
    assert!(metrics.iter().any(|metric| metric == "p50_ms_ratio"), "{metrics:?}");
    here.run(&["history", "add"]).ends(0).prints(&["0 runs with 0 points added, 2 known already"]);
}

#[test]
fn a_history_that_fails_costs_neither_run_nor_verdict() {
    let here = Here::new();
    here.write("broken.db", &"not a database ".repeat(100));
    for store in ["broken.db", "suite.toml/history.db", "git:refs/x", "postgres://h/db?sslmode=allow"] {
        let ran = here.run(&["run", "--suite", "suite.toml", "--history", store]);
        ran.ends(0).notes(&["warning: not added to the history: ", "report: artifacts/report.json"]);
        assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
    }
    assert!(here.read("broken.db").starts_with("not a database"));
    here.run(&["history", "list", "--store", "broken.db"]).refuses(64, &["broken.db: it is not a history"]);
    here.run(&["history", "list"]).refuses(64, &[".holdpoint/history.db: there is no history yet"]);
    here.run(&["history", "list", "--store", "postgres://h/db?sslmode=allow"])
        .refuses(64, &["sslmode=allow is none of disable, prefer, require, verify-ca, verify-full"]);
}

#[test]
fn everything_that_is_read_can_be_added() {
    let here = Here::new();
    for name in [
        "report-v1.json",
        "trend-v1.json",
        "ab-v1.json",
        "apex-cpu-report.json",
        "tools/google-benchmark.json",
        "tools/criterion",
    ] {
        here.run(&["history", "add", &data(name), "--at", "2026-11-01", "--revision", "abc123"])
            .ends(0)
            .prints(&["1 run with "]);
        here.run(&["history", "add", &data(name), "--at", "2026-11-01", "--revision", "abc123"])
            .ends(0)
            .prints(&["0 runs with 0 points added, 1 "]);
    }
    let exported = here.run(&["history", "export", "--suite", "criterion"]);
    exported.ends(0).prints(&["series,suite,workload,", ",2026-11-01T00:00:00.000Z,abc123,"]);
    let trend = std::fs::read_to_string(data("trend-v1.json")).unwrap();
    let line = serde_json::from_str::<Value>(&trend).unwrap().to_string();
    here.write("many.ndjson", &format!("{line}\n\n{}\n", line.replace("2026", "2025")));
    here.run(&["history", "add", "many.ndjson", "--store", "many.db"])
        .ends(0)
        .prints(&["many.db: 2 runs with "]);
    here.write("cut.ndjson", &format!("{line}\n{}", &line[..40]));
    here.run(&["history", "add", "cut.ndjson", "--store", "cut.db"]).refuses(64, &["cut.ndjson", "line 2"]);
    here.run(&["history", "add", &data("baseline-v1.json")]).refuses(64, &["it is a baseline, not a report"]);
    here.run(&["history", "add", "--push", &data("report-v1.json")])
        .refuses(64, &["--push is for a history in git:REF"]);
}

#[test]
fn a_table_is_exported_in_every_form() {
    let here = Here::new();
    here.run(&["history", "add", &data("report-v1.json")]).ends(0);
    let csv = here.run(&["history", "export"]);
    let rows = csv.ends(0).stdout.lines().count() - 1;
    assert!(rows > 0);
    here.run(&["history", "export", "--as", "json", "--output", "all.json"]).ends(0);
    let counts = here
        .json("all.json")
        .as_array()
        .unwrap()
        .iter()
        .map(|series| series["points"].as_array().unwrap().len())
        .sum::<usize>();
    assert_eq!(counts, rows);
    here.run(&["history", "export", "--as", "parquet"]).refuses(64, &["--output FILE"]);
    here.run(&["history", "export", "--as", "parquet", "--output", "all.parquet"]).ends(0);
    assert!(std::fs::read(here.path("all.parquet")).unwrap().starts_with(b"PAR1"));
    here.run(&["history", "export", "--workload", "nosuch"]).refuses(64, &["no series is like that"]);
}

/// Adds the same run as one of each of twenty days: enough for a level.
fn add_days(here: &Here) {
    let text = std::fs::read_to_string(data("report-v1.json")).unwrap();
    let mut report: Value = serde_json::from_str(&text).unwrap();
    std::fs::create_dir(here.path("days")).unwrap();
    for day in 1..=20 {
        report["timestamp_utc"] = format!("2026-10-{day:02}T00:00:00Z").into();
        here.write(&format!("days/{day:02}.json"), &report.to_string());
    }
    here.run(&["history", "add", "days"]).ends(0);
}

#[test]
fn exported_names_neither_paint_nor_hide() {
    let here = Here::new();
    let text = std::fs::read_to_string(data("report-v1.json")).unwrap();
    here.write("report.json", &text.replace("tile_pack", "tile\u{9b}\u{202e}pack"));
    here.run(&["history", "add", "report.json"]).ends(0);
    here.run(&["history", "export", "--as", "json", "--output", "all.json"]).ends(0);
    assert!(here.read("all.json").contains("tile\\u009b\\u202epack"));
    assert!(
        here.json("all.json")
            .as_array()
            .unwrap()
            .iter()
            .any(|s| s["key"]["workload"] == "tile\u{9b}\u{202e}pack")
    );
    here.run(&["history", "export", "--as", "parquet", "--output", "all.parquet"]).ends(0);
    let table = std::fs::read(here.path("all.parquet")).unwrap();
    let has = |text: &str| table.windows(text.len()).any(|bytes| bytes == text.as_bytes());
    assert!(has("tile\\u{9b}\\u{202e}pack") && !has("\u{202e}"));
}

#[test]
fn verdicts_of_a_comparison_are_judged_again_when_they_are_added() {
    let here = Here::new();
    here.gate(&[]).ends(0);
    here.gate(&[]);
    let add = here.run(&["history", "add", "artifacts"]);
    assert!(!add.ends(0).stderr.contains("left out"), "{add:?}");
    here.edit("artifacts/comparison.json", |judgement| {
        for check in judgement["checks"].as_array_mut().unwrap() {
            check["verdict"] = "improved".into();
        }
    });
    here.run(&["history", "add", "artifacts/comparison.json"])
        .ends(0)
        .notes(&["artifacts/comparison.json: its verdicts are left out"])
        .prints(&["0 runs with"]);
}

#[test]
fn a_change_is_accepted_by_somebody_for_a_reason() {
    let here = Here::new();
    here.run(&["history", "add", &data("report-v1.json")]).ends(0);
    let accept = ["history", "accept", "--metric", "p50_ms", "--why", "exact answers", "--by", "Ada"];
    here.run(&accept).refuses(64, &["long enough to have a level"]);
    add_days(&here);
    here.run(&accept).ends(0).prints(&["accepted by Ada", "accepted from ", " on: tile_pack p50_ms"]);
    here.run(&["history", "accept", "--by", "Ada", "--why", "exact"])
        .refuses(64, &["--workload", "or --all"]);
    here.run(&["history", "accept", "--by", "Ada", "--why", "exact answers", "--all"]).ends(0);
    here.run(&["history", "show", "--metric", "p50_ms"]).ends(0).prints(&["Ada: exact answers"]);
    here.run(&[&accept[..], &["--revision", "fffffff"]].concat())
        .refuses(64, &["no series has a point of fffffff"]);
    here.run(&["history", "accept", "--by", "Ada", "--why", " "]).refuses(64, &["--why is empty"]);
}

#[test]
fn samples_are_pruned_before_runs() {
    let here = Here::new();
    here.run(&["history", "add", &data("report-v1.json")]).ends(0);
    let before = points(&list(&here, &[]));
    here.run(&["history", "prune"]).ends(64);
    here.run(&["history", "prune", "--older-than", "0"]).ends(0).prints(&["raw samples of 1 run removed"]);
    assert_eq!(points(&list(&here, &[])), before);
    here.run(&["history", "prune", "--keep", "0", "--runs"]).ends(0).prints(&["1 run with "]);
    assert_eq!(points(&list(&here, &[])), 0);
    here.run(&["history", "migrate"]).ends(0).prints(&["already"]);
}

#[test]
fn runs_are_listed_page_by_page() {
    let here = Here::new();
    add_days(&here);
    here.git(&["init", "--quiet", "-b", "perf"]);
    here.run(&["run", "--suite", "suite.toml", "--history"]).ends(0);
    let list = |more: &[&str]| -> Value {
        let shown = here.run(&[&["--format", "json", "history", "runs"], more].concat());
        serde_json::from_str(&shown.ends(0).stdout).unwrap()
    };
    let all = list(&["--limit", "100"]);
    let times: Vec<&str> =
        all["runs"].as_array().unwrap().iter().map(|run| run["timestamp_utc"].as_str().unwrap()).collect();
    assert!(times.len() > 20 && times.is_sorted_by(|a, b| a >= b) && all["next"].is_null(), "{all}");
    assert_eq!(all["runs"][0]["branch"], "perf");
    let first = list(&["--limit", "2"]);
    let second = list(&["--limit", "2", "--after", first["next"].as_str().unwrap()]);
    assert_eq!([&first["runs"][0], &second["runs"][0]], [&all["runs"][0], &all["runs"][2]]);
    assert_eq!(list(&["--branch", "perf"])["runs"].as_array().unwrap().len(), 1);
    let shown = here.run(&["history", "runs", "--limit", "2"]);
    shown.ends(0).prints(&["perf", "2 runs, older ones with --after 2026-"]);
    here.run(&["history", "runs", "--branch", "nosuch"]).ends(0).prints(&["no run matches"]);
    let wrong = here.run(&["history", "runs", "--after", "yesterday"]);
    assert!(wrong.ends(64).stderr.contains("\"holdpoint history runs\" has named"), "{}", wrong.stderr);
    let wrong = here.run(&["history", "runs", "--verdict", "fine"]);
    assert!(wrong.ends(64).stderr.contains("regressed"), "{}", wrong.stderr);
}
