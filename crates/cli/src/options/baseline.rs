//! Flags of `baseline`.

use super::groups::SuiteArg;
use clap::Subcommand;
use holdpoint_flow::baseline::promote::PromoteRequest;
use holdpoint_flow::baseline::{
    BaselineChoice, BaselinePage, BaselineRequest, FOLDER_DEFAULT, RUNS_DEFAULT, RecordRequest,
};
use std::path::PathBuf;

/// Where baselines are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct BaselineDir {
    /// Folder with one baseline per suite and machine
    #[arg(long, value_name = "DIR", default_value = FOLDER_DEFAULT)]
    pub baseline_dir: PathBuf,
}

impl From<BaselineDir> for PathBuf {
    fn from(dir: BaselineDir) -> Self {
        dir.baseline_dir
    }
}

/// `holdpoint baseline`.
#[derive(Debug, clap::Args)]
pub struct BaselineArgs {
    #[command(subcommand)]
    pub command: BaselineCommand,
}

#[derive(Debug, Subcommand)]
pub enum BaselineCommand {
    /// Measure the suite several times and keep the result as the baseline
    Record(RecordArgs),
    /// Add runs to a baseline of the same code, to cover the spread between hours or days
    Append(RecordArgs),
    /// Show a baseline
    Show(ShowPageArgs),
    /// Write a baseline with Apex-X's wide template tolerances
    Template(RecordArgs),
    /// Make reports of a revision, such as a merged change, the new baseline
    Promote(PromoteArgs),
    /// Fit the tolerances to the spread between the baseline's runs
    #[command(alias = "tighten")]
    Fit(ShowArgs),
}

/// Where a baseline comes from and goes to.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Use these reports instead of measuring
    #[arg(value_name = "REPORT")]
    pub reports: Vec<PathBuf>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Runs to take, each in a process of its own
    #[arg(long, value_name = "N", default_value_t = RUNS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// Write to this file instead of this machine's own
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
}

/// Which baseline.
#[derive(Debug, clap::Args)]
pub struct ShowArgs {
    /// The baseline; this machine's own for the suite if not given
    #[arg(value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
}

/// `holdpoint baseline show`.
#[derive(Debug, clap::Args)]
pub struct ShowPageArgs {
    #[command(flatten)]
    pub which: ShowArgs,
    /// Also write a self-contained HTML page with its runs and tolerances
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// With --html: the repository whose commits are linked, such as `https://host/owner/name` [default: the remote `origin` of the
    /// repository here, if it has the commit and is on a forge that is known]
    #[arg(long, value_name = "URL", requires = "html")]
    pub repository: Option<String>,
}

/// `holdpoint baseline promote`.
#[derive(Debug, clap::Args)]
pub struct PromoteArgs {
    /// Reports of the revision, from one machine
    #[arg(value_name = "REPORT", default_value = "artifacts/report.json")]
    pub reports: Vec<PathBuf>,
    /// The revision that the reports must be of
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub rev: String,
    /// Name of the person who promotes it [default: $GITHUB_ACTOR, $GITLAB_USER_LOGIN, git's user.name or $USER]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// Also accept a machine that has no baseline here yet
    #[arg(long)]
    pub new_machine: bool,
    /// Write to this file instead of the machine's own
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
}

requests! {
    RecordArgs => RecordRequest { reports, suite, runs, baseline, baseline_dir }
    ShowArgs => BaselineChoice { baseline, suite, baseline_dir }
    ShowPageArgs => BaselinePage { which, html, repository }
    PromoteArgs => PromoteRequest { reports, rev, by, new_machine, baseline, baseline_dir }
}

impl From<BaselineArgs> for BaselineRequest {
    fn from(args: BaselineArgs) -> Self {
        match args.command {
            BaselineCommand::Record(args) => Self::Record(args.into()),
            BaselineCommand::Append(args) => Self::Append(args.into()),
            BaselineCommand::Show(args) => Self::Show(args.into()),
            BaselineCommand::Template(args) => Self::Template(args.into()),
            BaselineCommand::Promote(args) => Self::Promote(args.into()),
            BaselineCommand::Fit(args) => Self::Fit(args.into()),
        }
    }
}
