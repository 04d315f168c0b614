//! Flags of `run`, `tune` and `worker`.

use super::engine::EngineArgs;
use super::groups::{HistoryArg, SealArgs, SuiteArg};
use super::values;
use holdpoint_flow::request::{SuiteChoice, WorkerRequest};
use holdpoint_flow::run::{RunRequest, RunSubject};
use std::path::PathBuf;

/// `holdpoint run`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("engine", |flag| flag.conflicts_with_all(["suite", "device", "devices"])))]
pub struct RunArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// A model instead.
    #[command(flatten)]
    pub engine: EngineArgs,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/report.json")]
    pub output: PathBuf,
    /// Measure on each of these CUDA devices, one after the other, and show how much they differ: `all`, or numbers such as
    /// `0,2`; each report is named after its device
    #[arg(long, value_name = "LIST", conflicts_with = "device")]
    pub devices: Option<String>,
    /// The history.
    #[command(flatten)]
    pub history: HistoryArg,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
    /// End with this process, whose step the run is
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<u32>,
}

/// `holdpoint tune`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("suite", |suite| suite.default_value("gpu")))]
pub struct TuneArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
}

/// `holdpoint worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Which of the built-in workers: `builtin` (the CPU) or `cuda` [default: the first that the suite uses]
    #[arg(long, value_name = "NAME")]
    pub worker: Option<String>,
    /// Add this much real work to every call, to show that a slowdown is found
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = values::share)]
    pub slowdown: f64,
    /// Add this much real work to one sample in 32 of the CPU's ops, to show that a worse p99 is found
    #[arg(long, value_name = "PERCENT", hide = true, default_value = "0%", value_parser = values::share)]
    pub tail: f64,
}

requests! { WorkerArgs => WorkerRequest { suite, worker, slowdown, tail } }

impl From<TuneArgs> for SuiteChoice {
    fn from(args: TuneArgs) -> Self {
        args.suite.into()
    }
}

impl From<RunArgs> for RunRequest {
    fn from(args: RunArgs) -> Self {
        let RunArgs { suite, engine, output, devices, history, seal_key, parent } = args;
        let suite = suite.into();
        let subject = match (engine.into(), devices) {
            (Some(model), _) => RunSubject::Model(model),
            (None, Some(devices)) => RunSubject::Devices { suite, devices },
            (None, None) => RunSubject::Suite(suite),
        };
        Self { subject, output, history: history.into(), seal_key: seal_key.into(), parent }
    }
}
