//! Options of `trend`.

use clap::Subcommand;
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
    /// Show a suite's history
    Show {
        /// The NDJSON file; the suite's own if not given
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Name of the suite [default: that of perf.toml, here or above; else cpu]
        #[arg(long, value_name = "NAME")]
        suite: Option<String>,
        /// Folder with one NDJSON file per suite
        #[arg(long, value_name = "DIR", default_value = ".holdpoint/trend")]
        dir: PathBuf,
        /// Also write a page with a chart per metric, one file that needs nothing else
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// Also write the charts as one SVG picture
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// With --html or --svg: the repository whose commits are linked, such as `https://host/owner/name` [default: the remote
        /// `origin` of the repository here, if it has the newest commit and is on a forge that is known]
        #[arg(long, value_name = "URL")]
        repository: Option<String>,
    },
}
