//! `holdpoint compare`: judge a report against a baseline.

use crate::args::{CompareArgs, PolicyArgs, PolicyName};
use crate::error::CliError;
use crate::output::Output;
use crate::waivers::InForce;
use holdpoint_gate::ab::{compare_reports_disjoint_ci, exit_code_of};
use holdpoint_gate::{Policy, judge_run};
use holdpoint_measure::clock;
use holdpoint_model::{ExitCode, Judgement, Report, Trend};
use holdpoint_render::terminal;

const THRESHOLD_ALONE: &str = "--threshold goes with --policy threshold; leave out one of the two";

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written.
pub fn run(args: &CompareArgs, output: &Output) -> Result<ExitCode, CliError> {
    let waivers = InForce::read(&args.waivers)?;
    let mut judgement = if args.policy.policy == Some(PolicyName::DisjointCi) {
        if args.policy.threshold.is_some() {
            return Err(CliError::Input(THRESHOLD_ALONE.to_owned()));
        }
        // It compares samples, which only reports have.
        let baseline = holdpoint_store::read_document::<Report>(&args.baseline)?;
        let current = holdpoint_store::read_document::<Report>(&args.report)?;
        compare_reports_disjoint_ci(&baseline, &current, args.policy.allow())
    } else {
        let current = holdpoint_store::read_current(&args.report)?;
        let baseline = holdpoint_store::read_baseline(&args.baseline)?;
        judge_run(&current, &baseline, args.policy.allow(), policy_of(&args.policy)?)
    };
    waivers.put_to(&mut judgement);
    if let Some(path) = &args.summary {
        holdpoint_store::write_json(path, &judgement)?;
    }
    if let Some(path) = &args.trend_output {
        holdpoint_store::write_json(path, &trend(&judgement))?;
    }
    output.result(&judgement, |style| terminal::judgement(&judgement, None, style))?;
    Ok(exit_code_of(&judgement.policy, judgement.verdict))
}

/// The policy that the flags mean.
///
/// # Errors
/// When they contradict each other.
pub fn policy_of(args: &PolicyArgs) -> Result<Policy, CliError> {
    let contradiction = match args.policy {
        Some(PolicyName::DisjointCi) => {
            "--policy disjoint-ci needs the samples of both sides: \"gate --against REV\", \"ab\", or \"compare\" of two reports"
        }
        _ => THRESHOLD_ALONE,
    };
    args.policy().ok_or_else(|| CliError::Input(contradiction.to_owned()))
}

/// The trend point of a judged run; a run whose file has no time is dated now.
#[must_use]
pub fn trend(judgement: &Judgement) -> Trend {
    let now = || clock::timestamp_utc();
    let timestamp_utc = judgement.timestamp_utc.clone().unwrap_or_else(now);
    Trend::new(judgement, &timestamp_utc)
}
