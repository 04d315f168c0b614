//! Flags of `init`.

use holdpoint_flow::init::InitRequest;
use std::path::PathBuf;

/// `holdpoint init`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  holdpoint init                    writes perf.toml here, and tries it")]
pub struct FirstSuiteArgs {
    /// The repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Overwrite an existing perf.toml
    #[arg(long)]
    pub force: bool,
}

requests! { FirstSuiteArgs => InitRequest { dir, force } }
