//! `check`: the answers, times and roofline of single kernels.

use holdpoint_model::check::{CheckedRoofline, Correctness, Performance, config};
use holdpoint_model::roofline::{CeilingUnit, Placed, Placement};
use holdpoint_model::{ExitCode, KernelCheck, Outcome, Report, Roofline, SCHEMA_VERSION, WorkloadSpec};

/// The checks of several kernels, and whether one could not be measured as it should.
#[derive(Debug, Default)]
pub struct KernelChecks {
    pub checks: Vec<KernelCheck>,
    is_broken: bool,
}

impl KernelChecks {
    /// Adds a kernel whose answers are right or wrong, or were not checked, and why.
    pub fn add(
        &mut self,
        spec: &WorkloadSpec,
        correctness: Result<Correctness, String>,
        report: &Report,
        roofline: Option<&Roofline>,
    ) {
        let outcome = report.benchmarks.get(&spec.name).map(|measurement| &measurement.outcome);
        let (measured, reason) = match outcome {
            Some(Outcome::Measured(measured)) => (Some(measured), None),
            Some(Outcome::Skipped { reason }) => (None, Some(reason.clone())),
            Some(Outcome::Failed(failure)) => {
                (None, Some(format!("{}: {}", failure.cause.as_str(), failure.detail)))
            }
            None => (None, Some("not measured".to_owned())),
        };
        let placed = roofline.and_then(|roofline| match roofline.workloads.get(&spec.name) {
            Some(Placement::Placed(placed)) => Some(&**placed),
            _ => None,
        });
        self.is_broken |= matches!(outcome, Some(Outcome::Failed(_))) || placed.is_some_and(is_impossible);
        let is_right = correctness.as_ref().is_ok_and(|correctness| correctness.passed);
        let measured = measured.filter(|_| is_right);
        let kernel = measured.and_then(|measured| measured.kernel.as_ref());
        self.checks.push(KernelCheck {
            schema_version: SCHEMA_VERSION,
            performance: measured.map(|measured| Performance::new(measured)),
            roofline: placed.filter(|_| is_right).map(CheckedRoofline::from),
            config: config(spec),
            kernel_name: kernel.map_or(&spec.op, |kernel| &kernel.kernel_name).clone(),
            timestamp: report.timestamp_utc.clone(),
            reason: correctness.as_ref().err().cloned().or(reason),
            correctness: correctness.ok(),
        });
    }

    /// Wrong answers fail it, and times that cannot be are broken; how fast a kernel is never fails it.
    pub fn exit_code(&self) -> ExitCode {
        let mut answers = self.checks.iter().filter_map(|check| check.correctness.as_ref());
        match (answers.clone().next().is_some(), answers.all(|answers| answers.passed)) {
            (_, false) => ExitCode::Failed,
            (false, true) => ExitCode::Skipped,
            (true, true) if self.is_broken => ExitCode::Broken,
            (true, true) => ExitCode::Ok,
        }
    }
}

/// A rate of twice a measured ceiling is no noise, and no ceiling of ours is that far below what a machine can do.
fn is_impossible(placed: &Placed) -> bool {
    let rate = match placed.ceiling.unit {
        CeilingUnit::Gflops => placed.throughput_gflops,
        CeilingUnit::GbPerS => placed.bandwidth_gb_s,
        CeilingUnit::Ms => None,
    };
    rate.is_some_and(|rate| rate > 2.0 * placed.ceiling.value)
}
