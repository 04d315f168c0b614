//! `holdpoint tune`: the quickest constants for the kernels of a suite, on this device.

use crate::args::TuneArgs;
use crate::error::CliError;
use crate::output::Output;
use crate::suites;
use holdpoint_measure::builds::cache_dir;
use holdpoint_measure::tune::{Tuner, tunable};
use holdpoint_model::{ExitCode, TuneOutcome, Tuning};
use holdpoint_render::terminal;

/// Runs the command.
///
/// # Errors
/// When the suite cannot be used, or has no kernels to tune.
pub fn run(args: &TuneArgs, output: &Output) -> Result<ExitCode, CliError> {
    let mut suite = suites::load(&args.suite.suite)?;
    suite.device = args.suite.device.unwrap_or(suite.device);
    let count = tunable(&suite).count();
    if count == 0 {
        let problem = format!("suite {:?} has no `cuda` workloads of variant fast", suite.name);
        return Err(CliError::Input(format!("{problem}; a built-in one that has is \"gpu\"")));
    }
    let mut tuner = Tuner::new(&suite, &cache_dir());
    let mut tunings: Vec<Tuning> = Vec::new();
    for (at, spec) in tunable(&suite).enumerate() {
        output.progress(&format!("{} of {count}: {}", at + 1, spec.name));
        tunings.push(tuner.tune(spec));
    }
    output.result(&tunings, |style| terminal::tune(&tunings, style))?;
    if let Some(path) = tuner.registry_path() {
        output.note(&format!("registry: {}", path.display()));
    }
    Ok(exit_code(&tunings))
}

fn exit_code(tunings: &[Tuning]) -> ExitCode {
    let any = |is: fn(&TuneOutcome) -> bool| tunings.iter().any(|tuning| is(&tuning.outcome));
    if any(|outcome| matches!(outcome, TuneOutcome::Failed(_))) {
        ExitCode::Broken
    } else if any(|outcome| matches!(outcome, TuneOutcome::Tuned(_))) {
        ExitCode::Ok
    } else {
        ExitCode::Skipped
    }
}
