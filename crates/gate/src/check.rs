//! `check`: the answers, times and roofline of single kernels.

use holdpoint_model::check::{CheckedRoofline, Correctness, Performance, config};
use holdpoint_model::report::Measured;
use holdpoint_model::roofline::{CeilingUnit, Placed, Placement};
use holdpoint_model::suite::{Identity, TIMER_HOST};
use holdpoint_model::{ExitCode, KernelCheck, Outcome, Report, Roofline, SCHEMA_VERSION, WorkloadSpec};

/// The checks of several kernels.
#[derive(Debug, Default)]
pub struct KernelChecks {
    pub checks: Vec<KernelCheck>,
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
        let checked_ms = correctness.as_ref().ok().and_then(|correctness| correctness.call_ms);
        let doubt = placed
            .and_then(why_impossible)
            .or_else(|| why_other_calls(measured?, checked_ms?, &report.benchmarks[&spec.name].identity));
        let broken = matches!(outcome, Some(Outcome::Failed(_))) || doubt.is_some();
        let is_right = correctness.as_ref().is_ok_and(|correctness| correctness.passed);
        let measured = measured.filter(|_| is_right && !broken);
        let kernel = measured.and_then(|measured| measured.kernel.as_ref());
        self.checks.push(KernelCheck {
            schema_version: SCHEMA_VERSION,
            performance: measured.map(|measured| Performance::new(measured)),
            roofline: placed.filter(|_| is_right && !broken).map(CheckedRoofline::from),
            config: config(spec),
            kernel_name: kernel.map_or(&spec.op, |kernel| &kernel.kernel_name).clone(),
            timestamp: report.timestamp_utc.clone(),
            reason: correctness.as_ref().err().cloned().or(reason).or(doubt),
            correctness: correctness.ok(),
            broken,
        });
    }

    /// Wrong answers fail it, and times that cannot be are broken; how fast a kernel is never fails it.
    pub fn exit_code(&self) -> ExitCode {
        let answers = || self.checks.iter().filter_map(|check| check.correctness.as_ref());
        let is_broken =
            self.checks.iter().any(|check| check.broken) || answers().any(Correctness::is_unknown);
        match () {
            () if answers().any(|answers| !answers.passed && !answers.is_unknown()) => ExitCode::Failed,
            () if answers().next().is_none() => ExitCode::Skipped,
            () if is_broken => ExitCode::Broken,
            () => ExitCode::Ok,
        }
    }
}

/// The calls whose answers are checked may be this many times slower than those that are timed: their inputs are new, and the host
/// repeats them.
const CHECKED_FACTOR: f64 = 10.0;
/// By this much more where a device times its work alone: the host may start a call of many kernels that slowly.
const HOST_MS: f64 = 0.1;

/// Why the calls that were timed cannot be those whose answers were checked.
fn why_other_calls(measured: &Measured, checked_ms: f64, identity: &Identity) -> Option<String> {
    let host_ms = if identity.timer == TIMER_HOST { 0.0 } else { HOST_MS };
    (checked_ms > CHECKED_FACTOR * measured.p50_ms + host_ms).then(|| {
        format!(
            "a timed call takes {:.6} ms, a call whose answer is checked {checked_ms:.6} ms: the timed calls do not do the work",
            measured.p50_ms
        )
    })
}

/// A rate of twice a measured ceiling is no noise, and no ceiling of ours is that far below what a machine can do.
fn why_impossible(placed: &Placed) -> Option<String> {
    let rate = match placed.ceiling.unit {
        CeilingUnit::Gflops => placed.throughput_gflops,
        CeilingUnit::GbPerS => placed.bandwidth_gb_s,
        CeilingUnit::Ms => None,
    };
    let rate = rate.filter(|rate| *rate > 2.0 * placed.ceiling.value)?;
    let share = rate / placed.ceiling.value;
    Some(format!("{share:.1} times the ceiling that was measured: no device is that fast"))
}
