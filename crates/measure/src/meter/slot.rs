//! Starts a worker when it is first needed, and again after it has died.

use crate::physics::Executor;
use crate::program::{Copies, Place, WorkerError};
use crate::worker::{Builtin, Child, Commands, Worker};
use holdpoint_model::protocol::{WorkerInfo, WorkloadInfo};
use holdpoint_model::suite::{TIMER_CUDA_EVENTS, TIMER_CUDA_GRAPH, WORKER_BUILTIN, WORKER_COMMAND};
use holdpoint_model::{FailureCause, Suite, Workload};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A worker that is started when it is first needed, and again after it has died.
pub(crate) struct Slot<'a> {
    suite: &'a Suite,
    name: &'a str,
    /// The only CPU it may use; any where absent.
    cpu: Option<usize>,
    copies: Copies,
    /// A process that has not been asked anything yet.
    launched: Option<Box<dyn Worker>>,
    started: Option<Started>,
    starts_count: u32,
    /// Why it cannot be started: tried once, reported for all its workloads.
    unusable: Option<WorkerError>,
}

struct Started {
    worker: Box<dyn Worker>,
    info: WorkerInfo,
    listed: Vec<WorkloadInfo>,
}

impl<'a> Slot<'a> {
    pub(crate) fn new(suite: &'a Suite, name: &'a str, cpu: Option<usize>) -> Self {
        let copies = Copies::default();
        Self { suite, name, cpu, copies, launched: None, started: None, starts_count: 0, unusable: None }
    }

    /// Runs programs from these copies.
    pub(crate) fn with_copies(self, copies: Copies) -> Self {
        Self { copies, ..self }
    }

    /// The number of the current start, from 0; `None` if no worker is alive.
    pub(crate) fn process(&self) -> Option<u32> {
        self.started.as_ref().map(|_| self.starts_count - 1)
    }

    pub(crate) fn process_id(&self) -> Option<u32> {
        self.started.as_ref()?.worker.process_id()
    }

    /// The process that makes the worker's calls, if it is not ours.
    pub(crate) fn caller_id(&self) -> Option<u32> {
        self.started.as_ref()?.worker.caller_id()
    }

    pub(crate) fn info(&self) -> Option<&WorkerInfo> {
        self.started.as_ref().map(|started| &started.info)
    }

    /// The workload's timer, as the worker names it.
    pub(crate) fn timer(&self, spec: &Workload) -> Option<String> {
        let started = self.started.as_ref()?;
        let listed = started.listed.iter().find(|info| info.name == spec.name);
        Some(listed.and_then(|info| info.timer.clone()).unwrap_or_else(|| started.info.timer.clone()))
    }

    pub(crate) fn has_device(&self) -> bool {
        self.info().is_some_and(|info| info.device.is_some())
    }

    /// Whether a device times the workload. A timer of one is the worker's word, and means nothing without a device.
    pub(crate) fn is_by_device(&self, spec: &Workload) -> bool {
        let timer = self.timer(spec).unwrap_or_default();
        [TIMER_CUDA_EVENTS, TIMER_CUDA_GRAPH].contains(&&*timer) && self.has_device()
    }

    /// Whether its calls are what this program itself does, or are of a command, which has no inputs.
    pub(crate) fn is_own(&self) -> bool {
        let this = std::env::current_exe().unwrap_or_default();
        let program = self.suite.workers.get(self.name).and_then(|worker| worker.command.first());
        program.is_none_or(|program| Path::new(program) == this)
    }

    /// What may do the workload's work.
    pub(crate) fn executor(&self, spec: &Workload) -> Executor {
        let device = self.info().and_then(|info| info.device.as_ref());
        Executor::new(device, self.timer(spec).as_deref().unwrap_or_else(|| spec.timer()))
    }

    /// Whether the worker says that the workload keeps answers: what is measured is then that.
    pub(crate) fn remembers(&self, spec: &Workload) -> bool {
        let listed = self.started.as_ref().map(|started| started.listed.as_slice()).unwrap_or_default();
        listed.iter().any(|info| info.name == spec.name && info.remembers)
    }

    /// Starts the worker's process, if there is none, without waiting for it to be ready: several can then load at the same time.
    pub(crate) fn launch(&mut self) -> Result<(), WorkerError> {
        if self.started.is_none() && self.launched.is_none() {
            if let Some(error) = &self.unusable {
                return Err(error.clone());
            }
            self.launched = Some(self.spawn().inspect_err(|error| self.unusable = Some(error.clone()))?);
        }
        Ok(())
    }

    /// The worker, started if necessary.
    pub(crate) fn worker(&mut self) -> Result<&mut dyn Worker, WorkerError> {
        if self.started.is_none() {
            self.launch()?;
            let started = self.greet().inspect_err(|error| self.unusable = Some(error.clone()))?;
            self.started = Some(started);
            self.starts_count += 1;
        }
        match &mut self.started {
            Some(started) => Ok(started.worker.as_mut()),
            None => Err(WorkerError::fatal(FailureCause::NotStarted, "the worker is not running")),
        }
    }

    /// Drops a worker that has died; the next request starts another.
    pub(crate) fn forget(&mut self) {
        self.started = None;
    }

    /// Checks that the worker has this workload, as the suite describes it.
    pub(crate) fn check_listed(&self, spec: &Workload) -> Result<(), WorkerError> {
        let listed = self.started.as_ref().map(|started| started.listed.as_slice()).unwrap_or_default();
        let mismatch = |what: String| Err(WorkerError::new(FailureCause::Mismatch, what));
        let mut found = listed.iter().filter(|info| info.name == spec.name);
        let Some(info) = found.next() else {
            return mismatch(format!("worker {:?} has no workload {:?}", self.name, spec.name));
        };
        if found.next().is_some() {
            return mismatch(format!("worker {:?} lists {:?} twice", self.name, spec.name));
        }
        if info.op != spec.op || info.shape != spec.shape || info.dtype != spec.dtype {
            return mismatch(format!(
                "the suite asks for {} {:?} {}, worker {:?} has {} {:?} {}",
                spec.op, spec.shape, spec.dtype, self.name, info.op, info.shape, info.dtype
            ));
        }
        Ok(())
    }

    fn spawn(&self) -> Result<Box<dyn Worker>, WorkerError> {
        let timeout = Duration::from_secs_f64(self.suite.measure.timeout_ms / 1e3);
        let place =
            |dir: &Option<PathBuf>| Place { dir: dir.clone(), cpu: self.cpu, copies: self.copies.clone() };
        let dir = &self.suite.dir;
        Ok(match (self.name, self.suite.workers.get(self.name)) {
            (_, Some(spec)) => {
                let dir = if spec.dir.is_some() { &spec.dir } else { dir };
                Box::new(Child::start(&spec.command, &place(dir), timeout)?)
            }
            (WORKER_BUILTIN, None) => Box::new(Builtin::new(&self.suite.workloads, 0.0)),
            (WORKER_COMMAND, None) => Box::new(Commands::new(&self.suite.workloads, place(dir), timeout)),
            (name, None) => {
                let detail = format!("worker {name:?} is not declared in the suite");
                return Err(WorkerError::fatal(FailureCause::NotStarted, detail));
            }
        })
    }

    /// Waits until the launched process is ready, and asks for its workloads.
    fn greet(&mut self) -> Result<Started, WorkerError> {
        let Some(mut worker) = self.launched.take() else {
            return Err(WorkerError::fatal(FailureCause::NotStarted, "the worker is not running"));
        };
        let info = worker.hello()?;
        let listed = worker.list()?;
        Ok(Started { worker, info, listed })
    }
}
