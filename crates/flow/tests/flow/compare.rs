//! `compare` as a function: the same samples, another question.

use super::sides;
use super::support::Folder;
use holdpoint_flow::compare::{self, CompareRequest};
use holdpoint_flow::request::{PolicyChoice, Question};
use holdpoint_flow::{Unwatched, ab};
use holdpoint_gate::HasExitCode;

fn request(folder: &Folder, name: &str) -> CompareRequest {
    CompareRequest {
        report: folder.path(name),
        baseline: None,
        policy: PolicyChoice::default(),
        question: Question::default(),
        waivers: None,
        summary: None,
        trend_output: None,
    }
}

#[test]
fn samples_of_two_sides_are_judged_again_by_another_tolerance() {
    let folder = Folder::new();
    ab::run(&sides::request(&folder, 2), &Unwatched).unwrap();
    let question = Question { tolerance: Some(4.0), ..Question::default() };
    let again = CompareRequest { question, ..request(&folder, "artifacts/ab.json") };
    let done = compare::run(&again).unwrap();
    let judgement = &done.document.judgement;
    assert_eq!(judgement.basis.as_ref().unwrap().plan().unwrap().tolerance, 4.0);
    assert_eq!(done.end.unwrap(), judgement.exit_code());
}

#[test]
fn a_report_needs_a_baseline() {
    let folder = Folder::new();
    folder.write("report.json", "{}");
    let error = compare::run(&request(&folder, "report.json")).unwrap_err();
    assert!(error.to_string().contains("--baseline FILE"), "{error}");
}
