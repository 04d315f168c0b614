//! `holdpoint ab`: two sides that are alive at the same time.

pub mod compare;
mod plan;
pub mod sides;

pub use plan::UNITS_AT_ONCE;

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts::{self, Writer};
use crate::evidence::sealing::{Origins, Sealing};
use crate::histories::{self, Measured};
use crate::judgement_with_samples::JudgementWithSamples;
use crate::profile;
use crate::request::{
    EvidenceFiles, ProfileOn, SidesRequest, SuiteChoice, check_policy_of_sides, policy_of_sides,
};
use crate::rules::Rules;
use crate::suites;
use compare::OngoingComparison;
use holdpoint_gate::{HasExitCode, Judgement};
use holdpoint_model::{AbReport, Source, Verdict};
use holdpoint_render::{Judged, markdown};
use sides::{CommandPair, Head, PlannedSides};

/// Two sides to be compared.
#[derive(Clone, Debug)]
pub struct AbRequest {
    pub sides: AbSides,
    pub how: SidesRequest,
    pub files: EvidenceFiles,
}

/// The two sides.
#[derive(Clone, Debug)]
pub enum AbSides {
    Commands(CommandPair),
    /// Revisions of the repository around the current folder, built as the suite says.
    Revisions {
        suite: SuiteChoice,
        base: String,
        head: Head,
    },
    /// Programs that serve the suite's workloads.
    Workers {
        suite: SuiteChoice,
        base: String,
        head: String,
    },
    Suites {
        base: SuiteChoice,
        head: SuiteChoice,
    },
}

pub fn run(request: &AbRequest, watch: &dyn Watch) -> Result<CommandResult<JudgementWithSamples>, FlowError> {
    let AbRequest { sides, how, files } = request;
    check_policy_of_sides(how.policy)?;
    let planned = PlannedSides::read(sides)?;
    let rules = Rules::read(files, planned.suite())?;
    let _lock = artifacts::lock(&files.artifacts, watch)?;
    decide(planned, &rules, how, files, watch)
}

/// Compares, leaves the files and says how it came out.
pub(crate) fn decide(
    planned: PlannedSides,
    rules: &Rules,
    how: &SidesRequest,
    files: &EvidenceFiles,
    watch: &dyn Watch,
) -> Result<CommandResult<JudgementWithSamples>, FlowError> {
    let gate = planned.suite().gate.clone();
    let SidesRequest { decision, policy, resume } = how;
    let policy = policy_of_sides(*policy, &gate)?;
    let writer = Writer::Sides { resume: *resume };
    let (path, page) = (files.artifacts.join(artifacts::AB), files.artifacts.join(artifacts::AB_PAGE));
    let mut sealing = Sealing::new(rules.key.clone(), &path);
    // Before any code of the sides runs: a build could write units into it.
    let mut has_lost_key = false;
    let mut earlier = None;
    if *resume {
        earlier = Some(holdpoint_store::read_document::<AbReport>(&path)?);
        let lost = sealing.resume(&path, planned.head_revision().as_ref())?;
        lost.iter().for_each(|what| watch.note(what));
        has_lost_key = lost.is_some();
    }
    let prepared = artifacts::clear_unless_input(planned.prepare(decision, watch), &files.artifacts, writer)?;
    let prepared = &prepared;
    holdpoint_store::check_writable(&path)?;
    watch.keep_on_interrupt();
    suites::note_harnesses(&prepared.sides.head, watch);
    let plan = decision.plan(&gate, policy);
    let mut comparison = match earlier {
        Some(report) => {
            OngoingComparison::resume(prepared, plan, policy, decision.seed.is_some(), (&path, report))?
        }
        None => OngoingComparison::new(prepared, plan, policy)?,
    };
    artifacts::clear(&files.artifacts, writer)?;
    // Of the comparison that is continued; they tell less than there will be.
    sealing.unseal()?;
    holdpoint_store::remove(&page)?;
    comparison.measure(Some(&path), watch);
    // Before it is judged: whatever that says, what was measured is kept.
    sealing.write_json(&path, &comparison.report)?;
    let mut judgement = comparison.judge()?;
    let report = comparison.report;
    rules.apply_to_sides(&mut judgement);
    if files.profile_on == ProfileOn::Regression && !watch.is_interrupted() {
        let (base, head) = (&prepared.sides.base, &prepared.sides.head);
        let names = regressed(&judgement);
        let notes = profile::of_regressed(&names, head, Some(base), &files.artifacts, watch);
        notes.into_iter().for_each(|note| judgement.add_note(note));
    }
    let judged = Judged::new(&judgement, Some(Source::Sides(&report)));
    sealing.write_json(&files.artifacts.join(artifacts::COMPARISON), &judgement)?;
    sealing.write_text(&page, &markdown::judgement(judged).unwrap_or_default())?;
    let unsealed = sealing.seal(&Origins {
        command: "ab",
        suite: &prepared.sides.head,
        revision: report.head.revision.as_ref(),
        machine: report.machine.as_ref(),
    })?;
    let measured = Measured::Sides { ab: &report, judgement: &judgement };
    histories::keep(rules.history.as_ref(), &measured, watch);
    let unsealed = if has_lost_key { "" } else { unsealed };
    let exit = judgement.exit_code();
    let decided = JudgementWithSamples { judgement, sides: Some(report), report: None };
    Ok(CommandResult::new(decided, exit)
        .with_note(format!("evidence: {}{unsealed}", files.artifacts.display())))
}

/// The workloads that regressed, each once.
pub(crate) fn regressed(judgement: &Judgement) -> Vec<String> {
    let checks = judgement.checks.iter().filter(|check| check.verdict == Verdict::Regressed);
    let mut names: Vec<String> = checks.filter_map(|check| check.workload.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
