//! Looks for inputs to which a kernel's answer is wrong: generated cases, an oracle of higher precision, and a small case in the
//! end. Must not decide what is tolerable: that is by element type, in one place.

mod answers;
mod arena;
mod declared;
mod generate;
pub(crate) mod own;
mod shrink;
mod times;

pub use answers::{Answered, Answerer, Answers, Differs, OutputTensor, compare};

use crate::slot::Slot;
use crate::worker::{Place, WorkerError};
use arena::Arena;
use holdpoint_model::fuzz::{Errors, Evaluated, Finding, FuzzFailure, FuzzedKernel};
use holdpoint_model::suite::{OpSpec, Variant, WORKER_BUILTIN, WORKER_COMMAND, WORKER_CUDA};
use holdpoint_model::{FailureCause, FindingKind, FuzzCase, Suite, Values, WorkloadSpec};
use holdpoint_stats::random::Random;
use std::collections::BTreeSet;
use std::path::Path;

/// Elements by which a buffer may be moved: what a case from a file may ask for.
const OFFSET_MAX: usize = 64;
/// Answers of a worker that may stay out, each for the suite's time-out, before it is given up.
const TIMEOUTS_MAX: u32 = 8;

/// Who runs a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The built-in ops on the CPU.
    Builtin,
    /// The built-in ops on a CUDA device.
    Cuda,
    /// A worker of the user's.
    External,
}

impl Target {
    /// Of a workload; commands have no inputs that could be chosen.
    #[must_use]
    pub fn of(spec: &WorkloadSpec) -> Option<Self> {
        match spec.worker.as_str() {
            WORKER_BUILTIN => Some(Self::Builtin),
            WORKER_CUDA => Some(Self::Cuda),
            WORKER_COMMAND => None,
            _ => Some(Self::External),
        }
    }

    /// What a workload's op is, where the suite declares it and a worker of the user's runs it.
    #[must_use]
    pub fn declared<'a>(self, suite: &'a Suite, spec: &WorkloadSpec) -> Option<&'a OpSpec> {
        suite.ops.get(&spec.op).filter(|_| self == Self::External)
    }

    /// Whether the op can do what a case asks.
    #[must_use]
    pub fn takes(self, case: &FuzzCase) -> bool {
        if case.offset > OFFSET_MAX {
            return false;
        }
        match self {
            Self::Builtin => holdpoint_workloads::validate(&own::request(case)).is_ok(),
            Self::External if case.declared.is_some() => {
                case.declared.as_ref().is_some_and(|op| declared::takes(op, case))
            }
            Self::External => {
                let request = holdpoint_workloads::Request { dtype: "f32", ..own::request(case) };
                arena::OPS.contains(&case.op.as_str())
                    && holdpoint_cuda::Dtype::parse(&case.dtype).is_some()
                    && holdpoint_workloads::validate(&request).is_ok()
            }
            Self::Cuda => crate::worker::cuda::case_request(case)
                .is_some_and(|request| holdpoint_cuda::ops::validate(&request).is_ok()),
        }
    }
}

/// One kernel of a suite: an op in an element type, by a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel<'a> {
    /// The workload that names it first.
    pub spec: &'a WorkloadSpec,
    /// Element type, the workload's or another.
    pub dtype: String,
    /// Who runs it.
    pub target: Target,
    /// What its op is, where the suite declares it.
    pub declared: Option<&'a OpSpec>,
}

impl Kernel<'_> {
    /// The workload of a kernel of the user's own, else the op.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.spec.kernel.is_some() { &self.spec.name } else { &self.spec.op }
    }
}

/// The kernels of a suite that can be looked at, each once; `dtypes` in place of the workloads' own where there are any.
#[must_use]
pub fn kernels<'a>(suite: &'a Suite, only: &[String], dtypes: &[String]) -> Vec<Kernel<'a>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for spec in suite.workloads.iter().filter(|spec| spec.variant == Variant::Fast) {
        let is_wanted = only.is_empty() || only.iter().any(|name| *name == spec.op || *name == spec.name);
        let Some(target) = Target::of(spec).filter(|_| is_wanted && spec.op != "fault") else { continue };
        let own = [spec.dtype.clone()];
        for dtype in if dtypes.is_empty() { &own } else { dtypes } {
            // A kernel of the user's own is one of its own, whatever it computes.
            let own = spec.kernel.as_ref().map(|_| spec.name.clone());
            if seen.insert((spec.op.clone(), dtype.clone(), spec.worker.clone(), own)) {
                let declared = target.declared(suite, spec);
                all.push(Kernel { spec, dtype: dtype.clone(), target, declared });
            }
        }
    }
    all
}

/// The cases that a suite's own workloads are: their shapes and parameters, ordinary values.
fn given<'a>(suite: &'a Suite, kernel: &'a Kernel<'_>) -> impl Iterator<Item = FuzzCase> + 'a {
    let is_same = |spec: &&WorkloadSpec| {
        spec.op == kernel.spec.op
            && spec.worker == kernel.spec.worker
            && spec.variant == Variant::Fast
            && spec.kernel == kernel.spec.kernel
    };
    let mut seen = Vec::new();
    suite.workloads.iter().filter(is_same).filter_map(move |spec| {
        let case = FuzzCase {
            op: spec.op.clone(),
            shape: spec.shape.clone(),
            dtype: kernel.dtype.clone(),
            params: spec.params.clone(),
            seed: suite.seed_of(spec),
            values: Values::Normal,
            offset: 0,
            kernel: spec.kernel.clone(),
            declared: kernel.declared.cloned(),
        };
        let is_new = kernel.target.takes(&case) && !seen.contains(&case);
        seen.push(case.clone());
        is_new.then_some(case)
    })
}

/// How much to look.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Generated cases of each kernel, beside the suite's own shapes.
    pub cases_count: u64,
    /// Cases are drawn from it.
    pub seed: u64,
    /// Whether a kernel's first failure is the last of its cases.
    pub fail_fast: bool,
}

/// Looks at one kernel after the other, each in the process that its worker has.
pub struct Fuzzer<'a> {
    suite: &'a Suite,
    slot: Slot<'a>,
    target: Target,
    arena: Option<Arena<'a>>,
    timeouts_count: u32,
}

impl<'a> Fuzzer<'a> {
    /// For a worker of the suite; `dir` is for the tensors of a worker of the user's.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn new(suite: &'a Suite, worker: &'a str, target: Target, dir: &Path) -> std::io::Result<Self> {
        let arena = (target == Target::External).then(|| Arena::new(suite, dir)).transpose()?;
        let slot = Slot::new(suite, worker, Place::default());
        Ok(Self { suite, slot, target, arena, timeouts_count: 0 })
    }

    /// Runs one case.
    pub fn evaluate(&mut self, case: &FuzzCase) -> Evaluated {
        self.with_worker(|worker, arena| match arena {
            Some(arena) => arena::evaluate(arena, worker, case),
            None => worker.fuzz(case),
        })
    }

    /// Runs a case that was found wrong before, its times too where it was they.
    pub fn replay(&mut self, case: &FuzzCase, kind: FindingKind) -> Evaluated {
        let evaluated = self.evaluate(case);
        if evaluated.finding.is_none() && evaluated.skipped.is_none() && kind.is_about_time() {
            return self.look_at_times(case);
        }
        evaluated
    }

    fn look_at_times(&mut self, case: &FuzzCase) -> Evaluated {
        self.with_worker(|worker, arena| match arena {
            Some(arena) => times::look(arena, worker, case),
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
            if error.fatal {
                self.slot.forget();
            }
            self.timeouts_count += u32::from(error.cause == FailureCause::TimedOut);
            let mut detail = format!("{}: {}", error.cause.as_str(), error.detail);
            if let Some(last) = error.stderr_tail.last() {
                detail = format!("{detail}; its last words: {last}");
            }
            Evaluated::wrong(FindingKind::Failed, detail)
        })
    }

    /// Looks at a kernel: the suite's own shapes, then generated cases. `on_case` hears of each.
    pub fn run(&mut self, kernel: &Kernel<'_>, plan: Plan, mut on_case: impl FnMut(u64)) -> FuzzedKernel {
        let spec = kernel.spec;
        let mut found = FuzzedKernel {
            op: spec.op.clone(),
            workload: spec.kernel.as_ref().map(|_| spec.name.clone()),
            dtype: kernel.dtype.clone(),
            worker: spec.worker.clone(),
            cases_count: 0,
            passed_count: 0,
            refused_count: 0,
            errors: Errors::default(),
            skipped: None,
            failures: Vec::new(),
        };
        let name = format!("{} {} {}", kernel.name(), kernel.dtype, spec.worker);
        let mut random = Random::new(
            plan.seed ^ name.bytes().fold(7, |hash: u64, b| hash.wrapping_mul(31) + u64::from(b)),
        );
        let given: Vec<FuzzCase> = given(self.suite, kernel).collect();
        let total = given.len() as u64 + plan.cases_count;
        let mut given = given.into_iter();
        let mut passed: Vec<FuzzCase> = Vec::new();
        let size = |case: &FuzzCase| case.shape.iter().product::<usize>();
        for _ in 0..total {
            let generated = || generate::generate(kernel, &mut random);
            let Some(case) = given.next().or_else(generated) else {
                let what = format!("no cases are known for op {:?} in {:?}", spec.op, kernel.dtype);
                found.skipped = Some(format!("{what} with this worker"));
                break;
            };
            let evaluated = self.evaluate(&case);
            if let Some(reason) = evaluated.skipped {
                found.refused_count += 1;
                found.skipped = Some(reason);
                // A worker of the user's may have kernels for some cases; ours say what the machine lacks.
                if self.arena.is_some() { continue } else { break }
            }
            found.cases_count += 1;
            on_case(found.cases_count);
            let Some(finding) = evaluated.finding else {
                found.passed_count += 1;
                found.errors = evaluated.errors.map_or(found.errors, |errors| found.errors.worse(errors));
                // The smallest and the largest.
                passed.push(case);
                passed.sort_by_key(size);
                if passed.len() > 2 {
                    passed.remove(1);
                }
                continue;
            };
            if found.failures.iter().all(|known| known.finding.kind != finding.kind) {
                found.failures.push(self.made_small(case, finding, found.cases_count));
            }
            if self.timeouts_count >= TIMEOUTS_MAX {
                let count = found.cases_count;
                found.skipped = Some(format!(
                    "given up after {count} of {total} cases: {TIMEOUTS_MAX} answers did not come in time"
                ));
                return found;
            }
            if plan.fail_fast {
                return found;
            }
        }
        for case in passed {
            if found.failures.is_empty()
                && let Some(finding) = self.look_at_times(&case).finding
            {
                let (first, found_after) = (case.clone(), found.cases_count);
                found.failures.push(FuzzFailure { finding, case, first, found_after, file: None });
            }
        }
        found
    }

    /// The smallest case that fails in the same way.
    fn made_small(&mut self, first: FuzzCase, finding: Finding, found_after: u64) -> FuzzFailure {
        let kind = finding.kind;
        let mut seen = finding;
        let case = shrink::shrink(&first, self.target, |case| {
            if self.timeouts_count >= TIMEOUTS_MAX / 2 {
                return false;
            }
            let same = self.evaluate(case).finding.filter(|finding| finding.kind == kind);
            same.map(|finding| seen = finding).is_some()
        });
        FuzzFailure { finding: seen, case, first, found_after, file: None }
    }
}
