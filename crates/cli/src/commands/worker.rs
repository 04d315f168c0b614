//! `holdpoint worker`: a suite's built-in workloads, served over the protocol.

use crate::args::WorkerArgs;
use crate::error::CliError;
use crate::suites;
use holdpoint_measure::worker::{Builtin, serve};
use holdpoint_model::ExitCode;
use holdpoint_model::suite::WORKER_BUILTIN;
use std::io;

/// Runs the command.
///
/// # Errors
/// When the suite cannot be used or a stream fails.
pub fn run(args: &WorkerArgs) -> Result<ExitCode, CliError> {
    let suite = suites::load(&args.suite.suite)?;
    if !suite.workloads.iter().any(|workload| workload.worker == WORKER_BUILTIN) {
        return Err(CliError::Input(format!("suite {:?} has no built-in workloads to serve", suite.name)));
    }
    let mut worker = Builtin::new(&suite.workloads, args.slowdown);
    match serve(&mut worker, io::stdin().lock(), io::stdout().lock()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Internal(format!("worker: {error}")))
        }
        _ => Ok(ExitCode::Ok),
    }
}
