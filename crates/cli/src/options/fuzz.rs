//! Flags of `fuzz`.

use super::groups::{SealArgs, SuiteArg};
use super::values::{self, Words};
use clap::Subcommand;
use holdpoint_flow::fuzz::{FuzzRequest, FuzzSearch};
use holdpoint_model::fuzz::OnInaccurate;
use std::path::PathBuf;

/// `holdpoint fuzz`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct FuzzArgs {
    /// Run saved cases again
    #[command(subcommand)]
    pub replay: Option<FuzzCommand>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Only these ops or workloads [default: all]
    #[arg(value_name = "OP|WORKLOAD")]
    pub only: Vec<String>,
    /// Generated cases of each kernel, beside the suite's own shapes
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub cases: u64,
    /// Cases are drawn from it [default: random, and printed]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Stop a kernel at its first failing case
    #[arg(long)]
    pub fail_fast: bool,
    /// Consequence of errors within the tolerance that are larger than they should be [default: the suite's, else report]
    #[arg(long, value_name = "WHAT", value_parser = values::word(CONSEQUENCES))]
    pub accuracy: Option<OnInaccurate>,
    /// Element types in place of the workloads' own, such as f16,bf16
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub dtype: Vec<String>,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Folder for the cases that fail
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/fuzz")]
    pub save: PathBuf,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
}

const CONSEQUENCES: Words<OnInaccurate> =
    &[("report", "Name them", OnInaccurate::Report), ("fail", "The kernel fails", OnInaccurate::Fail)];

#[derive(Debug, Subcommand)]
pub enum FuzzCommand {
    /// Run saved cases again
    Replay {
        /// Files that `holdpoint fuzz` saved
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// The suite that has the worker [default: the one in the file]
        #[arg(long, value_name = "NAME|FILE")]
        suite: Option<String>,
        /// The CUDA device, counted from 0
        #[arg(long, value_name = "N")]
        device: Option<u32>,
    },
}

impl From<FuzzArgs> for FuzzRequest {
    fn from(args: FuzzArgs) -> Self {
        if let Some(FuzzCommand::Replay { files, suite, device }) = args.replay {
            return Self::Replay { files, suite, device };
        }
        Self::Search(FuzzSearch {
            suite: args.suite.into(),
            only: args.only,
            cases: args.cases,
            seed: args.seed,
            fail_fast: args.fail_fast,
            accuracy: args.accuracy,
            dtypes: args.dtype,
            output: args.output,
            save: args.save,
            seal_key: args.seal_key.into(),
        })
    }
}
