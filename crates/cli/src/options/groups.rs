//! Groups of flags that several commands share.

use super::values;
use holdpoint_flow::request::{HistoryChoice, Location, SuiteChoice, default_suite};
use std::path::PathBuf;

/// Which suite.
#[derive(Clone, Debug, clap::Args)]
pub struct SuiteArg {
    /// Name of a built-in suite, or a suite file [default: perf.toml, here or above; else cpu]
    #[arg(long, value_name = "NAME|FILE", default_value_t = default_suite(), hide_default_value = true)]
    pub suite: String,
    /// The CUDA device of `cuda` workloads, counted from 0 [default: the suite's, or 0]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Folder that paths in the suite are relative to [default: that of the suite file]
    #[arg(long, value_name = "DIR", hide = true)]
    pub workdir: Option<PathBuf>,
}

impl From<SuiteArg> for SuiteChoice {
    fn from(SuiteArg { suite, device, workdir }: SuiteArg) -> Self {
        Self { name: suite, device, workdir }
    }
}

/// Slowdowns that somebody answers for.
#[derive(Clone, Debug, clap::Args)]
pub struct WaiversArg {
    /// File of accepted slowdowns, each with owner, reason, limit and expiry (docs/waivers.md)
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
}

impl From<WaiversArg> for Option<PathBuf> {
    fn from(arg: WaiversArg) -> Self {
        arg.waivers
    }
}

/// The history that a command adds what it measures to.
#[derive(Clone, Debug, clap::Args)]
pub struct HistoryArg {
    /// Add the run to this history, and judge a gate by it: a file, postgres://… or git:REF [default: the suite's; without a
    /// value: .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT, value_parser = values::location)]
    pub history: Option<Location>,
}

impl From<HistoryArg> for HistoryChoice {
    fn from(arg: HistoryArg) -> Self {
        arg.history.map_or(Self::Suite, Self::At)
    }
}

/// The key that seals what is measured.
#[derive(Clone, Debug, clap::Args)]
pub struct SealArgs {
    /// Private key that signs the seal over what is measured [default: the variable HOLDPOINT_SEAL_KEY; without a key the
    /// evidence is unsealed]
    #[arg(long, value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
}

impl From<SealArgs> for Option<PathBuf> {
    fn from(args: SealArgs) -> Self {
        args.seal_key
    }
}
