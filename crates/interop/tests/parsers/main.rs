//! Every parser against input that nobody meant: the stable twin of `fuzz/`.

#![allow(clippy::unwrap_used)]

mod bodies;
mod documents;

use bodies::Body;
use documents::{Document, documents};
use holdpoint_model::{Report, document};
use proptest::prelude::*;
use proptest::sample::Index;

const BODIES: [Body; 18] = [
    bodies::suite_toml,
    bodies::waivers_toml,
    bodies::release_policy_toml,
    bodies::notify_toml,
    bodies::report_json,
    bodies::baseline_json,
    bodies::comparison_json,
    bodies::ab_json,
    bodies::calibration_json,
    bodies::trend_json,
    bodies::profile_json,
    bodies::replay_json,
    bodies::attestation_json,
    bodies::envelope_json,
    bodies::ncu_csv,
    bodies::sanitizer_log,
    bodies::protocol_request,
    bodies::protocol_response,
];

fn all(data: &[u8]) {
    BODIES.iter().for_each(|body| body(data));
}

#[test]
fn every_document_is_accepted_by_its_parser_and_survives() {
    for document in documents() {
        (document.accept)(&document.text).unwrap_or_else(|error| panic!("{}: {error}", document.name));
        all(document.text.as_bytes());
    }
}

#[test]
fn every_outcome_survives_the_reports_file_in_any_order_of_keys() {
    let document = documents().into_iter().find(|document| document.name == "report-outcomes.json").unwrap();
    let report = document::read::<Report>(&document.text).unwrap();
    let words = ["measured", "skipped", "failed"].map(|word| format!("\"status\": \"{word}\""));
    assert!(words.iter().all(|word| document.text.contains(word)));
    // A map of values is sorted by key, which puts `status` behind what depends on it.
    let sorted: serde_json::Value = serde_json::from_str(&document.text).unwrap();
    let sorted = serde_json::to_string(&sorted).unwrap();
    assert_eq!(document::read::<Report>(&sorted).unwrap(), report);
    let written = holdpoint_model::json::to_pretty(&report).unwrap();
    assert_eq!(written, document.text, "the file is what would be written today");
}

#[test]
fn every_prefix_of_a_document_is_refused_in_one_line() {
    for Document { name, text, accept, .. } in documents().iter().filter(|document| document.is_closed) {
        let whole = text.trim_end().len();
        for end in (0..whole).filter(|end| text.is_char_boundary(*end)) {
            let error = accept(&text[..end]).expect_err(name);
            assert!(!error.contains('\n') && !error.is_empty(), "{name} up to {end}: {error:?}");
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_does_not_exhaust_the_stack() {
    const DEPTH: usize = 10_000;
    let head = "schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"w\"\nop = \"x\"\n";
    let repeated = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(DEPTH), close.repeat(DEPTH))
    };
    for text in [
        repeated("[", "", "]"),
        repeated("[", "", ""),
        repeated("{\"a\":", "1", "}"),
        repeated("{\"metrics\":", "1", "}"),
        format!("{{\"metrics\": {}}}", repeated("{\"a\":", "1", "}")),
        format!("{{\"schema_version\": {}}}", repeated("[", "", "]")),
        format!("{{\"benchmarks\": {}}}", repeated("{\"a\":", "1", "}")),
        format!("{{\"performance\": {{\"mean_time_ms\": 1.0}}, \"x\": {}}}", repeated("[", "", "]")),
        format!(
            "[{{\"BenchmarkTools\": \"1\", \"Julia\": \"1\"}}, {}]",
            repeated("[\"BenchmarkGroup\", ", "1", "]")
        ),
        format!(
            "{{\"result_columns\": [\"result\"], \"results\": {{\"a.time_b\": {}}}}}",
            repeated("[", "", "]")
        ),
        format!("[{{\"name\": \"a\", \"unit\": \"ms\", \"value\": {}}}]", repeated("[", "", "]")),
        format!("window.BENCHMARK_DATA = {}", repeated("{\"entries\":", "1", "}")),
        format!("name,value\n{}", repeated("\"", "1", ",")),
        format!("{{\"type\": \"hello\", \"protocol\": {}}}", repeated("[", "", "]")),
        format!("{head}params = {}", repeated("{ a = ", "1", " }")),
        format!("{head}params = {{ a = {} }}", repeated("[", "", "]")),
        format!("{head}params.{} = 1", vec!["a"; DEPTH].join(".")),
        format!("{head}[workload.params.{}]\nx = 1", vec!["a"; DEPTH].join(".")),
    ] {
        all(text.as_bytes());
    }
}

#[test]
fn numbers_beyond_all_bounds_are_refused_or_kept() {
    let huge =
        ["1e999", "-1e999", "1e308", "5e-324", "18446744073709551616", "-9223372036854775809", "1e-999"];
    let long = format!("0.{}1", "0".repeat(100_000));
    for number in huge.into_iter().chain([long.as_str(), &"9".repeat(100_000)]) {
        for document in documents() {
            let places: Vec<(usize, &str)> = document.text.match_indices(": ").collect();
            for (at, _) in places.iter().step_by(1 + places.len() / 12) {
                let rest =
                    document.text[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                let changed = format!("{}: {number}{rest}", &document.text[..*at]);
                (document.body)(changed.as_bytes());
            }
        }
    }
}

/// One change to a document.
#[derive(Clone, Debug)]
enum Change {
    Flip(Index, u8),
    Cut(Index, Index),
    Repeat(Index, Index),
    Insert(Index, &'static str),
    End(Index),
}

const PIECES: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ",",
    ":",
    "\\",
    "null",
    "true",
    "-",
    "1e400",
    "\\u0000",
    "\u{1b}[31m",
    "\n",
    "=",
];

fn change() -> impl Strategy<Value = Change> {
    let piece = prop::sample::select(PIECES.as_slice());
    prop_oneof![
        3 => (any::<Index>(), 1_u8..=255).prop_map(|(at, bits)| Change::Flip(at, bits)),
        1 => any::<(Index, Index)>().prop_map(|(a, b)| Change::Cut(a, b)),
        2 => any::<(Index, Index)>().prop_map(|(a, b)| Change::Repeat(a, b)),
        3 => (any::<Index>(), piece).prop_map(|(at, piece)| Change::Insert(at, piece)),
        1 => any::<Index>().prop_map(Change::End),
    ]
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let range = |a: &Index, b: &Index| {
        let (a, b) = (a.index(length), b.index(length));
        a.min(b)..a.max(b)
    };
    match change {
        Change::Flip(at, bits) => bytes[at.index(length)] ^= bits,
        Change::Cut(a, b) => drop(bytes.drain(range(a, b))),
        // A repeated line is a repeated key.
        Change::Repeat(a, b) => {
            let lines: Vec<usize> = (0..length).filter(|at| bytes[*at] == b'\n').collect();
            let place =
                |at: &Index| if lines.is_empty() { at.index(length) } else { lines[at.index(lines.len())] };
            let (start, end) = (place(a).min(place(b)), place(a).max(place(b)));
            let piece = bytes[start..end.min(start + 2_000)].to_vec();
            bytes.splice(end..end, piece);
        }
        Change::Insert(at, piece) => drop(bytes.splice(at.index(length)..at.index(length), piece.bytes())),
        Change::End(at) => bytes.truncate(at.index(length)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_document_is_refused_in_one_line_or_survives(
        which in any::<Index>(), changes in prop::collection::vec(change(), 1..4),
    ) {
        let documents = documents();
        let document = &documents[which.index(documents.len())];
        let mut bytes = document.text.clone().into_bytes();
        changes.iter().for_each(|change| apply(&mut bytes, change));
        (document.body)(&bytes);
    }

    #[test]
    fn bytes_of_any_kind_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        all(&bytes);
        all(String::from_utf8_lossy(&bytes).as_bytes());
    }

    #[test]
    fn tokens_in_any_order_do_not_panic(
        tokens in prop::collection::vec(prop::sample::select(TOKENS.as_slice()), 0..40),
    ) {
        all(tokens.concat().as_bytes());
    }
}

const TOKENS: [&str; 42] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "=",
    "\n",
    "1",
    "1.5",
    "-1",
    "null",
    "true",
    "\"a\"",
    "\"a\\nb\"",
    "\"metrics\"",
    "\"schema_version\"",
    "\"benchmarks\"",
    "\"toolchain\"",
    "\"performance\"",
    "\"mean_time_ms\"",
    "\"results\"",
    "\"configs\"",
    "\"overall_status\"",
    "\"value_ms\"",
    "\"type\"",
    "\"hello\"",
    "\"samples\"",
    "[[workload]]",
    "name",
    "[workers.\"a\\nb\"]",
    "schema_version = 1\nname = \"a\"\n",
    "op = \"x\"\n",
    "{\"schema_version\": 1,",
    "name,value,unit\n",
    "latency_ms,",
    "NaN",
    "\"raw_times\"",
    "\"result_columns\"",
    "\"request_throughput\"",
    "window.BENCHMARK_DATA =",
    "\u{feff}",
];

#[test]
fn an_envelope_of_other_tools_is_read() {
    let bare = r#"{"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": [{"sig": "AA=="}]}"#;
    let envelope = document::read_envelope(bare).unwrap();
    assert_eq!(envelope.signatures[0].keyid, "");
    let more = bare
        .replace("\"sig\"", "\"x\": [1], \"cert\": \"…\", \"sig\"")
        .replace("\"payload\"", "\"y\": {}, \"payload\"");
    assert_eq!(document::read_envelope(&more).unwrap(), envelope);
    let bundle = format!(
        r#"{{"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json", "dsseEnvelope": {bare}}}"#
    );
    assert_eq!(document::read_envelope(&bundle).unwrap(), envelope);
    assert!(document::read_envelope(r#"{"dsseEnvelope": {"payload": "e30="}}"#).is_err());
}
