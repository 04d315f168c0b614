//! Options of `profile` and `sanitize`.
use super::SuiteArg;
use clap::ValueEnum;
use std::path::PathBuf;

/// `holdpoint profile`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("suite", |suite| suite.default_value("gpu")))]
pub struct ProfileArgs {
    /// The workloads [default: all of the suite's that run on a device, as programs or in its own workers]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Count kernels whose names this matches, instead of the workload's own
    #[arg(long, value_name = "REGEX")]
    pub kernel: Option<String>,
    /// Compare with this profile
    #[arg(long, value_name = "PROFILE")]
    pub against: Option<PathBuf>,
    /// Use this profile instead of making one
    #[arg(long, value_name = "PROFILE", conflicts_with_all = ["workloads", "kernel", "suite", "device", "output", "timeout"])]
    pub from: Option<PathBuf>,
    /// Rules of your own, as in crates/gate/data/bottlenecks.toml, instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// Where to write the profile; the profiler's own files go into a folder beside it
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/profile.json")]
    pub output: PathBuf,
    /// Where to write the comparison with --against
    #[arg(long, value_name = "FILE", requires = "against")]
    pub comparison: Option<PathBuf>,
    /// How long one workload may take under the profiler
    #[arg(long, value_name = "SECONDS", default_value_t = PROFILE_TIMEOUT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

/// Seconds that one workload may take under the profiler: tens of replays of some launches take a few.
pub const PROFILE_TIMEOUT_S: u32 = 120;

/// `holdpoint sanitize`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("suite", |suite| suite.default_value("gpu")))]
pub struct SanitizeArgs {
    /// The workloads [default: all of the suite's that run on a device, as programs or in its own workers]
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// The tools to use [default: all]
    #[arg(long, value_enum, value_name = "TOOL", value_delimiter = ',')]
    pub tool: Vec<SanitizerName>,
    /// Where to write the report; the sanitizer's logs go into a folder beside it
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/sanitize.json")]
    pub output: PathBuf,
    /// How long one workload may take under one tool
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

/// The tools of compute-sanitizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SanitizerName {
    /// Accesses out of bounds or misaligned
    Memcheck,
    /// Races in shared memory
    Racecheck,
    /// Reads of memory that was never written
    Initcheck,
    /// Barriers that not all threads reach
    Synccheck,
}

impl SanitizerName {
    /// As compute-sanitizer calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Racecheck => "racecheck",
            Self::Initcheck => "initcheck",
            Self::Synccheck => "synccheck",
        }
    }
}

/// When a gate looks into kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ProfileOn {
    /// Not at all
    Never,
    /// The kernels of workloads that regressed
    Regression,
}
