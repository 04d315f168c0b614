//! What can be typed.

use clap::{Parser, Subcommand, ValueEnum};
use holdpoint_gate::judge::THRESHOLD_PCT;
use holdpoint_gate::{Allow, Policy};
use holdpoint_stats::sequential::{ALARM_RATE, MISS_RATE};
use std::path::PathBuf;

/// A performance gate: measure, check the answers, compare, decide, leave evidence.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true, after_help = EXIT_CODES)]
pub struct Args {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// One table for all commands.
const EXIT_CODES: &str = "\
Exit codes:
   0  pass, improved, or done
   1  regressed, or a required metric is missing
   2  skipped: nothing could be measured
   3  inconclusive
   4  broken: a wrong answer or a crash while measuring
   5  evidence does not verify
  64  bad usage or bad input
  70  an I/O failure, or our bug";

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
    /// Tell what this machine can measure, and why not
    Doctor,
    /// Serve a suite's workloads over stdin and stdout (docs/worker-protocol.md)
    Worker(WorkerArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
}

/// Which suite.
#[derive(Clone, Debug, clap::Args)]
pub struct SuiteArg {
    /// Name of a built-in suite, or a suite file
    #[arg(long, value_name = "NAME|FILE", default_value = "cpu")]
    pub suite: String,
}

/// Where baselines are kept.
#[derive(Clone, Debug, clap::Args)]
pub struct BaselineDir {
    /// Folder with one baseline per suite and machine
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/baselines")]
    pub baseline_dir: PathBuf,
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
    /// Folder with what `calibrate` has shown
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Folder for report.json, report.md, comparison.json and trend.json; with --against for ab.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// End as inconclusive where there is no baseline yet, instead of recording one
    #[arg(long)]
    pub require_baseline: bool,
    /// Runs to add when the first is slower than allowed; the median of all is judged
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub confirm: u32,
    /// Runs behind a baseline, when there is none yet
    #[arg(long, value_name = "N", default_value_t = RUNS_DEFAULT, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,
}

/// Enough for a spread that means something, few enough to wait for.
const RUNS_DEFAULT: u32 = 5;

/// How a side-by-side comparison decides, and how long it may take.
#[derive(Clone, Debug, clap::Args)]
pub struct DecideArgs {
    /// How much slower head may be
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = share, help_heading = "Decision side by side")]
    pub tolerance: f64,
    /// At most this share of unchanged suites is called slower, whatever the number of workloads
    #[arg(long, value_name = "RATE", default_value_t = ALARM_RATE, value_parser = rate, help_heading = "Decision side by side")]
    pub alarm_rate: f64,
    /// At most this share of workloads slower than the tolerance is called not slower
    #[arg(long, value_name = "RATE", default_value_t = MISS_RATE, value_parser = rate, help_heading = "Decision side by side")]
    pub miss_rate: f64,
    /// Time for the whole comparison, per workload; what decided workloads leave goes to the others
    #[arg(long, value_name = "SECONDS", default_value_t = 20.0, value_parser = seconds, help_heading = "Decision side by side")]
    pub budget: f64,
    /// Most fresh pairs of processes per workload
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=1000), help_heading = "Decision side by side")]
    pub units_max: u32,
    /// Rounds in each of the first pairs of processes; later ones take more
    #[arg(long, value_name = "N", default_value_t = ROUNDS_PER_UNIT, value_parser = clap::value_parser!(u32).range(1..=100), help_heading = "Decision side by side")]
    pub rounds: u32,
    /// How long the samples of one side in one round aim to last, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = ROUND_MS, value_parser = seconds, help_heading = "Decision side by side")]
    pub round_ms: f64,
    /// Seed of the order of sides and workloads [default: drawn]
    #[arg(long, value_name = "N", help_heading = "Decision side by side")]
    pub seed: Option<u64>,
    /// Hold all processes of a pair on one CPU; workers that declare to be single-threaded are anyway
    #[arg(long, help_heading = "Decision side by side")]
    pub pin: bool,
}

/// Rounds in each pair of processes.
pub const ROUNDS_PER_UNIT: u32 = 2;
/// How long the samples of one side in one round aim to last.
pub const ROUND_MS: f64 = 3.0;

/// The rules for two sides by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AbPolicyName {
    /// Decides as soon as the evidence suffices, at the error rates asked for
    Sequential,
    /// The second seed's: -3 %/+10 %, disjoint intervals, |δ| >= 0.3; takes all of --units-max
    DisjointCi,
}

/// `holdpoint ab`.
#[derive(Debug, clap::Args)]
pub struct AbArgs {
    // Each flag names what it does not go with: clap does not ask for a required flag that conflicts with a given one.
    /// Base as a command line
    #[arg(long, value_name = "COMMAND", requires = "head", help_heading = "Sides")]
    pub base: Option<String>,
    /// Head as a command line
    #[arg(long, value_name = "COMMAND", requires = "base", conflicts_with_all = ["base_rev", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head: Option<String>,
    /// Base as a git revision, built by the suite's build command
    #[arg(long, value_name = "REV", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub base_rev: Option<String>,
    /// Head as a git revision [default: HEAD]
    #[arg(long, value_name = "REV", requires = "base_rev", conflicts_with_all = ["base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub head_rev: Option<String>,
    /// Head is the working tree as it is, uncommitted changes included
    #[arg(long, requires = "base_rev", conflicts_with_all = ["head_rev", "base", "base_worker", "base_suite"], help_heading = "Sides")]
    pub dirty: bool,
    /// Base as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "head_worker", conflicts_with_all = ["base", "base_suite"], help_heading = "Sides")]
    pub base_worker: Option<String>,
    /// Head as a program that serves the suite's workloads
    #[arg(long, value_name = "COMMAND", requires = "base_worker", conflicts_with_all = ["base", "base_rev", "base_suite"], help_heading = "Sides")]
    pub head_worker: Option<String>,
    /// Base as a suite
    #[arg(
        long,
        value_name = "NAME|FILE",
        requires = "head_suite",
        conflicts_with = "base",
        help_heading = "Sides"
    )]
    pub base_suite: Option<String>,
    /// Head as a suite
    #[arg(long, value_name = "NAME|FILE", requires = "base_suite", conflicts_with_all = ["base", "base_rev", "base_worker"], help_heading = "Sides")]
    pub head_suite: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// The rule that decides
    #[arg(long, value_enum, default_value_t = AbPolicyName::Sequential, help_heading = "Decision side by side")]
    pub policy: AbPolicyName,
    /// Files.
    #[command(flatten)]
    pub files: AbFiles,
    /// Show the familiar statistics as well
    #[arg(long)]
    pub evidence: bool,
}

/// Where a side-by-side comparison leaves its files.
#[derive(Clone, Debug, clap::Args)]
pub struct AbFiles {
    /// Folder for ab.json and ab.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Go on from the ab.json there, which an interrupted comparison left
    #[arg(long)]
    pub resume: bool,
    /// Folder with what `calibrate` has shown
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
}

/// `holdpoint calibrate`.
#[derive(Debug, clap::Args)]
pub struct CalibrateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Comparisons of the whole suite with itself
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,
    /// Put this slowdown into head, to see whether it is found: real extra work in the built-in ops
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share)]
    pub inject: f64,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder where the outcome is kept, for later verdicts to show; not with --inject
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Also write the outcome to this file
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// `holdpoint bisect`.
#[derive(Debug, clap::Args)]
pub struct BisectArgs {
    /// A revision that was fast
    #[arg(long, value_name = "REV")]
    pub good: String,
    /// A revision that is slow
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    pub bad: String,
    /// The workload that became slow [default: whichever is found slower between good and bad]
    #[arg(long, value_name = "NAME")]
    pub workload: Option<String>,
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Decision.
    #[command(flatten)]
    pub decide: DecideArgs,
    /// Folder for bisect.json and bisect.md
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
}

/// A share, typed as percent.
fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage is wanted, such as 1% or 0.5%".to_owned()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate < 1.0 => Ok(rate),
        _ => Err("a rate between 0 and 1 is wanted, such as 0.001".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 1e6 => Ok(seconds),
        _ => Err("a number above 0 is wanted".to_owned()),
    }
}

/// `holdpoint run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Where to write the report
    #[arg(long, short, value_name = "FILE", default_value = "artifacts/report.json")]
    pub output: PathBuf,
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
    /// Where to write the comparison
    #[arg(long, value_name = "FILE", visible_alias = "output")]
    pub summary: Option<PathBuf>,
    /// Where to write the trend point
    #[arg(long, value_name = "FILE")]
    pub trend_output: Option<PathBuf>,
}

/// `holdpoint baseline`.
#[derive(Debug, clap::Args)]
pub struct BaselineArgs {
    /// What to do with baselines.
    #[command(subcommand)]
    pub command: BaselineCommand,
}

/// What to do with baselines.
#[derive(Debug, Subcommand)]
pub enum BaselineCommand {
    /// Measure the suite several times and keep the result as the baseline
    Record(RecordArgs),
    /// Show a baseline
    Show(ShowArgs),
    /// Write a baseline with the seeds' wide template tolerances
    Template(RecordArgs),
    /// Set the tolerances from the spread between the baseline's runs
    Tighten(ShowArgs),
}

/// Where a baseline comes from and goes to.
#[derive(Debug, clap::Args)]
pub struct RecordArgs {
    /// Take these reports instead of measuring
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

/// `holdpoint report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// A report, a side-by-side comparison, a calibration or a search
    #[arg(value_name = "REPORT", default_value = "artifacts/report.json")]
    pub report: PathBuf,
    /// Its comparison, to be shown with it
    #[arg(long, value_name = "FILE")]
    pub comparison: Option<PathBuf>,
    /// Also write it as Markdown
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// `holdpoint worker`.
#[derive(Debug, clap::Args)]
pub struct WorkerArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Add this much real work to every call, to show that a slowdown is found
    #[arg(long, value_name = "PERCENT", default_value = "0%", value_parser = share)]
    pub slowdown: f64,
}

/// `holdpoint completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}
