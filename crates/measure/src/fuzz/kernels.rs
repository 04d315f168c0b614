//! Which kernels of a suite can be fuzzed, and the cases that its own workloads are.

use super::{TooLarge, declared, own, size};
use holdpoint_model::suite::{FuzzLimits, OpSpec, Variant, WORKER_BUILTIN, WORKER_COMMAND, WORKER_CUDA};
use holdpoint_model::{FuzzCase, Suite, Values, WorkloadSpec};
use holdpoint_ops::{Backend, Entry, validate, validate_oracle};
use std::collections::BTreeSet;

/// Elements by which a buffer may be moved: what a case from a file may ask for.
const OFFSET_MAX: usize = 64;

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

    /// Whether a case is small enough to be run.
    ///
    /// # Errors
    /// With its size and the limit.
    pub fn check_size(self, case: &FuzzCase) -> Result<(), TooLarge> {
        size::check(self, case)
    }

    /// Whether the op can do what a case asks.
    #[must_use]
    pub fn takes(self, case: &FuzzCase) -> bool {
        if case.offset > OFFSET_MAX || self.check_size(case).is_err() {
            return false;
        }
        match self {
            Self::Builtin => validate(&own::request(case), Backend::Cpu).is_ok(),
            Self::External if case.declared.is_some() => {
                case.declared.as_ref().is_some_and(|op| declared::takes(op, case))
            }
            Self::External => own::is_for_workers(&case.op) && validate_oracle(&own::request(case)).is_ok(),
            Self::Cuda => validate(&own::request(case), Backend::Cuda).is_ok(),
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
    /// How large its cases may be, where the suite says so.
    pub limits: Option<&'a FuzzLimits>,
}

impl Kernel<'_> {
    /// The workload of a kernel of the user's own, else the op.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.spec.kernel.is_some() { &self.spec.name } else { &self.spec.op }
    }

    /// What the sizes of a shape are of.
    pub(super) fn size_names(&self) -> Vec<String> {
        match self.declared {
            Some(op) => op.sizes.clone(),
            None => Entry::find(&self.spec.op)
                .map_or(&[][..], |entry| entry.sizes)
                .iter()
                .map(|&n| n.to_owned())
                .collect(),
        }
    }
}

/// The kernels of a suite that can be looked at, each once; `dtypes` in place of the workloads' own where there are any.
#[must_use]
pub fn kernels<'a>(suite: &'a Suite, only: &[String], dtypes: &[String]) -> Vec<Kernel<'a>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for spec in suite.workloads.iter().filter(|spec| spec.variant == Variant::Fast) {
        let is_wanted = only.is_empty() || only.iter().any(|name| *name == spec.op || *name == spec.name);
        let is_ours = |entry: &Entry| entry.cases.is_some();
        // An op that is wrong on purpose has no cases.
        let is_fuzzed = suite.ops.contains_key(&spec.op) || Entry::find(&spec.op).is_none_or(is_ours);
        let Some(target) = Target::of(spec).filter(|_| is_wanted && is_fuzzed) else { continue };
        let own = [spec.dtype.clone()];
        for dtype in if dtypes.is_empty() { &own } else { dtypes } {
            // A kernel of the user's own is one of its own, whatever it computes.
            let own = spec.kernel.as_ref().map(|_| spec.name.clone());
            if seen.insert((spec.op.clone(), dtype.clone(), spec.worker.clone(), own)) {
                let declared = target.declared(suite, spec);
                let limits = suite.fuzz.get(&spec.op);
                all.push(Kernel { spec, dtype: dtype.clone(), target, declared, limits });
            }
        }
    }
    all
}

/// The cases that a suite's own workloads are: their shapes and parameters, ordinary values; not all of them can be run.
pub(super) fn given<'a>(suite: &'a Suite, kernel: &'a Kernel<'_>) -> impl Iterator<Item = FuzzCase> + 'a {
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
        let is_new = !seen.contains(&case);
        seen.push(case.clone());
        is_new.then_some(case)
    })
}
