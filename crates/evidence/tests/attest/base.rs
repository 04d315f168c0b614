//! Comparisons that show nothing about a release, because of what they compare it with.

use super::edited::side_by_side;
use super::{BASE, COMMIT, attested, baseline, complete, gate, judged, problems, report, write};
use holdpoint_model::attest::{Compared, GateStatus};
use holdpoint_model::{Attestation, Revision};
use serde_json::{Value, json};

const GATE: &str = "cpu_perf_regression";

fn at(commit: &str, dirty: bool) -> Value {
    json!({"commit": commit, "dirty": dirty})
}

fn compared(attestation: &Attestation) -> Compared {
    let gate = attestation.gates.iter().find(|gate| gate.key == GATE).unwrap();
    gate.inputs[0].compared.clone().unwrap()
}

/// How the gate stands where a comparison with a baseline is there, and nothing else.
fn with_baseline(edit: impl Fn(&mut Value)) -> (GateStatus, String) {
    let dir = complete();
    let mut baseline = baseline();
    edit(&mut baseline);
    write(dir.path(), "comparison.json", &judged(&[report([1_200_000; 3])], &baseline));
    gate(&attested(dir.path()), GATE)
}

/// The same of two sides.
fn with_sides(base: Value) -> (GateStatus, String) {
    let dir = complete();
    let mut sides = side_by_side(1.0);
    sides.samples["base"]["revision"] = base;
    sides.judge();
    sides.write(dir.path());
    gate(&attested(dir.path()), GATE)
}

fn assert_pending((status, said): (GateStatus, String), words: &str) {
    assert!(status == GateStatus::Pending && said.contains(words), "{words}: {status:?} {said}");
}

#[test]
fn a_commit_that_is_compared_with_itself_has_passed_no_gate() {
    let words = "base and head are the same commit";
    assert_pending(with_sides(at(COMMIT, false)), words);
    assert_pending(with_baseline(|b| b["runs"][0]["revision"] = at(COMMIT, false)), words);
    let promoted =
        json!({"commit": COMMIT, "by": "ada", "timestamp_utc": "2025-12-01T00:00:00Z", "report_sha256": []});
    assert_pending(with_baseline(|b| b["promoted"] = promoted.clone()), words);
}

#[test]
fn a_base_of_no_commit_of_several_or_with_changes_is_not_decided() {
    assert_pending(with_sides(Value::Null), "the commit of the base is not known");
    assert_pending(with_sides(at(BASE, true)), "the base had uncommitted changes");
    assert_pending(with_baseline(|b| b["runs"] = json!([])), "the commit of the base is not known");
    assert_pending(with_baseline(|b| b["runs"][0]["revision"] = at(BASE, true)), "uncommitted changes");
    let other = json!({"timestamp_utc": "2025-12-01T00:00:00Z", "revision": at(&"c".repeat(40), false)});
    assert_pending(
        with_baseline(|b| b["runs"].as_array_mut().unwrap().push(other.clone())),
        "more than one commit",
    );
}

#[test]
fn a_gate_over_times_names_base_and_head_and_neither_can_be_typed() {
    let dir = complete();
    let revision = |commit: &str| Some(Revision { commit: commit.to_owned(), dirty: false });
    let attestation = attested(dir.path());
    assert_eq!(compared(&attestation), Compared { base: revision(BASE), head: revision(COMMIT) });
    let mut typed = attestation;
    typed.gates[1].inputs[0].compared = Some(Compared { base: revision("other"), head: revision(COMMIT) });
    assert!(problems(typed, dir.path())[0].contains(GATE));
    side_by_side(1.0).write(dir.path());
    assert_eq!(compared(&attested(dir.path())), Compared { base: revision(BASE), head: revision(COMMIT) });
}
