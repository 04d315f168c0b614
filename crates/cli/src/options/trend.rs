//! Flags of `trend`.

use super::values;
use clap::Subcommand;
use holdpoint_flow::request::Location;
use holdpoint_flow::trend::{TrendPage, TrendRequest, TrendSource};
use std::path::PathBuf;

/// `holdpoint trend`.
#[derive(Debug, clap::Args)]
pub struct TrendArgs {
    #[command(subcommand)]
    pub command: TrendCommand,
}

#[derive(Debug, Subcommand)]
pub enum TrendCommand {
    /// Append trend points to their suite's NDJSON file
    Append {
        /// Trend files; also reports and results of other tools (docs/imports.md)
        #[arg(value_name = "TREND", default_value = "artifacts/trend.json")]
        trends: Vec<PathBuf>,
        /// Folder with one NDJSON file per suite
        #[arg(long, value_name = "DIR", default_value = ".holdpoint/trend")]
        dir: PathBuf,
    },
    /// Show a suite's history, and where the levels of its metrics changed
    Show(TrendShowArgs),
}

/// `holdpoint trend show`.
#[derive(Debug, clap::Args)]
pub struct TrendShowArgs {
    /// The NDJSON file; the suite's own if not given
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Name of the suite [default: that of perf.toml, here or above; else cpu]
    #[arg(long, value_name = "NAME")]
    pub suite: Option<String>,
    /// Folder with one NDJSON file per suite
    #[arg(long, value_name = "DIR", default_value = ".holdpoint/trend")]
    pub dir: PathBuf,
    /// Show the series of this history instead: a file, postgres://…, or git:REF [without a value: .holdpoint/history.db]
    #[arg(long, value_name = "STORE", num_args = 0..=1, default_missing_value = Location::DEFAULT, value_parser = values::location, conflicts_with = "file")]
    pub history: Option<Location>,
    /// With --history: only of this workload
    #[arg(long, value_name = "NAME", requires = "history")]
    pub workload: Option<String>,
    /// Also write a self-contained HTML page with a chart per metric
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write the charts as one SVG picture
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// With --html or --svg: the repository whose commits are linked, such as `https://host/owner/name` [default: the remote
    /// `origin` of the repository here, if it has the newest commit and is on a forge that is known]
    #[arg(long, value_name = "URL")]
    pub repository: Option<String>,
}

impl From<TrendArgs> for TrendRequest {
    fn from(args: TrendArgs) -> Self {
        match args.command {
            TrendCommand::Append { trends, dir } => Self::Append { trends, dir },
            TrendCommand::Show(args) => Self::Show(args.into()),
        }
    }
}

impl From<TrendShowArgs> for TrendPage {
    fn from(args: TrendShowArgs) -> Self {
        let TrendShowArgs { file, suite, dir, history, workload, html, svg, repository } = args;
        let source = match (history, file) {
            (Some(location), _) => TrendSource::History { location, suite, workload },
            (None, Some(file)) => TrendSource::File(file),
            (None, None) => TrendSource::Suite { name: suite, dir },
        };
        Self { source, html, svg, repository }
    }
}
