//! Measures workloads in workers that are alive: of one side (`schedule`), or of two (`ab`).
//!
//! A step here is one of starting a worker, preparing a workload, a request for samples, or a check of answers. Which step comes
//! when, and until when, is for the callers to say.

mod requests;
mod seeds;
mod slot;

pub(crate) use requests::SAMPLES_PER_ROUND_MAX;
pub use requests::STEPS_PER_SAMPLE;
pub(crate) use requests::{Batch, batch_of_both, why_wrong};
pub(crate) use seeds::{Seeds, random_bits};
pub(crate) use slot::Slot;

use crate::audit::Audit;
use crate::pace::rest_after;
use crate::physics::Executor;
use crate::program::{Copies, WorkerError};
use crate::worker::{Coming, Prepared};
use holdpoint_cuda::trace;
use holdpoint_model::protocol::{RunResult, WorkerInfo};
use holdpoint_model::report::{Answer, KernelInfo};
use holdpoint_model::suite::Work;
use holdpoint_model::{FailureCause, Suite, Workload};
use requests::Requester;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Workloads that have buffers at the same time.
pub(crate) const ALIVE_MAX: usize = 16;
/// Single calls on new inputs whose answers are checked, one after the other: of two in a row, a worker that computes every second
/// time or less often has one wrong.
const FRESH_CALLS: u32 = 2;

/// Why a step was not completed.
#[derive(Clone)]
pub(crate) enum Stop {
    Failed(Box<WorkerError>),
    /// The workload cannot run here.
    Skipped(String),
    /// The worker does not have the workload as the suite describes it.
    NotListed(Box<WorkerError>),
    /// Another workload ended the process that both were in.
    Gone,
}

impl From<WorkerError> for Stop {
    fn from(error: WorkerError) -> Self {
        Self::Failed(Box::new(error))
    }
}

impl Stop {
    /// Whether it was this workload's doing, though another's step failed.
    pub(crate) fn blames(&self, spec: &Workload) -> bool {
        matches!(self, Self::Failed(error) if error.blamed.as_ref() == Some(&spec.name))
    }
}

/// A workload on one side, and what is known of it from request to request.
#[derive(Clone)]
pub(crate) struct Subject<'a> {
    /// Which of the meter's sides.
    pub side: usize,
    pub spec: &'a Workload,
    /// Of the inputs that are prepared.
    pub seeds: Seeds,
    pub audit: Audit,
    pub timer: Option<String>,
    /// Work of a call, and what may do it.
    pub work: Option<Work>,
    pub executor: Executor,
    pub kernel: Option<KernelInfo>,
    /// Whether its calls keep answers, as its worker says.
    pub remembers: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn new(side: usize, spec: &'a Workload) -> Self {
        Self {
            side,
            spec,
            seeds: Seeds::new(0),
            audit: Audit::default(),
            timer: None,
            work: spec.work.clone(),
            executor: Executor::default(),
            kernel: None,
            remembers: false,
        }
    }
}

/// A request that was answered.
pub(crate) struct Turn {
    pub result: RunResult,
    pub took: Duration,
    /// How long the device should rest after it.
    pub rest: Duration,
}

/// The workers of one side or of two.
pub(crate) struct Meter<'a> {
    suites: Vec<&'a Suite>,
    /// By side, and by their names.
    slots: Vec<BTreeMap<&'a str, Slot<'a>>>,
    copies: Copies,
    /// Whether a worker that has died may be started again.
    restarts: bool,
    /// How long a device rests before the next turn, whichever side's it is.
    pub rest: Duration,
}

impl<'a> Meter<'a> {
    /// Workers that are started when they are needed, and again after they have died.
    pub(crate) fn of_one(suite: &'a Suite) -> Self {
        Self::new(vec![suite], Copies::default(), true)
    }

    /// Workers that are one pair of processes, and no other. Programs are run from these copies.
    pub(crate) fn of_two(suites: [&'a Suite; 2], copies: Copies) -> Self {
        Self::new(suites.to_vec(), copies, false)
    }

    fn new(suites: Vec<&'a Suite>, copies: Copies, restarts: bool) -> Self {
        let slots = suites.iter().map(|_| BTreeMap::new()).collect();
        Self { suites, slots, copies, restarts, rest: Duration::ZERO }
    }

    pub(crate) fn suite(&self, side: usize) -> &'a Suite {
        self.suites[side]
    }

    /// Starts a workload's process, unless another workload has; without waiting for it to be ready. It may use this CPU only.
    pub(crate) fn launch(&mut self, subject: &Subject<'a>, cpu: Option<usize>) -> Result<(), Stop> {
        let (suite, copies, name) = (self.suites[subject.side], &self.copies, subject.spec.worker());
        let fresh = || Slot::new(suite, name, cpu).with_copies(copies.clone());
        Ok(self.slots[subject.side].entry(name).or_insert_with(fresh).launch()?)
    }

    /// Waits until a workload's process is ready; its process, if it has one of its own.
    pub(crate) fn start(&mut self, subject: &Subject<'a>) -> Result<Option<u32>, Stop> {
        let slot = self.slot(subject);
        slot.worker()?;
        Ok(slot.process_id())
    }

    fn slot(&mut self, subject: &Subject<'a>) -> &mut Slot<'a> {
        let (suite, name) = (self.suites[subject.side], subject.spec.worker());
        self.slots[subject.side].entry(name).or_insert_with(|| Slot::new(suite, name, None))
    }

    /// The worker of a workload; it must be alive where it is not started again.
    fn live(&mut self, subject: &Subject<'a>) -> Result<&mut Slot<'a>, Stop> {
        let restarts = self.restarts;
        Some(self.slot(subject)).filter(|slot| restarts || slot.process() == Some(0)).ok_or(Stop::Gone)
    }

    /// The number of the worker's current start, from 0; `None` if it is not alive.
    pub(crate) fn process(&mut self, subject: &Subject<'a>) -> Option<u32> {
        self.slot(subject).process()
    }

    /// The process that makes a workload's calls, if it is not ours.
    pub(crate) fn caller_id(&self, subject: &Subject<'a>) -> Option<u32> {
        self.slots[subject.side].get(subject.spec.worker())?.caller_id()
    }

    /// The processes of all workers.
    pub(crate) fn process_ids(&self) -> Vec<u32> {
        self.all_slots().filter_map(Slot::process_id).collect()
    }

    fn all_slots(&self) -> impl Iterator<Item = &Slot<'a>> {
        self.slots.iter().flat_map(BTreeMap::values)
    }

    /// Whether every process that was started is alive, as far as is known.
    pub(crate) fn is_whole(&self) -> bool {
        self.all_slots().all(|slot| slot.process() == Some(0))
    }

    /// The properties that the workers of a side report, by their names.
    pub(crate) fn infos(&self, side: usize) -> BTreeMap<String, WorkerInfo> {
        let info = |(name, slot): (&&str, &Slot<'_>)| Some(((*name).to_owned(), slot.info()?.clone()));
        self.slots[side].iter().filter_map(info).collect()
    }

    /// Takes note of a failed step: a process that has died must not be taken for one that is alive.
    pub(crate) fn note(&mut self, subject: &Subject<'a>, stop: &Stop) {
        if let Stop::Failed(error) = stop
            && error.fatal
        {
            self.slot(subject).forget();
        }
    }

    /// Prepares a workload with inputs of this seed.
    pub(crate) fn prepare(&mut self, subject: &mut Subject<'a>, seed: u64) -> Result<(), Stop> {
        let slot = self.live(subject)?;
        let spec = subject.spec;
        slot.worker()?;
        slot.check_listed(spec).map_err(|error| Stop::NotListed(Box::new(error)))?;
        subject.timer = slot.timer(spec);
        match slot.worker()?.prepare(&spec.name, seed)? {
            Prepared::Skipped(reason) => return Err(Stop::Skipped(reason)),
            Prepared::Ready(known) => {
                subject.work = spec.work.clone().or(known.work);
                subject.kernel = known.kernel;
            }
        }
        subject.executor = slot.executor(spec);
        subject.remembers = slot.remembers(spec);
        if !subject.audit.had_close_look {
            subject.audit = Audit::new(subject.work.as_ref(), &spec.dtype, &subject.executor);
        }
        Ok(())
    }

    /// Asks for samples, after the rest that is due.
    pub(crate) fn run(&mut self, subject: &mut Subject<'a>, samples: u64, calls: u64) -> Result<Turn, Stop> {
        if !self.rest.is_zero() {
            trace::step("rest", &subject.spec.name, || std::thread::sleep(self.rest));
        }
        let start = Instant::now();
        let result = self.requester(subject)?.run(samples, calls)?;
        let took = start.elapsed();
        Ok(Turn { rest: rest_after(&result, took), result, took })
    }

    /// Finds how many calls make a sample long enough for the clock, starting from `calls_first`.
    pub(crate) fn choose_batch(
        &mut self,
        subject: &mut Subject<'a>,
        calls_first: u64,
    ) -> Result<Batch, Stop> {
        Ok(self.requester(subject)?.choose_batch(calls_first)?)
    }

    /// Looks whether the worker's times and what is seen from outside agree.
    pub(crate) fn look_closely(
        &mut self,
        subject: &mut Subject<'a>,
        calls: u64,
        sample_ns: u64,
    ) -> Result<(), Stop> {
        Ok(self.requester(subject)?.look_closely(calls, sample_ns)?)
    }

    /// Takes one sample among turns: what a request costs there shows what a turn took besides its samples.
    pub(crate) fn ask_for_one(&mut self, subject: &mut Subject<'a>, calls: u64) -> Result<(), Stop> {
        Ok(self.requester(subject)?.ask_for_one(calls)?)
    }

    fn requester<'e>(&'e mut self, subject: &'e mut Subject<'a>) -> Result<Requester<'e, 'a>, Stop> {
        Ok(Requester { slot: self.live(subject)?, subject })
    }

    /// Checks the answer that the last calls left.
    pub(crate) fn verify(&mut self, subject: &Subject<'a>, when: &str) -> Result<Option<Answer>, Stop> {
        let worker = self.live(subject)?.worker()?;
        let Some(answer) = worker.verify(&subject.spec.name)? else { return Ok(None) };
        match why_wrong(&answer) {
            Some(why) => {
                let detail = format!("wrong answer {when}: {why}");
                Err(WorkerError::new(FailureCause::WrongAnswer, detail).into())
            }
            None => Ok(Some(answer)),
        }
    }

    /// Checks single calls on new inputs: a worker that computes only every so often has no answer to them.
    pub(crate) fn verify_fresh(&mut self, subject: &mut Subject<'a>) -> Result<(), Stop> {
        let is_own = self.live(subject)?.is_own();
        for _ in (0..FRESH_CALLS).filter(|_| !is_own) {
            let seed = subject.seeds.draw();
            self.live(subject)?.worker()?.prepare(&subject.spec.name, seed)?;
            if self.verify(subject, "after one call on new inputs")?.is_none() {
                break;
            }
        }
        Ok(())
    }

    /// Tells each worker of a side which turns come next, and in which order.
    pub(crate) fn announce(&mut self, side: usize, coming: impl Fn(&str) -> Vec<Coming>) {
        for (name, slot) in &mut self.slots[side] {
            if let (true, Ok(worker)) = (slot.process().is_some(), slot.worker()) {
                worker.announce(coming(name));
            }
        }
    }

    /// Frees what a workload holds. Its times stay valid; a worker that fails to is started again for the next one.
    pub(crate) fn release(&mut self, subject: &Subject<'a>) {
        let slot = self.slot(subject);
        if slot.worker().and_then(|worker| worker.release(&subject.spec.name)).is_err() {
            slot.forget();
        }
    }
}
