//! Flags of `compare`.

use super::decide::QuestionArgs;
use super::groups::WaiversArg;
use super::policy::PolicyArgs;
use holdpoint_flow::compare::CompareRequest;
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

requests! {
    CompareArgs => CompareRequest { report, baseline, policy, question, waivers, summary, trend_output }
}
