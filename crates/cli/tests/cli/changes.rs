//! `holdpoint changes`, `gate --history` and `blame`: series, their changes, and what comes of them.

use crate::common::Here;
use crate::program::write_program;
use crate::repository::{FAST, SLOW};
use serde_json::Value;

/// Noise that repeats, of a percent or so.
const NOISE: [f64; 7] = [0.0, 0.008, -0.006, 0.003, -0.009, 0.005, -0.002];

fn series(levels: &[(f64, usize)]) -> Vec<f64> {
    let values = levels.iter().flat_map(|(level, count)| std::iter::repeat_n(*level, *count));
    values.enumerate().map(|(i, value)| value * (1.0 + NOISE[i * 5 % 7])).collect()
}

#[test]
fn changes_of_a_table_are_one_event_with_sizes_and_revisions() {
    let here = Here::new();
    let (a, b) = (series(&[(10.0, 40), (12.0, 40)]), series(&[(5.0, 40), (4.0, 40)]));
    let rows: Vec<String> = (0..80).map(|i| format!("c{i:039},{},{}", a[i], b[i])).collect();
    here.write("times.csv", &format!("commit,sort_ms,hash_ms\n{}\n", rows.join("\n")));
    let ran = here.run(&["changes", "times.csv"]);
    ran.ends(0).prints(&["worse", "better", "+20", "-20", "2 changes in 1 event (1 worse, 1 better)"]);
    let ran = here.run(&["changes", "times.csv", "--format", "json", "--alerts"]);
    let found: Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    assert_eq!((&found["kind"], &found["series"][0]["changes"][0]["index"]), (&"changes".into(), &40.into()));
    assert_eq!(found["series"][0]["alerts"], serde_json::json!([43]), "the fourth run beyond the noise");
    assert_eq!(found["series"][1]["alerts"], serde_json::json!([]), "better is no alert");
    let change = &found["series"][0]["changes"][0];
    let earliest = change["range"][0].as_u64().unwrap();
    assert!((38..=40).contains(&earliest), "{change}");
    assert_eq!(
        change["before"]["commit"],
        format!("c{:039}", earliest - 1),
        "the last run before it for certain"
    );
    assert_eq!(change["after"]["commit"], format!("c{:039}", 40));
}

#[test]
fn files_that_hold_no_series_are_refused_in_one_line() {
    let here = Here::new();
    here.write("bad.json", "{\"a\": \"b\"}");
    here.run(&["changes", "bad.json"]).ends(64).notes(&["bad.json", "is no series"]);
    here.run(&["changes", "none.csv"]).ends(64).notes(&["none.csv"]);
    here.run(&["changes"]).ends(64).notes(&["history.db"]);
}

#[test]
fn a_trend_is_shown_with_its_changes() {
    let here = Here::new();
    let point = |(i, value): (usize, &f64)| {
        let at = format!("2026-01-{:02}T{:02}:00:00Z", 1 + i / 24, i % 24);
        let metric = format!(
            r#"{{"metric":"sort_p50_ms","status":"pass","baseline_ms":null,"allowed_max_ms":null,"current_ms":{value},"regression_ratio":null}}"#
        );
        format!(
            r#"{{"schema_version":1,"suite":"cpu","timestamp_utc":"{at}","overall_status":"pass","total_metrics":1,"failed_metrics":0,"metrics":[{metric}]}}"#
        )
    };
    let lines: Vec<String> = series(&[(10.0, 50), (13.0, 50)]).iter().enumerate().map(point).collect();
    here.write("cpu.ndjson", &(lines.join("\n") + "\n"));
    let ran = here.run(&["trend", "show", "cpu.ndjson", "--svg", "t.svg", "--html", "t.html"]);
    ran.ends(0).prints(&["level changed", "+30", "1 change in 1 event (1 worse, 0 better)"]);
    for file in ["t.svg", "t.html"] {
        let text = here.read(file);
        assert!(text.contains("class=\"l change\"") && text.contains("class=\"l steady\""), "{file}");
    }
    let ran = here.run(&["trend", "show", "cpu.ndjson", "--format", "json"]);
    let points: Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    assert_eq!(points.as_array().map(Vec::len), Some(100));
}

/// Adds copies of a run to a history: one for each commit, its median time scaled, an hour apart.
fn add_copies(here: &Here, report: &Value, runs: &[(&str, f64)]) {
    std::fs::create_dir_all(here.path("copies")).unwrap();
    for (i, (commit, factor)) in runs.iter().enumerate() {
        let mut copy = report.clone();
        copy["timestamp_utc"] = format!("2026-01-{:02}T{:02}:00:00Z", 1 + i / 24, i % 24).into();
        copy["revision"] = serde_json::json!({ "commit": commit, "dirty": false });
        let time_ms = copy["benchmarks"]["program"]["p50_ms"].as_f64().unwrap();
        crate::common::set_time(&mut copy, "program", time_ms * factor);
        here.write(&format!("copies/{i:03}.json"), &copy.to_string());
    }
    here.run(&["history", "add", "copies", "--store", "h.db"]).ends(0);
}

#[test]
fn a_run_is_judged_by_its_history_and_a_doubt_is_settled_side_by_side() {
    let here = Here::repository();
    let fast = here.commit("fast", Some(FAST));
    write_program(&here.path("run.sh"), FAST);
    let gate = || here.revisions(&["gate", "--history", "h.db"]);
    gate().ends(3).prints(&["inconclusive", "too short"]);
    // Runs that differ by more than twice the tolerance of 100 %, and a busy machine does not leave their noise.
    let runs: Vec<(&str, f64)> =
        (0..40).map(|i| (fast.as_str(), 20_f64.powf(f64::from(i * 7 % 11) / 11.0))).collect();
    add_copies(&here, &here.json("artifacts/report.json"), &runs);
    gate().ends(3).prints(&["a slowdown below that would look the same"]);
    let judgement = here.json("artifacts/comparison.json");
    assert_eq!((&judgement["policy"], &judgement["verdict"]), (&"history".into(), &"inconclusive".into()));
    // No run has passed in so much noise: the oldest revision that is not known to be worse is compared with.
    let slow = here.commit("slow", Some(SLOW));
    write_program(&here.path("run.sh"), SLOW);
    gate().ends(1).prints(&["regressed"]).notes(&["decided side by side", &fast[..12]]);
    let sides = here.json("artifacts/ab.json");
    assert_eq!(sides["base"]["revision"]["commit"].as_str(), Some(fast.as_str()));
    assert_eq!(sides["head"]["revision"]["commit"].as_str(), Some(slow.as_str()));
}

#[test]
fn a_benchmark_that_moves_branches_has_no_say_in_what_settles_the_doubt() {
    for attack in ["git update-ref refs/remotes/origin/main HEAD", "git reset -q --hard origin/main"] {
        let here = Here::repository();
        let fast = here.commit("fast", Some(FAST));
        here.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
        write_program(&here.path("run.sh"), FAST);
        let gate = || here.revisions(&["gate", "--history", "h.db", "--last-good", "origin/main"]);
        gate().ends(3);
        let runs: Vec<(&str, f64)> =
            (0..40).map(|i| (fast.as_str(), 1.0 + 1.5 * f64::from(i * 7 % 11) / 11.0)).collect();
        add_copies(&here, &here.json("artifacts/report.json"), &runs);
        // Where the history lies is the work tree.
        let slow = SLOW.replace("sleep", &format!("[ ! -e h.db ] || {attack}\nsleep"));
        let slow_commit = here.commit("slow", Some(&slow));
        write_program(&here.path("run.sh"), &slow);
        gate().ends(1).prints(&["regressed"]).notes(&["decided side by side with origin/main"]);
        assert_eq!(here.git(&["rev-parse", "HEAD"]), here.git(&["rev-parse", "origin/main"]), "it ran");
        let sides = here.json("artifacts/ab.json");
        assert_eq!(sides["base"]["revision"]["commit"].as_str(), Some(fast.as_str()));
        assert_eq!(sides["head"]["revision"]["commit"].as_str(), Some(slow_commit.as_str()));
    }
}

#[test]
fn blame_searches_only_where_the_change_must_lie() {
    let here = Here::repository();
    let commits: Vec<String> = (1..=6)
        .map(|at| {
            here.commit(
                &format!("commit {at}"),
                Some(&format!("{}# {at}\n", if at < 4 { FAST } else { SLOW })),
            )
        })
        .collect();
    write_program(&here.path("run.sh"), FAST);
    here.revisions(&["gate", "--history", "h.db"]).ends(3);
    let report = here.json("artifacts/report.json");
    // Runs of the first commits, then of the fifth and sixth: the change lies behind the second.
    let run = |i: usize| {
        let (commit, level) =
            if i < 30 { (&commits[i / 15], 1.0) } else { (&commits[4 + (i - 30) / 5], 9.0) };
        (commit.as_str(), level * (1.0 + NOISE[i * 5 % 7]))
    };
    add_copies(&here, &report, &(0..40).map(run).collect::<Vec<_>>());
    let ran = here.revisions(&["blame", "--history", "h.db"]);
    ran.ends(0).prints(&["commit 4"]).notes(&["program_p50_ms became", &commits[1][..12], &commits[4][..12]]);
    let found = here.json("artifacts/bisect.json");
    assert_eq!(found["culprits"][0]["commit"].as_str(), Some(commits[3].as_str()));
    assert_eq!(
        (&found["good"]["commit"], &found["bad"]["commit"]),
        (&commits[1].as_str().into(), &commits[4].as_str().into())
    );
    here.revisions(&["blame", "--history", "h.db", "--revision", "ffff"])
        .ends(64)
        .notes(&["no worsening begins at ffff"]);
}
