//! Flags of `check`.

use super::groups::SealArgs;
use holdpoint_flow::check::{CheckRequest, CheckSubject, KernelShapes};
use std::path::PathBuf;

/// `holdpoint check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// The op
    #[arg(value_name = "OP", default_value = "attention", conflicts_with = "suite")]
    pub op: String,
    /// Shapes to check, such as 8,4,64,64; may be given several times
    #[arg(long, value_name = "SIZES", conflicts_with = "suite", required_unless_present = "suite")]
    pub shape: Vec<String>,
    /// Element types, such as f16,bf16 [default: f16 on a device, else f32]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "suite")]
    pub dtype: Vec<String>,
    /// A parameter of the op and its values, such as causal=false,true or indices=[0,1]; may be given several times
    #[arg(long, value_name = "NAME=VALUES", conflicts_with = "suite")]
    pub param: Vec<String>,
    /// Worker that runs it: `cuda` or `builtin` (the CPU) [default: cuda where there is a device]
    #[arg(long, value_name = "NAME", conflicts_with = "suite")]
    pub worker: Option<String>,
    /// Check the workloads of this suite instead
    #[arg(long, value_name = "NAME|FILE")]
    pub suite: Option<String>,
    /// The CUDA device, counted from 0
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Ceilings from this report, instead of those kept for this machine, device and driver
    #[arg(long, value_name = "REPORT")]
    pub ceilings: Option<PathBuf>,
    /// Inputs are drawn from it [default: random, and kept]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Where to write what was found; one kernel gives one object, several a list
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The seal's key.
    #[command(flatten)]
    pub seal_key: SealArgs,
}

impl From<CheckArgs> for CheckRequest {
    fn from(args: CheckArgs) -> Self {
        let CheckArgs { op, shape: shapes, dtype: dtypes, param: params, worker, .. } = args;
        let subject = match args.suite {
            Some(suite) => CheckSubject::Suite(suite),
            None => CheckSubject::Kernel(KernelShapes { op, shapes, dtypes, params, worker }),
        };
        let CheckArgs { device, ceilings, seed, output, seal_key, .. } = args;
        Self { subject, device, ceilings, seed, output, seal_key: seal_key.into() }
    }
}
