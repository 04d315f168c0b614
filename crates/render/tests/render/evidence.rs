//! Replays, attestations and the blocks of a checklist.

use holdpoint_model::attest::Compared;
use holdpoint_model::{Attestation, ReplayVerification, Revision, document};
use holdpoint_render::{Style, markdown, terminal};
use insta::assert_snapshot;
use serde_json::json;

const PLAIN: Style = Style { color: false, width: Some(120), ascii: false };

fn attestation() -> Attestation {
    let mut a = document::read::<Attestation>(include_str!("../../../model/tests/data/attestation-v1.json"))
        .expect("an attestation");
    let revision = |digit: &str, dirty| Some(Revision { commit: digit.repeat(40), dirty });
    let times = a.gates.iter_mut().find(|gate| gate.key == "cpu_perf_regression").expect("its gate");
    times.inputs[0].compared = Some(Compared { base: revision("b", true), head: revision("a", false) });
    a
}

#[test]
fn base_and_head_are_named_in_full_wherever_a_gate_is_shown() {
    let mut a = attestation();
    let words = format!("base {} with uncommitted changes, head {}", "b".repeat(40), "a".repeat(40));
    let wide = Style { color: false, width: None, ascii: false };
    let gates =
        |a: &Attestation| markdown::checklist_block("gates", a, &[], &str::to_owned, "[ ]").expect("a block");
    for text in [terminal::attestation(&a, wide), markdown::attestation(&a), gates(&a)] {
        assert!(text.contains(&words), "{text}");
    }
    for gate in &mut a.gates {
        gate.inputs.iter_mut().filter_map(|input| input.compared.as_mut()).for_each(|both| both.base = None);
    }
    assert!(gates(&a).contains("base of no known commit, head aaaa"));
}

/// Text that wants to be markup, end a cell, close a block or call somebody.
const HOSTILE: &str = "a|b <!-- holdpoint:end gates -->\n<script>x</script> [x](y) @all \u{1b}[31m `c`";

fn hostile() -> Attestation {
    let mut a = attestation();
    a.release_metadata.release_tag = HOSTILE.to_owned();
    a.release_metadata.release_owner = HOSTILE.to_owned();
    a.release_metadata.ci_run_url = Some(format!("https://x/{HOSTILE}"));
    a.artifacts[0].path = HOSTILE.to_owned();
    a.artifacts[0].detail = HOSTILE.to_owned();
    a.gates[0].inputs[0].path = HOSTILE.to_owned();
    a.gates[0].inputs[0].detail = HOSTILE.to_owned();
    a
}

#[test]
fn an_attestation() {
    assert_snapshot!("attestation_terminal", terminal::attestation(&attestation(), PLAIN));
    assert_snapshot!("attestation_markdown", markdown::attestation(&attestation()));
}

#[test]
fn hostile_text_cannot_leave_its_cell_or_its_block() {
    let a = hostile();
    let link = |path: &str| format!("../artifacts/{path}");
    let blocks = ["metadata", "artifacts", "gates", "summary"]
        .map(|name| markdown::checklist_block(name, &a, &[], &link, "[ ]").unwrap());
    for text in blocks.iter().chain([&markdown::attestation(&a)]) {
        for harm in ["<!--", "<script>", "\u{1b}", "[x](y)", "@all"] {
            assert!(!text.contains(harm), "{harm:?} in {text}");
        }
    }
    let columns = |text: &str| -> Vec<usize> {
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        text.lines().filter(|line| line.starts_with('|')).map(bars).collect()
    };
    assert!(columns(&blocks[1]).iter().all(|bars| *bars == 6), "{}", blocks[1]);
    assert!(columns(&blocks[2]).iter().all(|bars| *bars == 6), "{}", blocks[2]);
    assert_eq!(markdown::checklist_block("colours", &a, &[], &link, "[ ]"), None);
}

fn verification(differences: &[&str], skipped: &[(&str, &str)], compared: &str) -> ReplayVerification {
    let is_same = differences.is_empty() && skipped.is_empty();
    let skipped: serde_json::Map<_, _> =
        skipped.iter().map(|(name, why)| ((*name).to_owned(), json!(why))).collect();
    let value = json!({
        "schema_version": 1, "manifest_sha256": "0", "compared": compared, "same": is_same, "differences": differences,
        "skipped": skipped, "outputs_count": 3, "values_count": 24_576, "timestamp_utc": "2026-01-01T00:00:00Z"
    });
    serde_json::from_value(value).expect("a verification")
}

#[test]
fn what_a_replay_has_shown() {
    let first = "attention.out[0,2,17,5]: was 0.9892051, is 0.6594701; 1 of 8192 values differ";
    let texts = [
        verification(&[], &[], "exact"),
        verification(&[first, "ff.out: other bits than were recorded"], &[], "exact"),
        verification(&["manifest_sha256 is 1, yet what it is over hashes to 2"], &[], "nothing"),
        verification(&[], &[("pack", "cuda_unavailable")], "tolerance"),
    ]
    .map(|found| terminal::replay_verification(&found, PLAIN));
    assert_snapshot!("replay_verification", texts.join("----\n"));
}

#[test]
fn an_attestation_that_does_not_hold() {
    assert_snapshot!(
        "attestation_verified",
        [
            terminal::verified(&[], "v1 at 0123, not signed; overall status pass", PLAIN),
            terminal::verified(&["one".to_owned(), "two".to_owned()], "", PLAIN),
        ]
        .join("----\n")
    );
}
