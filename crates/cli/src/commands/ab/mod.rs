//! `holdpoint ab`: two sides that are alive at the same time.

pub mod compare;
pub mod sides;

use super::profile;
use crate::args::{AbArgs, AbPolicyName, DecideArgs, ProfileOn};
use crate::artifacts::{self, Writer};
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;
use crate::sealing::{self, Origins, Sealing};
use crate::waivers::InForce;
use compare::Comparison;
use holdpoint_gate::ab::AbPolicy;
use holdpoint_model::{ExitCode, Verdict};
use holdpoint_render::markdown;
use sides::Prepared;

/// Runs the command.
///
/// # Errors
/// When a side cannot be had, the report to go on from does not fit, or a file cannot be written.
pub fn run(args: &AbArgs, output: &Output) -> Result<ExitCode, CliError> {
    // A key that cannot be used is found before anything is removed.
    sealing::read_key(&args.files.seal)?;
    let _lock = artifacts::lock(&args.files.artifacts, output)?;
    let writer = Writer::Sides { resume: args.files.resume };
    let prepared = artifacts::clear_unless_input(sides::of(args, output), &args.files.artifacts, writer)?;
    let policy = match args.policy {
        AbPolicyName::Sequential => AbPolicy::Sequential,
        AbPolicyName::DisjointCi => AbPolicy::DisjointCi,
    };
    decide(&prepared, &args.decide, policy, &args.files, args.evidence, output)
}

/// Compares, leaves the files and says how it came out.
///
/// # Errors
/// When the report to go on from does not fit, or a file cannot be written.
pub fn decide(
    prepared: &Prepared,
    how: &DecideArgs,
    policy: AbPolicy,
    files: &crate::args::AbFiles,
    evidence: bool,
    output: &Output,
) -> Result<ExitCode, CliError> {
    let (path, page) = (files.artifacts.join(artifacts::AB), files.artifacts.join(artifacts::AB_PAGE));
    let mut sealing = Sealing::new(sealing::read_key(&files.seal)?, &path);
    let waivers = InForce::read(&files.waivers)?;
    holdpoint_store::check_writable(&path)?;
    interrupt::hold();
    let plan = compare::plan(how);
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
    // Of what is gone on from; they tell less than there will be.
    sealing.unseal()?;
    holdpoint_store::remove(&page)?;
    comparison.measure(Some(&path), output);
    let mut report = comparison.finish();
    waivers.put_to_ab(&mut report);
    compare::add_calibration(&mut report, &files.calibration_dir);
    if files.profile_on == ProfileOn::Regression && !interrupt::has_come() {
        let regressed =
            report.workloads.iter().filter(|(_, workload)| workload.verdict == Verdict::Regressed);
        let names: Vec<String> = regressed.map(|(name, _)| name.clone()).collect();
        let sides = &prepared.sides;
        let told = profile::of_regressed(&names, &sides.head, Some(&sides.base), &files.artifacts, output);
        report.notes.extend(told);
    }
    sealing.write_json(&path, &report)?;
    sealing.write_text(&page, &markdown::ab(&report))?;
    let unsealed = sealing.seal(&Origins {
        command: "ab",
        suite: &prepared.sides.head.suite,
        revision: report.head.revision.as_ref(),
        machine: report.machine.as_ref(),
    })?;
    output.result(&report, |style| compare::text(&report, evidence, style))?;
    let unsealed = if has_lost_key { "" } else { unsealed };
    output.note(&format!("evidence: {}{unsealed}", path.display()));
    interrupt::end_if_come();
    Ok(holdpoint_gate::ab::exit_code(&report))
}
