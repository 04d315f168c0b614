//! Options of `ci`.
use super::comment::{CommentArgs, NotifyArgs};
use clap::{Subcommand, ValueEnum};
use std::path::PathBuf;

/// `holdpoint ci`.
#[derive(Debug, clap::Args)]
pub struct CiArgs {
    #[command(subcommand)]
    pub command: CiCommand,
}

#[derive(Debug, Subcommand)]
pub enum CiCommand {
    /// Write the workflows of the CPU gate, the GPU gate and the weekly trend into a repository
    Init(InitArgs),
    /// Decide from the event whether this run may touch the GPU, and say why
    Guard(GuardArgs),
    /// Say how it came out in one comment on the pull request, updated in place
    Comment(CommentArgs),
    /// Tell people by mail and webhooks how it came out
    Notify(NotifyArgs),
}

/// Whose pipelines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ForgeName {
    /// GitHub Actions
    Github,
    /// GitLab CI
    Gitlab,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OnInconclusiveName {
    /// The check fails
    Fail,
    /// The check passes
    Pass,
}

/// `holdpoint ci init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Root of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Whose pipelines
    #[arg(long, value_enum, default_value_t = ForgeName::Github)]
    pub forge: ForgeName,
    /// Write over files that are there and differ
    #[arg(long, conflicts_with = "check")]
    pub force: bool,
    /// Write the files although the folder is in no git repository
    #[arg(long, conflicts_with = "check")]
    pub no_repository: bool,
    /// Write nothing; fail unless the files are as they would be written
    #[arg(long)]
    pub check: bool,
    /// Suite of the CPU gate, a file of the repository
    #[arg(long, value_name = "FILE", default_value = "perf.toml")]
    pub suite: String,
    /// Suite of the GPU gate, a file of the repository
    #[arg(long, value_name = "FILE", default_value = "perf-gpu.toml")]
    pub gpu_suite: String,
    /// Measure only changes that touch these files, such as 'src/**'; may be given several times [default: all changes]
    #[arg(long, value_name = "GLOB")]
    pub path: Vec<String>,
    /// A branch whose pushes, and what goes into it, are judged: the default one, and such as are released from; may be given several times
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub branch: Vec<String>,
    /// Labels (GitLab: tags) of the runner with the GPU
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "self-hosted,linux,x64,gpu")]
    pub runner: Vec<String>,
    /// Use the GPU only for pull requests with this label, such as benchmark
    #[arg(long, value_name = "NAME")]
    pub label: Option<String>,
    /// How holdpoint gets onto a runner [default: cargo install of this version's tag]
    #[arg(long, value_name = "COMMAND")]
    pub install: Option<String>,
    /// How the checkout is built before it is compared with a stored baseline (nightly, weekly, after a merge)
    #[arg(long, value_name = "COMMAND")]
    pub build: Option<String>,
    /// First word of the repository's variables, as in HOLDPOINT_ENABLE_GPU_NIGHTLY
    #[arg(long, value_name = "NAME", default_value = "HOLDPOINT")]
    pub prefix: String,
    /// Result of the required check when the evidence does not suffice
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = OnInconclusiveName::Fail)]
    pub on_inconclusive: OnInconclusiveName,
}

/// `holdpoint ci guard`.
#[derive(Debug, clap::Args)]
pub struct GuardArgs {
    /// Whose event [default: gitlab where $GITLAB_CI is true, else github]
    #[arg(long, value_enum)]
    pub forge: Option<ForgeName>,
    /// Name of the event [default: $GITHUB_EVENT_NAME]
    #[arg(long, value_name = "NAME")]
    pub event_name: Option<String>,
    /// File with the event [default: $GITHUB_EVENT_PATH]
    #[arg(long, value_name = "FILE")]
    pub event_path: Option<PathBuf>,
    /// The commit of events that name none [default: $GITHUB_SHA]
    #[arg(long, value_name = "SHA")]
    pub sha: Option<String>,
    /// For a comment: its pull request as the API has it now
    #[arg(long, value_name = "FILE")]
    pub pull_request: Option<PathBuf>,
    /// For a comment: its author's permission as the API has it now
    #[arg(long, value_name = "FILE")]
    pub permission: Option<PathBuf>,
    /// The runner is the forge's own: strangers' code may run there too
    #[arg(long)]
    pub hosted: bool,
    /// For a GitLab pipeline started by hand: the GPU is used if this is `self-hosted-gpu`
    #[arg(long, value_name = "MODE", default_value = "")]
    pub run_mode: String,
    /// For a GitLab pipeline started by hand: full hash of a commit to compare with the branch; empty: the branch itself
    #[arg(long, value_name = "SHA", default_value = "")]
    pub measure: String,
    /// Scheduled runs may use the GPU if this is `true`
    #[arg(long, value_name = "VALUE", default_value = "")]
    pub scheduled: String,
    /// Branches that are judged beside the default one
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub branch: Vec<String>,
    /// Only pull requests with this label are measured; empty: all
    #[arg(long, value_name = "NAME", default_value = "")]
    pub label: String,
    /// Only changes that touch these files are measured, globs from the root of --repository; empty: all
    #[arg(long, value_name = "GLOBS", value_delimiter = ',', requires = "repository")]
    pub path: Vec<String>,
    /// A clone that has head and base, to see which files have changed
    #[arg(long, value_name = "DIR")]
    pub repository: Option<PathBuf>,
    /// Append the outputs to this file [default: $GITHUB_OUTPUT, where it is set]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}
