//! How a check ends: exit codes and results of jobs in, conclusions out. Pure.
//!
//! A forge takes a skipped job for a success, so nothing passes here but what is written out.

use holdpoint_model::suite::OnInconclusive;
use serde::Serialize;

/// The conclusion of a check, by GitHub's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Conclusion {
    Success,
    /// Nothing is known to be worse, and nothing to be as good.
    Neutral,
    Failure,
}

/// A conclusion and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub conclusion: Conclusion,
    pub text: String,
}

const INCONCLUSIVE: &str = "inconclusive: the evidence does not suffice";

impl Outcome {
    fn new(conclusion: Conclusion, text: impl Into<String>) -> Self {
        Self { conclusion, text: text.into() }
    }

    /// A gate that ended with this exit code.
    pub fn of_gate(code: i32, on_inconclusive: OnInconclusive) -> Self {
        let (inconclusive, undecided) = match on_inconclusive {
            OnInconclusive::Neutral => (
                Conclusion::Neutral,
                "undecided: the evidence does not suffice; allowed through by on_inconclusive = \"neutral\"",
            ),
            OnInconclusive::Fail => (Conclusion::Failure, INCONCLUSIVE),
        };
        let (conclusion, text) = match code {
            0 => (Conclusion::Success, "pass: not slower than allowed"),
            1 => (Conclusion::Failure, "regressed: slower than allowed"),
            2 => (Conclusion::Failure, "skipped: nothing could be measured, so nothing is known"),
            3 => (inconclusive, undecided),
            4 => (Conclusion::Failure, "broken: a wrong answer, a crash, or a revision that does not build"),
            ..0 => return Self::new(Conclusion::Failure, "no verdict: there is no evidence that holds"),
            code => return Self::new(Conclusion::Failure, format!("no verdict: exit code {code}")),
        };
        Self::new(conclusion, text)
    }

    /// A point of the trend, which blocks nobody: what is not known is said, what is worse fails.
    pub fn of_trend(code: i32) -> Self {
        match code {
            0 => Self::new(Conclusion::Success, "pass: not slower than allowed"),
            2 | 3 => Self::new(
                Conclusion::Neutral,
                format!("not known this week: exit code {code}, see the evidence"),
            ),
            code => Self::new(
                Conclusion::Failure,
                format!("worse, broken or without a verdict: exit code {code}"),
            ),
        }
    }

    /// A change that has nothing to measure.
    pub fn skipped(reason: &str) -> Self {
        Self::new(Conclusion::Success, format!("nothing to measure: {reason}"))
    }

    /// A change that is not trusted to be measured.
    pub fn refused(reason: &str) -> Self {
        Self::new(Conclusion::Failure, format!("refused: {reason}"))
    }

    /// Two jobs: a guard that has decided, and the gate that its decision allows.
    pub fn of_jobs(decision: &str, reason: &str, gate_result: &str, of_evidence: &Self) -> Self {
        match (decision, gate_result) {
            ("run", "success") => of_evidence.clone(),
            // The job that failed knows what the suite says of doubt: it was not allowed through.
            ("run", "failure") if of_evidence.conclusion == Conclusion::Neutral => {
                Self::new(Conclusion::Failure, INCONCLUSIVE)
            }
            ("run", "failure") if of_evidence.conclusion == Conclusion::Failure => of_evidence.clone(),
            ("skip", "skipped") => Self::skipped(reason),
            ("refuse", "skipped") => Self::refused(reason),
            _ => {
                let word =
                    |text: &str| if text.is_empty() { "none".to_owned() } else { crate::guard::plain(text) };
                Self::new(
                    Conclusion::Failure,
                    format!("no verdict: decision {}, gate {}", word(decision), word(gate_result)),
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pass_and_what_the_suite_forgives_do_not_fail() {
        let of = |code, on| Outcome::of_gate(code, on).conclusion;
        assert_eq!(of(0, OnInconclusive::Fail), Conclusion::Success);
        assert_eq!(of(3, OnInconclusive::Neutral), Conclusion::Neutral);
        assert_eq!(of(3, OnInconclusive::Fail), Conclusion::Failure);
        for code in [1, 2, 4, 5, 64, 70, 101, 137, -1] {
            assert_eq!(of(code, OnInconclusive::Neutral), Conclusion::Failure, "{code}");
        }
        assert_eq!(Outcome::of_trend(2).conclusion, Conclusion::Neutral);
        assert_eq!(Outcome::of_trend(137).conclusion, Conclusion::Failure);
    }

    #[test]
    fn nothing_passes_without_a_decision_and_the_result_that_belongs_to_it() {
        let pass = Outcome::of_gate(0, OnInconclusive::Neutral);
        let of = |decision, gate| Outcome::of_jobs(decision, "why", gate, &pass).conclusion;
        assert_eq!(of("run", "success"), Conclusion::Success);
        assert_eq!(of("skip", "skipped"), Conclusion::Success);
        for (decision, gate) in [
            ("run", "failure"),
            ("run", "skipped"),
            ("run", "cancelled"),
            ("run", ""),
            ("skip", "success"),
            ("skip; true", "skipped"),
            ("refuse", "skipped"),
            ("refuse", "success"),
            ("", "success"),
            ("", "skipped"),
        ] {
            assert_eq!(of(decision, gate), Conclusion::Failure, "{decision} {gate}");
        }
        let neutral = Outcome::of_gate(3, OnInconclusive::Neutral);
        assert!(neutral.text.starts_with("undecided: ") && neutral.text.contains("allowed through by"));
        assert_eq!(Outcome::of_jobs("run", "", "success", &neutral).conclusion, Conclusion::Neutral);
        // The job failed although its evidence says that nothing did.
        let failed = Outcome::of_jobs("run", "", "failure", &neutral);
        assert_eq!((failed.conclusion, failed.text.as_str()), (Conclusion::Failure, INCONCLUSIVE));
    }
}
