//! The kernels of a suite that can be fuzzed, and its own workloads as cases.

use super::boundaries::find_boundaries;
use crate::worker::own;
use holdpoint_model::suite::{FuzzLimits, OpSpec, Task, Variant};
use holdpoint_model::{FuzzCase, Suite, Values, Workload};
use holdpoint_ops::{Backend, Dtype, Entry, validate, validate_oracle};
use std::collections::BTreeSet;

/// Elements by which a case from a file may move a buffer.
const OFFSET_MAX: usize = 64;

/// The kind of worker that runs a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Builtin,
    Cuda,
    /// A user's worker.
    External,
}

impl Target {
    /// `None` for commands, whose inputs cannot be chosen.
    pub fn for_workload(spec: &Workload) -> Option<Self> {
        match &spec.task {
            Task::Op => Some(Self::Builtin),
            // The right answer to a declared op comes from another worker, as for those of the user.
            Task::DeviceOp(device) | Task::Kernel(_, device) if device.declared.is_some() => {
                Some(Self::External)
            }
            Task::DeviceOp(_) | Task::Kernel(..) => Some(Self::Cuda),
            Task::Command(_) | Task::Benchmark(_) => None,
            Task::Served(_) | Task::Engine => Some(Self::External),
        }
    }

    /// The declaration of a workload's op, if a user's worker or kernel runs it.
    pub fn declared<'a>(self, suite: &'a Suite, spec: &Workload) -> Option<&'a OpSpec> {
        suite.ops.get(&spec.op).filter(|_| self == Self::External)
    }

    /// Whether the op accepts a case.
    pub fn takes(self, case: &FuzzCase) -> bool {
        if case.offset > OFFSET_MAX || self.check_size(case).is_err() {
            return false;
        }
        match self {
            Self::Builtin => validate(&own::request(case), Backend::Cpu).is_ok(),
            Self::External => match &case.declared {
                Some(_) if case.kernel.is_some() => validate(&own::request(case), Backend::Cuda).is_ok(),
                Some(op) => Dtype::parse(&case.dtype).is_some() && op.tensors(&case.shape).is_ok(),
                None => own::is_for_workers(&case.op) && validate_oracle(&own::request(case)).is_ok(),
            },
            Self::Cuda => validate(&own::request(case), Backend::Cuda).is_ok(),
        }
    }
}

/// An op in an element type, by a worker.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel<'a> {
    /// The workload that names it first.
    pub spec: &'a Workload,
    pub dtype: String,
    pub target: Target,
    pub declared: Option<&'a OpSpec>,
    pub limits: Option<&'a FuzzLimits>,
    /// Lengths of tiles and parts that it names.
    pub boundaries: Vec<usize>,
}

impl Kernel<'_> {
    /// The workload's name if the user wrote the kernel, else the op's.
    pub fn name(&self) -> &str {
        if self.spec.task.kernel().is_some() { &self.spec.name } else { &self.spec.op }
    }

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

/// The kernels of a suite that can be fuzzed, each once. `dtypes` replace the workloads' own, if there are any.
pub fn kernels<'a>(suite: &'a Suite, only: &[String], dtypes: &[String]) -> Vec<Kernel<'a>> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for spec in suite.workloads.iter().filter(|spec| spec.variant == Variant::Fast) {
        let is_wanted = only.is_empty() || only.iter().any(|name| *name == spec.op || *name == spec.name);
        let is_ours = |entry: &Entry| entry.cases.is_some();
        // Ops that are wrong on purpose have no cases.
        let is_fuzzed = suite.ops.contains_key(&spec.op) || Entry::find(&spec.op).is_none_or(is_ours);
        let Some(target) = Target::for_workload(spec).filter(|_| is_wanted && is_fuzzed) else { continue };
        let own = [spec.dtype.clone()];
        for dtype in if dtypes.is_empty() { &own } else { dtypes } {
            // Kernels that the user wrote are distinct, even if they compute the same.
            let own = spec.task.kernel().map(|_| spec.name.clone());
            if seen.insert((spec.op.clone(), dtype.clone(), spec.worker().to_owned(), own)) {
                let declared = target.declared(suite, spec);
                let limits = suite.fuzz.get(&spec.op);
                let mut kernel =
                    Kernel { spec, dtype: dtype.clone(), target, declared, limits, boundaries: Vec::new() };
                let case = workload_case(suite, &kernel, spec);
                kernel.boundaries = find_boundaries(spec, &case, suite.dir.as_deref());
                all.push(kernel);
            }
        }
    }
    all
}

fn workload_case(suite: &Suite, kernel: &Kernel<'_>, spec: &Workload) -> FuzzCase {
    FuzzCase {
        op: spec.op.clone(),
        shape: spec.shape.clone(),
        dtype: kernel.dtype.clone(),
        params: spec.params.clone(),
        seed: suite.seed_of(spec),
        values: Values::Normal,
        offset: 0,
        kernel: spec.task.kernel().cloned(),
        declared: kernel.declared.cloned(),
    }
}

/// The suite's own workloads as cases with ordinary values; some may be too large to run.
pub(super) fn workload_cases<'a>(
    suite: &'a Suite,
    kernel: &'a Kernel<'_>,
) -> impl Iterator<Item = FuzzCase> + 'a {
    let is_same = |spec: &&Workload| {
        spec.op == kernel.spec.op
            && spec.worker() == kernel.spec.worker()
            && spec.variant == Variant::Fast
            && spec.task.kernel() == kernel.spec.task.kernel()
    };
    let mut seen = Vec::new();
    suite.workloads.iter().filter(is_same).filter_map(move |spec| {
        let case = workload_case(suite, kernel, spec);
        let is_new = !seen.contains(&case);
        seen.push(case.clone());
        is_new.then_some(case)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_examples_of_kernels_are_taken_at_their_own_shapes() {
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
        for (file, count, target) in [
            ("split-k/split_k.toml", 1, Target::External),
            ("kernel-forms/forms.toml", 8, Target::Cuda),
            ("attention.toml", 1, Target::Cuda),
        ] {
            let path = examples.join(file);
            let mut suite = Suite::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
            suite.dir = path.parent().map(Path::to_owned);
            let kernels = kernels(&suite, &[], &[]);
            assert_eq!(kernels.len(), count, "{file}");
            for kernel in kernels {
                assert_eq!(kernel.target, target, "{file}");
                let case = workload_case(&suite, &kernel, kernel.spec);
                assert!(target.takes(&case), "{file}: {case:?}");
                assert!(
                    kernel.spec.name == "library" || !kernel.boundaries.is_empty(),
                    "{file}: {}",
                    kernel.name()
                );
            }
        }
    }
}
