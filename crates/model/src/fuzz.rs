//! Looking for wrong answers: cases, what was found, and the file of a failing case.

mod accuracy;

pub use crate::suite::OnInaccurate;
pub use accuracy::Accuracy;

use crate::machine::Revision;
use crate::report::{CheckedBy, null_is_infinite};
use crate::suite::{KernelSpec, OpSpec};
use crate::values::Values;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One input to one kernel: everything that is needed to run it again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FuzzCase {
    pub op: String,
    /// Shape of the main input.
    pub shape: Vec<usize>,
    pub dtype: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    /// The inputs' values are drawn from it.
    pub seed: u64,
    pub values: Values,
    /// Elements by which every buffer is moved off its natural alignment.
    #[serde(default)]
    pub offset: usize,
    /// The user's own kernel that is run, where it is not the op's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSpec>,
    /// The op's declaration, if the suite declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<OpSpec>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// An output differs from the oracle's by more than the tolerance, or is not a number where it must be one.
    WrongAnswer,
    /// Part of an output was not written.
    Unwritten,
    /// Memory beside an output was written.
    OutOfBounds,
    /// An input was written.
    InputChanged,
    /// The same inputs gave other bits the second time.
    NotDeterministic,
    /// The worker reported less time than passed.
    TimeNotExplained,
    /// Inputs seen before are answered much faster than new ones.
    AnswersRemembered,
    /// Calls that were to be repeated were not made.
    WorkSkipped,
    /// It failed, crashed or hung.
    Failed,
    /// Within the tolerance, but with errors that are biased, or several times larger than roundings explain.
    LessAccurate,
    /// The oracle failed, crashed or hung: whether the kernel is right is not known.
    OracleFailed,
}

impl FindingKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::WrongAnswer => "wrong_answer",
            Self::Unwritten => "unwritten",
            Self::OutOfBounds => "out_of_bounds",
            Self::InputChanged => "input_changed",
            Self::NotDeterministic => "not_deterministic",
            Self::TimeNotExplained => "time_not_explained",
            Self::AnswersRemembered => "answers_remembered",
            Self::WorkSkipped => "work_skipped",
            Self::Failed => "failed",
            Self::LessAccurate => "less_accurate",
            Self::OracleFailed => "oracle_failed",
        }
    }

    /// Whether it is about times, which are looked at after the answers.
    pub fn is_about_time(self) -> bool {
        matches!(self, Self::TimeNotExplained | Self::AnswersRemembered | Self::WorkSkipped)
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    pub kind: FindingKind,
    pub detail: String,
}

/// How the answer to a case compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    pub values_count: u64,
    /// Largest absolute difference; infinite, in a file null, when a value is not a number.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub max_abs_err: f64,
    /// Mean absolute difference, as above.
    #[serde(default, deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub mean_abs_err: f64,
    /// Largest relative difference, as above.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub max_rel_err: f64,
    /// Norm of the difference over that of the oracle's answer, as above.
    #[serde(deserialize_with = "null_is_infinite")]
    #[schemars(with = "Option<f64>")]
    pub rel_norm: f64,
    /// Correlation with the oracle's answer; absent where one of both does not vary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation: Option<f64>,
    /// Size and bias of the errors; absent where the values allow no such statement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
}

impl Errors {
    /// The worse of two, figure by figure; sums are added.
    pub fn worse(self, other: Self) -> Self {
        let accuracy = match (self.accuracy, other.accuracy) {
            (Some(a), Some(b)) => Some(a.join(b)),
            (a, b) => a.or(b),
        };
        let correlation = match (self.correlation, other.correlation) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            values_count: self.values_count + other.values_count,
            max_abs_err: self.max_abs_err.max(other.max_abs_err),
            mean_abs_err: self.mean_abs_err.max(other.mean_abs_err),
            max_rel_err: self.max_rel_err.max(other.max_rel_err),
            rel_norm: self.rel_norm.max(other.rel_norm),
            correlation,
            accuracy,
        }
    }
}

/// The outcome of one case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evaluated {
    /// Absent if all is right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finding: Option<Finding>,
    /// How the answer compared, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<Errors>,
    /// Why it could not be run here; not a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The oracle that the answer was compared with, where the worker says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked_by: Option<CheckedBy>,
}

impl Evaluated {
    pub fn wrong(kind: FindingKind, detail: impl Into<String>) -> Self {
        Self { finding: Some(Finding { kind, detail: detail.into() }), ..Self::default() }
    }
}

/// One tensor in a worker's memory file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TensorPlace {
    pub name: String,
    /// The last size varies fastest.
    pub shape: Vec<usize>,
    /// Where it begins in the file, in bytes.
    pub byte_offset: u64,
    /// Its element type, if it is not that of the request: `i32` for integer outputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dtype: Option<String>,
}

/// Inputs and outputs of one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPlaces {
    /// To be read.
    pub inputs: Vec<TensorPlace>,
    /// To be written, every element.
    pub outputs: Vec<TensorPlace>,
}

/// A computation requested from a user's worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    pub op: String,
    /// Shape of the main input.
    pub shape: Vec<usize>,
    /// Element type of all tensors that do not name their own.
    pub dtype: String,
    #[serde(default)]
    pub params: Map<String, Value>,
    /// A file that holds all tensors, with gaps between them that must stay as they are.
    pub file: String,
    /// The file's length.
    pub bytes: u64,
    /// The calls to make, one after the other, all of them timed as one sample.
    pub calls: Vec<CallPlaces>,
    /// How often to make them; each time all of it, and all of it timed.
    pub repeats: u64,
    /// For ops with weights of their own, which only holdpoint's workers have: the weights are drawn from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// For the worker `cuda`: the user's own kernel that is to compute it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelSpec>,
    /// For the worker `cuda`: the op's declaration, if the suite declares it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<OpSpec>,
}

/// The result of a search for wrong answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "fuzz")]
pub struct FuzzReport {
    pub schema_version: u32,
    pub suite: String,
    /// When it began.
    pub timestamp_utc: String,
    /// Revision of the repository it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// Cases are drawn from it.
    pub seed: u64,
    /// One entry an op, element type and worker.
    pub kernels: Vec<FuzzedKernel>,
    /// How long it took.
    pub elapsed_s: f64,
}

/// The findings about one kernel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzedKernel {
    pub op: String,
    /// The workload that it is, where it is a kernel of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    pub dtype: String,
    pub worker: String,
    /// Cases that were run.
    pub cases_count: u64,
    /// Cases with a right answer.
    pub passed_count: u64,
    /// Cases beside these that the worker has no kernel for.
    #[serde(default)]
    pub refused_count: u64,
    /// Those of them that the worker answered, and its oracle did not: nobody knows whether these answers are right.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered_count: u64,
    /// The worst errors among the right ones.
    pub errors: Errors,
    /// The smallest and the largest of each size that was run, in the order of the shape.
    #[serde(default)]
    pub sizes: Vec<SizeRange>,
    /// Why some or all cases could not be run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// Median time of a case in seconds, all that is done for it included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub case_s_p50: Option<f64>,
    /// Errors within the tolerance that are larger or more biased than they should be; among the failures where they count as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub less_accurate: Option<FuzzFailure>,
    /// The first failure of each kind, made small.
    #[serde(default)]
    pub failures: Vec<FuzzFailure>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl FuzzedKernel {
    /// Whether a case showed that the kernel is wrong, and not only that its oracle is.
    pub fn is_wrong(&self) -> bool {
        self.failures.iter().any(|failure| failure.finding.kind != FindingKind::OracleFailed)
    }

    /// Whether its oracle skipped every case, so that nothing was checked.
    pub fn is_unchecked(&self) -> bool {
        self.cases_count == 0 && self.unanswered_count > 0
    }

    pub fn name(&self) -> &str {
        self.workload.as_deref().unwrap_or(&self.op)
    }
}

/// Which sizes along one axis were run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeRange {
    /// Name of the size: `batch`, `steps`, or as a declared op calls it.
    pub name: String,
    /// The smallest that was run.
    pub min: usize,
    /// The largest.
    pub max: usize,
}

/// How often a case failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Shown {
    /// Runs of the case.
    pub runs_count: u64,
    /// Runs that failed.
    pub failed_count: u64,
}

impl Default for Shown {
    fn default() -> Self {
        Self { runs_count: 1, failed_count: 1 }
    }
}

impl Shown {
    /// -ln 0.001: a case that fails as often as it did is missed in one of a thousand replays.
    const FACTOR: f64 = 6.9;

    /// Whether it failed in every run.
    pub fn is_always(self) -> bool {
        self.failed_count >= self.runs_count
    }

    /// Runs that show it again, at most `max`.
    pub fn runs_needed(self, max: u64) -> u64 {
        // One failure and one pass are added: of few runs the share says little.
        let share = (self.failed_count as f64 + 1.0) / (self.runs_count as f64 + 2.0);
        ((Self::FACTOR / share).ceil() as u64).clamp(1, max)
    }
}

/// The outcome of running a saved case again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Replayed {
    /// The last run that failed, or the last one.
    #[serde(flatten)]
    pub evaluated: Evaluated,
    /// How often it failed.
    pub shown: Shown,
}

/// A case that failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzFailure {
    pub finding: Finding,
    /// The smallest case that shows it.
    pub case: FuzzCase,
    /// The case that showed it first.
    pub first: FuzzCase,
    /// How many cases of this kernel had been run by then, with it.
    pub found_after: u64,
    /// How often the small case failed when it was run again.
    #[serde(default)]
    pub shown: Shown,
    /// Where the small case was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// The file of a failing case.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename = "fuzz_case")]
pub struct FuzzFile {
    pub schema_version: u32,
    /// The suite that has the worker.
    pub suite: String,
    pub worker: String,
    pub finding: Finding,
    /// How often the case failed when it was found.
    #[serde(default)]
    pub shown: Shown,
    pub case: FuzzCase,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_replayed_so_often_that_one_in_a_thousand_is_missed() {
        let needed = |failed_count, runs_count| Shown { runs_count, failed_count }.runs_needed(2_000);
        assert_eq!((needed(6, 6), needed(1, 1)), (8, 11));
        // Once in fifty runs: a chance of 0.98^263, one in two hundred, of missing what was seen three times.
        assert_eq!(needed(3, 150), 263);
        assert_eq!((needed(1, 401), needed(0, u64::MAX), needed(u64::MAX, 0)), (1391, 2_000, 1));
    }
}
