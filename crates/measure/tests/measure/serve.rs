//! The serving end of the protocol against whoever writes to it.

use crate::builtin::{ask, ask_lines, run};
use holdpoint_model::limits::LINE_BYTES_MAX;
use holdpoint_model::protocol::{PROTOCOL_VERSION, Request, Response};
use proptest::prelude::*;

#[track_caller]
fn is_error(answer: &Response, words: &str) {
    let Response::Error { message, .. } = answer else { panic!("{answer:?} should be an error") };
    assert!(message.contains(words), "{message:?} should contain {words:?}");
}

#[test]
fn the_conversation_goes_on_after_garbage() {
    let answers = ask_lines(b"hello?\n\xff\xfe\n\n{\"type\":\"list\",\"more\":1}\n{\"type\":\"list\"}");
    assert_eq!(answers.len(), 5);
    is_error(&answers[0], "not a request of the protocol");
    is_error(&answers[1], "not UTF-8");
    is_error(&answers[2], "not a request of the protocol");
    is_error(&answers[3], "not a request of the protocol");
    assert!(matches!(&answers[4], Response::Workloads { workloads } if workloads.len() == 2));
}

#[test]
fn a_line_over_the_limit_is_told_and_ends_the_conversation() {
    let mut lines = vec![b'x'; LINE_BYTES_MAX + 1];
    lines.extend(b"\n{\"type\":\"list\"}\n");
    let answers = ask_lines(&lines);
    assert_eq!(answers.len(), 1);
    is_error(&answers[0], "line over the limit");
}

#[test]
fn another_protocol_version_is_refused_by_name() {
    let answers = ask(&[Request::Hello { protocol: 9 }, Request::Hello { protocol: PROTOCOL_VERSION }]);
    is_error(&answers[0], "protocol 9 is not spoken here; this worker speaks 2");
    assert!(
        matches!(&answers[1], Response::Hello(info) if info.clock_resolution_ns > 0 && info.timer == "host_monotonic")
    );
}

#[test]
fn an_unknown_workload_is_an_error_of_every_request() {
    for request in [
        Request::Prepare { workload: "x\u{1b}".to_owned(), seed: 0 },
        run("x", 1, 1),
        Request::Verify { workload: "x".to_owned() },
        // Known, and somebody else's.
        Request::Prepare { workload: "true".to_owned(), seed: 0 },
    ] {
        is_error(&ask(&[request])[0], "is not known here, or not prepared");
    }
}

#[test]
fn nonsense_counts_are_refused_before_anything_runs() {
    let prepare = Request::Prepare { workload: "pack".to_owned(), seed: 0 };
    for (samples_count, calls_per_sample) in
        [(0, 1), (1_000_000_000, 1), (1, 0), (1, u64::MAX), (u64::MAX, u64::MAX)]
    {
        let run = run("pack", samples_count, calls_per_sample);
        is_error(&ask(&[prepare.clone(), run])[1], "out of range");
    }
}

/// Text of any kind, and requests that are almost right; none of them `bye`, none that runs for long.
fn lines() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let bytes = prop::collection::vec(any::<u8>().prop_filter("no line end", |b| *b != b'\n'), 0..60);
    let text = "[^\n]{0,60}".prop_map(String::into_bytes);
    let request = (
        prop::sample::select(vec!["hello", "list", "prepare", "run", "verify", "release", "nonsense"]),
        prop::sample::select(vec!["pack", "gate", "true", "", "\\u0000"]),
        prop::sample::select(vec!["0", "1", "2", "-1", "1e9", "null", "18446744073709551616"]),
        prop::sample::select(vec!["protocol", "seed", "samples_count", "calls_per_sample"]),
    )
        .prop_map(|(kind, workload, number, key)| {
            let run = r#""seed":1,"samples_count":1,"calls_per_sample":1"#;
            match kind {
                "hello" => format!(r#"{{"type":"{kind}","{key}":{number}}}"#),
                "list" => format!(r#"{{"type":"{kind}"}}"#),
                "prepare" => format!(r#"{{"type":"{kind}","workload":"{workload}","seed":{number}}}"#),
                "run" => format!(r#"{{"type":"{kind}","workload":"{workload}",{run}}}"#),
                _ => format!(r#"{{"type":"{kind}","workload":"{workload}"}}"#),
            }
            .into_bytes()
        });
    prop::collection::vec(prop_oneof![bytes, text, request.clone(), request], 0..12)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn every_line_gets_exactly_one_answer(lines in lines()) {
        let mut input = lines.join(&b'\n');
        if !lines.is_empty() {
            input.push(b'\n');
        }
        prop_assert_eq!(ask_lines(&input).len(), lines.len());
    }
}
