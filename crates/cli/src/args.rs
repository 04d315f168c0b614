//! Command-line arguments.

mod ab;
mod baseline;
mod check;
mod ci;
mod comment;
mod evidence;
mod fuzz;
mod inspect;
mod policy;
mod report;
mod roofline;

pub use ab::{
    AbArgs, AbFiles, BisectArgs, CalibrateArgs, DecideArgs, QuestionArgs, ROUND_MS, ROUNDS_PER_UNIT,
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
use policy::policy_parser;
pub use policy::{Difference, PolicyArgs};
pub use report::{ReportArgs, ReportForm};
pub use roofline::RooflineArgs;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, Parser, Subcommand, ValueEnum};
use holdpoint_model::exit::EXIT_CODES;
use std::path::PathBuf;
use std::sync::LazyLock;

/// A performance gate: measure, check the answers, compare, decide, leave evidence.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true, after_long_help = EXIT_HELP.as_str())]
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

/// The commands by task, in the order of `holdpoint --help`.
const TASKS: &[(&str, &[&str])] = &[
    ("Gate a change", &["gate", "ab", "compare", "bisect"]),
    ("Measure", &["run", "check", "roofline", "profile", "tune"]),
    ("Check answers", &["fuzz", "replay", "sanitize"]),
    ("Baselines, history, reports", &["baseline", "calibrate", "trend", "report"]),
    ("CI and releases", &["ci", "attest", "checklist"]),
    ("Set up", &["doctor", "worker", "completions"]),
];

/// The command line, with its commands grouped by task.
#[must_use]
pub fn command() -> clap::Command {
    let command = Args::command();
    let mut tasks = String::new();
    for (task, names) in TASKS {
        tasks += &format!("\n{task}:\n");
        for name in *names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            tasks += &format!("  {name:<12} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{tasks}\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// The help that `--help-all` asks for: of the command before it, with every flag.
#[must_use]
pub fn help_all(arguments: &[String]) -> Option<String> {
    arguments.iter().position(|argument| argument == "--help-all")?;
    let mut command = command();
    command.build();
    for name in arguments {
        if let Some(sub) = command.find_subcommand(name) {
            command = sub.clone();
        }
    }
    Some(show_all(command).render_long_help().to_string())
}

/// A command with its hidden flags shown, but for those that holdpoint passes to itself.
#[must_use]
pub fn show_all(command: clap::Command) -> clap::Command {
    command.mut_args(|flag| if flag.get_id() == "parent" { flag } else { flag.hide(false) })
}

/// A flag for two sides given to a gate with a baseline, or the reverse: it would do nothing.
#[must_use]
pub fn stray_flag(matches: &ArgMatches) -> Option<String> {
    let ("gate", gate) = matches.subcommand()? else { return None };
    let is_given = |id: &String| gate.value_source(id) == Some(ValueSource::CommandLine);
    let (stray, place) = if gate.contains_id("against") {
        let ids = ["runs", "confirm", "baseline_dir"].map(str::to_owned).to_vec();
        (ids, "is for a gate with a stored baseline, without --against")
    } else {
        (DecideArgs::ids_of_sides(), "is for a gate side by side: give --against REV as well")
    };
    stray.into_iter().find(is_given).map(|id| format!("--{} {place}", id.replace('_', "-")))
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
    /// Print help with every flag
    #[arg(long, global = true, help_heading = "Output")]
    pub help_all: bool,
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
    /// Measure a suite, compare it with this machine's baseline or with a revision, decide
    Gate(GateArgs),
    /// Compare two revisions, workers, suites or commands, measured side by side
    Ab(AbArgs),
    /// Compare a suite with itself: false-alarm rate here, smallest visible slowdown
    Calibrate(CalibrateArgs),
    /// Find the commit that slowed a workload
    Bisect(BisectArgs),
    /// Measure a suite and write its report
    Run(RunArgs),
    /// Judge a report against a baseline, or the samples of two sides again
    Compare(CompareArgs),
    /// Record, show and adjust baselines
    Baseline(BaselineArgs),
    /// Keep and show the history of a suite
    Trend(TrendArgs),
    /// Render a report, comparison, calibration or bisection
    Report(ReportArgs),
    /// Show how close workloads come to the hardware's limits, and their bottleneck
    Roofline(RooflineArgs),
    /// Report what this machine can measure and what is missing
    Doctor,
    /// Profile a suite's kernels and name the bottleneck (Nsight Compute)
    Profile(ProfileArgs),
    /// Check a suite's kernels for memory errors and races (compute-sanitizer)
    Sanitize(SanitizeArgs),
    /// Find the fastest constants for a suite's CUDA kernels on this device
    Tune(TuneArgs),
    /// Check one kernel at one shape or many: right answers, speed, share of the roofline
    Check(CheckArgs),
    /// Search for inputs that make a suite's kernels give wrong answers
    Fuzz(FuzzArgs),
    /// Record the answers of a suite's kernels, and verify them later
    Replay(ReplayArgs),
    /// Create, sign and verify release attestations
    Attest(AttestArgs),
    /// Fill evidence into a release checklist
    Checklist(ChecklistArgs),
    /// End the processes of a holdpoint that was killed; started by holdpoint itself
    #[command(hide = true)]
    Watchdog {
        /// The mark of that holdpoint's processes
        session: String,
    },
    /// Serve a suite's workloads over stdin and stdout (docs/worker-protocol.md)
    Worker(WorkerArgs),
    /// CI integration: workflows, guard, comments, notifications
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

/// Examples of `holdpoint gate -h`.
const GATE_EXAMPLES: &str = "\
Examples:
  holdpoint gate --suite perf.toml                  against this machine's baseline
  holdpoint gate --suite perf.toml --against main   against a revision, side by side";

/// `holdpoint gate`.
#[derive(Debug, clap::Args)]
#[command(after_help = GATE_EXAMPLES, mut_arg("baseline_dir", |flag| flag.hide(true)))]
pub struct GateArgs {
    /// Which suite.
    #[command(flatten)]
    pub suite: SuiteArg,
    /// Compare with this git revision, side by side, instead of with a baseline
    #[arg(long, value_name = "REV", conflicts_with_all = ["baseline", "require_baseline", "allow", "threshold"])]
    pub against: Option<String>,
    /// With --against: measure the working tree, uncommitted changes included
    #[arg(long, requires = "against")]
    pub dirty: bool,
    /// With --against: continue an interrupted gate
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
    /// Folder with the outcomes of `calibrate`
    #[arg(long, value_name = "DIR", hide = true, default_value = ".holdpoint/calibration")]
    pub calibration_dir: PathBuf,
    /// Folder for the samples (report.json or ab.json), comparison.json and pages
    #[arg(long, value_name = "DIR", default_value = "artifacts")]
    pub artifacts: PathBuf,
    /// Profile the kernels of what regressed, into the same folder
    #[arg(long, value_enum, value_name = "WHEN", hide = true, default_value_t = ProfileOn::Never)]
    pub profile_on: ProfileOn,
    /// End as inconclusive where there is no baseline yet, instead of recording one
    #[arg(long)]
    pub require_baseline: bool,
    /// Runs to add when the first is slower than allowed; the median of all is judged [default: 2]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(0..=100))]
    pub confirm: Option<u32>,
    /// Runs behind a baseline, when there is none yet [default: 5]
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: Option<u32>,
    /// The seal's key.
    #[command(flatten)]
    pub seal: SealArgs,
}

/// Runs behind a baseline: enough for a spread that means something, few enough to wait for.
pub const RUNS_DEFAULT: u32 = 5;
/// Runs that are added when the first is slower than allowed.
pub const CONFIRM_DEFAULT: u32 = 2;

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
    /// The samples to judge: a report, an ab.json, or a result file of Apex-X or cudadent42
    #[arg(value_name = "FILE")]
    pub report: PathBuf,
    /// The baseline or report to compare a report with; an ab.json holds both sides
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// How to decide.
    #[command(flatten)]
    pub policy: PolicyArgs,
    /// The question, instead of the one that an ab.json was measured for.
    #[command(flatten)]
    pub question: QuestionArgs,
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
