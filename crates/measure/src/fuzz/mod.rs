//! Searches for inputs to which a kernel's answer is wrong: generates cases, checks them with an oracle of higher
//! precision, and shrinks those that fail. Tolerances are not decided here but by element type, in one place.

mod answers;
mod arena;
mod boundaries;
mod call;
mod declared;
mod exchange;
mod generate;
mod kernels;
pub(crate) mod rate;
mod shrink;
pub(crate) mod size;
mod times;

pub use answers::{Answered, Answerer, Answers, Differs, compare};
pub use arena::Folders;
pub use kernels::{Kernel, Target, kernels};
pub use size::TooLarge;

use crate::meter::Slot;
use crate::program::WorkerError;
use crate::worker::own;
use arena::Arena;
use holdpoint_model::fuzz::{
    Accuracy, Errors, Evaluated, Finding, FuzzFailure, FuzzedKernel, OnInaccurate, Shown, SizeRange,
};
use holdpoint_model::{FailureCause, FindingKind, FuzzCase, Suite};
use holdpoint_ops::find_inaccuracy;
use holdpoint_stats::random::Random;
use kernels::workload_cases;
use std::time::Instant;

/// Timeouts of a worker before it is given up.
const TIMEOUTS_MAX: u32 = 8;

#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Generated cases per kernel, besides the suite's own shapes.
    pub cases_count: u64,
    pub seed: u64,
    /// Whether a kernel's first failure ends its cases.
    pub fail_fast: bool,
    /// Consequence of errors that are larger than they should be; the suite's, where absent.
    pub accuracy: Option<OnInaccurate>,
}

/// Fuzzes one kernel after the other.
pub struct Fuzzer<'a> {
    suite: &'a Suite,
    slot: Slot<'a>,
    target: Target,
    arena: Option<Arena<'a>>,
    timeouts_count: u32,
    accuracy: OnInaccurate,
}

impl<'a> Fuzzer<'a> {
    /// `folders` are for the tensors' files of a user's worker and of the oracle.
    pub fn new(
        suite: &'a Suite,
        worker: &'a str,
        target: Target,
        folders: Folders<'_>,
    ) -> std::io::Result<Self> {
        let arena = (target == Target::External).then(|| Arena::new(suite, folders)).transpose()?;
        let slot = Slot::new(suite, worker, None);
        Ok(Self { suite, slot, target, arena, timeouts_count: 0, accuracy: OnInaccurate::Report })
    }

    /// Runs and checks a case. Errors that are larger than they should be are a finding only where they fail.
    pub fn evaluate(&mut self, case: &FuzzCase) -> Evaluated {
        let mut evaluated = self.with_worker(|worker, arena| match arena {
            Some(arena) => arena::evaluate(arena, worker, case),
            None => worker.fuzz(case),
        });
        if self.accuracy == OnInaccurate::Fail && evaluated.finding.is_none() {
            evaluated.finding = evaluated.errors.and_then(|errors| less_accurate(errors.accuracy));
        }
        evaluated
    }

    /// How long a call takes whose answer is checked, by holdpoint's clock; `None` for our own workers, whose timed calls are checked.
    pub fn time_call(&mut self, case: &FuzzCase) -> Result<Option<f64>, Finding> {
        let mut call_ns = None;
        let evaluated = self.with_worker(|worker, arena| {
            let Some(arena) = arena else { return Ok(Evaluated::default()) };
            Ok(match times::time_call(arena, worker, case)? {
                Ok(ns) => {
                    call_ns = Some(ns);
                    Evaluated::default()
                }
                Err(found) => found,
            })
        });
        evaluated.finding.map_or(Ok(call_ns), Err)
    }

    /// Calls so far whose worker answered, and whose oracle did not.
    pub fn unanswered_count(&self) -> u64 {
        self.arena.as_ref().map_or(0, |arena| arena.oracle.skipped_count)
    }

    fn check_times(&mut self, case: &FuzzCase) -> Evaluated {
        self.with_worker(|worker, arena| match arena {
            Some(arena) => times::check_times(arena, worker, case),
            None => Ok(Evaluated::default()),
        })
    }

    fn with_worker(
        &mut self,
        ask: impl FnOnce(&mut dyn crate::worker::Worker, Option<&mut Arena<'_>>) -> Result<Evaluated, WorkerError>,
    ) -> Evaluated {
        let arena = self.arena.as_mut();
        let outcome = self.slot.worker().and_then(|worker| ask(worker, arena));
        outcome.unwrap_or_else(|error| {
            self.timeouts_count += u32::from(error.cause == FailureCause::TimedOut);
            Evaluated { finding: Some(failed(&mut self.slot, &error)), ..Evaluated::default() }
        })
    }

    /// Fuzzes a kernel with the suite's own shapes, then with generated cases; calls `on_case` for each.
    pub fn run(&mut self, kernel: &Kernel<'_>, plan: Plan, mut on_case: impl FnMut(u64)) -> FuzzedKernel {
        let mut fuzzed = no_cases(kernel);
        let name = format!("{} {} {}", kernel.name(), kernel.dtype, kernel.spec.worker());
        let mut random = Random::new(
            plan.seed ^ name.bytes().fold(7, |hash: u64, b| hash.wrapping_mul(31) + u64::from(b)),
        );
        let own_cases = runnable_cases(self.suite, kernel, plan.seed, &mut fuzzed);
        let total = own_cases.len() as u64 + plan.cases_count;
        let (mut own_cases, mut numbers) = (own_cases.into_iter(), 0..);
        let mut passed = Passed::default();
        let mut case_times = Vec::new();
        let by_suite = kernel.limits.map(|limits| limits.accuracy);
        self.accuracy = plan.accuracy.or(by_suite).unwrap_or_default();
        for _ in 0..total {
            let generated = || generate::generate(kernel, numbers.next()?, &mut random);
            let Some(case) = own_cases.next().or_else(generated) else {
                let what = format!("no cases are known for op {:?} in {:?}", kernel.spec.op, kernel.dtype);
                fuzzed.skipped = Some(format!("{what} with this worker"));
                break;
            };
            let (start, unanswered_before) = (Instant::now(), self.unanswered_count());
            let evaluated = self.evaluate(&case);
            case_times.push(start.elapsed().as_secs_f64());
            if let Some(reason) = evaluated.skipped {
                fuzzed.refused_count += 1;
                fuzzed.unanswered_count += self.unanswered_count() - unanswered_before;
                // It says nothing about the kernel that the device has not the memory for tensors of this size.
                if self.target == Target::Cuda && own::is_huge(&case) {
                    continue;
                }
                fuzzed.skipped = Some(reason);
                // A user's worker may support only some cases; ours report what the machine lacks.
                if self.arena.is_some() { continue } else { break }
            }
            fuzzed.cases_count += 1;
            note_sizes(&mut fuzzed.sizes, kernel, &case.shape);
            on_case(fuzzed.cases_count);
            let Some(finding) = evaluated.finding else {
                fuzzed.errors = evaluated.errors.map_or(fuzzed.errors, |errors| fuzzed.errors.worse(errors));
                note_accuracy(&mut fuzzed, evaluated.errors, &case);
                fuzzed.passed_count += 1;
                passed.add(case);
                continue;
            };
            if finding.kind == FindingKind::OracleFailed {
                fuzzed.failures.push(seen(finding, &case, fuzzed.cases_count));
                return fuzzed;
            }
            if fuzzed.failures.iter().all(|known| known.finding.kind != finding.kind) {
                fuzzed.failures.push(self.shrink_failure(case, finding, fuzzed.cases_count));
            }
            if self.timeouts_count >= TIMEOUTS_MAX {
                let count = fuzzed.cases_count;
                fuzzed.skipped = Some(format!(
                    "given up after {count} of {total} cases: {TIMEOUTS_MAX} answers did not come in time"
                ));
                return fuzzed;
            }
            if plan.fail_fast {
                return fuzzed;
            }
        }
        for case in passed.for_times() {
            if fuzzed.failures.is_empty()
                && let Some(finding) = self.check_times(&case).finding
            {
                fuzzed.failures.push(seen(finding, &case, fuzzed.cases_count));
            }
        }
        fuzzed.case_s_p50 = holdpoint_stats::median(&case_times);
        // All cases together show a bias that none shows alone.
        if self.accuracy == OnInaccurate::Fail && fuzzed.failures.is_empty() {
            fuzzed.failures.extend(fuzzed.less_accurate.take());
            fuzzed.passed_count -= fuzzed.failures.len() as u64;
        }
        fuzzed
    }

    /// Finds the smallest case that fails in the same way.
    fn shrink_failure(&mut self, first: FuzzCase, finding: Finding, found_after: u64) -> FuzzFailure {
        let kind = finding.kind;
        let mut smallest = finding;
        let case = shrink::shrink(&first, self.target, |case| {
            if self.is_too_slow() {
                return false;
            }
            let same = self.evaluate(case).finding.filter(|finding| finding.kind == kind);
            same.map(|finding| smallest = finding).is_some()
        });
        let shown = self.measure_rate(&case);
        FuzzFailure { finding: smallest, case, first, found_after, shown, file: None }
    }

    /// Whether so many answers timed out that cases known to fail are no longer repeated.
    fn is_too_slow(&self) -> bool {
        self.timeouts_count >= TIMEOUTS_MAX / 2
    }
}

/// Errors that are larger or more biased than they should be, as a finding.
fn less_accurate(accuracy: Option<Accuracy>) -> Option<Finding> {
    let detail = find_inaccuracy(&accuracy?)?;
    Some(Finding { kind: FindingKind::LessAccurate, detail })
}

/// Notes the first case, or the first number of cases together, whose errors are larger or more biased than they should be.
fn note_accuracy(fuzzed: &mut FuzzedKernel, errors: Option<Errors>, case: &FuzzCase) {
    let Some(here) = errors.and_then(|errors| errors.accuracy).filter(|_| fuzzed.less_accurate.is_none())
    else {
        return;
    };
    let found = less_accurate(Some(here)).or_else(|| less_accurate(fuzzed.errors.accuracy));
    fuzzed.less_accurate = found.map(|finding| seen(finding, case, fuzzed.cases_count));
}

/// A finding as its case first showed it.
fn seen(finding: Finding, case: &FuzzCase, found_after: u64) -> FuzzFailure {
    let (case, first) = (case.clone(), case.clone());
    FuzzFailure { finding, case, first, found_after, shown: Shown::default(), file: None }
}

/// A failure of the worker as a finding; a worker that has died is started again for the next case.
fn failed(slot: &mut Slot<'_>, error: &WorkerError) -> Finding {
    if error.fatal {
        slot.forget();
    }
    let mut detail = format!("{}: {}", error.cause.as_str(), error.detail);
    if let Some(last) = error.stderr_tail.last() {
        detail = format!("{detail}; its last words: {last}");
    }
    Finding { kind: FindingKind::Failed, detail }
}

fn no_cases(kernel: &Kernel<'_>) -> FuzzedKernel {
    let spec = kernel.spec;
    FuzzedKernel {
        op: spec.op.clone(),
        workload: spec.task.kernel().map(|_| spec.name.clone()),
        dtype: kernel.dtype.clone(),
        worker: spec.worker().to_owned(),
        cases_count: 0,
        passed_count: 0,
        refused_count: 0,
        unanswered_count: 0,
        errors: Errors::default(),
        sizes: Vec::new(),
        skipped: None,
        case_s_p50: None,
        less_accurate: None,
        failures: Vec::new(),
    }
}

/// The suite's own cases that can be run; those that are too large are counted as refused.
fn runnable_cases(suite: &Suite, kernel: &Kernel<'_>, seed: u64, fuzzed: &mut FuzzedKernel) -> Vec<FuzzCase> {
    let mut cases = Vec::new();
    for mut case in workload_cases(suite, kernel) {
        // Known shapes, but no known inputs: a table of answers must not pass.
        case.seed ^= seed;
        if let Err(error) = kernel.target.check_size(&case) {
            fuzzed.refused_count += 1;
            fuzzed.skipped = Some(error.to_string());
        } else if kernel.target.takes(&case) {
            cases.push(case);
        }
    }
    cases
}

fn note_sizes(sizes: &mut Vec<SizeRange>, kernel: &Kernel<'_>, shape: &[usize]) {
    if sizes.is_empty() {
        let named = kernel.size_names().into_iter().zip(shape);
        sizes.extend(named.map(|(name, &size)| SizeRange { name, min: size, max: size }));
    }
    for (range, &size) in sizes.iter_mut().zip(shape) {
        (range.min, range.max) = (range.min.min(size), range.max.max(size));
    }
}

/// Cases that passed, for the check of times: the smallest and the largest, or a heavy one if there is no other.
#[derive(Default)]
struct Passed {
    light: Vec<FuzzCase>,
    heavy: Option<FuzzCase>,
}

impl Passed {
    fn add(&mut self, case: FuzzCase) {
        if size::is_heavy(&case) {
            self.heavy = Some(case);
            return;
        }
        self.light.push(case);
        self.light.sort_by_key(|case| case.shape.iter().product::<usize>());
        if self.light.len() > 2 {
            self.light.remove(1);
        }
    }

    fn for_times(self) -> Vec<FuzzCase> {
        if self.light.is_empty() { self.heavy.into_iter().collect() } else { self.light }
    }
}
