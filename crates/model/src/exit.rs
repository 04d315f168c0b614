//! The exit codes of all commands: one table, from which the help, the README and the command reference are generated.

use crate::judgement::Verdict;

macro_rules! exit_codes {
    ($($name:ident = $code:literal, $meaning:literal;)*) => {
        /// How a command ends. 101 stays free: it is what a Rust panic gives.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ExitCode {
            $(#[doc = $meaning] $name = $code,)*
        }

        impl ExitCode {
            /// The code of a number, if it is one of ours.
            pub fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($code => Some(Self::$name),)*
                    _ => None,
                }
            }
        }

        /// Every exit code and its meaning, in order. Signals end a process with 128 and their number.
        pub const EXIT_CODES: &[(&str, &str)] = &[
            $((stringify!($code), $meaning),)*
            ("129, 130, 143", "ended by a signal; ab, calibrate and bisect keep what they have"),
        ];
    };
}

exit_codes! {
    Ok = 0, "pass, improved, waived, or done";
    Failed = 1, "failed: slower than allowed, or a missing metric, a wrong answer, an error or a stale file";
    Skipped = 2, "skipped: nothing could be measured";
    Inconclusive = 3, "inconclusive: the evidence does not suffice, or the sides cannot be compared";
    Broken = 4, "broken: a wrong answer or a crash while measuring, a revision that does not build";
    Unverified = 5, "evidence does not verify: an answer differs, a file or an attestation was changed";
    Usage = 64, "bad usage or bad input";
    Internal = 70, "an I/O failure, or our bug";
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Improved | Verdict::Pass | Verdict::Waived => Self::Ok,
            Verdict::Skipped => Self::Skipped,
            Verdict::Inconclusive => Self::Inconclusive,
            Verdict::Regressed => Self::Failed,
            Verdict::Broken => Self::Broken,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code as u8)
    }
}
