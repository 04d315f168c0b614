//! Finding a suite: built in, or a file.

use crate::error::CliError;
use holdpoint_measure::worker;
use holdpoint_model::Suite;
use holdpoint_model::suite::WORKER_BUILTIN;
use std::path::Path;

/// The suites that come with the binary.
const BUILT_IN: &[(&str, &str)] = &[("cpu", include_str!("../../../suites/cpu.toml"))];

/// Reads the suite that was named, and checks that its built-in ops can do what it asks.
///
/// # Errors
/// When there is no such suite, or it cannot be used.
pub fn load(name: &str) -> Result<Suite, CliError> {
    let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
    let suite = match built_in {
        Some((_, text)) => Suite::parse(text).map_err(|e| CliError::Input(format!("suite {name:?}: {e}")))?,
        None if Path::new(name).exists() || name.contains(['/', '.']) => {
            holdpoint_store::read_suite(Path::new(name))?
        }
        None => {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(CliError::Input(format!(
                "no suite {name:?}; built-in suites: {}; one of your own is given by its file, such as ./{name}.toml",
                names.join(", ")
            )));
        }
    };
    for workload in suite.workloads.iter().filter(|workload| workload.worker == WORKER_BUILTIN) {
        worker::validate(workload)
            .map_err(|e| CliError::Input(format!("suite {name:?}, workload {:?}: {e}", workload.name)))?;
    }
    Ok(suite)
}
