//! Options of the commands, as flags define them.

mod ab;
mod baseline;
mod blame;
mod check;
mod compare;
mod engine;
mod fuzz;
mod gate;
mod inspect;
mod policy;
mod replay;
mod roofline;
mod run;

pub use ab::{
    AbArgs, AbFiles, BisectArgs, CalibrateArgs, CommandArgs, DecideArgs, QuestionArgs, UNITS_AT_ONCE,
};
pub use baseline::{
    BaselineArgs, BaselineCommand, BaselineDir, PromoteArgs, RecordArgs, ShowArgs, ShowPageArgs,
};
pub use blame::BlameArgs;
pub use check::CheckArgs;
pub use compare::CompareArgs;
pub use engine::{EngineArgs, SweepArgs};
pub use fuzz::{Accuracy, FuzzArgs, FuzzCommand};
pub use gate::{CONFIRM_DEFAULT, GateArgs, RUNS_DEFAULT};
pub use inspect::{PROFILE_TIMEOUT_S, ProfileArgs, ProfileOn, SanitizeArgs, SanitizerName};
use policy::policy_parser;
pub use policy::{Difference, PolicyArgs};
pub use replay::{ReplayArgs, ReplayCommand, ReplayCompare};
pub use roofline::RooflineArgs;
pub use run::{RunArgs, TuneArgs, WorkerArgs};

use crate::support::suites;
use holdpoint_history::Location;
use std::ffi::OsString;
use std::path::PathBuf;

/// Which suite.
#[derive(Clone, Debug, clap::Args)]
pub struct SuiteArg {
    /// Name of a built-in suite, or a suite file [default: perf.toml, here or above; else cpu]
    #[arg(long, value_name = "NAME|FILE", default_value_t = suites::default_name(), hide_default_value = true)]
    pub suite: String,
    /// The CUDA device of `cuda` workloads, counted from 0 [default: the suite's, or 0]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Folder that paths in the suite are relative to [default: that of the suite file]
    #[arg(long, value_name = "DIR", hide = true)]
    pub workdir: Option<PathBuf>,
}

impl SuiteArg {
    pub fn new(suite: &str, device: Option<u32>) -> Self {
        Self { suite: suite.to_owned(), device, workdir: None }
    }

    /// The flags for another holdpoint that is to use the same suite.
    pub fn flags(&self) -> Vec<OsString> {
        let device = self.device.map(|device| ["--device".into(), device.to_string().into()]);
        let workdir = self.workdir.as_ref().map(|dir| ["--workdir".into(), dir.into()]);
        let suite = ["--suite".into(), self.suite.clone().into()];
        suite.into_iter().chain(device.into_iter().flatten()).chain(workdir.into_iter().flatten()).collect()
    }
}

/// Slowdowns that somebody answers for.
#[derive(Clone, Debug, clap::Args)]
pub struct WaiversArg {
    /// File of accepted slowdowns, each with owner, reason, limit and expiry (docs/waivers.md)
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
}

/// The history that a command adds what it measures to.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct HistoryArg {
    /// Add the run to this history, and judge a gate by it: a file, postgres://… or git:REF [default: the suite's; without a
    /// value: .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT)]
    pub history: Option<String>,
    /// Whether the suite's own history is left alone.
    #[arg(skip)]
    pub ignores_suite: bool,
}

impl HistoryArg {
    /// No history, whatever the suite says: that of a change is not to be believed.
    pub fn none() -> Self {
        Self { history: None, ignores_suite: true }
    }
}

/// The key that seals what is measured.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SealArgs {
    /// Private key that signs the seal over what is measured [default: the variable HOLDPOINT_SEAL_KEY; without a key the
    /// evidence is unsealed]
    #[arg(long, value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
}
