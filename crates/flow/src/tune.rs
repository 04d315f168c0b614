//! `holdpoint tune`: the quickest constants for the kernels of a suite, on this device.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::request::SuiteChoice;
use crate::suites;
use holdpoint_gate::HasExitCode;
use holdpoint_measure::builds::cache_dir;
use holdpoint_measure::tune::{Tuner, tunable};
use holdpoint_model::Tuning;

pub fn run(choice: &SuiteChoice, watch: &dyn Watch) -> Result<CommandResult<Vec<Tuning>>, FlowError> {
    let mut suite = suites::load(choice)?;
    suite.device = choice.device.unwrap_or(suite.device);
    let count = tunable(&suite).count();
    if count == 0 {
        let problem = format!("suite {:?} has no `cuda` workloads of variant fast", suite.name);
        return Err(FlowError::Input(format!("{problem}; a built-in one that has is \"gpu\"")));
    }
    let mut tuner = Tuner::new(&suite, &cache_dir());
    let mut tunings: Vec<Tuning> = Vec::new();
    for (at, spec) in tunable(&suite).enumerate() {
        watch.progress(&format!("{} of {count}: {}", at + 1, spec.name));
        tunings.push(tuner.tune(spec));
    }
    let exit = tunings.exit_code();
    let note = tuner.registry_path().map(|path| format!("registry: {}", path.display()));
    Ok(CommandResult { notes: note.into_iter().collect(), ..CommandResult::new(tunings, exit) })
}
