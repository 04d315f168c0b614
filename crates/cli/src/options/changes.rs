//! Flags of `changes`.

use super::history::SelectArgs;
use super::values;
use holdpoint_flow::changes::ChangesRequest;
use holdpoint_flow::request::Location;
use std::path::PathBuf;

/// Examples of `holdpoint changes -h`.
const CHANGES_EXAMPLES: &str = "\
Examples:
  holdpoint changes --workload sort                of the history, here .holdpoint/history.db
  holdpoint changes .holdpoint/trend/cpu.ndjson    of a trend
  holdpoint changes times.csv --format json        of a table, a column for each series; the indices";

/// `holdpoint changes`.
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGES_EXAMPLES)]
pub struct ChangesArgs {
    /// Trends (NDJSON), tables (CSV) or arrays of numbers (JSON) (docs/changes.md) [default: the history]
    #[arg(value_name = "FILE", conflicts_with = "history")]
    pub files: Vec<PathBuf>,
    /// The history: a file, postgres://…, or git:REF [default: `[history]` of perf.toml, here or above; else .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT, value_parser = values::location)]
    pub history: Option<Location>,
    /// Which series of it.
    #[command(flatten)]
    pub select: SelectArgs,
    /// Also replay the rule of `gate --history` over each series, with every worsening accepted at once
    #[arg(long)]
    pub alerts: bool,
}

requests! { ChangesArgs => ChangesRequest { files, history, select, alerts } }
