//! Benchmark harnesses, whose benchmarks become workloads.

use super::{BuildSpec, Reuse, default_build_timeout_s};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A benchmark harness. Its benchmarks are asked for once it is built, and each becomes a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HarnessSpec {
    pub kind: HarnessKind,
    /// Program and arguments that run the benchmarks: `cargo bench` (criterion, divan), `python3 -m pytest` (pytest-benchmark),
    /// `go test ./...` (go) and `java -jar target/benchmarks.jar` (jmh) where absent. Others need one: the program that was built,
    /// the script, or hyperfine with its commands.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Measures only benchmarks whose names contain one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only: Vec<String>,
    /// Whose benchmarks are measured.
    #[serde(default, skip_serializing_if = "HarnessFrom::is_each")]
    pub harness_from: HarnessFrom,
    /// Files and folders of the benchmarks, taken from head by `harness_from = "head"`; wildcards are git's. Where absent: `benches`,
    /// `Cargo.toml` and `Cargo.lock` (criterion, divan), `*_test.go`, `go.mod` and `go.sum` (go), in any folder below the suite's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub harness_files: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HarnessKind {
    /// Rust's Criterion.
    Criterion,
    GoogleBenchmark,
    PytestBenchmark,
    /// `go test -bench`.
    Go,
    /// A Python script with a `pyperf.Runner`.
    Pyperf,
    /// Rust's divan.
    Divan,
    /// C++'s Catch2, with its `BENCHMARK` macros.
    Catch2,
    Hyperfine,
    /// Java's JMH.
    Jmh,
    /// NVIDIA's nvbench.
    Nvbench,
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

impl HarnessKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Criterion => "criterion",
            Self::GoogleBenchmark => "google-benchmark",
            Self::PytestBenchmark => "pytest-benchmark",
            Self::Go => "go",
            Self::Pyperf => "pyperf",
            Self::Divan => "divan",
            Self::Catch2 => "catch2",
            Self::Hyperfine => "hyperfine",
            Self::Jmh => "jmh",
            Self::Nvbench => "nvbench",
        }
    }

    fn default_command(self) -> &'static [&'static str] {
        match self {
            Self::Criterion | Self::Divan => &["cargo", "bench"],
            Self::PytestBenchmark => &["python3", "-m", "pytest"],
            Self::Go => &["go", "test", "./..."],
            Self::Jmh => &["java", "-jar", "target/benchmarks.jar"],
            Self::GoogleBenchmark | Self::Pyperf | Self::Catch2 | Self::Hyperfine | Self::Nvbench => &[],
        }
    }
}

impl HarnessKind {
    /// Where the benchmarks of this kind are, by convention.
    fn default_files(self) -> &'static [&'static str] {
        match self {
            Self::Criterion | Self::Divan => &["**/benches/**", "**/Cargo.toml", "**/Cargo.lock"],
            Self::Go => &["**/*_test.go", "**/go.mod", "**/go.sum"],
            _ => &[],
        }
    }
}

impl HarnessSpec {
    /// Files that both revisions take from head; none where each has its own.
    pub fn files_of_head(&self) -> Vec<&str> {
        match (self.harness_from, self.harness_files.is_empty()) {
            (HarnessFrom::Each, _) => Vec::new(),
            (HarnessFrom::Head, true) => self.kind.default_files().to_vec(),
            (HarnessFrom::Head, false) => self.harness_files.iter().map(String::as_str).collect(),
        }
    }

    /// Whether `harness_from` leaves open which files it means.
    pub(super) fn lacks_files(&self) -> bool {
        self.harness_from == HarnessFrom::Head && self.files_of_head().is_empty()
    }

    /// Fills in the command of its kind, and returns how that is built where it can be told.
    pub(super) fn complete(&mut self) -> Option<BuildSpec> {
        if self.command.is_empty() {
            self.command = self.kind.default_command().iter().map(|word| (*word).to_owned()).collect();
        }
        matches!(self.kind, HarnessKind::Criterion | HarnessKind::Divan).then(|| BuildSpec {
            command: self.command.iter().cloned().chain(["--no-run".to_owned()]).collect(),
            timeout_s: default_build_timeout_s(),
            reuse: Reuse::default(),
        })
    }

    /// Whether a benchmark of this name is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

/// A benchmark that a harness has.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchSpec {
    pub kind: HarnessKind,
    /// As the harness calls it.
    pub id: String,
    /// The folder that it runs in, below the suite's.
    pub folder: String,
}
