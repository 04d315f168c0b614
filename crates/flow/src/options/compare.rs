//! Options of `compare`.

use super::{PolicyArgs, QuestionArgs, WaiversArg};
use std::path::PathBuf;

/// `holdpoint compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// The samples to judge: a report, an ab.json, or results of another tool (docs/imports.md)
    #[arg(value_name = "FILE")]
    pub report: PathBuf,
    /// The baseline, report or results of another tool to compare with; an ab.json holds both sides
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
