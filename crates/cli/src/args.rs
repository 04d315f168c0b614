//! What can be typed.

mod ab;
mod baseline;
mod check;
mod ci;
mod comment;
mod evidence;
mod fuzz;
mod inspect;
mod report;
mod roofline;

pub use ab::{
    AbArgs, AbFiles, AbPolicyName, BisectArgs, CalibrateArgs, DecideArgs, ROUND_MS, ROUNDS_PER_UNIT,
    UNITS_AT_ONCE,
};
pub use baseline::{BaselineArgs, BaselineCommand, BaselineDir, PromoteArgs, RecordArgs, ShowArgs};
pub use check::CheckArgs;
pub use ci::{CiArgs, CiCommand, ForgeName, GuardArgs, InitArgs, OnInconclusiveName};
pub use comment::{CommentArgs, NotifyArgs};
pub use evidence::{
    AttestArgs, AttestCommand, AttestCreateArgs, ChecklistArgs, ReleaseArgs, ReplayArgs, ReplayCommand,
    ReplayCompare, VerifyArgs,
};
pub use fuzz::{FuzzArgs, FuzzCommand};
pub use inspect::{PROFILE_TIMEOUT_S, ProfileArgs, ProfileOn, SanitizeArgs, SanitizerName};
pub use report::{ReportArgs, ReportForm};
pub use roofline::RooflineArgs;

use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, Subcommand, ValueEnum};
use holdpoint_gate::judge::THRESHOLD_PCT;
use holdpoint_gate::{Allow, Policy};
use holdpoint_model::exit::EXIT_CODES;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A performance gate: measure, check the answers, compare, decide, leave evidence.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true, after_help = EXIT_HELP.as_str())]
pub struct Args {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The table of exit codes, the same for all commands.
static EXIT_HELP: LazyLock<String> = LazyLock::new(|| {
    let lines = EXIT_CODES.iter().map(|(code, meaning)| format!("\n{code:>4}  {meaning}"));
    format!("Exit codes:{}", lines.collect::<String>())
});

/// A flag of a gate between revisions that was given to a gate without one, where it would do nothing; and the reverse.
#[must_use]
pub fn stray_flag(matches: &ArgMatches) -> Option<String> {
    let ("gate", gate) = matches.subcommand()? else { return None };
    let is_given = |id: &&&str| gate.value_source(id) == Some(ValueSource::CommandLine);
    let (stray, place): (&[&str], &str) = if gate.contains_id("against") {
        (&["runs", "confirm", "baseline_dir"], "is for a gate with a stored baseline, without --against")
    } else {
        (DecideArgs::IDS, "is for a gate side by side: give --against REV as well")
    };
    stray.iter().find(is_given).map(|id| format!("--{} {place}", id.replace('_', "-")))
}

/// Flags of every command.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Global {
    /// What to print on stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Human, help_heading = "Output")]
    pub format: Format,
    /// Print nothing but errors (and JSON, if asked for); the exit code tells
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,
}

/// What to print on stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and sentences
    Human,
    /// The document that is also written to a file
    Json,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure a suite, compare it with this machine's baseline, decide
    Gate(GateArgs),
    /// Compare two sides that are alive at the same time: revisions, workers, suites or commands
    Ab(AbArgs),
    /// Compare a suite with itself: how often it is wrong here, and what it can see
    Calibrate(CalibrateArgs),
    /// Find the commit that slowed a workload
    Bisect(BisectArgs),
    /// Measure a suite and write its report
    Run(RunArgs),
    /// Compare a report with a baseline and decide
    Compare(CompareArgs),
    /// Record, show and adjust baselines
    Baseline(BaselineArgs),
    /// Keep and show the history of a suite
    Trend(TrendArgs),
    /// Render an existing report again
    Report(ReportArgs),
    /// Show how near workloads come to what the machine or the device can do, and what holds them back
    Roofline(RooflineArgs),
    /// Tell what this machine can measure, and why not
    Doctor,
    /// Count what the kernels of a suite do, and say what holds them (Nsight Compute)
    Profile(ProfileArgs),
    /// Look for errors in the kernels of a suite that a right answer does not show (compute-sanitizer)
    Sanitize(SanitizeArgs),
    /// Find the quickest constants for a suite's CUDA kernels on this device, and keep them
    Tune(TuneArgs),
    /// Check one kernel at one shape, or a matrix of them: right, quick, near the roof
    Check(CheckArgs),
    /// Look for inputs to which a suite's kernels give wrong answers
    Fuzz(FuzzArgs),
    /// Keep the answers of a suite's kernels with their hashes, and compute them again
    Replay(ReplayArgs),
    /// Say what a release rests on, sign it, and check it again
    Attest(AttestArgs),
    /// Fill evidence into a release checklist, between its markers
    Checklist(ChecklistArgs),
    /// Ends what a killed holdpoint has started; holdpoint starts it itself
    #[command(hide = true)]
    Watchdog {
        /// The mark of that holdpoint's processes
        session: String,
    },
    /// Serve a suite's workloads over stdin and stdout (docs/worker-protocol.md)
    Worker(WorkerArgs),
    /// Work in the pipelines of GitHub and GitLab: workflows, the guard, the comment, notifications
    Ci(CiArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Which suite.
#[derive(Clone, Debug, clap::Args)]
pub struct SuiteArg {
    /// Name of a built-in suite, or a suite file
    #[arg(long, value_name = "NAME|FILE", default_value = "cpu")]
    pub suite: String,
    /// The CUDA device of `cuda` workloads, counted from 0 [default: the suite's, or 0]
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
}

/// Slowdowns that somebody answers for.
#[derive(Clone, Debug, clap::Args)]
pub struct WaiversArg {
    /// Slowdowns that do not fail, each with owner, reason, limit and expiry (docs/waivers.md)
    #[arg(long, value_name = "FILE")]
    pub waivers: Option<PathBuf>,
}

/// The key that seals what is measured.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SealArgs {
    /// Private key that signs the seal over what is measured [default: the variable HOLDPOINT_SEAL_KEY; without a key the
    /// evidence is unsealed]
    #[arg(long, value_name = "FILE")]
    pub seal_key: Option<PathBuf>,
}

/// How to decide.
#[derive(Clone, Debug, clap::Args)]
pub struct PolicyArgs {
    /// The rule that decides [default: allowed-max, or threshold where --threshold is given; sequential with --against]
    #[arg(long, value_enum)]
    pub policy: Option<PolicyName>,
    /// For the policy `threshold`: the least improvement that passes, in percent [default: -3.0]
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, value_parser = percent)]
    pub threshold: Option<f64>,
    /// Compare although the sides differ in this
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub allow: Vec<Difference>,
}

impl PolicyArgs {
    /// The policy meant: a threshold means the policy of that name; absent where the two contradict each other, or the
    /// policy is one for samples.
    #[must_use]
    pub fn policy(&self) -> Option<Policy> {
        match (self.policy, self.threshold) {
            (Some(PolicyName::DisjointCi), _) | (Some(PolicyName::AllowedMax), Some(_)) => None,
            (None | Some(PolicyName::AllowedMax), None) => Some(Policy::AllowedMax),
            (_, threshold) => Some(Policy::Threshold { threshold_pct: threshold.unwrap_or(THRESHOLD_PCT) }),
        }
    }

    /// The differences declared harmless.
    #[must_use]
    pub fn allow(&self) -> Allow {
        let has = |difference| self.allow.contains(&difference);
        Allow {
            machine: has(Difference::Machine),
            environment: has(Difference::Environment),
            shape: has(Difference::Shape),
            dtype: has(Difference::Dtype),
            timer: has(Difference::Timer),
            params: has(Difference::Params),
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if percent.is_finite() => Ok(percent),
        _ => Err("a number of percent is wanted, such as -3.0".to_owned()),
    }
}

/// The rules by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// Fails when current > value·(1 + ratio) + abs, with the baseline's ratio and abs
    AllowedMax,
    /// Fails when the improvement in percent is below the threshold
    Threshold,
    /// The second seed's: -3 %/+10 %, disjoint intervals, |δ| >= 0.3; needs the samples of both sides
    DisjointCi,
}

/// What may differ between the sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Difference {
    /// Another machine
    Machine,
    /// Other precision modes, threads, seeds or versions
    Environment,
    /// Another shape
    Shape,
    /// Another element type
    Dtype,
    /// Another clock
    Timer,
    /// Other parameters
    Params,
}

/// `holdpoint gate`.
#[derive(Debug, clap::Args)]
pub struct GateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Compare with this git revision, side by side, instead of a baseline
    #[arg(long, value_name = "REV", conflicts_with_all = ["baseline", "require_baseline", "allow", "threshold"])]
    pub against: Option<String>,
    /// With --against: head is the working tree as it is, uncommitted changes included
    #[arg(long, requires = "against")]
    pub dirty: bool,
    /// With --against: go on from what an interrupted gate left
    #[arg(long, requires = "against")]
    pub resume: bool,
    /// Compare with this baseline instead of this machine's own
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Where baselines are kept.
    #[command(flatten)]
    pub baseline_dir: BaselineDir,
    /// How to decide.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Decision between revisions.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Folder with what `calibrate` has shown
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Folder for report.json, report.md, comparison.json and trend.json; with --against for ab.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Profile the kernels of what regressed, into the same folder
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ProfileOn::Never)]
    pub profile_on: ProfileOn,
    /// End as inconclusive where there is no baseline yet, instead of recording one
    #[arg(long)]
    pub require_baseline: bool,
    /// Runs to add when the first is slower than allowed; the median of all is judged
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub confirm: u32,
    /// Runs behind a baseline, when there is none yet
    #[arg(long, value_name = "N", default_value_t = RUNS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
}

/// Enough for a spread that means something, few enough to wait for.
const RUNS_DEFAULT: u32 = 5;

/// `holdpoint run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/report.json")]
    pub output: PathBuf,
    /// Measure on each of these CUDA devices, one after the other, and show how far they are apart: `all`, or numbers such as
    /// `0,2`; the number of the device goes into the name of its report
    #[arg(long, value_name = "LIST", conflicts_with = "device")]
    pub devices: Option<String>,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
    /// End with this process, whose step the run is
    #[arg(long, value_name = "PID", hide = true)]
    pub parent: Option<u32>,
}

/// `holdpoint compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The report to judge; result files of Apex-X and cudadent42 are read as they are
    #[arg(value_name = "REPORT")]
    pub report: PathBuf,
    /// What to compare it with: a baseline, or another report
    #[arg(long, value_name = "FILE")]
    pub baseline: PathBuf,
    /// How to decide.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// Waivers.
    #[command(flatten)]
    pub waivers: WaiversArg,
    /// Where to write the comparison
    #[arg(long, value_name = "FILE", visible_alias = "output")]
    pub summary: Option<PathBuf>,
    /// Where to write the trend point
    #[arg(long, value_name = "FILE")]
    pub trend_output: Option<PathBuf>,
}

/// `holdpoint trend`.
#[derive(Debug, clap::Args)]
pub struct TrendArgs {
    /// What to do with the history.
    #[command(subcommand)]
    pub command: TrendCommand,
}

/// What to do with the history.
#[derive(Debug, Subcommand)]
pub enum TrendCommand {
    /// Append trend points to their suite's NDJSON file
    Append {
        /// Trend files
        #[arg(value_name = "TREND", default_value = "artifacts/trend.json")]
        trends: Vec<PathBuf>,
        /// Folder with one NDJSON file per suite
        #[arg(long, value_name = "DIR", default_value = ".holdpoint/trend")]
        dir: PathBuf,
    },
    /// Show a suite's history
    Show {
        /// The NDJSON file; the suite's own if not given
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Name of the suite
        #[arg(long, value_name = "NAME", default_value = "cpu")]
        suite: String,
        /// Folder with one NDJSON file per suite
        #[arg(long, value_name = "DIR", default_value = ".holdpoint/trend")]
        dir: PathBuf,
    },
}

/// `holdpoint tune`.
#[derive(Debug, clap::Args)]
#[command(mut_arg("suite", |suite| suite.default_value("gpu")))]
pub struct TuneArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
}

/// `holdpoint worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Which of the built-in workers: `builtin` (the CPU) or `cuda` [default: the first that the suite uses]
    #[arg(long, value_name = "NAME")]
    pub worker: Option<String>,
    /// Add this much real work to every call, to show that a slowdown is found
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = ab::share)]
    pub slowdown: f64,
}

/// `holdpoint completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
