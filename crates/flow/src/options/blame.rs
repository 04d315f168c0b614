//! Options of `blame`.

use super::{BisectArgs, DecideArgs, SuiteArg};
use holdpoint_history::Location;
use std::path::PathBuf;

/// `holdpoint blame`.
#[derive(Debug, clap::Args)]
pub struct BlameArgs {
    /// The workload that became slow [default: that of the newest worsening that nobody accepted]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// The first commit of the worse level, as `changes` shows it; the beginning of its hash will do [default: the newest worsening]
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,
    /// The history: a file, postgres://…, or git:REF [default: `[history]` of perf.toml, here or above; else .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT)]
    pub history: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Continue the interrupted or undecided search in that folder
    #[arg(long)]
    pub resume: bool,
}

impl BlameArgs {
    /// The search between these revisions.
    pub fn bisect(&self, good: String, bad: String, workload: String) -> BisectArgs {
        BisectArgs {
            good,
            bad,
            workload: Some(workload),
            suite: self.suite.clone(),
            decide: self.decide.clone(),
            artifacts: self.artifacts.clone(),
            resume: self.resume,
        }
    }
}
