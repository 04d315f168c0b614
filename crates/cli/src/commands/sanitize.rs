//! `holdpoint sanitize`: errors in the kernels of a suite that a right answer does not show.

use super::profile::{chosen, folder_beside};
use super::run::save;
use crate::args::{SanitizeArgs, SuiteArg};
use crate::artifacts;
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;
use crate::suites;
use holdpoint_measure::tools::{self, SanitizeSettings, Tool};
use holdpoint_measure::{clock, machine};
use holdpoint_model::profile::Unavailable;
use holdpoint_model::{ExitCode, SCHEMA_VERSION, SanitizeOutcome, SanitizeReport};
use holdpoint_render::terminal;
use std::path::Path;
use std::time::Duration;

/// A write out of bounds, which a sanitizer that works must find.
const PLANTED: &str = "\
schema_version = 1
name = \"planted\"
description = \"a write out of bounds that compute-sanitizer must find\"

[[workload]]
name = \"planted\"
op = \"fault\"
worker = \"cuda\"
shape = [65536]
params = { kind = \"address\" }
";

/// Runs the command.
///
/// # Errors
/// When the suite cannot be used, or a file cannot be written.
pub fn run(args: &SanitizeArgs, output: &Output) -> Result<ExitCode, CliError> {
    let suite = suites::runnable(&args.suite)?;
    let specs = chosen(&suite, &args.workloads)?;
    let names: Vec<&str> = match args.tool.as_slice() {
        [] => tools::SANITIZERS.to_vec(),
        named => named.iter().map(|tool| tool.as_str()).collect(),
    };
    holdpoint_store::check_writable(&args.output)?;
    let folder = folder_beside(&args.output)?;
    let _lock = artifacts::lock(folder.path(), output)?;
    let mut report = SanitizeReport {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        sanitizer: None,
        device: None,
        revision: machine::revision(Path::new(".")),
        sanitized: Default::default(),
    };
    let ready = tools::find(Tool::Sanitizer).and_then(|sanitizer| {
        let sanitizer = report.sanitizer.insert(sanitizer).clone();
        let timeout = Duration::from_secs(args.timeout.into());
        let how = SanitizeSettings { sanitizer: &sanitizer, timeout, folder: &folder };
        output.progress("an error that was planted");
        report.device = tools::check_sanitizer(&planted(&args.suite, folder.path())?, how)?;
        Ok(sanitizer)
    });
    let count = specs.len() * names.len();
    for (at, spec) in specs.iter().enumerate() {
        let outcomes = report.sanitized.entry(spec.name.clone()).or_default();
        for (nth, tool) in names.iter().enumerate() {
            let outcome = match &ready {
                Err(why) => SanitizeOutcome::Unavailable(why.clone()),
                Ok(_) if interrupt::has_come() => break,
                Ok(sanitizer) => {
                    let done = at * names.len() + nth + 1;
                    output.progress(&format!("{done} of {count}: {}, {tool}", spec.name));
                    let timeout = Duration::from_secs(args.timeout.into());
                    let how = SanitizeSettings { sanitizer, timeout, folder: &folder };
                    tools::sanitize(&suite, spec, tool, how).0
                }
            };
            outcomes.insert((*tool).to_owned(), outcome);
        }
    }
    save(&args.output, &report)?;
    output.result(&report, |style| terminal::sanitize(&report, style))?;
    output.note(&format!("report: {}", args.output.display()));
    interrupt::end_if_come();
    Ok(exit_code(&report))
}

/// The suite with the planted error, in a file that a worker can be told.
fn planted(arg: &SuiteArg, folder: &Path) -> Result<holdpoint_model::Suite, Unavailable> {
    let path = folder.join("planted.toml");
    let suite = path.display().to_string();
    let made = holdpoint_store::write_text(&path, PLANTED)
        .map_err(CliError::from)
        .and_then(|()| suites::runnable(&SuiteArg { suite, device: arg.device }));
    made.map_err(|error| Unavailable {
        reason: "sanitizer_blind".to_owned(),
        detail: Some(format!("no error could be planted: {error}")),
        remedy: None,
    })
}

/// Errors found come before all else; what was looked at and is clean counts, what could not be looked at does not.
fn exit_code(report: &SanitizeReport) -> ExitCode {
    let any =
        |is: fn(&SanitizeOutcome) -> bool| report.sanitized.values().flat_map(|tools| tools.values()).any(is);
    if any(|outcome| matches!(outcome, SanitizeOutcome::Errors { .. })) {
        ExitCode::Failed
    } else if any(|outcome| matches!(outcome, SanitizeOutcome::Failed(_))) {
        ExitCode::Broken
    } else if any(|outcome| matches!(outcome, SanitizeOutcome::Unavailable(_))) {
        ExitCode::Skipped
    } else {
        ExitCode::Ok
    }
}
