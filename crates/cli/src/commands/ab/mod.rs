//! `holdpoint ab`: two sides that are alive at the same time.

pub mod compare;
pub mod sides;

use super::profile;
use crate::args::{AbArgs, DecideArgs, PolicyArgs, ProfileOn};
use crate::artifacts::{self, Writer};
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;
use crate::sealing::{self, Origins, Sealing};
use crate::waivers::InForce;
use compare::Comparison;
use holdpoint_gate::{Policy, exit_code};
use holdpoint_model::suite::GateSettings;
use holdpoint_model::{ExitCode, Judgement, Source, Verdict};
use holdpoint_render::{Judged, Style, markdown, terminal};
use sides::Prepared;

/// Runs the command.
///
/// # Errors
/// When a side cannot be had, the report to go on from does not fit, or a file cannot be written.
pub fn run(args: &AbArgs, output: &Output) -> Result<ExitCode, CliError> {
    PolicyArgs::policy_of_sides(args.policy, &GateSettings::default())?;
    // A key that cannot be used is found before anything is removed.
    sealing::read_key(&args.files.seal)?;
    let _lock = artifacts::lock(&args.files.artifacts, output)?;
    let writer = Writer::Sides { resume: args.files.resume };
    let prepared = artifacts::clear_unless_input(sides::of(args, output), &args.files.artifacts, writer)?;
    decide(&prepared, &args.decide, args.policy, &args.files, args.evidence, output)
}

/// Compares, leaves the files and says how it came out.
///
/// # Errors
/// When the report to go on from does not fit, or a file cannot be written.
pub fn decide(
    prepared: &Prepared,
    how: &DecideArgs,
    policy: Option<Policy>,
    files: &crate::args::AbFiles,
    evidence: bool,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let (path, page) = (files.artifacts.join(artifacts::AB), files.artifacts.join(artifacts::AB_PAGE));
    let mut sealing = Sealing::new(sealing::read_key(&files.seal)?, &path);
    let waivers = InForce::read(&files.waivers)?;
    holdpoint_store::check_writable(&path)?;
    interrupt::hold();
    let gate = &prepared.sides.head.suite.gate;
    let plan = how.plan(gate);
    let policy = PolicyArgs::policy_of_sides(policy, gate)?;
    let mut has_lost_key = false;
    let mut comparison = if files.resume {
        let lost = sealing.resume(&path, prepared.head.revision.as_ref())?;
        lost.iter().for_each(|what| output.note(what));
        has_lost_key = lost.is_some();
        Comparison::resume(prepared, plan, policy, how.seed.is_some(), &path)?
    } else {
        Comparison::new(prepared, plan, policy)?
    };
    artifacts::clear(&files.artifacts, Writer::Sides { resume: files.resume })?;
    // Of the comparison that is continued; they tell less than there will be.
    sealing.unseal()?;
    holdpoint_store::remove(&page)?;
    comparison.measure(Some(&path), output);
    let (report, mut judgement) = comparison.finish()?;
    waivers.apply(&mut judgement);
    compare::add_calibration(&mut judgement, &files.calibration_dir);
    if files.profile_on == ProfileOn::Regression && !interrupt::has_come() {
        let (base, head) = (&prepared.sides.base, &prepared.sides.head);
        let names = regressed(&judgement);
        judgement.notes.extend(profile::of_regressed(&names, head, Some(base), &files.artifacts, output));
    }
    let judged = Judged::new(&judgement, Some(Source::Sides(&report)));
    sealing.write_json(&path, &report)?;
    sealing.write_json(&files.artifacts.join(artifacts::COMPARISON), &judgement)?;
    sealing.write_text(&page, &markdown::judgement(judged).unwrap_or_default())?;
    let unsealed = sealing.seal(&Origins {
        command: "ab",
        suite: &prepared.sides.head.suite,
        revision: report.head.revision.as_ref(),
        machine: report.machine.as_ref(),
    })?;
    output.result(&judgement, |style| text(judged, evidence, style))?;
    let unsealed = if has_lost_key { "" } else { unsealed };
    output.note(&format!("evidence: {}{unsealed}", files.artifacts.display()));
    interrupt::end_if_come();
    Ok(exit_code(&judgement))
}

/// The workloads that regressed, each once.
pub fn regressed(judgement: &Judgement) -> Vec<String> {
    let checks = judgement.checks.iter().filter(|check| check.verdict == Verdict::Regressed);
    let mut names: Vec<String> = checks.filter_map(|check| check.workload.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The judgement for a terminal, with the familiar statistics where they are asked for.
pub fn text(judged: Judged<'_>, evidence: bool, style: Style) -> String {
    let mut text = terminal::judgement(judged, style);
    if evidence {
        text.push('\n');
        text.push_str(&terminal::evidence_of_sides(judged, style));
    }
    text
}
