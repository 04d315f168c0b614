//! `ab` as a function: what it leaves when it ends, and when it is called off.

use super::support::{Folder, Interrupter};
use holdpoint_flow::Unwatched;
use holdpoint_flow::ab::sides::CommandPair;
use holdpoint_flow::ab::{self, AbRequest, AbSides};
use holdpoint_flow::request::{Decision, SidesRequest};
use holdpoint_gate::HasExitCode;
use holdpoint_model::{ExitCode, Verdict};

/// The same command on both sides, with so many units.
pub fn request(folder: &Folder, units_max: u32) -> AbRequest {
    let [base, head] = ["true", "true"].map(str::to_owned);
    let decision = Decision { units_max: Some(units_max), seed: Some(1), ..Decision::default() };
    AbRequest {
        sides: AbSides::Commands(CommandPair { base, head, ..CommandPair::default() }),
        how: SidesRequest { decision, ..SidesRequest::default() },
        files: folder.evidence(),
    }
}

#[test]
fn samples_and_judgement_are_documents_and_files() {
    let folder = Folder::new();
    let done = ab::run(&request(&folder, 2), &Unwatched).unwrap();
    let (judgement, sides) = (&done.document.judgement, done.document.sides.as_ref().unwrap());
    assert!(sides.finished);
    assert_eq!(done.end.as_ref().unwrap(), &judgement.exit_code());
    assert_eq!(folder.json("artifacts/ab.json"), serde_json::to_value(sides).unwrap());
    assert_eq!(folder.json("artifacts/comparison.json"), serde_json::to_value(judgement).unwrap());
}

#[test]
fn a_comparison_that_is_called_off_keeps_its_samples_and_decides_nothing() {
    let folder = Folder::new();
    let done = ab::run(&request(&folder, 2), &Interrupter).unwrap();
    assert_eq!(done.document.judgement.verdict, Verdict::Inconclusive);
    assert_eq!(done.end.unwrap(), ExitCode::Inconclusive);
    assert_eq!(folder.json("artifacts/ab.json")["finished"], false);
}

#[test]
fn a_resumed_comparison_with_fewer_units_than_it_has_is_refused_and_kept() {
    let folder = Folder::new();
    let tiny = |units_max, resume| {
        let mut request = request(&folder, units_max);
        request.how.decision.question.tolerance = Some(0.00001);
        request.how.resume = resume;
        request
    };
    ab::run(&tiny(3, false), &Unwatched).unwrap();
    let before = folder.json("artifacts/ab.json");
    let error = ab::run(&tiny(1, true), &Unwatched).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Usage);
    assert!(error.to_string().contains("give --units-max 3"), "{error}");
    assert_eq!(folder.json("artifacts/ab.json"), before);
}
