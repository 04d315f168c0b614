//! Paths in a suite are relative to its file, wherever holdpoint is started.

use super::support::Folder;
use holdpoint_flow::Unwatched;
use holdpoint_flow::gate::{self, BaselineQuestion, GateQuestion, GateRequest, GateSides};
use holdpoint_flow::request::{HistoryChoice, SuiteChoice};
use holdpoint_flow::run::{self, RunReports, RunRequest, RunSubject};
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

fn measured(folder: &Folder, workdir: Option<&str>) -> Report {
    let workdir = workdir.map(|dir| folder.path(dir));
    let request = RunRequest {
        subject: RunSubject::Suite(SuiteChoice { workdir, ..folder.suite("perf/suite.toml") }),
        output: folder.path("report.json"),
        history: HistoryChoice::Suite,
        seal_key: None,
        parent: None,
    };
    let done = run::run(&request, &Unwatched).unwrap();
    match done.document {
        RunReports::Once(report) => *report,
        RunReports::OnDevices(_) => panic!("no device was named"),
    }
}

#[test]
fn commands_run_in_the_folder_of_the_suite_file() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "echo found");
    let report = measured(&folder, None);
    let outcome = &report.benchmarks["argument"].outcome;
    assert!(matches!(outcome, Outcome::Measured(_)), "{outcome:?}");
}

#[test]
fn a_file_that_is_only_in_the_current_folder_is_not_found() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", &SUITE.replace("beside.sh", "Cargo.toml"));
    assert!(std::path::Path::new("Cargo.toml").exists(), "the current folder has one");
    let report = measured(&folder, None);
    assert!(matches!(report.benchmarks["argument"].outcome, Outcome::Failed(_)));
}

#[test]
fn a_suite_measures_another_folder_when_told_to() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "exit 1");
    folder.write("change/beside.sh", "echo found");
    let report = measured(&folder, Some("change"));
    let outcome = &report.benchmarks["argument"].outcome;
    assert!(matches!(outcome, Outcome::Measured(_)), "{outcome:?}");
}

#[test]
fn a_gate_reads_the_suite_of_another_folder() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", SUITE);
    folder.write("perf/beside.sh", "echo found");
    let question =
        BaselineQuestion { require_baseline: true, ..BaselineQuestion::new(folder.path("baselines")) };
    let request = GateRequest {
        suite: folder.suite("perf/suite.toml"),
        question: GateQuestion::Baseline(question),
        files: folder.evidence(),
    };
    let done = gate::run(&request, &Unwatched).unwrap();
    assert!(matches!(done.document, gate::GateResult::NoBaseline));
    assert_eq!(done.end.unwrap(), ExitCode::Inconclusive);
    let [note] = &done.notes[..] else { panic!("{:?}", done.notes) };
    for part in [
        "inconclusive: no baseline for suite \"beside\" on this machine",
        "holdpoint baseline record --suite ",
    ] {
        assert!(note.contains(part), "{note}");
    }
}

#[test]
fn a_baseline_that_the_suite_names_is_never_recorded_by_a_gate() {
    let folder = Folder::new();
    folder.write("perf/suite.toml", &format!("{SUITE}[gate]\nbaseline = \"b.json\"\n"));
    folder.write("perf/beside.sh", "echo found");
    let sides = GateSides::default();
    let request = GateRequest {
        suite: folder.suite("perf/suite.toml"),
        question: GateQuestion::Default { sides, sides_flag: None },
        files: folder.evidence(),
    };
    let refused = gate::run(&request, &Unwatched).unwrap_err().to_string();
    let file = folder.path("perf/b.json");
    let remedy = format!("baseline record --suite {} --baseline ", folder.path("perf/suite.toml").display());
    for part in ["perf/b.json", "names it as [gate] baseline", &remedy] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!file.exists(), "the change under test may have removed it");
}
