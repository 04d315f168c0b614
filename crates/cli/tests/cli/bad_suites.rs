//! Suites that cannot be used: told before anything is measured or written.

use crate::common::{Here, TINY};

#[track_caller]
fn refused(suite: &str, words: &[&str]) {
    let here = Here::new();
    here.write("suite.toml", suite);
    for command in ["run", "gate", "worker"] {
        let ran = here.run(&[command, "--suite", "suite.toml"]);
        ran.ends(64).notes(words).notes(&["suite.toml"]);
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.starts_with("holdpoint: "));
        // One line, and below it the place in the file where there is one.
        assert!(ran.stderr.lines().skip(1).all(|line| line.starts_with("  | ")), "{ran:#?}");
    }
    assert_eq!(here.files(), ["suite.toml"]);
}

#[test]
fn malformed_toml_is_shown_with_its_line() {
    refused("schema_version = 1\nname = \"x", &["TOML parse error at line 2 column"]);
    refused(&TINY[..TINY.len() - 3], &["TOML parse error at line 17"]);
    refused(&TINY.replace("round_ms", "rounds_max"), &["TOML parse error at line 7", "duplicate key"]);
    refused(&TINY.replace("round_ms", "round_msec"), &["line 7", "unknown field `round_msec`"]);
    refused("", &["the suite has none"]);
}

#[test]
fn another_version_is_named() {
    refused(
        &TINY.replace("schema_version = 1", "schema_version = 7"),
        &["schema_version: 7 is not known here; this holdpoint reads 1"],
    );
}

#[test]
fn times_that_are_none_are_refused() {
    for time in ["nan", "inf", "-1.0", "0.0", "0"] {
        refused(
            &TINY.replace("round_ms = 0.2", &format!("round_ms = {time}")),
            &["measure: round_ms is", "must be above 0"],
        );
    }
    refused(
        &TINY.replace("rounds_min = 6", "rounds_min = -6"),
        &["TOML parse error at line 5", "\n  | rounds_min = -6\n  |              ^^\n"],
    );
    refused(&TINY.replace("rounds_min", "round_min"), &["did you mean rounds_min?"]);
    refused(&TINY.replace("rounds_min = 6", "rounds_min = 7"), &["needs 1 <= rounds_min <= rounds_max"]);
}

#[test]
fn an_op_that_is_not_known_is_refused_with_those_that_are() {
    refused(
        &TINY.replace("tile_pack", "tile_pck"),
        &["workload \"pack\": unknown op \"tile_pck\"; known: infer, tile_pack"],
    );
}

#[test]
fn an_impossible_shape_is_refused_with_its_place() {
    let shape = |shape: &str| TINY.replace("[1, 4, 32, 32]", shape);
    refused(&shape("[1, 4, 32]"), &["workload \"pack\": tile_pack: shape [1, 4, 32]", "[B,C,H,W]"]);
    refused(&shape("[1, 4, 0, 32]"), &["every size must be > 0"]);
    refused(
        &shape("[9223372036854775807, 9223372036854775807, 32, 32]"),
        &["workload \"pack\": tile_pack: shape", "at most"],
    );
    refused(
        &TINY.replace("tile_size = 8", "tile_size = 7"),
        &["params.tile_size", "must be divisible by tile_size"],
    );
    refused(&TINY.replace("[0, 5, 9]", "[0, 5, 99]"), &["params.indices", "99 is not in 0..16"]);
}

#[test]
fn a_suite_that_is_not_there_is_told_apart_from_a_wrong_name() {
    let here = Here::new();
    here.run(&["run", "--suite", "nosuch"])
        .refuses(64, &["no suite \"nosuch\"", "built-in suites: cpu", "./nosuch.toml"]);
    here.run(&["run", "--suite", "nosuch.toml"]).refuses(64, &["nosuch.toml: cannot be read: no such file"]);
    here.run(&["run", "--suite", "."]).refuses(64, &["it is a directory; name a file"]);
    here.run(&["run", "--suite", "/dev/null"]).ends(64).notes(&["/dev/null", "the suite has none"]);
}
