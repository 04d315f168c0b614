//! Flags of `ci`.

use super::comment::{CiReportArgs, NotifyArgs};
use super::values::{self, Words};
use clap::Subcommand;
use holdpoint_flow::ci::{
    CiRequest, EventRequest, Forge, GateRequest, GuardRequest, Mode, PriorRuling, ProposalRequest,
    WorkflowsRequest,
};
use holdpoint_flow::request::MeasureRequest;
use std::path::PathBuf;

/// `holdpoint ci`.
#[derive(Debug, clap::Args)]
pub struct CiArgs {
    #[command(subcommand)]
    pub command: CiCommand,
}

#[derive(Debug, Subcommand)]
pub enum CiCommand {
    /// Write a workflow that gates pull requests into a repository; flags add the GPU, a weekly trend, baselines and notifications
    Init(InitArgs),
    /// Measure and judge the change of this CI job: sides from the event, evidence, annotations, summary, exit code
    Gate(CiGateArgs),
    /// Report a gate's evidence on the pull request: one comment, updated in place, and a check
    Report(CiReportArgs),
    /// Decide from the event whether this run may use the GPU, and why
    Guard(GuardArgs),
    /// Propose the run of a merged change as the new baseline, in a pull request
    Promote(CiPromoteArgs),
    /// Send the result by mail and webhooks
    Notify(NotifyArgs),
    /// The part of `ci gate` that runs the change's code
    #[command(hide = true)]
    Measure(MeasureArgs),
    /// Mount what measured code may not write to, then run it; the plan is read from stdin
    #[command(hide = true)]
    Wall,
}

const FORGES: Words<Forge> =
    &[("github", "GitHub Actions", Forge::GitHub), ("gitlab", "GitLab CI", Forge::GitLab)];

/// `holdpoint ci init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Root of the repository
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// CI service to write for
    #[arg(long, value_parser = values::word(FORGES), default_value = "github")]
    pub forge: Forge,
    /// Overwrite files that differ; lines between "# holdpoint: yours" and "# holdpoint: end" are kept
    #[arg(long, conflicts_with = "check")]
    pub force: bool,
    /// Write the files even if the folder is not in a git repository
    #[arg(long, conflicts_with = "check")]
    pub no_repository: bool,
    /// Write nothing; fail unless the files are up to date, apart from your own lines
    #[arg(long)]
    pub check: bool,
    /// Suite of the gate, a file of the repository
    #[arg(long, value_name = "FILE", default_value = "perf.toml")]
    pub suite: String,
    /// A branch to gate: pushes to it and changes into it; may be given several times [default: the repository's default branch]
    #[arg(long, value_name = "NAME")]
    pub branch: Vec<String>,
    /// Command that installs holdpoint on a runner, pinned; 'holdpoint --version' if the runner's image has it
    #[arg(long, value_name = "COMMAND", conflicts_with = "install_url")]
    pub install: Option<String>,
    /// Address of a release archive of holdpoint, which runners fetch (docs/install.md)
    #[arg(long, value_name = "URL", requires = "install_sha256")]
    pub install_url: Option<String>,
    /// SHA-256 of that archive; a runner refuses any other
    #[arg(long, value_name = "HASH", requires = "install_url")]
    pub install_sha256: Option<String>,
    /// Also gate on your own machine with a GPU
    #[arg(long)]
    pub gpu: bool,
    /// Suite of the GPU gate, a file of the repository
    #[arg(long, value_name = "FILE", default_value = "perf-gpu.toml", requires = "gpu")]
    pub gpu_suite: String,
    /// Labels (GitLab: tags) of the runner with the GPU
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "self-hosted,linux,x64,gpu",
        requires = "gpu"
    )]
    pub runner: Vec<String>,
    /// Use the GPU only for pull requests with this label, such as benchmark
    #[arg(long, value_name = "NAME", requires = "gpu")]
    pub label: Option<String>,
    /// Also add a point to the trend every Monday
    #[arg(long)]
    pub weekly: bool,
    /// Also propose runs of merged changes on the GPU machine as its new baseline
    #[arg(long, requires = "gpu")]
    pub promote: bool,
    /// Also notify people when the default branch did not pass
    #[arg(long)]
    pub notify: bool,
    /// Also keep what is measured on the default branch in a ref of the repository (docs/history.md)
    #[arg(long)]
    pub history: bool,
    /// Also comment on pull requests from forks and Dependabot, by a workflow that runs none of their code; on GitHub (docs/comment.md)
    #[arg(long)]
    pub forks: bool,
}

/// The event that a decision is about.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct EventArgs {
    /// CI service of the event [default: gitlab where $GITLAB_CI is true, else github]
    #[arg(long, value_parser = values::word(FORGES))]
    pub forge: Option<Forge>,
    /// Name of the event [default: $GITHUB_EVENT_NAME]
    #[arg(long, value_name = "NAME")]
    pub event_name: Option<String>,
    /// File with the event [default: $GITHUB_EVENT_PATH]
    #[arg(long, value_name = "FILE")]
    pub event_path: Option<PathBuf>,
    /// Commit for events that do not name one [default: $GITHUB_SHA]
    #[arg(long, value_name = "SHA")]
    pub sha: Option<String>,
    /// Branches to gate besides the default one
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub branch: Vec<String>,
    /// Only pull requests with this label are measured; empty: all
    #[arg(long, value_name = "NAME", default_value = "")]
    pub label: String,
    /// Scheduled runs may use the GPU if this is `true`
    #[arg(long, value_name = "VALUE", default_value = "")]
    pub scheduled: String,
    /// For a GitLab pipeline started by hand: the GPU is used if this is `self-hosted-gpu`
    #[arg(long, value_name = "MODE", default_value = "")]
    pub run_mode: String,
    /// For a GitLab pipeline started by hand: full hash of a commit to compare with the branch; empty: the branch itself
    #[arg(long, value_name = "SHA", default_value = "")]
    pub measure: String,
}

/// `holdpoint ci guard`.
#[derive(Debug, clap::Args)]
pub struct GuardArgs {
    /// The event.
    #[command(flatten)]
    pub event: EventArgs,
    /// For a comment: its pull request as the API has it now
    #[arg(long, value_name = "FILE")]
    pub pull_request: Option<PathBuf>,
    /// For a comment: its author's permission as the API has it now
    #[arg(long, value_name = "FILE")]
    pub permission: Option<PathBuf>,
    /// The runner is hosted by GitHub or GitLab: strangers' code may run there
    #[arg(long)]
    pub hosted: bool,
    /// A clone with head and base, to list the changed files
    #[arg(long, value_name = "DIR")]
    pub repository: Option<PathBuf>,
    /// The suite, a file of --repository: changes outside its `[gate] paths` at the base are not measured
    #[arg(long, value_name = "FILE", requires = "repository")]
    pub suite: Option<String>,
    /// Append the outputs to this file [default: $GITHUB_OUTPUT, where it is set]
    #[arg(long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `holdpoint ci gate`.
#[derive(Debug, clap::Args)]
pub struct CiGateArgs {
    /// The suite, a file of the repository; it is read at the base revision, or at head where the base has none
    #[arg(long, value_name = "FILE", default_value = "perf.toml")]
    pub suite: String,
    /// Folder for the evidence; emptied first
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Isolate measured code from the job's secrets, its files and the runner, and end all of its processes with the gate: for jobs
    /// with secrets and for your own machines
    #[arg(long)]
    pub isolate: bool,
    /// The runner is your own, with a GPU: code that nobody has read is refused, and merged code is compared with a stored baseline
    #[arg(long)]
    pub gpu: bool,
    /// A trend point: compare with a stored baseline, and fail only if something is slower
    #[arg(long)]
    pub trend: bool,
    /// The outputs of `ci guard`, which has decided already.
    #[command(flatten)]
    pub decided: DecidedArgs,
    /// The event.
    #[command(flatten)]
    pub event: EventArgs,
}

/// The decision of `ci guard`, handed on by a workflow.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct DecidedArgs {
    /// With --base: the commit to measure, as `ci guard` decided
    #[arg(long, value_name = "SHA", requires = "base")]
    pub head: Option<String>,
    /// With --head: the commit that suite, baselines and waivers are read from
    #[arg(long, value_name = "SHA", requires = "head")]
    pub base: Option<String>,
    /// With --head: against or baseline
    #[arg(long, value_parser = values::word(MODES), value_name = "MODE", requires = "head")]
    pub mode: Option<Mode>,
}

const MODES: Words<Mode> = &[
    ("against", "The revision that it left the base at, side by side", Mode::Against),
    ("baseline", "A stored baseline", Mode::Baseline),
];

/// `holdpoint ci measure`: paths are absolute, and the current folder is the checkout.
#[derive(Clone, Debug, clap::Args)]
pub struct MeasureArgs {
    /// The suite, as it is at the base
    #[arg(long, value_name = "FILE")]
    pub suite: PathBuf,
    /// Folder of the checkout that paths in the suite are relative to
    #[arg(long, value_name = "DIR")]
    pub workdir: PathBuf,
    /// The folder `.holdpoint` of the base
    #[arg(long, value_name = "DIR")]
    pub settings: PathBuf,
    #[arg(long, value_name = "DIR")]
    pub artifacts: PathBuf,
    /// The commit that is measured
    #[arg(long, value_name = "SHA")]
    pub head: String,
    /// The commit that it is compared with, side by side; a stored baseline if absent
    #[arg(long, value_name = "SHA")]
    pub against: Option<String>,
    #[arg(long)]
    pub gpu: bool,
    #[arg(long)]
    pub trend: bool,
}

/// `holdpoint ci promote`.
#[derive(Debug, clap::Args)]
pub struct CiPromoteArgs {
    /// Folder with the gate's evidence
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Branch of the proposal; a newer proposal replaces an older one
    #[arg(long, value_name = "NAME", default_value = "holdpoint/baseline")]
    pub branch: String,
}

requests! {
    InitArgs => WorkflowsRequest {
        dir, forge, force, no_repository, check, suite, branch, install, install_url, install_sha256, gpu, gpu_suite,
        runner, label, weekly, promote, notify, history, forks,
    }
    EventArgs => EventRequest {
        forge, event_name, event_path, sha, branch, label, scheduled, run_mode, measure,
    }
    GuardArgs => GuardRequest { event, pull_request, permission, hosted, repository, suite, output }
    CiGateArgs => GateRequest { suite, artifacts, isolate, gpu, trend, decided, event }
    MeasureArgs => MeasureRequest { suite, workdir, settings, artifacts, head, against, gpu, trend }
    CiPromoteArgs => ProposalRequest { artifacts, branch }
}

impl From<DecidedArgs> for Option<PriorRuling> {
    fn from(DecidedArgs { head, base, mode }: DecidedArgs) -> Self {
        let (head, base) = head.zip(base)?;
        Some(PriorRuling { mode: mode.unwrap_or(Mode::Against), head, base })
    }
}

impl From<CiArgs> for CiRequest {
    fn from(args: CiArgs) -> Self {
        match args.command {
            CiCommand::Init(args) => Self::Init(args.into()),
            CiCommand::Gate(args) => Self::Gate(args.into()),
            CiCommand::Report(args) => Self::Report(args.into()),
            CiCommand::Guard(args) => Self::Guard(args.into()),
            CiCommand::Promote(args) => Self::Promote(args.into()),
            CiCommand::Notify(args) => Self::Notify(args.into()),
            CiCommand::Measure(args) => Self::Measure(args.into()),
            CiCommand::Wall => Self::Wall,
        }
    }
}
