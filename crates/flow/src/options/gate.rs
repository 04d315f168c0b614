//! Options of `gate`.

use super::ab::first_given;
use super::{
    AbFiles, BaselineDir, DecideArgs, HistoryArg, PolicyArgs, ProfileOn, SealArgs, SuiteArg, WaiversArg,
};
use holdpoint_gate::Policy;
use std::path::PathBuf;

/// Examples of `holdpoint gate -h`.
const GATE_EXAMPLES: &str = "\
Examples:
  holdpoint gate                     your change against the default branch, side by side
  holdpoint gate --against v1.0      against another revision
  holdpoint gate --baseline FILE     against a stored baseline
  holdpoint gate --history           against the history of its metrics, which it adds to";

/// `holdpoint gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = GATE_EXAMPLES, mut_arg("baseline_dir", |flag| flag.hide(true)), mut_arg("seal_key", |flag| flag.hide(true)))]
pub struct GateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Compare with this git revision, side by side [default: where your change left the default branch, if the suite is built
    /// from the repository; else this machine's stored baseline]
    #[arg(long, value_name = "REV")]
    pub against: Option<String>,
    /// Side by side: build and measure the work tree in place, even where no tracked file differs from HEAD
    #[arg(long, hide = true)]
    pub dirty: bool,
    /// Side by side: continue an interrupted gate
    #[arg(long, hide = true)]
    pub resume: bool,
    /// Compare with this stored baseline
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
    /// How to decide.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Decision between revisions.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Folder with the outcomes of `calibrate`
    #[arg(long, value_name = "DIR", hide = true, default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Folder for the samples (report.json or ab.json), comparison.json and pages
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Profile the kernels of what regressed, into the same folder
    #[arg(long, value_enum, value_name = "WHEN", hide = true, default_value_t = ProfileOn::Never)]
    pub profile_on: ProfileOn,
    /// Compare with this machine's stored baseline; if there is none yet, end as inconclusive instead of recording one
    #[arg(long)]
    pub require_baseline: bool,
    /// Runs to add when the first is slower than allowed; the median of all is judged [default: 2]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub confirm: Option<u32>,
    /// Runs to record if there is no baseline yet [default: 10]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// The history. Without a baseline or another revision, the run is judged by it.
    #[command(flatten)]
    pub history: HistoryArg,
    /// With --history: compare with this revision, side by side, if the history does not decide [default: the newest that passed,
    /// if the suite says how to build it]
    #[arg(long, value_name = "REV", hide = true, requires = "history", conflicts_with_all = ["against", "baseline"])]
    pub last_good: Option<String>,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
}

impl GateArgs {
    /// The files that a comparison side by side reads and writes.
    pub fn files(&self) -> AbFiles {
        AbFiles {
            artifacts: self.artifacts.clone(),
            resume: self.resume,
            calibration_dir: self.calibration_dir.clone(),
            waivers: self.waivers.clone(),
            profile_on: self.profile_on,
            history: self.history.clone(),
            seal: self.seal.clone(),
        }
    }

    /// A flag that was given and means something with a stored baseline only.
    pub fn flag_of_baseline(&self) -> Option<&'static str> {
        let policy = self.policy.policy;
        first_given(&[
            ("--baseline", self.baseline.is_some()),
            ("--require-baseline", self.require_baseline),
            ("--runs", self.runs.is_some()),
            ("--confirm", self.confirm.is_some()),
            ("--baseline-dir", self.baseline_dir != BaselineDir::default()),
            ("--allow", !self.policy.allow.is_empty()),
            ("--threshold", self.policy.threshold.is_some()),
            ("--policy", policy.is_some_and(Policy::takes_baseline)),
        ])
    }

    /// A flag that was given and means something with two sides only.
    pub fn flag_of_sides(&self) -> Option<&'static str> {
        let own = first_given(&[("--dirty", self.dirty), ("--resume", self.resume)]);
        own.or_else(|| self.decide.flag_of_sides())
    }
}

/// Runs behind a baseline: ten see half of the slowdown that five see, at a rate of one false alarm in 1000 suites; twenty
/// would see a quarter less.
pub const RUNS_DEFAULT: u32 = 10;
/// Runs that are added when the first is slower than allowed.
pub const CONFIRM_DEFAULT: u32 = 2;
