//! Finding a suite: built in, or a file.

use crate::error::CliError;
use holdpoint_measure::worker;
use holdpoint_model::suite::WORKER_BUILTIN;
use holdpoint_model::{Suite, WorkloadSpec};
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
    // A program in place of the built-in ops knows for itself what it can do.
    let is_ours = |workload: &&WorkloadSpec| {
        workload.worker == WORKER_BUILTIN && !suite.workers.contains_key(WORKER_BUILTIN)
    };
    for workload in suite.workloads.iter().filter(is_ours) {
        worker::validate(workload)
            .map_err(|e| CliError::Input(format!("suite {name:?}, workload {:?}: {e}", workload.name)))?;
    }
    Ok(suite)
}

/// The same suite, as another process in another folder would have to name it.
///
/// # Errors
/// When the file cannot be found any more.
pub fn absolute(name: &str) -> Result<String, CliError> {
    if BUILT_IN.iter().any(|(built_in, _)| *built_in == name) {
        return Ok(name.to_owned());
    }
    match std::fs::canonicalize(name) {
        Ok(path) => Ok(path.to_string_lossy().into_owned()),
        Err(error) => Err(CliError::File { path: name.into(), what: error.to_string() }),
    }
}
