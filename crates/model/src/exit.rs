//! One table of exit codes for all commands.

use crate::judgement::Verdict;

/// How a command ends. 101 stays free: it is what a Rust panic gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitCode {
    /// Pass, improved, or done.
    Ok = 0,
    /// Something regressed, or a required metric is missing.
    Regressed = 1,
    /// Nothing could be measured.
    Skipped = 2,
    /// The evidence does not suffice for a decision.
    Inconclusive = 3,
    /// A workload gave a wrong answer or crashed while it was measured.
    Broken = 4,
    /// Evidence does not verify.
    Unverified = 5,
    /// Bad usage or bad input.
    Usage = 64,
    /// Our bug, or an I/O failure.
    Internal = 70,
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Improved | Verdict::Pass | Verdict::Waived => Self::Ok,
            Verdict::Skipped => Self::Skipped,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Regressed => Self::Regressed,
            Verdict::Broken => Self::Broken,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
