//! The exit code of each document that a command leaves.

use crate::{Judgement, Policy, bisect_step};
use holdpoint_model::fuzz::{FuzzedKernel, Replayed};
use holdpoint_model::roofline::{Bottleneck, Placement};
use holdpoint_model::{
    Bisection, Calibration, ExitCode, FindingKind, FuzzReport, Profile, ProfileOutcome, ReplayManifest,
    ReplayVerification, Report, Roofline, RunStatus, SanitizeOutcome, SanitizeReport, Stated, StepOutcome,
    TuneOutcome, Tuning, Verdict,
};

/// How a command ends that leaves this document.
pub trait HasExitCode {
    fn exit_code(&self) -> ExitCode;
}

impl HasExitCode for Judgement {
    /// Under cudadent42's rule for two sides, no significant difference is its 2.
    fn exit_code(&self) -> ExitCode {
        match self.verdict {
            Verdict::Inconclusive if self.policy == Policy::DisjointCi.name() => ExitCode::Skipped,
            verdict => verdict.into(),
        }
    }
}

/// A run that is compared with nothing.
impl HasExitCode for Report {
    fn exit_code(&self) -> ExitCode {
        match self.status {
            RunStatus::Ok | RunStatus::Partial => ExitCode::Ok,
            RunStatus::Skipped => ExitCode::Skipped,
            RunStatus::Failed => ExitCode::Broken,
        }
    }
}

/// Runs on several devices: a failure on one is not made good by another; what was skipped on all was skipped.
impl HasExitCode for [(u32, Report)] {
    fn exit_code(&self) -> ExitCode {
        let has = |code: ExitCode| self.iter().any(|(_, report)| report.exit_code() == code);
        first_true([(has(ExitCode::Broken), ExitCode::Broken), (has(ExitCode::Ok), ExitCode::Ok)])
    }
}

impl HasExitCode for FuzzReport {
    fn exit_code(&self) -> ExitCode {
        let is_wrong = self.kernels.iter().any(FuzzedKernel::is_wrong);
        // Without its oracle nothing is known about a kernel.
        let has_failures = self.kernels.iter().any(|kernel| !kernel.failures.is_empty());
        let has_cases = self.kernels.iter().any(|kernel| kernel.cases_count > 0);
        let has_unchecked = self.kernels.iter().any(FuzzedKernel::is_unchecked);
        first_true([
            (is_wrong, ExitCode::Failed),
            (has_failures, ExitCode::Broken),
            (has_unchecked, ExitCode::Skipped),
            (has_cases, ExitCode::Ok),
        ])
    }
}

/// Saved cases that were run again.
impl HasExitCode for [(String, Replayed)] {
    fn exit_code(&self) -> ExitCode {
        let findings = || self.iter().filter_map(|(_, case)| case.evaluated.finding.as_ref());
        let is_wrong = findings().any(|finding| finding.kind != FindingKind::OracleFailed);
        let ran = self.iter().any(|(_, case)| case.evaluated.skipped.is_none());
        first_true([
            (is_wrong, ExitCode::Failed),
            (findings().next().is_some(), ExitCode::Broken),
            (ran, ExitCode::Ok),
        ])
    }
}

/// Errors found come before all else; what could not be looked at is not clean.
impl HasExitCode for SanitizeReport {
    fn exit_code(&self) -> ExitCode {
        let any = |is: fn(&SanitizeOutcome) -> bool| {
            self.sanitized.values().flat_map(|tools| tools.values()).any(is)
        };
        let has_errors = any(|outcome| matches!(outcome, SanitizeOutcome::Errors { .. }));
        let has_failed = any(|outcome| matches!(outcome, SanitizeOutcome::Failed(_)));
        let is_whole = !any(|outcome| matches!(outcome, SanitizeOutcome::Unavailable(_)));
        first_true([(has_errors, ExitCode::Failed), (has_failed, ExitCode::Broken), (is_whole, ExitCode::Ok)])
    }
}

impl HasExitCode for Profile {
    fn exit_code(&self) -> ExitCode {
        let any =
            |is: fn(&ProfileOutcome) -> bool| self.profiles.values().any(|workload| is(&workload.outcome));
        let has_failed = any(|outcome| matches!(outcome, ProfileOutcome::Failed(_)));
        let has_profiled = any(|outcome| matches!(outcome, ProfileOutcome::Profiled(_)));
        first_true([(has_failed, ExitCode::Broken), (has_profiled, ExitCode::Ok)])
    }
}

impl HasExitCode for [Tuning] {
    fn exit_code(&self) -> ExitCode {
        let any = |is: fn(&TuneOutcome) -> bool| self.iter().any(|tuning| is(&tuning.outcome));
        let has_failed = any(|outcome| matches!(outcome, TuneOutcome::Failed(_)));
        let has_tuned = any(|outcome| matches!(outcome, TuneOutcome::Tuned(_)));
        first_true([(has_failed, ExitCode::Broken), (has_tuned, ExitCode::Ok)])
    }
}

/// A workload above a ceiling was not measured right; where nothing could be placed, nothing was shown.
impl HasExitCode for Roofline {
    fn exit_code(&self) -> ExitCode {
        let placed = || {
            self.workloads.values().filter_map(|placement| match placement {
                Placement::Placed(placed) => Some(placed.bottleneck),
                Placement::Unplaced { .. } => None,
            })
        };
        let is_above = placed().any(|bottleneck| bottleneck == Bottleneck::AboveCeiling);
        first_true([(is_above, ExitCode::Inconclusive), (placed().next().is_some(), ExitCode::Ok)])
    }
}

impl HasExitCode for Calibration {
    fn exit_code(&self) -> ExitCode {
        let failed = self.workloads.values().any(|workload| workload.failed > 0);
        if failed { ExitCode::Broken } else { ExitCode::Ok }
    }
}

impl HasExitCode for ReplayManifest {
    fn exit_code(&self) -> ExitCode {
        first_true([(!self.artifact_hashes.is_empty(), ExitCode::Ok)])
    }
}

impl HasExitCode for ReplayVerification {
    fn exit_code(&self) -> ExitCode {
        match (self.differences.is_empty(), self.skipped.is_empty(), self.outputs_count) {
            (false, ..) => ExitCode::Unverified,
            (true, true, 1..) => ExitCode::Ok,
            (true, _, 0) => ExitCode::Skipped,
            (true, false, _) => ExitCode::Inconclusive,
        }
    }
}

/// The first step compares `bad` with `good`: where that is not slower there is nothing to search for. One commit was
/// found if it is slower than the one before it.
impl HasExitCode for Bisection {
    fn exit_code(&self) -> ExitCode {
        let is_slower = |judgement: &Stated| bisect_step(judgement) == StepOutcome::Slower;
        let is_confirmed = self.judgement.as_ref().is_some_and(is_slower);
        match self.steps.first().map(|step| step.outcome) {
            None | Some(StepOutcome::NotSlower) => ExitCode::Skipped,
            Some(StepOutcome::NotBuilt | StepOutcome::Broken) => ExitCode::Broken,
            Some(StepOutcome::Slower) if is_confirmed => ExitCode::Ok,
            Some(StepOutcome::Slower | StepOutcome::Undecided) => ExitCode::Inconclusive,
        }
    }
}

/// The code of the first condition that holds; where none does, nothing could be measured.
fn first_true<const N: usize>(codes: [(bool, ExitCode); N]) -> ExitCode {
    codes.into_iter().find(|(holds, _)| *holds).map_or(ExitCode::Skipped, |(_, code)| code)
}
