//! Flags of `replay`.

use super::groups::{SealArgs, SuiteArg};
use super::values::{self, Words};
use clap::Subcommand;
use holdpoint_flow::replay::{ReplayCompare, ReplayRequest};
use std::path::PathBuf;

/// `holdpoint replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    #[command(subcommand)]
    pub command: ReplayCommand,
}

#[derive(Debug, Subcommand)]
pub enum ReplayCommand {
    /// Compute a suite's workloads once from the seed, and keep the answers with their hashes
    Record {
        /// Which suite.
        #[command(flatten)]
        suite: SuiteArg,
        /// Draw all inputs from this seed instead of the suite's
        #[arg(long, value_name = "N")]
        seed: Option<u64>,
        /// Where to write the manifest; the answers go into a folder beside it
        #[arg(long, short, value_name = "FILE", default_value = "artifacts/replay.json")]
        output: PathBuf,
        /// The seal's key.
        #[command(flatten)]
        seal_key: SealArgs,
    },
    /// Compute the answers again and report the first difference
    Verify {
        /// The manifest
        #[arg(value_name = "MANIFEST", default_value = "artifacts/replay.json")]
        manifest: PathBuf,
        /// The suite that has the workers [default: the one in the manifest, unless it names programs]
        #[arg(long, value_name = "NAME|FILE")]
        suite: Option<String>,
        /// Use this worker instead of the recorded ones, such as cuda
        #[arg(long, value_name = "NAME")]
        worker: Option<String>,
        /// The CUDA device, counted from 0
        #[arg(long, value_name = "N")]
        device: Option<u32>,
        /// How to compare
        #[arg(long, value_parser = values::word(COMPARISONS), value_name = "HOW", default_value = "auto")]
        compare: ReplayCompare,
        /// Where to write what was found
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The seal's key.
        #[command(flatten)]
        seal_key: SealArgs,
    },
}

const COMPARISONS: Words<ReplayCompare> = &[
    (
        "auto",
        "Bit by bit where worker, instructions and device are those that were recorded, else by tolerance",
        ReplayCompare::Auto,
    ),
    ("exact", "Bit by bit", ReplayCompare::Exact),
    ("tolerance", "By the tolerance of the element type", ReplayCompare::Tolerance),
];

impl From<ReplayArgs> for ReplayRequest {
    fn from(args: ReplayArgs) -> Self {
        match args.command {
            ReplayCommand::Record { suite, seed, output, seal_key } => {
                Self::Record { suite: suite.into(), seed, output, seal_key: seal_key.into() }
            }
            ReplayCommand::Verify { manifest, suite, worker, device, compare, output, seal_key } => {
                Self::Verify { manifest, suite, worker, device, compare, output, seal_key: seal_key.into() }
            }
        }
    }
}
