//! Generates cases that kernels trip over: tiny and ragged sizes, primes, sizes next to powers of two, odd parameters
//! and values, and a few cases that are large along one axis.

use super::{Kernel, Target};
use holdpoint_model::suite::FuzzLimits;
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FuzzCase, Values};
use holdpoint_ops::cases::{CaseLimits, Draw};
use holdpoint_ops::{Backend, Entry};
use holdpoint_stats::random::Random;

const TRIES_MAX: usize = 2_000;
/// One case in this many is large along one axis, each axis in its turn.
const LARGE_EVERY: u64 = 20;

/// Largest size of a declared op, except along the large axis.
const DECLARED_MAX: usize = 300;

fn most(target: Target, is_large: bool, limits: Option<&FuzzLimits>) -> CaseLimits {
    let (operations, elements) = match (target, is_large) {
        // An oracle takes a millisecond or so.
        (Target::Builtin | Target::Cuda, false) => (1_500_000, 40_000),
        (Target::Builtin | Target::Cuda, true) => (8_000_000, 200_000),
        // Eight calls per case and more while shrinking, by a worker that may be written in plain Python.
        (Target::External, false) => (400_000, 6_000),
        // About a second per call in plain Python.
        (Target::External, true) => (2_000_000, 40_000),
    };
    let least = |own: usize, given: Option<u64>| {
        given.map_or(own, |given| usize::try_from(given).unwrap_or(usize::MAX).max(1))
    };
    CaseLimits {
        operations: least(operations, limits.and_then(|limits| limits.operations_max)),
        elements: least(elements, limits.and_then(|limits| limits.elements_max)),
    }
}

fn sizes_max(kernel: &Kernel<'_>) -> Vec<usize> {
    if let Some(limits) = kernel.limits.filter(|limits| !limits.sizes_max.is_empty()) {
        return limits.sizes_max.clone();
    }
    match kernel.declared {
        Some(op) => vec![2048; op.sizes.len()],
        None => cases(kernel).map_or(Vec::new(), |(_, cases)| cases.sizes_max.to_vec()),
    }
}

fn cases(kernel: &Kernel<'_>) -> Option<(&'static Entry, holdpoint_ops::cases::Cases)> {
    let entry = Entry::find(&kernel.spec.op)?;
    Some((entry, entry.cases?))
}

/// Sizes of a declared op, all of whose tensors must be small enough for a worker in plain Python.
fn draw_declared(op: &OpSpec, draw: &mut Draw<'_>) -> Vec<usize> {
    let mut sizes: Vec<usize> = op.sizes.iter().map(|_| draw.size(DECLARED_MAX)).collect();
    let limits = draw.limits;
    draw.stretch(&mut sizes, |sizes| {
        let fits = |dims: &[usize]| dims.iter().product::<usize>() <= limits.elements;
        let has_large_tensors = op
            .tensors(sizes)
            .is_ok_and(|(inputs, outputs)| !inputs.iter().chain(&outputs).all(|(_, dims)| fits(dims)));
        has_large_tensors || sizes.iter().product::<usize>() > limits.operations
    });
    sizes
}

/// A kernel's case by its number; `None` if no request fits.
pub(super) fn generate(kernel: &Kernel<'_>, number: u64, random: &mut Random) -> Option<FuzzCase> {
    let sizes_max = sizes_max(kernel);
    let is_large = number % LARGE_EVERY == LARGE_EVERY - 1 && !sizes_max.is_empty();
    let axis = is_large.then(|| (number / LARGE_EVERY) as usize % sizes_max.len());
    for _ in 0..TRIES_MAX {
        let large = axis.map(|axis| (axis, draw_large(sizes_max[axis], random)));
        let case = draw_case(kernel, large, random)?;
        let is_within = case.shape.iter().zip(&sizes_max).all(|(size, max)| size <= max);
        if is_within && kernel.target.takes(&case) {
            return Some(case);
        }
    }
    None
}

/// Draws from the upper half of the allowed range.
fn draw_large(max: usize, random: &mut Random) -> usize {
    max - random.below((max / 2).max(1))
}

fn draw_case(kernel: &Kernel<'_>, large: Option<(usize, usize)>, random: &mut Random) -> Option<FuzzCase> {
    let (op, target, own) = (&kernel.spec.op, kernel.target, &kernel.spec.kernel);
    let backend = match target {
        Target::Builtin => Some(Backend::Cpu),
        Target::Cuda => Some(Backend::Cuda),
        Target::External => None,
    };
    let mut draw = Draw { backend, limits: most(target, large.is_some(), kernel.limits), large, random };
    let (shape, params, values) = match (kernel.declared, cases(kernel)) {
        (Some(declared), _) => {
            (draw_declared(declared, &mut draw), kernel.spec.params.clone(), &declared.values[..])
        }
        (None, Some((entry, cases))) => {
            let (shape, params) = entry.draw(&mut draw)?;
            (shape, params, cases.values)
        }
        (None, None) => return None,
    };
    Some(FuzzCase {
        op: op.clone(),
        shape,
        dtype: kernel.dtype.clone(),
        params,
        seed: random.bits() >> 12,
        values: match kernel.declared {
            // A large case tests size: values that hide wrong elements would waste it.
            _ if large.is_some() => Values::Normal,
            // Half of the built-in ops' cases have ordinary values.
            None if random.below(2) == 0 => Values::Normal,
            _ => values[random.below(values.len())],
        },
        // A user's kernel gets pointers and may rely on the alignment that allocators give.
        offset: match target {
            Target::Builtin => 0,
            _ if own.is_some() || random.below(4) > 0 => 0,
            _ => 1 + random.below(3),
        },
        kernel: own.clone(),
        declared: kernel.declared.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_model::{Suite, WorkloadSpec};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn workload(op: &str) -> WorkloadSpec {
        let text = format!("schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"a\"\nop = {op:?}\n");
        Suite::parse(&text).unwrap().workloads.remove(0)
    }

    fn kernel(spec: &WorkloadSpec, target: Target) -> Kernel<'_> {
        Kernel { spec, dtype: "f32".to_owned(), target, declared: None, limits: None }
    }

    #[test]
    fn every_op_has_cases_that_it_takes_and_they_differ() {
        let mut random = Random::new(1);
        let fuzzed = |op: &&str| Entry::find(op).is_some_and(|entry| entry.cases.is_some());
        let own = |backend| holdpoint_ops::names(backend).filter(fuzzed).collect::<Vec<_>>();
        let for_workers =
            own(Backend::Cpu).into_iter().filter(|op| super::super::own::is_for_workers(op)).collect();
        for (target, ops) in [
            (Target::Builtin, own(Backend::Cpu)),
            (Target::Cuda, own(Backend::Cuda)),
            (Target::External, for_workers),
        ] {
            for op in ops {
                let shapes: BTreeSet<Vec<usize>> = (0..100)
                    .filter_map(|number| generate(&kernel(&workload(op), target), number, &mut random))
                    .map(|c| c.shape)
                    .collect();
                assert!(shapes.len() > 20, "{op}: {} shapes", shapes.len());
            }
        }
        assert_eq!(generate(&kernel(&workload("nothing"), Target::Builtin), 0, &mut random), None);
    }

    #[test]
    fn a_kernel_of_the_users_gets_what_it_requires_and_nothing_off_alignment() {
        let mut random = Random::new(3);
        let mut spec = workload("attention");
        let own = json!({ "source": "a.cu", "entry": "a", "grid": [1], "block": [64],
            "requires": ["steps % 64 == 0", "head_dim == 64"] });
        spec.kernel = serde_json::from_value(own).unwrap();
        for number in 0..50 {
            let case = generate(&kernel(&spec, Target::Cuda), number, &mut random).unwrap();
            assert_eq!((case.shape[2] % 64, case.shape[3], case.offset), (0, 64, 0));
            assert_eq!(case.kernel, spec.kernel);
        }
    }

    #[test]
    fn every_axis_is_large_in_its_turn_and_at_a_bounded_cost() {
        let mut random = Random::new(5);
        for (op, floor) in [
            ("attention", vec![5, 17, 751, 129]),
            ("tile_ssm", vec![5, 2049, 513]),
            ("fusion_gate", vec![5, 257, 513, 513]),
            ("tile_pack", vec![5, 257, 500, 500]),
        ] {
            let spec = workload(op);
            let cases: Vec<FuzzCase> = (0..200)
                .map(|number| generate(&kernel(&spec, Target::External), number, &mut random).unwrap())
                .collect();
            for (axis, floor) in floor.into_iter().enumerate() {
                let most = cases.iter().map(|case| case.shape[axis]).max().unwrap();
                assert!(most >= floor, "{op}: size {axis} reaches {most}");
            }
            for case in &cases {
                assert!(case.shape.iter().product::<usize>() <= 40_000, "{op} {:?}", case.shape);
            }
            let heavy = cases.iter().filter(|case| super::super::size::is_heavy(case)).count();
            assert!(heavy <= 10, "{op}: {heavy} of 200 are heavy");
        }
    }

    #[test]
    fn a_suite_sets_how_large_cases_are() {
        let mut random = Random::new(6);
        let limits = FuzzLimits { sizes_max: vec![2, 64, 40, 16], ..FuzzLimits::default() };
        let spec = workload("attention");
        let kernel = Kernel { limits: Some(&limits), ..kernel(&spec, Target::External) };
        let mut largest = vec![0; 4];
        for number in 0..400 {
            let case = generate(&kernel, number, &mut random).unwrap();
            assert!(case.shape.iter().zip(&limits.sizes_max).all(|(size, max)| size <= max));
            largest = largest.iter().zip(&case.shape).map(|(a, b)| *a.max(b)).collect();
        }
        assert!(largest[1] > 32 && largest[2] > 20, "{largest:?}");
    }
}
