//! `holdpoint ab`: two sides that are alive at the same time.

pub mod compare;
pub mod sides;

use crate::Watch;
use crate::decided::Decided;
use crate::done::Done;
use crate::error::FlowError;
use crate::options::{AbArgs, AbFiles, DecideArgs, PolicyArgs, ProfileOn};
use crate::profile;
use crate::support::artifacts::{self, Writer};
use crate::support::histories::{self, Measured};
use crate::support::rules::Rules;
use crate::support::sealing::{Origins, Sealing};
use crate::support::suites;
use compare::Comparison;
use holdpoint_gate::{HasExitCode, Judgement, Policy};
use holdpoint_model::{Source, Verdict};
use holdpoint_render::{Judged, markdown};
use sides::Planned;

pub fn run(args: &AbArgs, watch: &dyn Watch) -> Result<Done<Decided>, FlowError> {
    PolicyArgs::check_for_sides(args.policy)?;
    let planned = Planned::read(args)?;
    let rules = Rules::read(&args.files, planned.suite())?;
    let _lock = artifacts::lock(&args.files.artifacts, watch)?;
    decide(planned, &rules, &args.decide, args.policy, &args.files, watch)
}

/// Compares, leaves the files and says how it came out.
pub fn decide(
    planned: Planned,
    rules: &Rules,
    how: &DecideArgs,
    policy: Option<Policy>,
    files: &AbFiles,
    watch: &dyn Watch,
) -> Result<Done<Decided>, FlowError> {
    let gate = planned.suite().gate.clone();
    let policy = PolicyArgs::policy_of_sides(policy, &gate)?;
    let writer = Writer::Sides { resume: files.resume };
    let prepared = artifacts::clear_unless_input(planned.prepare(how, watch), &files.artifacts, writer)?;
    let prepared = &prepared;
    let (path, page) = (files.artifacts.join(artifacts::AB), files.artifacts.join(artifacts::AB_PAGE));
    let mut sealing = Sealing::new(rules.key.clone(), &path);
    holdpoint_store::check_writable(&path)?;
    watch.keep_on_interrupt();
    suites::note_harnesses(&prepared.sides.head, watch);
    let plan = how.plan(&gate, policy);
    let mut has_lost_key = false;
    let mut comparison = if files.resume {
        let lost = sealing.resume(&path, prepared.head.revision.as_ref())?;
        lost.iter().for_each(|what| watch.note(what));
        has_lost_key = lost.is_some();
        Comparison::resume(prepared, plan, policy, how.seed.is_some(), &path)?
    } else {
        Comparison::new(prepared, plan, policy)?
    };
    artifacts::clear(&files.artifacts, writer)?;
    // Of the comparison that is continued; they tell less than there will be.
    sealing.unseal()?;
    holdpoint_store::remove(&page)?;
    comparison.measure(Some(&path), watch);
    // Before it is judged: whatever that says, what was measured is kept.
    sealing.write_json(&path, &comparison.report)?;
    let (report, mut judgement) = comparison.finish()?;
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
    let decided = Decided { judgement, sides: Some(report), report: None };
    Ok(Done::new(decided, exit).with_note(format!("evidence: {}{unsealed}", files.artifacts.display())))
}

/// The workloads that regressed, each once.
pub fn regressed(judgement: &Judgement) -> Vec<String> {
    let checks = judgement.checks.iter().filter(|check| check.verdict == Verdict::Regressed);
    let mut names: Vec<String> = checks.filter_map(|check| check.workload.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
