//! Options of `changes`.

use std::path::PathBuf;

/// Examples of `holdpoint changes -h`.
const CHANGES_EXAMPLES: &str = "\
Examples:
  holdpoint changes .holdpoint/trend/cpu.ndjson    a trend
  holdpoint changes times.csv --format json        a table, a column for each series; the indices";

/// `holdpoint changes`.
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGES_EXAMPLES)]
pub struct ChangesArgs {
    /// Trends (NDJSON), tables (CSV) or arrays of numbers (JSON); docs/changes.md
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// Also replay the rule of `gate --history` over each series and list where it would have reported a worsening
    #[arg(long)]
    pub alerts: bool,
}
