//! Paths in a suite are relative to its file, wherever holdpoint is started.

use super::support::{Folder, options};
use holdpoint_flow::options::RunArgs;
use holdpoint_flow::run::{self, Ran};
use holdpoint_flow::{Unwatched, gate};
use holdpoint_model::{ExitCode, Outcome, Report};

const SUITE: &str = r#"
schema_version = 1
name = "beside"

[measure]
rounds_min = 1
rounds_max = 1
round_ms = 0.001
target_width = 1.0
time_budget_ms = 100
warmup_ms_max = 1
timeout_ms = 20000

[[workload]]
name = "argument"
command = ["sh", "beside.sh"]
expect_stdout = "found\n"
"#;

fn measured(folder: &Folder, more: &[&str]) -> Report {
    let flags = ["--suite", &folder.flag("perf/suite.toml"), "--output", &folder.flag("report.json")];
    let done = run::run(&options::<RunArgs>(&[&flags[..], more].concat()), &Unwatched).unwrap();
    match done.document {
        Ran::Once(report) => *report,
        Ran::OnDevices(_) => panic!("no device was named"),
    }
}

#[test]
fn commands_run_in_the_folder_of_the_suite_file() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "echo found");
    let report = measured(&folder, &[]);
    let outcome = &report.benchmarks["argument"].outcome;
    assert!(matches!(outcome, Outcome::Measured(_)), "{outcome:?}");
}

#[test]
fn a_file_that_is_only_in_the_current_folder_is_not_found() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", &SUITE.replace("beside.sh", "Cargo.toml"));
    assert!(std::path::Path::new("Cargo.toml").exists(), "the current folder has one");
    let report = measured(&folder, &[]);
    assert!(matches!(report.benchmarks["argument"].outcome, Outcome::Failed(_)));
}

#[test]
fn a_suite_measures_another_folder_when_told_to() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "exit 1");
    folder.write("change/beside.sh", "echo found");
    let report = measured(&folder, &["--workdir", &folder.flag("change")]);
    let outcome = &report.benchmarks["argument"].outcome;
    assert!(matches!(outcome, Outcome::Measured(_)), "{outcome:?}");
}

#[test]
fn a_gate_reads_the_suite_of_another_folder() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "echo found");
    let (suite, artifacts) = (folder.flag("perf/suite.toml"), folder.flag("artifacts"));
    let baselines = folder.flag("baselines");
    let flags =
        ["--suite", &suite, "--artifacts", &artifacts, "--baseline-dir", &baselines, "--require-baseline"];
    let done = gate::run(&options(&flags), &Unwatched).unwrap();
    assert!(matches!(done.document, gate::Gated::NoBaseline));
    assert_eq!(done.end.unwrap(), ExitCode::Inconclusive);
    assert_eq!(done.notes, ["inconclusive: no baseline for suite \"beside\" on this machine"]);
}
