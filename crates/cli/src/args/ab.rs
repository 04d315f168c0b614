//! What can be typed about two sides.

use super::{ProfileOn, SealArgs, SuiteArg, WaiversArg};
use clap::ValueEnum;
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};
use std::path::PathBuf;

/// How a side-by-side comparison decides, and how long it may take.
#[derive(Clone, Debug, clap::Args)]
pub struct DecideArgs {
    /// How much slower head may be
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = share, help_heading = "Decision side by side")]
    pub tolerance: f64,
    /// At most this share of unchanged suites is called slower, whatever the number of workloads
    #[arg(long, value_name = "RATE", default_value_t = ALARM_RATE, value_parser = rate, help_heading = "Decision side by side")]
    pub alarm_rate: f64,
    /// At most this share of workloads slower than the tolerance is called not slower
    #[arg(long, value_name = "RATE", default_value_t = MISS_RATE, value_parser = rate, help_heading = "Decision side by side")]
    pub miss_rate: f64,
    /// Time for the whole comparison, per workload; what decided workloads leave goes to the others
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = seconds, help_heading = "Decision side by side")]
    pub budget: f64,
    /// Most fresh pairs of processes per workload
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Decision side by side")]
    pub units_max: u32,
    /// Rounds in each of the first pairs of processes; later ones take more
    #[arg(long, value_name = "N", default_value_t = ROUNDS_PER_UNIT, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Decision side by side")]
    pub rounds: u32,
    /// How long the samples of one side in one round aim to last, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = ROUND_MS, value_parser = seconds, help_heading = "Decision side by side")]
    pub round_ms: f64,
    /// Pairs of processes measured at the same time, each on a CPU of its own; one where they may use several threads
    #[arg(long, value_name = "N", default_value_t = UNITS_AT_ONCE, value_parser = clap::value_parser!(u32).range(1..=64), help_heading = "Decision side by side")]
    pub at_once: u32,
    /// Seed of the order of sides and workloads [default: drawn]
    #[arg(long, value_name = "N", help_heading = "Decision side by side")]
    pub seed: Option<u64>,
    /// Hold all processes of a pair on one CPU; workers that declare to be single-threaded are anyway
    #[arg(long, help_heading = "Decision side by side")]
    pub pin: bool,
    /// Measure CUDA workloads too whose machine code, launches and inputs are the same on both sides
    #[arg(long, help_heading = "Decision side by side")]
    pub measure_same_code: bool,
}

impl DecideArgs {
    /// The flags, as clap names them.
    pub(super) const IDS: &[&str] = &[
        "tolerance",
        "alarm_rate",
        "miss_rate",
        "budget",
        "units_max",
        "rounds",
        "round_ms",
        "at_once",
        "seed",
        "pin",
        "calibration_dir",
    ];
}

/// Rounds in each of the first pairs of processes.
pub const ROUNDS_PER_UNIT: u32 = 2;
/// Pairs of processes measured at the same time.
pub const UNITS_AT_ONCE: u32 = 2;
/// How long the samples of one side in one round aim to last.
pub const ROUND_MS: f64 = 3.0;

/// The rules for two sides by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AbPolicyName {
    /// Decides as soon as the evidence suffices, at the error rates asked for
    Sequential,
    /// The second seed's: -3 %/+10 %, disjoint intervals, |δ| >= 0.3; takes all of --units-max
    DisjointCi,
}

/// `holdpoint ab`.
#[derive(Debug, clap::Args)]
pub struct AbArgs {
    // Each flag names what it does not go with: clap does not ask for a required flag that conflicts with a given one.
    /// Base as a command line
    #[arg(long, value_name = "COMMAND", requires = "head", help_heading = "Sides")]
    pub base: Option<String>,
    /// Head as a command line
    #[arg(long, value_name = "COMMAND", requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head: Option<String>,
    /// Base as a git revision, built by the suite's build command
    #[arg(long, value_name = "REV", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub base_rev: Option<String>,
    /// Head as a git revision [default: HEAD]
    #[arg(long, value_name = "REV", requires = "base_rev", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head_rev: Option<String>,
    /// Head is the working tree as it is, uncommitted changes included
    #[arg(long, requires = "base_rev", conflicts_with_all = ["head_rev", "base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub dirty: bool,
    /// Base as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "head_worker", conflicts_with_all = ["base", "base_suite"], help_heading = "Sides")]
    pub base_worker: Option<String>,
    /// Head as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "base_worker", conflicts_with_all = ["base", "base_rev", "base_suite"], help_heading = "Sides")]
    pub head_worker: Option<String>,
    /// Base as a suite
    #[arg(
        long,
        value_name = "NAME|FILE",
        requires = "head_suite",
        conflicts_with = "base",
        help_heading = "Sides"
    )]
    pub base_suite: Option<String>,
    /// Head as a suite
    #[arg(long, value_name = "NAME|FILE", requires = "base_suite", conflicts_with_all = ["base", "base_rev", "base_worker"], help_heading = "Sides")]
    pub head_suite: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// The rule that decides
    #[arg(long, value_enum, default_value_t = AbPolicyName::Sequential, help_heading = "Decision side by side")]
    pub policy: AbPolicyName,
    /// Files.
    #[command(flatten)]
    pub files: AbFiles,
    /// Show the familiar statistics as well
    #[arg(long)]
    pub evidence: bool,
}

/// Where a side-by-side comparison leaves its files.
#[derive(Clone, Debug, clap::Args)]
pub struct AbFiles {
    /// Folder for ab.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Go on from the ab.json there, which an interrupted comparison left
    #[arg(long)]
    pub resume: bool,
    /// Folder with what `calibrate` has shown
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Profile the kernels of what regressed, base and head, into the same folder
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ProfileOn::Never)]
    pub profile_on: ProfileOn,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
}

/// `holdpoint calibrate`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("measure_same_code", |flag| flag.hide(true)))]
pub struct CalibrateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Comparisons of the whole suite with itself
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,
    /// Put this slowdown into head, to see whether it is found: real extra work in the built-in ops
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share)]
    pub inject: f64,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder where the outcome is kept, for later verdicts to show; not with --inject
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Also write the outcome to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `holdpoint bisect`.
#[derive(Debug, clap::Args)]
pub struct BisectArgs {
    /// A revision that was fast
    #[arg(long, value_name = "REV")]
    pub good: String,
    /// A revision that is slow
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub bad: String,
    /// The workload that became slow [default: whichever is found slower between good and bad]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
}

/// A share, typed as percent.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage is wanted, such as 1% or 0.5%".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("a rate between 0 and 1 is wanted, such as 0.001".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number above 0 is wanted".to_owned()),
    }
}
