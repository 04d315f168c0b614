//! `holdpoint compare`: judge a report against a baseline.

use crate::args::{CompareArgs, PolicyArgs};
use crate::error::CliError;
use crate::output::Output;
use holdpoint_gate::{Policy, compare, judge};
use holdpoint_measure::clock;
use holdpoint_model::{ExitCode, Judgement, Trend};
use holdpoint_render::terminal;

/// Runs the command.
///
/// # Errors
/// When a file cannot be read, used or written.
pub fn run(args: &CompareArgs, output: &Output) -> Result<ExitCode, CliError> {
    let current = holdpoint_store::read_current(&args.report)?;
    let baseline = holdpoint_store::read_baseline(&args.baseline)?;
    let comparison = compare(&current, &baseline, args.policy.allow());
    let judgement = judge(&comparison, policy_of(&args.policy)?);
    if let Some(path) = &args.summary {
        holdpoint_store::write_json(path, &judgement)?;
    }
    if let Some(path) = &args.trend_output {
        holdpoint_store::write_json(path, &trend(&judgement))?;
    }
    output.result(&judgement, |style| terminal::judgement(&judgement, None, style))?;
    Ok(judgement.verdict.into())
}

/// The policy that the flags mean.
///
/// # Errors
/// When they contradict each other.
pub fn policy_of(args: &PolicyArgs) -> Result<Policy, CliError> {
    let contradiction = "--threshold goes with --policy threshold; leave out one of the two";
    args.policy().ok_or_else(|| CliError::Input(contradiction.to_owned()))
}

/// The trend point of a judged run; a run whose file has no time is dated now.
#[must_use]
pub fn trend(judgement: &Judgement) -> Trend {
    let now = || clock::timestamp_utc();
    let timestamp_utc = judgement.timestamp_utc.clone().unwrap_or_else(now);
    Trend::new(judgement, &timestamp_utc)
}
