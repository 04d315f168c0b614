//! `ab` as a function: what it leaves when it ends, and when it is called off.

use super::support::{Folder, Interrupter, options};
use holdpoint_flow::options::AbArgs;
use holdpoint_flow::{Unwatched, ab};
use holdpoint_gate::HasExitCode;
use holdpoint_model::{ExitCode, Verdict};

fn args(folder: &Folder, more: &[&str]) -> AbArgs {
    let artifacts = folder.flag("artifacts");
    let given = ["--base", "true", "--head", "true", "--artifacts", &artifacts, "--seed", "1"];
    options(&[&given[..], more].concat())
}

#[test]
fn samples_and_judgement_are_documents_and_files() {
    let folder = Folder::new();
    let done = ab::run(&args(&folder, &["--units-max", "2"]), &Unwatched).unwrap();
    let (judgement, sides) = (&done.document.judgement, done.document.sides.as_ref().unwrap());
    assert!(sides.finished);
    assert_eq!(done.end.as_ref().unwrap(), &judgement.exit_code());
    assert_eq!(folder.json("artifacts/ab.json"), serde_json::to_value(sides).unwrap());
    assert_eq!(folder.json("artifacts/comparison.json"), serde_json::to_value(judgement).unwrap());
}

#[test]
fn a_comparison_that_is_called_off_keeps_its_samples_and_decides_nothing() {
    let folder = Folder::new();
    let done = ab::run(&args(&folder, &["--units-max", "2"]), &Interrupter).unwrap();
    assert_eq!(done.document.judgement.verdict, Verdict::Inconclusive);
    assert_eq!(done.end.unwrap(), ExitCode::Inconclusive);
    assert_eq!(folder.json("artifacts/ab.json")["finished"], false);
}

#[test]
fn a_resumed_comparison_with_fewer_units_than_it_has_is_refused_and_kept() {
    let folder = Folder::new();
    let tiny = ["--tolerance", "0.001%", "--units-max"];
    ab::run(&args(&folder, &[&tiny[..], &["3"]].concat()), &Unwatched).unwrap();
    let before = folder.json("artifacts/ab.json");
    let fewer = args(&folder, &[&tiny[..], &["1", "--resume"]].concat());
    let error = ab::run(&fewer, &Unwatched).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Usage);
    assert!(error.to_string().contains("give --units-max 3"), "{error}");
    assert_eq!(folder.json("artifacts/ab.json"), before);
}
