//! `compare` as a function: the same samples, another question.

use super::support::{Folder, options};
use holdpoint_flow::{Unwatched, ab, compare};
use holdpoint_gate::HasExitCode;

#[test]
fn samples_of_two_sides_are_judged_again_by_another_tolerance() {
    let folder = Folder::new();
    let artifacts = folder.flag("artifacts");
    let flags =
        ["--base", "true", "--head", "true", "--artifacts", &artifacts, "--units-max", "2", "--seed", "1"];
    ab::run(&options(&flags), &Unwatched).unwrap();
    let samples = folder.flag("artifacts/ab.json");
    let done = compare::run(&options(&[&samples, "--tolerance", "400%"])).unwrap();
    let judgement = &done.document.judgement;
    assert_eq!(judgement.basis.as_ref().unwrap().plan().unwrap().tolerance, 4.0);
    assert_eq!(done.end.unwrap(), judgement.exit_code());
}

#[test]
fn a_report_needs_a_baseline() {
    let folder = Folder::new();
    folder.write("report.json", "{}");
    let error = compare::run(&options(&[&folder.flag("report.json")])).unwrap_err();
    assert!(error.to_string().contains("--baseline FILE"), "{error}");
}
