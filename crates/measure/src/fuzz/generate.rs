//! Cases that kernels trip over: tiny and ragged sizes, primes, sizes beside powers of two, odd parameters and values, and among
//! them a few that are large along one axis.

use super::draw::{self, Draw, pick};
use super::{Kernel, Target};
use holdpoint_model::suite::FuzzLimits;
use holdpoint_model::{FuzzCase, Values};
use holdpoint_stats::random::Random;

/// Draws until one is a request that the op takes.
const TRIES_MAX: usize = 2_000;
/// One case in so many is large along one axis, each axis in its turn.
const LARGE_EVERY: u64 = 20;

/// How large cases may be in all.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    /// Multiply-adds of one product of attention; of a declared op the product of its sizes.
    pub(super) operations: usize,
    /// Elements of the main input.
    pub(super) elements: usize,
}

impl Most {
    /// Of all cases but the large ones.
    fn small(target: Target) -> Self {
        match target {
            // An oracle takes a millisecond or so.
            Target::Builtin | Target::Cuda => Self { operations: 1_500_000, elements: 40_000 },
            // Eight calls a case and more while it is made small, by a worker that may be written in plain Python.
            Target::External => Self { operations: 400_000, elements: 6_000 },
        }
    }

    /// Of those that are large along one axis.
    fn large(target: Target) -> Self {
        match target {
            Target::Builtin | Target::Cuda => Self { operations: 8_000_000, elements: 200_000 },
            // About a second a call in plain Python.
            Target::External => Self { operations: 2_000_000, elements: 40_000 },
        }
    }

    fn within(self, limits: Option<&FuzzLimits>) -> Self {
        let least = |own: usize, given: Option<u64>| {
            given.map_or(own, |given| usize::try_from(given).unwrap_or(usize::MAX).max(1))
        };
        Self {
            operations: least(self.operations, limits.and_then(|limits| limits.operations_max)),
            elements: least(self.elements, limits.and_then(|limits| limits.elements_max)),
        }
    }
}

/// The largest size along each axis.
fn sizes_max(kernel: &Kernel<'_>) -> Vec<usize> {
    if let Some(limits) = kernel.limits.filter(|limits| !limits.sizes_max.is_empty()) {
        return limits.sizes_max.clone();
    }
    match (kernel.declared, kernel.spec.op.as_str()) {
        (Some(op), _) => vec![2048; op.sizes.len()],
        // Past 1024 keys, and past any power of two that a kernel's tile of keys could be.
        (None, "attention") => vec![8, 32, 1500, 256],
        (None, "tile_ssm") => vec![8, 4096, 1024],
        (None, "copy" | "fma") => vec![200_000],
        (None, "infer" | "ff_path") => Vec::new(),
        (None, _) => vec![8, 512, 1024, 1024],
    }
}

/// The case of this number of a kernel, or none where it cannot be generated.
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

/// In the upper half of what is allowed.
fn draw_large(max: usize, random: &mut Random) -> usize {
    max - random.below((max / 2).max(1))
}

fn draw_case(kernel: &Kernel<'_>, large: Option<(usize, usize)>, random: &mut Random) -> Option<FuzzCase> {
    let (op, target, own) = (&kernel.spec.op, kernel.target, &kernel.spec.kernel);
    let most = if large.is_some() { Most::large(target) } else { Most::small(target) };
    let mut draw = Draw { target, most: most.within(kernel.limits), large, random };
    let (shape, params) = match kernel.declared {
        Some(declared) => (draw::declared(declared, &mut draw), kernel.spec.params.clone()),
        None => draw::op(op, &mut draw)?,
    };
    Some(FuzzCase {
        op: op.clone(),
        shape,
        dtype: kernel.dtype.clone(),
        params,
        seed: random.bits() >> 12,
        values: match kernel.declared {
            // A large case is there for its size: values that hide wrong places would waste it.
            _ if large.is_some() => Values::Normal,
            Some(declared) => pick(random, &declared.values),
            None => values(op, random),
        },
        // A kernel that is handed pointers may count on what allocators give.
        offset: match target {
            Target::Builtin => 0,
            _ if own.is_some() || random.below(4) > 0 => 0,
            _ => 1 + random.below(3),
        },
        kernel: own.clone(),
        declared: kernel.declared.cloned(),
    })
}

/// Ordinary values half of the time. Ops that choose tiles by their values get none that tie, and nothing that is not finite:
/// the choice is open then.
fn values(op: &str, random: &mut Random) -> Values {
    const CHOOSING: &[&str] = &["infer", "ff_path"];
    const UNTIED: &[Values] = &[Values::Uniform, Values::Tiny];
    match random.below(2) {
        0 => Values::Normal,
        _ if CHOOSING.contains(&op) => pick(random, UNTIED),
        _ => pick(random, Values::ALL),
    }
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
        for (target, ops) in [
            (Target::Builtin, holdpoint_ops::OPS),
            (
                Target::Cuda,
                &[
                    "attention",
                    "tile_pack",
                    "tile_unpack",
                    "fused_pack_op_unpack",
                    "fusion_gate",
                    "tile_ssm",
                    "ff_path",
                    "copy",
                ],
            ),
            (Target::External, super::super::arena::OPS),
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
