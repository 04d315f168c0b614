//! Flags of `calibrate`, `bisect` and `blame`.

use super::decide::DecideArgs;
use super::groups::SuiteArg;
use super::values;
use holdpoint_flow::bisect::BisectRequest;
use holdpoint_flow::blame::BlameRequest;
use holdpoint_flow::calibrate::CalibrationRequest;
use holdpoint_flow::request::Location;
use std::path::PathBuf;

/// `holdpoint calibrate`.
#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Comparisons of the whole suite with itself
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,
    /// Add this slowdown to head, to test that it is found; in the built-in ops it is real extra work
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = values::share)]
    pub inject: f64,
    /// Decision.
    #[command(flatten)]
    pub decision: DecideArgs,
    /// Folder for the result, which later verdicts show; not written with --inject
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Also write the outcome to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `holdpoint bisect`.
#[derive(Debug, clap::Args)]
pub struct BisectArgs {
    /// A revision that was fast; if it is not an ancestor of the slow one, their merge base is used
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
    pub decision: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted or undecided search in that folder
    #[arg(long)]
    pub resume: bool,
}

/// `holdpoint blame`.
#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    /// The workload that became slow [default: that of the newest worsening that nobody accepted]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The first commit of the worse level, as `changes` shows it; the beginning of its hash will do [default: the newest worsening]
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,
    /// The history: a file, postgres://…, or git:REF [default: `[history]` of perf.toml, here or above; else .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT, value_parser = values::location)]
    pub history: Option<Location>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decision: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted or undecided search in that folder
    #[arg(long)]
    pub resume: bool,
}

requests! {
    CalibrateArgs => CalibrationRequest { suite, trials, inject, decision, calibration_dir, output }
    BisectArgs => BisectRequest { good, bad, workload, suite, decision, artifacts, resume }
    BlameArgs => BlameRequest { workload, revision, history, suite, decision, artifacts, resume }
}
