//! Workloads that a suite leaves to its workers to list.

use crate::common::{PLAN, measure, suite, worker};
use holdpoint_measure::ReadySuite;
use holdpoint_model::Suite;

fn names(suite: &Suite) -> Vec<&str> {
    suite.workloads.iter().map(|workload| workload.name.as_str()).collect()
}

fn asking_for_all(script: &str, rest: &str) -> (Suite, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let command = worker(script, &dir.path().join("pids"));
    (suite(PLAN, &format!("[workers.mine]\n{command}all_workloads = true\n{rest}")), dir)
}

#[test]
fn all_workloads_that_a_worker_lists_are_measured() {
    let (suite, _dir) = asking_for_all("", "");
    let suite = ReadySuite::list(suite).unwrap();
    assert_eq!(names(&suite), ["bad", "other", "good"]);
    assert!(!suite.has_listed_workloads());
    let report = measure(&suite);
    assert_eq!(report.benchmarks.len(), 3);
    assert_eq!(report.status.as_str(), "ok");
}

#[test]
fn a_workload_that_the_suite_describes_itself_stays_as_it_is() {
    let own =
        "[[workload]]\nname = \"other\"\nworker = \"mine\"\nop = \"copy\"\nshape = [2, 3]\niterations = 7\n";
    let (suite, _dir) = asking_for_all("", own);
    let suite = ReadySuite::list(suite).unwrap();
    assert_eq!(names(&suite), ["other", "bad", "good"]);
    assert_eq!(suite.workloads[0].iterations, Some(7));
}

#[test]
fn one_of_them_can_be_asked_for() {
    let (suite, _dir) = asking_for_all("", "");
    let suite = ReadySuite::list(Suite { only: Some("good".to_owned()), ..suite }).unwrap();
    assert_eq!(names(&suite), ["good"]);
}

#[test]
fn a_worker_without_workloads_is_an_error_that_names_it() {
    let (suite, _dir) = asking_for_all("ok_list() { say '{\"type\":\"workloads\",\"workloads\":[]}'; }", "");
    let error = ReadySuite::list(suite).unwrap_err().to_string();
    assert!(error.contains("worker \"mine\""), "{error}");
    assert!(error.contains("the suite has none"), "{error}");
}

#[test]
fn a_tolerance_for_a_listed_workload_is_accepted_and_a_wrong_name_is_not() {
    let gate = |name: &str| asking_for_all("", &format!("[gate.workloads.{name}]\ntolerance = \"5%\"\n"));
    let (suite, _dir) = gate("good");
    let suite = ReadySuite::list(suite).unwrap();
    assert!(Suite::check_gated(&[&suite]).is_ok());
    let (suite, _dir) = gate("goood");
    let error = Suite::check_gated(&[&ReadySuite::list(suite).unwrap()]).unwrap_err().to_string();
    assert!(error.contains("\"goood\""), "{error}");
}
