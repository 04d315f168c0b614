//! Flags of `profile` and `sanitize`.

use super::groups::SuiteArg;
use super::values::{self, Words};
use clap::builder::TypedValueParser;
use holdpoint_flow::profile::{ProfileRequest, ProfileSource, TIMEOUT_S};
use holdpoint_flow::request::ProfileOn;
use holdpoint_flow::sanitize::{SanitizeRequest, Sanitizer};
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
    #[arg(long, value_name = "SECONDS", default_value_t = TIMEOUT_S, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

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
    #[arg(long, value_parser = values::word(SANITIZERS), value_name = "TOOL", value_delimiter = ',')]
    pub tool: Vec<Sanitizer>,
    /// Where to write the report; the sanitizer's logs go into a folder beside it
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/sanitize.json")]
    pub output: PathBuf,
    /// How long one workload may take under one tool
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub timeout: u32,
}

const SANITIZERS: Words<Sanitizer> = &[
    ("memcheck", "Accesses out of bounds or misaligned", Sanitizer::Memcheck),
    ("racecheck", "Races in shared memory", Sanitizer::Racecheck),
    ("initcheck", "Reads of memory that was never written", Sanitizer::Initcheck),
    ("synccheck", "Barriers that not all threads reach", Sanitizer::Synccheck),
];

/// Reads when a gate looks into kernels.
pub fn profile_on() -> impl TypedValueParser<Value = ProfileOn> {
    values::word(&[
        ("never", "Not at all", ProfileOn::Never),
        ("regression", "The kernels of workloads that regressed", ProfileOn::Regression),
    ])
}

impl From<SanitizeArgs> for SanitizeRequest {
    fn from(args: SanitizeArgs) -> Self {
        let SanitizeArgs { workloads, suite, tool: tools, output, timeout } = args;
        Self { workloads, suite: suite.into(), tools, output, timeout }
    }
}

impl From<ProfileArgs> for ProfileRequest {
    fn from(args: ProfileArgs) -> Self {
        let ProfileArgs { workloads, suite, kernel, against, from, rules, output, comparison, timeout } =
            args;
        let source = match from {
            Some(file) => ProfileSource::File(file),
            None => ProfileSource::Suite { suite: suite.into(), workloads, kernel, timeout, output },
        };
        Self { source, against, rules, comparison }
    }
}
