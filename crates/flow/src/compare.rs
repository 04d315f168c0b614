//! `holdpoint compare`: judge samples that were taken before.

use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::judgement_with_samples::JudgementWithSamples;
use crate::request::{PolicyChoice, Question};
use crate::waivers::InForce;
use holdpoint_gate::{
    HasExitCode, Judgement, Policy, compare_reports_disjoint_ci, judge_run, set_tolerances,
};
use holdpoint_gate::{judge_sides, recorded_policy};
use holdpoint_measure::clock;
use holdpoint_model::suite::GateSettings;
use holdpoint_model::{AbReport, Current, FileError, Kind, Report, Trend};
use holdpoint_store::StoreError;
use std::path::{Path, PathBuf};

/// Samples to be judged.
#[derive(Clone, Debug)]
pub struct CompareRequest {
    /// A report, an ab.json, or results of another tool.
    pub report: PathBuf,
    /// What it is compared with; an ab.json holds both sides.
    pub baseline: Option<PathBuf>,
    pub policy: PolicyChoice,
    /// Instead of the one that an ab.json was measured for.
    pub question: Question,
    pub waivers: Option<PathBuf>,
    /// Where the comparison goes.
    pub summary: Option<PathBuf>,
    /// Where the trend point goes.
    pub trend_output: Option<PathBuf>,
}

pub fn run(request: &CompareRequest) -> Result<CommandResult<JudgementWithSamples>, FlowError> {
    let waivers = InForce::read(request.waivers.as_deref())?;
    let current = holdpoint_store::read_current(&request.report);
    let sides = match (&request.baseline, is_sides(&current)) {
        (None, true) => Some(holdpoint_store::read_document::<AbReport>(&request.report)?),
        (Some(_), true) => {
            let what = "it holds both sides already; leave out --baseline";
            return Err(FlowError::File { path: request.report.clone(), what: what.to_owned() });
        }
        (_, false) => None,
    };
    let mut judgement = match (&sides, &request.baseline) {
        (Some(sides), _) => judge_again(request, sides)?,
        (None, Some(baseline)) => judge_report(request, current, baseline)?,
        (None, None) => {
            let what = "a report is compared with --baseline FILE; an ab.json needs none";
            return Err(FlowError::Input(what.to_owned()));
        }
    };
    waivers.apply(&mut judgement);
    if let Some(path) = &request.summary {
        holdpoint_store::write_json(path, &judgement)?;
    }
    if let Some(path) = &request.trend_output {
        holdpoint_store::write_json(path, &trend(&judgement))?;
    }
    let exit = judgement.exit_code();
    Ok(CommandResult::new(JudgementWithSamples { judgement, sides, report: None }, exit))
}

/// Judges two sides by their own question or another one.
fn judge_again(request: &CompareRequest, sides: &AbReport) -> Result<Judgement, FlowError> {
    let policy = request.policy.policy.unwrap_or_else(|| recorded_policy(sides));
    judge_sides(sides, &request.question.apply(sides.plan.clone()), policy)
        .map_err(|error| FlowError::File { path: request.report.clone(), what: error.to_string() })
}

/// Whether a file was refused as a run because it holds two sides.
fn is_sides(current: &Result<Current, StoreError>) -> bool {
    let found = if let Err(StoreError::Format { source, .. }) = current { Some(source) } else { None };
    matches!(found, Some(FileError::OtherKind { found: Kind::Ab, .. }))
}

fn judge_report(
    request: &CompareRequest,
    current: Result<Current, StoreError>,
    baseline: &Path,
) -> Result<Judgement, FlowError> {
    if request.question.alarm_rate.or(request.question.miss_rate).is_some() {
        let what = "--alarm-rate and --miss-rate are for an ab.json; a baseline has the alarm rate that it was recorded for";
        return Err(FlowError::Input(what.to_owned()));
    }
    let gate = GateSettings::default();
    let policy = request.policy.policy(&gate)?;
    if policy == Policy::DisjointCi {
        // It compares samples, which only reports have.
        let baseline = holdpoint_store::read_document::<Report>(baseline)?;
        let current = holdpoint_store::read_document::<Report>(&request.report)?;
        return Ok(compare_reports_disjoint_ci(&baseline, &current, request.policy.allow));
    }
    let policy = baseline_policy(&request.policy, &gate)?;
    let current = current?;
    let baseline =
        set_tolerances(holdpoint_store::read_baseline(baseline)?, request.question.tolerance, &gate, policy);
    Ok(judge_run(&current, &baseline, request.policy.allow, policy))
}

/// The policy for a baseline that the choice and the suite mean.
pub(crate) fn baseline_policy(choice: &PolicyChoice, gate: &GateSettings) -> Result<Policy, FlowError> {
    let policy = choice.policy(gate)?;
    if policy.takes_baseline() {
        return Ok(policy);
    }
    Err(FlowError::Input(format!(
        "--policy {} needs the samples of both sides: \"gate --against REV\", \"ab\", or \"compare\" of an ab.json{}",
        policy.name(),
        if policy == Policy::DisjointCi { " or of two reports" } else { "" },
    )))
}

/// The trend point of a judged run; a run whose file has no time is dated now.
pub(crate) fn trend(judgement: &Judgement) -> Trend {
    let now = || clock::timestamp_utc();
    let timestamp_utc = judgement.timestamp_utc.clone().unwrap_or_else(now);
    Trend::new(judgement, &timestamp_utc)
}
