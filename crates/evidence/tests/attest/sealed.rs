//! Seals beside the files: whole, broken, of another commit or key, and not signed.

use super::{COMMIT, complete, gate, missing, problems, seal, seal_all, sealing_key, write};
use ed25519_dalek::SigningKey;
use holdpoint_evidence::seal::{Origin, open_seal, seal_facts, seal_text};
use holdpoint_evidence::{dsse, keys};
use holdpoint_model::attest::GateStatus;
use holdpoint_model::{SealState, document, json};
use std::path::Path;

/// The state of `report.json`, in words.
fn state(dir: &Path, commit: &str, tree: Option<&str>) -> String {
    let facts = seal_facts(dir, "report.json", Origin { commit, tree }).unwrap();
    match facts.as_ref().map(|facts| facts.state()) {
        None => "no seal".to_owned(),
        Some(SealState::Unsealed) => "unsealed".to_owned(),
        Some(SealState::SealedBy(keyid)) => keyid.to_owned(),
        Some(SealState::Broken(problem)) => format!("broken: {problem}"),
    }
}

#[test]
fn a_seal_holds_for_its_files_its_commit_and_its_tree_only() {
    let dir = complete();
    let here = |commit, tree| state(dir.path(), commit, tree);
    assert_eq!(here(COMMIT, None), "no seal");
    seal(dir.path(), "report.json", Some(&sealing_key()));
    let keyid = keys::key_id(&sealing_key().verifying_key());
    assert_eq!((here(COMMIT, None), here(COMMIT, Some("tree"))), (keyid.clone(), keyid));
    assert!(here("another", None).starts_with("broken: it was measured at 0123456789"));
    assert!(here(COMMIT, Some("another")).contains("with tree tree, the commit has tree another"));
    write(dir.path(), "report.json", &super::report([1, 2, 3]));
    assert!(here(COMMIT, None).contains("report.json is not the file that was sealed"));
    std::fs::remove_file(dir.path().join("report.json")).unwrap();
    assert!(here(COMMIT, None).contains("report.json, which was sealed with it, is not there"));
}

#[test]
fn a_seal_cannot_be_made_to_look_signed() {
    let dir = complete();
    let file = dir.path().join("report.seal.json");
    seal(dir.path(), "report.json", None);
    assert_eq!(state(dir.path(), COMMIT, None), "unsealed");
    let (whole, _) = open_seal(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let key = sealing_key();
    let signed = seal_text(whole.clone(), Some(&key)).unwrap();
    let other = SigningKey::from_bytes(&[5; 32]);
    // Its payload alone, with a key in it and no signature.
    let payload = dsse::payload(&document::read_envelope(&signed).unwrap()).unwrap();
    let mut unsigned = document::read_envelope(&signed).unwrap();
    unsigned.signatures.clear();
    let unsigned = json::to_pretty(&unsigned).unwrap();
    // Signed by a key that it does not name, and as an attestation would be.
    let by_other =
        json::to_pretty(&dsse::sign_as(holdpoint_evidence::seal::PAYLOAD_TYPE, &payload, &other)).unwrap();
    let as_statement = json::to_pretty(&dsse::sign(&payload, &key)).unwrap();
    for text in [String::from_utf8(payload).unwrap(), unsigned, by_other, as_statement, "{}".to_owned()] {
        std::fs::write(&file, &text).unwrap();
        assert!(state(dir.path(), COMMIT, None).starts_with("broken: "), "{text}");
    }
    std::fs::write(&file, &signed).unwrap();
    assert_eq!(state(dir.path(), COMMIT, None), keys::key_id(&key.verifying_key()));
}

#[test]
fn strictly_times_are_sealed_by_a_key_that_may() {
    let dir = complete();
    let found = missing(&super::attested(dir.path()));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|problem| problem.contains("is unsealed")), "{found:?}");
    seal(dir.path(), "perf/perf_report.json", None);
    seal(dir.path(), "comparison.json", Some(&SigningKey::from_bytes(&[5; 32])));
    let found = missing(&super::attested(dir.path()));
    assert!(found[0].contains("perf/perf_report.json) is unsealed"), "{found:?}");
    assert!(found[1].contains("--seal-keyid"), "{found:?}");
    seal_all(dir.path());
    let attestation = super::attested(dir.path());
    assert_eq!(missing(&attestation), Vec::<String>::new());
    // A seal is attested with what it seals.
    std::fs::remove_file(dir.path().join("comparison.seal.json")).unwrap();
    assert!(!problems(attestation, dir.path()).is_empty());
}

#[test]
fn a_broken_seal_fails_its_gate() {
    let dir = complete();
    seal_all(dir.path());
    let text = std::fs::read_to_string(dir.path().join("comparison.json")).unwrap();
    std::fs::write(dir.path().join("comparison.json"), format!("{text}\n")).unwrap();
    let (status, evidence) = gate(&super::attested(dir.path()), "cpu_perf_regression");
    assert_eq!(status, GateStatus::Fail);
    assert!(evidence.contains("seal broken: comparison.json is not the file that was sealed"), "{evidence}");
}
