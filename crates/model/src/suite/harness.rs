//! Benchmark harnesses, whose benchmarks become workloads.

use super::CommandTask;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A benchmark harness. Its benchmarks are asked for once it is built, and each becomes a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HarnessSpec {
    pub kind: HarnessKind,
    /// Program and arguments that run the benchmarks; where absent, the usual ones of the kind, such as `cargo bench`. Some kinds have
    /// none and need this key: the program that was built, the script, or hyperfine with its commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Measures only benchmarks whose names contain one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Whose benchmarks are measured.
    #[serde(default, skip_serializing_if = "HarnessFrom::is_each")]
    pub harness_from: HarnessFrom,
    /// Files and folders of the benchmarks, taken from head by `harness_from = "head"`; wildcards are git's. Where absent, the usual
    /// ones of the kind, such as `benches` in any folder below the suite's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness_files: Vec<String>,
}

/// The name of a harness, such as `criterion`.
// Not an enum: `measure` drives harnesses, and adding one is a file there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct HarnessKind(pub String);

impl HarnessKind {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whose benchmarks are measured, where revisions are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HarnessFrom {
    /// Each revision's own.
    #[default]
    Each,
    /// Head's in both, for benchmarks that are newer than the base.
    Head,
}

impl HarnessFrom {
    fn is_each(&self) -> bool {
        *self == Self::Each
    }
}

impl HarnessSpec {
    /// Files that both revisions take from head; none where each has its own.
    pub fn files_of_head(&self) -> &[String] {
        match self.harness_from {
            HarnessFrom::Each => &[],
            HarnessFrom::Head => &self.harness_files,
        }
    }

    /// Whether a benchmark of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// A benchmark that a harness has.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchTask {
    pub kind: HarnessKind,
    /// As the harness calls it.
    pub id: String,
    /// The folder that it runs in, below the suite's.
    pub folder: String,
    /// The program of the harness.
    pub call: CommandTask,
}
