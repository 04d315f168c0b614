//! `holdpoint worker`: a suite's built-in workloads, served over the protocol.

use crate::error::FlowError;
use crate::request::WorkerRequest;
use crate::suites;
use holdpoint_measure::builds::cache_dir;
use holdpoint_measure::worker::{Builtin, Cuda, Worker, serve};
use holdpoint_model::suite::{WORKER_BUILTIN, WORKER_CUDA};
use std::io::{self, BufRead, Write};

pub fn run(request: &WorkerRequest, input: impl BufRead, output: impl Write) -> Result<(), FlowError> {
    let suite = suites::load(&request.suite)?;
    let names = [WORKER_BUILTIN, WORKER_CUDA];
    let wanted = |name: &&&str| request.worker.as_deref().is_none_or(|worker| worker == **name);
    // One that is named is served whatever the suite asks for: answers can be computed by another worker than the suite's.
    let has = |name: &&&str| {
        request.worker.is_some() || suite.workloads.iter().any(|workload| workload.worker() == **name)
    };
    let mut worker: Box<dyn Worker> = match names.iter().filter(wanted).find(has) {
        Some(&WORKER_CUDA) => {
            let device = request.suite.device.unwrap_or(suite.device);
            Box::new(Cuda::new(&suite.workloads, device, &cache_dir(), request.slowdown))
        }
        Some(_) => Box::new(Builtin::new(&suite.workloads, request.slowdown).with_tail(request.tail)),
        None => {
            return Err(FlowError::Input(format!(
                "suite {:?} has no built-in workloads to serve",
                suite.name
            )));
        }
    };
    match serve(worker.as_mut(), input, output) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(FlowError::Internal(format!("worker: {error}")))
        }
        _ => Ok(()),
    }
}
