//! Options of the commands, as flags define them.

mod ab;
mod baseline;
mod blame;
mod cache;
mod changes;
mod check;
mod ci;
mod comment;
mod compare;
mod engine;
mod evidence;
mod fuzz;
mod gate;
mod history;
mod init;
mod inspect;
mod policy;
mod report;
mod roofline;
mod run;
mod trend;

pub use ab::{
    AbArgs, AbFiles, BisectArgs, CalibrateArgs, CommandArgs, DecideArgs, QuestionArgs, UNITS_AT_ONCE,
};
pub use baseline::{
    BaselineArgs, BaselineCommand, BaselineDir, PromoteArgs, RecordArgs, ShowArgs, ShowPageArgs,
};
pub use blame::BlameArgs;
pub use cache::{CacheArgs, CacheCommand};
pub use changes::ChangesArgs;
pub use check::CheckArgs;
pub use ci::{
    CiArgs, CiCommand, CiGateArgs, CiPromoteArgs, DecidedArgs, EventArgs, ForgeName, GuardArgs, InitArgs,
    MeasureArgs, ModeName,
};
pub use comment::{CiReportArgs, NotifyArgs};
pub use compare::CompareArgs;
pub use engine::{EngineArgs, SweepArgs};
pub use evidence::{
    AttestArgs, AttestCommand, AttestCreateArgs, ChecklistArgs, ReleaseArgs, ReplayArgs, ReplayCommand,
    ReplayCompare, TargetName, VerifyArgs,
};
pub use fuzz::{Accuracy, FuzzArgs, FuzzCommand};
pub use gate::{CONFIRM_DEFAULT, GateArgs, RUNS_DEFAULT};
pub use history::{
    AcceptArgs, AddArgs, ExportArgs, HistoryArg, HistoryArgs, HistoryCommand, HistoryForm, PruneArgs,
    SelectArgs, StoreArg,
};
pub use init::FirstSuiteArgs;
pub use inspect::{PROFILE_TIMEOUT_S, ProfileArgs, ProfileOn, SanitizeArgs, SanitizerName};
use policy::policy_parser;
pub use policy::{Difference, PolicyArgs};
pub use report::{ExportForm, ReportArgs, ReportForm};
pub use roofline::RooflineArgs;
pub use run::{RunArgs, TuneArgs, WorkerArgs};
pub use trend::{TrendArgs, TrendCommand, TrendShowArgs};

use crate::support::suites;
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

/// The key that seals what is measured.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SealArgs {
    /// Private key that signs the seal over what is measured [default: the variable HOLDPOINT_SEAL_KEY; without a key the
    /// evidence is unsealed]
    #[arg(long, value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
}
