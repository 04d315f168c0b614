//! Text from files on its way to a terminal: whatever a file holds, no command prints what paints, moves the cursor or reorders.

use crate::common::{Here, Ran, data};
use holdpoint_model::limits::is_invisible;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An escape sequence, the same in one C1 character, a bell, a carriage return, and a mark that turns the direction of text.
const POISON: &str = "\u{1b}[31m\u{9b}7m\u{7}\r\u{202e}";

/// Documents, and the commands that print each; `FILE` is the document.
const PRINTED: &[(&str, &[&[&str]])] = &[
    (
        "ab-v1.json",
        &[&["report", "FILE"], &["report", "FILE", "--as", "github"], &["report", "FILE", "--as", "junit"]],
    ),
    ("apex-gpu-report.json", &[&["report", "FILE"], &["compare", "FILE", "--baseline", "FILE"]]),
    (
        "attestation-v1.json",
        &[&["attest", "show", "FILE"], &["attest", "verify", "FILE", "--artifacts", "."]],
    ),
    ("baseline-v1.json", &[&["baseline", "show", "FILE"], &["compare", "report.json", "--baseline", "FILE"]]),
    ("calibration-v1.json", &[&["report", "FILE"]]),
    (
        "comparison-v1.json",
        &[&["report", "FILE"], &["report", "FILE", "--as", "github"], &["report", "FILE", "--as", "sarif"]],
    ),
    ("dent-result.json", &[&["report", "FILE"], &["compare", "FILE", "--baseline", "FILE"]]),
    ("envelope-v1.json", &[&["attest", "show", "FILE"], &["attest", "verify", "FILE", "--artifacts", "."]]),
    ("profile-v1.json", &[&["profile", "--from", "FILE"]]),
    ("replay-v1.json", &[&["replay", "verify", "FILE"], &["replay", "verify", "FILE", "--suite", "cpu-ops"]]),
    (
        "report-outcomes.json",
        &[&["report", "FILE"], &["roofline", "FILE"], &["compare", "FILE", "--baseline", "report.json"]],
    ),
    ("report-v1.json", &[&["report", "FILE"], &["report", "FILE", "--as", "apex-gpu"]]),
    ("trend-v1.json", &[&["trend", "show", "FILE"], &["trend", "append", "FILE"]]),
];

#[track_caller]
fn is_harmless(ran: &Ran, arguments: &[&str], what: &str) {
    let is_bad = |c: &char| (c.is_control() && !matches!(c, '\n' | '\t')) || is_invisible(*c);
    for text in [&ran.stdout, &ran.stderr] {
        assert_eq!(text.chars().find(is_bad), None, "{arguments:?}, {what}: {ran:#?}");
    }
}

/// Every key that has a string behind it.
fn keys_of(value: &Value, keys: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            keys.extend(map.iter().filter(|(_, value)| has_text(value)).map(|(key, _)| key.clone()));
            map.values().for_each(|value| keys_of(value, keys));
        }
        Value::Array(values) => values.iter().for_each(|value| keys_of(value, keys)),
        _ => {}
    }
}

fn has_text(value: &Value) -> bool {
    value.is_string() || value.as_array().is_some_and(|values| values.iter().any(Value::is_string))
}

/// Poisons the strings behind a key, or behind every one.
fn poison(value: &mut Value, key: Option<&str>, is_here: bool) {
    match value {
        Value::String(text) if is_here => text.push_str(POISON),
        Value::Object(map) => {
            map.iter_mut().for_each(|(name, value)| poison(value, key, key.is_none_or(|key| key == name)));
        }
        Value::Array(values) => values.iter_mut().for_each(|value| poison(value, key, is_here)),
        _ => {}
    }
}

/// Poisons names: of workloads, metrics and the like, which are keys.
fn poison_names(value: &mut Value) {
    let Value::Object(map) = value else { return };
    for (name, inner) in map.iter_mut() {
        if let (Value::Object(named), true) = (&mut *inner, NAMED.contains(&name.as_str())) {
            let poisoned: Map<String, Value> =
                std::mem::take(named).into_iter().map(|(name, value)| (name + POISON, value)).collect();
            *named = poisoned;
        }
        poison_names(inner);
    }
}

const NAMED: &[&str] = &[
    "workloads",
    "benchmarks",
    "metrics",
    "profiles",
    "artifact_hashes",
    "artifact_sha256",
    "environment_lock",
];

#[test]
fn no_document_paints_on_the_terminal() {
    let here = Here::new();
    here.write("report.json", &std::fs::read_to_string(data("report-v1.json")).unwrap());
    let mut shown_count = 0;
    for (name, commands) in PRINTED {
        let sample: Value = serde_json::from_str(&std::fs::read_to_string(data(name)).unwrap()).unwrap();
        let mut keys = BTreeSet::new();
        keys_of(&sample, &mut keys);
        let mut variants: Vec<(String, Value)> = Vec::new();
        for key in keys.iter().map(|key| Some(key.as_str())).chain([None]) {
            let mut variant = sample.clone();
            poison(&mut variant, key, false);
            variants.push((format!("{name}, {}", key.unwrap_or("all")), variant));
        }
        let mut named = sample.clone();
        poison_names(&mut named);
        variants.push((format!("{name}, names"), named));
        for (what, variant) in &variants {
            here.write("poisoned.json", &variant.to_string());
            for command in *commands {
                let mut arguments: Vec<&str> = command
                    .iter()
                    .map(|word| if *word == "FILE" { "poisoned.json" } else { *word })
                    .collect();
                let ran = here.run(&arguments);
                is_harmless(&ran, &arguments, what);
                shown_count += usize::from(ran.stdout.contains("\\u{1b}") || ran.stderr.contains("\\u{1b}"));
                if what.ends_with("names") || what.ends_with("reason") {
                    arguments.extend(["--format", "json"]);
                    is_harmless(&here.run(&arguments), &arguments, what);
                }
            }
        }
    }
    assert!(shown_count > 50, "the poison was shown in only {shown_count} cases");
}

#[test]
fn a_saved_case_and_a_manifest_cannot_paint_either() {
    let here = Here::new();
    here.run(&["replay", "record", "--suite", "suite.toml", "--output", "replay.json"]).ends(0);
    let manifest = here.json("replay.json");
    let mut keys = BTreeSet::new();
    keys_of(&manifest, &mut keys);
    for key in &keys {
        let mut variant = manifest.clone();
        poison(&mut variant, Some(key), false);
        here.write("replay.json", &variant.to_string());
        let arguments = ["replay", "verify", "replay.json"];
        is_harmless(&here.run(&arguments), &arguments, key);
    }
    // The suite's name is in no hash, and is told as it is typed.
    let mut named = manifest.clone();
    here.write(
        "own\u{1b}[31m.toml",
        "schema_version = 1\nname = \"own\"\n[workers.w\u{9b}]\ncommand = [\"true\"]\n",
    );
    named["suite"] = "./own\u{1b}[31m.toml".into();
    here.write("replay.json", &named.to_string());
    let arguments = ["replay", "verify", "replay.json"];
    is_harmless(here.run(&arguments).ends(64), &arguments, "suite");
    let case = serde_json::json!({
        "schema_version": 1, "suite": format!("cpu{POISON}"), "worker": format!("w{POISON}"),
        "finding": {"kind": "wrong_answer", "detail": POISON},
        "case": {"op": format!("tile_pack{POISON}"), "shape": [1], "dtype": "f32", "seed": 1, "values": "normal"},
    });
    here.write("case.json", &case.to_string());
    let arguments = ["fuzz", "replay", "case.json"];
    is_harmless(here.run(&arguments).ends(64), &arguments, "case");
}

#[test]
fn a_file_name_cannot_paint_or_add_a_line() {
    let here = Here::new();
    let name = "gone\u{1b}[31m\nholdpoint: pass.json";
    for arguments in [&["report", name][..], &["baseline", "show", name], &["run", "--suite", name]] {
        let ran = here.run(arguments);
        is_harmless(&ran, arguments, "name");
        ran.refuses(64, &["gone\\u{1b}[31m holdpoint: pass.json"]);
    }
}
