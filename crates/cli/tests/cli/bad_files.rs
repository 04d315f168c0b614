//! Files that cannot be used: one line that names them, and nothing written.

use crate::common::{Here, data};

const GOOD: &str = r#"{"schema_version": 1, "suite": "s", "metrics": {"a_ms": {"value_ms": 1.0}}}"#;

/// What is wrong with a file, whichever command reads it.
const BAD: &[(&str, &str)] = &[
    ("", "EOF while parsing"),
    ("{\"schema_version\": 1, \"metrics\": {\"a_ms\"", "EOF while parsing an object at line 1 column 40"),
    ("not json", "at line 1 column 2"),
    ("{\"schema_version\": 1}x", "trailing characters at line 1 column 22"),
    ("[]", "its top-level keys are none"),
    (
        "{\"schema_version\": 99, \"suite\": \"s\", \"metrics\": {}}",
        "it was written by a newer one: update holdpoint",
    ),
    ("{\"hello\": 1}", "its top-level keys are hello"),
];

fn here() -> Here {
    let here = Here::new();
    here.write("good.json", GOOD);
    here
}

#[test]
fn a_bad_file_is_refused_by_every_command_that_reads_one() {
    let here = here();
    let files = ["--summary", "out/s.json", "--trend-output", "out/t.json"];
    for (text, words) in BAD {
        here.write("bad.json", text);
        for arguments in [
            &["compare", "bad.json", "--baseline", "good.json"][..],
            &["compare", &data("apex-cpu-report.json"), "--baseline", "bad.json"],
            &["baseline", "record", "bad.json", "--baseline", "out/b.json"],
            &["baseline", "show", "bad.json"],
            &["baseline", "fit", "bad.json"],
            &["report", "bad.json", "--markdown", "out/r.md"],
            &["trend", "append", "bad.json"],
            &["gate", "--suite", "suite.toml", "--baseline", "bad.json"],
        ] {
            let files = if arguments[0] == "compare" { &files[..] } else { &[] };
            here.run(&[arguments, files].concat()).refuses(64, &["bad.json: ", words]);
        }
        assert_eq!(here.files(), ["bad.json", "good.json", "suite.toml"]);
        assert_eq!(here.read("bad.json"), *text);
    }
}

#[test]
fn times_that_are_none_are_refused_with_their_place() {
    let here = here();
    for (time, words) in [
        ("0", "a_ms: 0.0 is not a time"),
        ("-1.5", "a_ms: -1.5 is not a time"),
        ("1e300", "a_ms: 1e300 is beyond reason"),
        ("NaN", "metrics.a_ms: must be a number"),
        ("null", "metrics.a_ms: must be a number"),
        ("\"1\"", "metrics.a_ms: must be a number"),
        ("1, \"a_ms\": 2", "duplicate key \"a_ms\" at line 1 column 46"),
    ] {
        here.write("report.json", &format!("{{\"schema_version\": 1, \"metrics\": {{\"a_ms\": {time}}}}}"));
        here.run(&["compare", "report.json", "--baseline", "good.json"])
            .refuses(64, &["report.json: ", words]);
    }
    for (metric, words) in [
        ("\"value_ms\": 0", "metrics.a_ms.value_ms: 0.0 is not a time"),
        ("\"value_ms\": 1, \"max_regression_ratio\": -1", "metrics.a_ms: a tolerance must not be negative"),
        ("\"value_ms\": 1, \"value_ms\": 2", "duplicate key \"value_ms\""),
    ] {
        here.write("base.json", &GOOD.replace("\"value_ms\": 1.0", metric));
        let report = data("apex-cpu-report.json");
        here.run(&["compare", &report, "--baseline", "base.json"]).refuses(64, &["base.json: ", words]);
    }
}

#[test]
fn a_report_cut_off_anywhere_is_refused() {
    let here = here();
    here.run(&["-q", "run", "--suite", "suite.toml"]).ends(0);
    let whole = here.read("artifacts/report.json");
    for part in 1..4 {
        here.write("cut.json", &whole[..whole.len() * part / 4]);
        here.run(&["report", "cut.json"]).refuses(64, &["cut.json: EOF while parsing", "at line"]);
    }
}

#[test]
fn a_file_that_is_not_there_or_not_a_file_is_refused() {
    let here = here();
    here.write("latin.json", "");
    std::fs::write(here.path("latin.json"), b"{\"a\": \"\xe4\"}").unwrap();
    for (file, words) in [
        ("nowhere.json", "nowhere.json: cannot be read: no such file; check the path"),
        (".", ".: cannot be read: it is a directory; name a file"),
        ("good.json/x", "good.json/x: cannot be read: a part of the path is a file, not a folder"),
        ("latin.json", "latin.json: not UTF-8 text: bad byte at offset 7"),
    ] {
        // Other tools keep a folder of files, so a folder may be compared and shown.
        let for_folders = if file == "." { "no file of the folder is of a known format" } else { words };
        here.run(&["compare", file, "--baseline", "good.json"]).refuses(64, &[for_folders]);
        here.run(&["compare", "good.json", "--baseline", file]).ends(64);
        here.run(&["report", file]).refuses(64, &[for_folders]);
        here.run(&["trend", "show", file]).refuses(64, &[words]);
    }
}

#[test]
fn a_file_of_another_kind_is_named_for_what_it_is() {
    let here = here();
    let words = "good.json: it is a baseline, not a report; holdpoint run writes one";
    here.run(&["report", "good.json"]).refuses(64, &[words]);
    here.run(&["compare", "good.json", "--baseline", "good.json"]).refuses(64, &[words]);
    here.run(&["trend", "append", "good.json"])
        .refuses(64, &["good.json: it is a baseline, not a trend point"]);
}

#[test]
fn a_missing_baseline_says_how_to_make_one() {
    let here = here();
    let ran = here.run(&["baseline", "show", "--suite", "suite.toml"]);
    ran.refuses(64, &["no baseline for suite \"tiny\" on this machine; record one: \"holdpoint baseline record --suite suite.toml\""]);
}
