//! The command line: its commands by task, and its help.

use crate::options::{
    AbArgs, AttestArgs, BaselineArgs, BisectArgs, BlameArgs, CacheArgs, CalibrateArgs, ChangesArgs,
    CheckArgs, ChecklistArgs, CiArgs, CompareArgs, FirstSuiteArgs, FuzzArgs, GateArgs, HistoryArgs,
    ProfileArgs, ReplayArgs, ReportArgs, RooflineArgs, RunArgs, SanitizeArgs, SweepArgs, TrendArgs, TuneArgs,
    WorkerArgs,
};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use holdpoint_model::exit::EXIT_CODES;
use std::sync::LazyLock;

/// A performance gate: measure, check the answers, compare, decide, leave evidence.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100, propagate_version = true, after_long_help = EXIT_HELP.as_str())]
pub struct Args {
    /// Flags of every command.
    #[command(flatten)]
    pub global: Global,
    /// Without one: where this repository stands, and the next step.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// The table of exit codes, the same for all commands.
static EXIT_HELP: LazyLock<String> = LazyLock::new(|| {
    let lines = EXIT_CODES.iter().map(|(code, meaning)| format!("\n{code:>4}  {meaning}"));
    format!("Exit codes:{}", lines.collect::<String>())
});

/// The commands by task, in the order of `holdpoint --help`.
const TASKS: &[(&str, &[&str])] = &[
    ("Gate a change", &["gate", "ab", "compare", "bisect", "blame"]),
    ("Measure", &["run", "sweep", "check", "roofline", "profile", "tune"]),
    ("Check answers", &["fuzz", "replay", "sanitize"]),
    ("Baselines, history, reports", &["baseline", "calibrate", "history", "changes", "trend", "report"]),
    ("CI and releases", &["ci", "attest", "checklist"]),
    ("Set up", &["init", "doctor", "cache", "worker", "completions"]),
];

/// The command line, with its commands grouped by task.
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
pub(crate) fn help_all(arguments: &[String]) -> Option<String> {
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
pub fn show_all(command: clap::Command) -> clap::Command {
    command.mut_args(|flag| if flag.get_id() == "parent" { flag } else { flag.hide(false) })
}

/// Flags of every command.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Global {
    /// Format of stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Human, help_heading = "Output")]
    pub format: Format,
    /// Print only errors (and JSON, if requested); the exit code has the result
    #[arg(long, short, global = true, help_heading = "Output")]
    pub quiet: bool,
    /// Print help with every flag
    #[arg(long, global = true, help_heading = "Output")]
    pub help_all: bool,
}

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
    /// Compare a change with the default branch, a revision or a baseline, and decide
    Gate(GateArgs),
    /// Compare two revisions, workers, suites or commands, measured side by side
    Ab(Box<AbArgs>),
    /// Compare a suite with itself: false-alarm rate here, smallest visible slowdown
    Calibrate(CalibrateArgs),
    /// Find the commit that slowed a workload
    Bisect(BisectArgs),
    /// Find the commit behind a change of the history
    Blame(BlameArgs),
    /// Measure a suite and write its report
    Run(RunArgs),
    /// Measure a model at several input shapes (ONNX Runtime, TensorRT)
    Sweep(SweepArgs),
    /// Judge a report against a baseline, or the samples of two sides again
    Compare(CompareArgs),
    /// Record, show and adjust baselines
    Baseline(BaselineArgs),
    /// Find where the level of a series changed
    Changes(ChangesArgs),
    /// Keep every run in SQLite, PostgreSQL or git, and show its series
    History(HistoryArgs),
    /// Keep and show the history of a suite
    Trend(TrendArgs),
    /// Render a report, comparison, calibration or bisection
    Report(ReportArgs),
    /// Show how close workloads come to the hardware's limits, and their bottleneck
    Roofline(RooflineArgs),
    /// Write a first suite for this repository, and try it
    Init(FirstSuiteArgs),
    /// Report what this machine can measure and what is missing
    Doctor,
    /// List and remove the cached builds of revisions
    Cache(CacheArgs),
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

/// `holdpoint completions`.
#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[cfg(test)]
mod tests;
