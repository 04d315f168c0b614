//! `check`: the answers, times and roofline of single kernels.

use holdpoint_model::check::{CheckedRoofline, Correctness, Performance, config};
use holdpoint_model::roofline::{CeilingUnit, Placed, Placement};
use holdpoint_model::suite::TIMER_HOST;
use holdpoint_model::{ExitCode, KernelCheck, Outcome, Report, Roofline, SCHEMA_VERSION, Workload};

/// The checks of several kernels.
#[derive(Debug, Default)]
pub struct KernelChecks {
    pub checks: Vec<KernelCheck>,
}

/// Why a kernel's answers were not checked.
#[derive(Clone, Debug)]
pub struct Unchecked {
    pub reason: String,
    /// Whether the kernel has answered, and its oracle has not.
    pub by_oracle: bool,
}

impl KernelChecks {
    /// Adds a kernel whose answers are right or wrong, or were not checked, and why.
    pub fn add(
        &mut self,
        spec: &Workload,
        correctness: Result<Correctness, Unchecked>,
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
        let slower = measured.zip(checked_ms).map(|(measured, checked_ms)| Slower {
            timed_ms: measured.p50_ms,
            checked_ms,
            is_by_host: report.benchmarks[&spec.name].identity.timer == TIMER_HOST,
        });
        let doubt = placed.and_then(why_impossible).or_else(|| slower.as_ref()?.why_broken());
        let broken = matches!(outcome, Some(Outcome::Failed(_))) || doubt.is_some();
        let is_right = correctness.as_ref().is_ok_and(|correctness| correctness.passed);
        let measured = measured.filter(|_| is_right && !broken);
        let kernel = measured.and_then(|measured| measured.kernel.as_ref());
        // What was verified counts.
        let slower = slower.filter(|slower| slower.exceeds(SHOWN_FACTOR) && measured.is_some());
        let performance = measured.map(|measured| match &slower {
            Some(slower) => Performance::of_checked_calls(measured, slower.checked_ms),
            None => Performance::new(measured),
        });
        let unchecked = correctness.as_ref().err();
        self.checks.push(KernelCheck {
            schema_version: SCHEMA_VERSION,
            performance,
            roofline: placed.filter(|_| is_right && !broken && slower.is_none()).map(CheckedRoofline::from),
            config: config(spec),
            kernel_name: kernel.map_or(&spec.op, |kernel| &kernel.kernel_name).clone(),
            timestamp: report.timestamp_utc.clone(),
            reason: unchecked
                .map(|unchecked| unchecked.reason.clone())
                .or(reason)
                .or(doubt)
                .or(slower.map(|s| s.why_not_shown())),
            unanswered: unchecked.is_some_and(|unchecked| unchecked.by_oracle),
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
            () if self.checks.iter().any(|check| check.unanswered) => ExitCode::Skipped,
            () => ExitCode::Ok,
        }
    }
}

/// Beyond this, the timed calls cannot be those whose answers are checked, though their inputs are new and the host repeats them.
const CHECKED_FACTOR: f64 = 10.0;
/// Beyond this, which other buffers and inputs explain, the times of the checked calls are shown.
const SHOWN_FACTOR: f64 = 2.0;
/// By this much more where a device times its work alone: the host may start a call of many kernels that slowly.
const HOST_MS: f64 = 0.1;

/// A timed call, and one whose answer was checked.
struct Slower {
    timed_ms: f64,
    checked_ms: f64,
    is_by_host: bool,
}

impl Slower {
    fn exceeds(&self, factor: f64) -> bool {
        let host_ms = if self.is_by_host { 0.0 } else { HOST_MS };
        self.checked_ms > factor * self.timed_ms + host_ms
    }

    fn why_broken(&self) -> Option<String> {
        let Self { timed_ms, checked_ms, .. } = self;
        self.exceeds(CHECKED_FACTOR).then(|| {
            format!(
                "a timed call takes {timed_ms:.6} ms, a call whose answer is checked {checked_ms:.6} ms: the timed calls do not do the work"
            )
        })
    }

    fn why_not_shown(&self) -> String {
        let Self { timed_ms, checked_ms, .. } = self;
        format!(
            "the worker's own times, {timed_ms:.6} ms a call: calls whose answers are checked take {checked_ms:.6} ms, which is shown"
        )
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn slower(timed_ms: f64, checked_ms: f64, is_by_host: bool) -> [bool; 2] {
        let slower = Slower { timed_ms, checked_ms, is_by_host };
        [slower.exceeds(SHOWN_FACTOR), slower.why_broken().is_some()]
    }

    #[test]
    fn what_is_checked_is_shown_beyond_twice_and_broken_beyond_ten_times_what_is_timed() {
        assert_eq!(slower(1.0, 2.0, true), [false, false]);
        assert_eq!(slower(1.0, 8.0, true), [true, false]);
        assert_eq!(slower(1.0, 10.5, true), [true, true]);
        assert_eq!(slower(0.003, 0.1, false), [false, false], "the host starts a quick kernel slowly");
        assert_eq!(slower(1.0, 8.0, false), [true, false]);
    }
}
