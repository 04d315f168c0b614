//! Checks the times that a worker reports against what is seen from outside and what the machine can do.
//!
//! A worker may do anything before its first sample. So a request for one sample shows what a request costs, and the
//! further samples of a longer request must take as long outside as by the worker's clock. Time spent waiting for a
//! CPU is not counted, so a look with long waits proves nothing in the worker's favour. One look can be unlucky: only
//! [`DOUBTS_MAX`] doubtful ones of the last sixteen are a contradiction. Turns that are too short for that are judged together
//! (`steady`), and beside those of another side (`contest`).
//!
//! Trust is earned in every process: one process in [`LOOK_EVERY`], drawn by the system's randomness, is looked at again; fewer where
//! units are so short that looks would take more than [`LOOK_SHARE`] of the time.

mod contest;
mod steady;
mod untimed;

pub(crate) use self::contest::{Contest, Turn};
pub(crate) use self::steady::Lack;
use self::steady::{Missed, Steady};
use self::untimed::Untimed;
use crate::physics::{self, Executor};
use crate::program::WorkerError;
use crate::schedstat::{Observation, WorkerTime};
use holdpoint_model::FailureCause;
use holdpoint_model::protocol::RunResult;
use holdpoint_model::suite::Work;

/// This many of the last requests must contradict the worker.
const DOUBTS_MAX: usize = 8;
/// The share of elapsed time that the worker's clock may miss: between samples it reads clocks and writes numbers down.
/// A clock at half speed misses half.
const UNSEEN_SHARE: f64 = 0.3;
/// The cost of a request varies: waking a process on a busy machine, a shell that forks. Half a millisecond was seen at
/// a load of seven on two CPUs.
const UNSEEN_NS: f64 = 2e6;
/// The same, for requests that cost a lot.
const COST_SHARE: f64 = 0.25;
/// The same, for calls before the first sample while caches are cold: so many samples' time, and no more than this. Two and a
/// half samples, 2.3 ms, were seen.
const COLD_SAMPLES: f64 = 4.0;
const COLD_NS_MAX: f64 = 8e6;
/// Total sample time of a close look: a clock at half speed stands out from cold caches, and not every look is interrupted.
pub(crate) const CLOSE_LOOK_NS: u64 = 10_000_000;
/// Clear looks that a worker must pass: one or two may overestimate what a request costs.
const TRUSTED_FROM: u32 = 3;
/// In a clear look, the worker waited for a CPU for at most this share of the time.
const CLEAR_SHARE: f64 = 0.15;
/// Waits may exceed those that the kernel booked by so much, and by this share of the samples: as much as samples that hardly waited
/// ([`holdpoint_model::ab::CALM_LEFT`]) have.
const WAIT_NS: f64 = 1_000_000.0;
const WAIT_SHARE: f64 = 0.01;
/// One process in so many is looked at again.
const LOOK_EVERY: f64 = 8.0;
/// Looks take no more than this share of the time.
const LOOK_SHARE: f64 = 0.05;
/// A look at both sides, with its requests for one sample and its untimed calls.
const LOOK_S: f64 = 2.5 * CLOSE_LOOK_NS as f64 / 1e9;
/// Turns of at least so many samples are judged together: shorter ones differ little from a request for one sample.
const STEADY_SAMPLES: usize = 4;

/// Time that a request took besides its samples.
#[derive(Clone, Copy, Debug, Default)]
struct Overhead {
    wall_ns: f64,
    /// Only where the worker reports the CPU time of its samples.
    cpu_ns: Option<f64>,
}

/// A request's result, and what was seen from outside meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct AuditedRun<'a> {
    pub(crate) result: &'a RunResult,
    pub(crate) seen: Observation,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Audit {
    /// No call can be faster than this, and the reason.
    call_ns_min: Option<(f64, String)>,
    /// The lowest cost of a request seen so far.
    cost: Option<Overhead>,
    /// Requests that contradict the worker by themselves.
    doubts: Missed,
    /// Clear looks in a row that raised no doubt.
    trust_count: u32,
    pub(crate) had_close_look: bool,
    /// Whether the present process is to be looked at once more.
    is_look_due: bool,
    /// Whether no process was looked at before the present look.
    is_first_look: bool,
    steady: Steady,
    /// The looks that missed time, waits for a CPU included.
    looks: Missed,
    untimed: Untimed,
    /// The last request that was checked, until its round is over.
    turn: Option<Turn>,
    /// Whether times are the host's: what a device's worker does between samples may grow with their calls.
    pub(crate) is_by_host: bool,
}

impl Audit {
    pub(crate) fn new(work: Option<&Work>, dtype: &str, executor: &Executor) -> Self {
        let call_ns_min = work.and_then(|work| physics::call_ns_min(work, dtype, executor));
        Self { call_ns_min, ..Self::default() }
    }

    /// Another process of the same worker: it is trusted again after one clear look, if it is looked at. A doubt in it takes as many as at
    /// first.
    pub(crate) fn begin_process(&mut self, is_look_due: bool) {
        self.is_look_due = is_look_due;
        self.trust_count = TRUSTED_FROM - 1;
    }

    pub(crate) fn wants_look(&self) -> bool {
        !self.had_close_look || self.is_look_due
    }

    pub(crate) fn begin_look(&mut self) {
        self.is_first_look = !self.had_close_look;
        (self.had_close_look, self.is_look_due) = (true, false);
    }

    /// Learns what a request costs from one with a single sample. A request that had to wait would seem to cost less.
    pub(crate) fn set_cost(&mut self, one: &AuditedRun<'_>) {
        if one.is_clear() {
            self.cost = Some(one.cost(self.explained_ns(one)).least(self.cost));
        }
    }

    /// Learns what a request costs among turns, for all of them together.
    pub(crate) fn add_cost(&mut self, one: &AuditedRun<'_>) {
        if one.is_clear() {
            self.untimed.learn_once(one.result);
            self.steady.add_cost(one.overhead(self.explained_ns(one)).wall_ns);
        }
    }

    /// Learns from a request for one sample and one for several what the worker does besides them.
    pub(crate) fn learn_untimed(&mut self, one: &RunResult, several: &RunResult) {
        self.untimed.learn(one, several);
    }

    /// Whether the next look should have another number of calls in a sample.
    pub(crate) fn wants_other_calls(&self, sample_ns: u64) -> bool {
        self.is_by_host && self.untimed.wants_other_calls(sample_ns)
    }

    /// Waits for a CPU lengthen work that is not timed as well.
    fn explained_ns(&self, request: &AuditedRun<'_>) -> f64 {
        let untimed_ns = request.result.untimed_ns.unwrap_or(0) as f64;
        let waited_ns = if request.is_clear() { 0.0 } else { request.waited_ns() };
        match self.is_by_host {
            true => untimed_ns.min(self.untimed.explained_ns(request.result) + waited_ns),
            false => untimed_ns,
        }
    }

    pub(crate) fn is_trusted(&self) -> bool {
        self.trust_count >= TRUSTED_FROM
    }

    /// Whether a look at a process may end: one without a clear result does in later processes, as long as it raised no doubt, because
    /// on a busy machine hardly any is clear, and others follow.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_trusted() || !self.is_first_look && self.trust_count == TRUSTED_FROM - 1
    }

    /// Checks a look: a request for one sample and one for several.
    pub(crate) fn check_look(
        &mut self,
        one: &AuditedRun<'_>,
        several: &AuditedRun<'_>,
    ) -> Result<(), WorkerError> {
        self.check(several)?;
        // Waits for a CPU are not taken off here: they may lie in the samples, and then they are reported. Both requests have the same
        // waits besides their samples, those of waking up.
        let [cost_ns, besides_ns] =
            [one, several].map(|request| request.besides_samples(0.0, self.explained_ns(request)).wall_ns);
        let (samples, reported_ns) = (several.result.elapsed_ns.len(), several.reported().wall_ns);
        let is_missed = is_too_much(besides_ns - cost_ns, reported_ns, samples, cost_ns, UNSEEN_NS);
        if !self.is_by_host || !self.looks.add(is_missed, steady::TURNS_MIN) {
            return Ok(());
        }
        Err(WorkerError::new(FailureCause::BadTime, missed(reported_ns, besides_ns)))
    }

    /// Checks a request. Fails when too many of the last contradict what is seen from outside.
    pub(crate) fn check(&mut self, request: &AuditedRun<'_>) -> Result<(), WorkerError> {
        self.check_physics(request.result)?;
        let doubt = self.doubt(request);
        self.turn = self.turn_of(request);
        if request.is_clear() {
            let explained_ns = self.explained_ns(request);
            self.cost = self.cost.map(|cost| cost.least(Some(request.cost(explained_ns))));
            self.check_steadily(request, explained_ns)?;
        }
        if doubt.is_some() {
            self.trust_count = 0;
        } else if request.is_clear() && self.cost.is_some() {
            self.trust_count += 1;
        }
        // Only a lie in half of the requests moves a median. Beside four busy loops on two CPUs, three of a thousand honest requests
        // were unlucky.
        let is_proven = self.doubts.add(doubt.is_some(), DOUBTS_MAX);
        match doubt.filter(|_| is_proven) {
            Some(detail) => Err(WorkerError::new(FailureCause::BadTime, detail)),
            None => Ok(()),
        }
    }

    /// The kind of request still needed before turns that are too short to be judged alone can be judged together.
    pub(crate) fn lack(&self) -> Option<Lack> {
        self.steady.lack()
    }

    /// The last request as a turn, where enough is known of what others cost.
    pub(crate) fn take_turn(&mut self) -> Option<Turn> {
        self.turn.take()
    }

    fn turn_of(&self, request: &AuditedRun<'_>) -> Option<Turn> {
        let (samples, reported_ns) = (request.result.elapsed_ns.len(), request.reported().wall_ns);
        let among_turns = self.steady.cost_ns().filter(|_| samples >= STEADY_SAMPLES);
        let (cost_ns, varies_ns) = match among_turns {
            Some(cost_ns) => (cost_ns, steady::UNSEEN_NS),
            None => (self.cost?.wall_ns, UNSEEN_NS),
        };
        let besides_ns = request.overhead(self.explained_ns(request)).wall_ns;
        self.is_by_host.then_some(Turn { besides_ns, cost_ns, varies_ns, reported_ns, samples })
    }

    /// Fails when most turns, this one too, took longer than was reported. The samples of device timers need not add up to the time
    /// that their calls take.
    fn check_steadily(&mut self, request: &AuditedRun<'_>, explained_ns: f64) -> Result<(), WorkerError> {
        let (samples, reported_ns) = (request.result.elapsed_ns.len(), request.reported().wall_ns);
        let besides_ns = request.overhead(explained_ns).wall_ns;
        if !self.is_by_host
            || samples < STEADY_SAMPLES
            || !self.steady.add_turn(besides_ns, reported_ns, samples)
        {
            return Ok(());
        }
        Err(WorkerError::new(FailureCause::BadTime, missed(reported_ns, besides_ns)))
    }

    /// Fails when the machine cannot be that fast.
    pub(crate) fn check_physics(&self, result: &RunResult) -> Result<(), WorkerError> {
        let Some((call_ns_min, why)) = &self.call_ns_min else { return Ok(()) };
        let quickest_ns = result.elapsed_ns.iter().copied().min().unwrap_or(u64::MAX);
        let call_ns = quickest_ns as f64 / result.calls_per_sample as f64;
        if call_ns >= *call_ns_min {
            return Ok(());
        }
        let detail = format!("a call of {call_ns:.0} ns cannot be: {why} takes at least {call_ns_min:.0} ns");
        Err(WorkerError::new(FailureCause::BadTime, detail))
    }

    /// Why the worker's figures cannot all be right, judging by this request alone.
    fn doubt(&self, request: &AuditedRun<'_>) -> Option<String> {
        if let Some(doubt) = request.doubt_wait() {
            return Some(doubt);
        }
        let overhead = request.overhead(self.explained_ns(request));
        let (cost, reported) = (self.cost?, request.reported());
        let samples = request.result.elapsed_ns.len();
        let unseen_ns = overhead.wall_ns - cost.wall_ns;
        if is_too_much(unseen_ns, reported.wall_ns, samples, cost.wall_ns, UNSEEN_NS) {
            return Some(format!(
                "the worker reported {} for its samples, {} were seen to pass; what it does between samples it must report \
                 as untimed_ns, which may not grow with their calls",
                millis(reported.wall_ns),
                millis(reported.wall_ns + unseen_ns)
            ));
        }
        let reported_ns = reported.cpu_ns?;
        let cost_ns = cost.cpu_ns.unwrap_or(0.0);
        let unseen_ns = overhead.cpu_ns? - cost_ns;
        is_too_much(unseen_ns, reported_ns, samples, cost_ns, UNSEEN_NS).then(|| {
            format!(
                "the worker reported {} of CPU time for its samples, its process used {}",
                millis(reported_ns),
                millis(reported_ns + unseen_ns)
            )
        })
    }
}

/// The chance that a process is looked at again, where units take so long.
pub(crate) fn look_chance(unit_s: f64) -> f64 {
    (LOOK_SHARE * unit_s / LOOK_S).min(1.0 / LOOK_EVERY)
}

impl Overhead {
    fn least(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        let cpu_ns = self.cpu_ns.zip(other.cpu_ns).map(|(a, b)| a.min(b));
        Self { wall_ns: self.wall_ns.min(other.wall_ns), cpu_ns }
    }
}

/// Whether more time is missing from what was reported than the cost of a request varies, which is at least by `least_ns`.
fn is_too_much(unseen_ns: f64, reported_ns: f64, samples: usize, cost_ns: f64, least_ns: f64) -> bool {
    let cold_ns = (COLD_SAMPLES * reported_ns / samples.max(1) as f64).min(COLD_NS_MAX);
    unseen_ns > least_ns.max(COST_SHARE * cost_ns).max(cold_ns)
        && unseen_ns > UNSEEN_SHARE * (reported_ns + unseen_ns)
}

impl AuditedRun<'_> {
    fn reported(&self) -> Overhead {
        let sum = |times: &[u64]| times.iter().map(|ns| *ns as f64).sum::<f64>();
        let cpu_ns = &self.result.cpu_ns;
        Overhead { wall_ns: sum(&self.result.elapsed_ns), cpu_ns: (!cpu_ns.is_empty()).then(|| sum(cpu_ns)) }
    }

    fn waited_ns(&self) -> f64 {
        (self.seen.own_wait_ns + self.seen.worker.map_or(0, |worker| worker.wait_ns)) as f64
    }

    /// Whether neither the worker nor this thread waited long for a CPU.
    fn is_clear(&self) -> bool {
        self.waited_ns() <= CLEAR_SHARE * self.seen.wall_ns as f64
    }

    /// Time besides the samples, not counting waits for a CPU: at least this much, since some waits may lie in the samples.
    fn overhead(&self, explained_ns: f64) -> Overhead {
        self.besides_samples(self.waited_ns(), explained_ns)
    }

    /// Time besides the samples: at most this much, since the worker's waits may all lie in the samples.
    fn cost(&self, explained_ns: f64) -> Overhead {
        self.besides_samples(self.seen.own_wait_ns as f64, explained_ns)
    }

    fn besides_samples(&self, waited_ns: f64, explained_ns: f64) -> Overhead {
        let (reported, seen) = (self.reported(), &self.seen);
        let unseen_cpu_ns = |(reported_ns, worker): (f64, WorkerTime)| {
            // Untimed work has as many threads as the rest.
            let threads_count = worker.cpu_ns as f64 / worker.busiest_ns.max(1) as f64;
            (worker.cpu_ns as f64 - reported_ns - explained_ns * threads_count).max(0.0)
        };
        Overhead {
            wall_ns: (seen.wall_ns as f64 - reported.wall_ns - explained_ns - waited_ns).max(0.0),
            cpu_ns: reported.cpu_ns.zip(seen.worker).map(unseen_cpu_ns),
        }
    }

    /// No process can wait for a CPU longer than the kernel has recorded.
    fn doubt_wait(&self) -> Option<String> {
        let waited_ns: f64 = self.result.wait_ns.iter().map(|ns| *ns as f64).sum();
        let booked_ns = self.seen.worker?.wait_ns as f64;
        let is_more = waited_ns > WAIT_NS.min(WAIT_SHARE * self.reported().wall_ns) + 1.1 * booked_ns;
        is_more.then(|| {
            format!(
                "the worker reported {} of waiting for a CPU, the kernel booked {} for its work",
                millis(waited_ns),
                millis(booked_ns)
            )
        })
    }
}

/// Time that most of several requests missed.
fn missed(reported_ns: f64, besides_ns: f64) -> String {
    format!(
        "the worker reported {} for its samples, and {} passed besides them, most of the time far more than in a request for one sample",
        millis(reported_ns),
        millis(besides_ns)
    )
}

fn millis(ns: f64) -> String {
    format!("{:.3} ms", ns / 1e6)
}

#[cfg(test)]
mod tests;
