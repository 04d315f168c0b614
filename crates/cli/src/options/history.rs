//! Flags of `history`.

use super::values::{self, Words};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use holdpoint_flow::history::{
    AcceptRequest, AddRequest, ExportRequest, HistoryForm, HistoryRequest, PruneRequest,
};
use holdpoint_flow::request::Location;
use holdpoint_model::{RunCursor, RunFilter, SeriesFilter, TimeRange, Timestamp, Verdict};
use std::path::PathBuf;

/// `holdpoint history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    #[command(subcommand)]
    pub command: HistoryCommand,
}

/// Which history.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct StoreArg {
    /// A file, postgres://…, or git:REF [default: `[history]` of perf.toml, here or above; else .holdpoint/history.db]
    #[arg(long, value_name = "STORE", value_parser = values::location)]
    pub store: Option<Location>,
}

impl From<StoreArg> for Option<Location> {
    fn from(arg: StoreArg) -> Self {
        arg.store
    }
}

/// Which of its series.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SelectArgs {
    /// Only this suite
    #[arg(long, value_name = "NAME", help_heading = "Series")]
    pub suite: Option<String>,
    /// Only this workload
    #[arg(long, value_name = "NAME", help_heading = "Series")]
    pub workload: Option<String>,
    /// Only this metric, such as p50_ms
    #[arg(long, value_name = "NAME", help_heading = "Series")]
    pub metric: Option<String>,
    /// Only machines whose fingerprint starts with this
    #[arg(long, value_name = "HEX", help_heading = "Series")]
    pub machine: Option<String>,
    /// Only series whose id starts with this
    #[arg(long, value_name = "ID", help_heading = "Series")]
    pub series: Option<String>,
}

impl From<SelectArgs> for SeriesFilter {
    fn from(args: SelectArgs) -> Self {
        let SelectArgs { suite, workload, metric, machine, series } = args;
        Self { suite, workload, metric, machine, id: series }
    }
}

#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// Add runs: reports, comparisons, trends, results of other tools
    Add(AddArgs),
    /// List the series
    List {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        select: SelectArgs,
    },
    /// List the runs, the newest first
    Runs(RunsArgs),
    /// Show the points of series
    Show {
        #[command(flatten)]
        store: StoreArg,
        #[command(flatten)]
        select: SelectArgs,
        /// Newest points to show of each; with --format json all are shown
        #[arg(long, value_name = "N", default_value_t = 20)]
        points: usize,
    },
    /// Write the points of series as a table
    Export(ExportArgs),
    /// Remove raw samples of old runs, or old runs whole
    Prune(PruneArgs),
    /// Accept a change: from some point on, a series has a new level
    Accept(AcceptArgs),
    /// Upgrade a history to this version's format
    Migrate {
        #[command(flatten)]
        store: StoreArg,
    },
}

/// `holdpoint history runs`.
#[derive(Debug, clap::Args)]
pub struct RunsArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Only runs that began at this UTC time or later, such as 2026-12-31 or 2026-12-31T23:59:59Z
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub since: Option<Timestamp>,
    /// Only runs that began before this UTC time
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub until: Option<Timestamp>,
    /// Only this branch
    #[arg(long, value_name = "NAME")]
    pub branch: Option<String>,
    /// Only machines whose fingerprint starts with this
    #[arg(long, value_name = "HEX")]
    pub machine: Option<String>,
    /// Only runs with this verdict
    #[arg(long, value_name = "VERDICT", value_parser = verdict())]
    pub verdict: Option<Verdict>,
    /// Only this suite
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Runs on a page
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub limit: u32,
    /// The page after this place, which the page before names
    #[arg(long, value_name = "PLACE", value_parser = cursor)]
    pub after: Option<RunCursor>,
}

impl From<RunsArgs> for HistoryRequest {
    fn from(args: RunsArgs) -> Self {
        let RunsArgs { store, since, until, branch, machine, verdict, suite, limit, after } = args;
        let times = TimeRange { since, until };
        Self::Runs {
            store: store.into(),
            filter: RunFilter { suite, branch, machine, verdict, times, after, limit },
        }
    }
}

/// `holdpoint history add`.
#[derive(Debug, clap::Args)]
pub struct AddArgs {
    /// Files or folders: report.json, ab.json, comparison.json, trends (also NDJSON), results of other tools (docs/imports.md)
    #[arg(value_name = "FILE", default_value = "artifacts")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub store: StoreArg,
    /// Commit for files that do not name one
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,
    /// With git:REF: then merge it with the same ref of this remote and push
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, default_missing_value = "origin")]
    pub push: Option<String>,
    /// UTC time for files that do not name one, such as 2026-12-31T23:59:59Z [default: when the file was last changed]
    #[arg(long, value_name = "TIME", value_parser = timestamp)]
    pub at: Option<Timestamp>,
}

/// `holdpoint history export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub select: SelectArgs,
    /// The form of the table
    #[arg(long = "as", value_parser = values::word(FORMS), value_name = "FORM", default_value = "csv")]
    pub form: HistoryForm,
    /// Where to write it [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

const FORMS: Words<HistoryForm> = &[
    ("csv", "A row for each point", HistoryForm::Csv),
    ("json", "The series with their points, versions and accepted changes", HistoryForm::Json),
    ("parquet", "The rows of the CSV as Parquet; needs --output", HistoryForm::Parquet),
];

/// `holdpoint history prune`.
#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("old").args(["older_than", "keep"]).multiple(true).required(true)))]
pub struct PruneArgs {
    #[command(flatten)]
    pub store: StoreArg,
    /// Prune runs older than this many days
    #[arg(long, value_name = "DAYS")]
    pub older_than: Option<u32>,
    /// Keep this many newest runs of each suite; with --older-than, prune only those that are also older
    #[arg(long, value_name = "N")]
    pub keep: Option<u32>,
    /// Remove whole runs with their points, not only their raw samples
    #[arg(long)]
    pub runs: bool,
    /// With git:REF: then join it with the same ref of this remote and push the outcome
    #[arg(long, value_name = "REMOTE", num_args = 0..=1, default_missing_value = "origin")]
    pub push: Option<String>,
}

/// `holdpoint history accept`.
#[derive(Debug, clap::Args)]
pub struct AcceptArgs {
    #[command(flatten)]
    pub store: StoreArg,
    #[command(flatten)]
    pub select: SelectArgs,
    /// Accept in all series of all suites and machines
    #[arg(long, conflicts_with = "revision")]
    pub all: bool,
    /// Accept from the first point of this commit on; the beginning of its hash will do [default: the newest point]
    #[arg(long, value_name = "COMMIT")]
    pub revision: Option<String>,
    /// Name of the person who accepts it [default: $GITHUB_ACTOR, $GITLAB_USER_LOGIN, git's user.name or $USER]
    #[arg(long, value_name = "NAME")]
    pub by: Option<String>,
    /// The reason
    #[arg(long, value_name = "TEXT")]
    pub why: String,
}

requests! {
    AddArgs => AddRequest { files, store, revision, push, at }
    ExportArgs => ExportRequest { store, select, form, output }
    PruneArgs => PruneRequest { store, older_than, keep, runs, push }
    AcceptArgs => AcceptRequest { store, select, all, revision, by, why }
}

impl From<HistoryArgs> for HistoryRequest {
    fn from(args: HistoryArgs) -> Self {
        match args.command {
            HistoryCommand::Add(args) => Self::Add(args.into()),
            HistoryCommand::List { store, select } => {
                Self::List { store: store.into(), select: select.into() }
            }
            HistoryCommand::Runs(args) => args.into(),
            HistoryCommand::Show { store, select, points } => {
                Self::Show { store: store.into(), select: select.into(), points }
            }
            HistoryCommand::Export(args) => Self::Export(args.into()),
            HistoryCommand::Prune(args) => Self::Prune(args.into()),
            HistoryCommand::Accept(args) => Self::Accept(args.into()),
            HistoryCommand::Migrate { store } => Self::Migrate { store: store.into() },
        }
    }
}

fn timestamp(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "a time in UTC is wanted, such as 2026-12-31T23:59:59Z".to_owned())
}

fn cursor(text: &str) -> Result<RunCursor, String> {
    RunCursor::parse(text)
        .ok_or_else(|| "a place that \"holdpoint history runs\" has named is wanted".to_owned())
}

fn verdict() -> impl TypedValueParser<Value = Verdict> {
    PossibleValuesParser::new(Verdict::ALL.map(Verdict::as_str)).try_map(|text| {
        let found = Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == text);
        found.ok_or("there is no such verdict")
    })
}
