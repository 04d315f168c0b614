//! Reports that contradict themselves beyond their numbers, which their reader checks.

use holdpoint_model::Report;
use holdpoint_model::report::{Outcome, RunStatus};

/// Where a report contradicts itself: a wrong answer beside times, a status that does not follow from what is in it.
pub fn contradiction(report: &Report) -> Option<String> {
    for (name, measurement) in &report.benchmarks {
        if let Outcome::Measured(measured) = &measurement.outcome
            && measured.answer.as_ref().is_some_and(|answer| !answer.passed)
        {
            return Some(format!("{name}: its answer is wrong, and there are times of it"));
        }
    }
    if report.benchmarks.is_empty() {
        return Some("it has no workloads".to_owned());
    }
    let (stated, is) = (report.status, RunStatus::from_measurements(report.benchmarks.values()));
    (stated != is)
        .then(|| format!("its status is {}, yet its workloads make it {}", stated.as_str(), is.as_str()))
}
