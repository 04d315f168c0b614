//! Options of `gate`.

use super::{BaselineDir, DecideArgs, HistoryArg, PolicyArgs, ProfileOn, SealArgs, SuiteArg, WaiversArg};
use std::path::PathBuf;

/// Examples of `holdpoint gate -h`.
const GATE_EXAMPLES: &str = "\
Examples:
  holdpoint gate --suite perf.toml                  against this machine's baseline
  holdpoint gate --suite perf.toml --against main   against a revision, side by side
  holdpoint gate --suite perf.toml --history        against the history of its metrics, which it adds to";

/// `holdpoint gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = GATE_EXAMPLES, mut_arg("baseline_dir", |flag| flag.hide(true)), mut_arg("seal_key", |flag| flag.hide(true)))]
pub struct GateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Compare with this git revision, side by side, instead of with a baseline
    #[arg(long, value_name = "REV", conflicts_with_all = ["baseline", "require_baseline", "allow", "threshold"])]
    pub against: Option<String>,
    /// With --against or --last-good: measure the working tree, uncommitted changes included
    #[arg(long)]
    pub dirty: bool,
    /// With --against: continue an interrupted gate
    #[arg(long, requires = "against", hide = true)]
    pub resume: bool,
    /// Compare with this baseline instead of this machine's own
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
    /// If there is no baseline yet, end as inconclusive instead of recording one
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

/// Runs behind a baseline: ten see half of the slowdown that five see, at a rate of one false alarm in 1000 suites; twenty
/// would see a quarter less.
pub const RUNS_DEFAULT: u32 = 10;
/// Runs that are added when the first is slower than allowed.
pub const CONFIRM_DEFAULT: u32 = 2;
