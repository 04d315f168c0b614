//! Generates cases that kernels trip over: tiny and ragged sizes, primes, sizes next to powers of two, odd parameters
//! and values, and a few cases that are large along one axis: long rows, which end beside the tiles and parts that a kernel names,
//! and on a device sizes whose product passes 2^31.

use super::{Kernel, Target};
use holdpoint_model::suite::FuzzLimits;
use holdpoint_model::suite::OpSpec;
use holdpoint_model::{FuzzCase, Values};
use holdpoint_ops::cases::{CaseLimits, Draw};
use holdpoint_ops::{Backend, Entry};
use holdpoint_stats::random::Random;

const TRIES_MAX: usize = 2_000;
const LARGE_TRIES_MAX: usize = 500;
/// One case in this many is large along one axis, each axis in its turn.
const LARGE_EVERY: u64 = 20;
/// For our own workers one in this many, from here on, is large along the axis that kernels sum over.
const LONG_EVERY: u64 = 10;
const LONG_FIRST: u64 = 4;
/// The numbers of the cases that pass 2^31: late, as they take a second each, and within a hundred.
const HUGE: std::ops::Range<u64> = 95..100;

/// Largest size of a declared op, except along the large axis.
const DECLARED_MAX: usize = 300;

fn most(target: Target, is_large: bool, limits: Option<&FuzzLimits>) -> CaseLimits {
    let (operations, elements) = match (target, is_large) {
        // An oracle takes a millisecond or so.
        (Target::Builtin | Target::Cuda, false) => (1_500_000, 40_000),
        (Target::Builtin, true) => (8_000_000, 200_000),
        // Of long rows the oracle computes a sample.
        (Target::Cuda, true) => (1 << 34, 1 << 20),
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
        None => cases(kernel).map_or(Vec::new(), |(_, cases)| match kernel.target {
            Target::Cuda => cases.device_sizes_max.to_vec(),
            _ => cases.sizes_max.to_vec(),
        }),
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
    if let Some(case) = huge(kernel, number, random) {
        return Some(case);
    }
    let sizes_max = sizes_max(kernel);
    let row_axis = cases(kernel).and_then(|(_, cases)| cases.row_axis);
    let axis = large_axis(kernel.target, number, sizes_max.len(), row_axis);
    for tried in 0..TRIES_MAX {
        // What a kernel requires may leave no case that is large along this axis.
        let axis = axis.filter(|_| tried < LARGE_TRIES_MAX);
        let large = axis.map(|axis| match row_axis == Some(axis) {
            true => (axis, draw_long(sizes_max[axis], &kernel.boundaries, random)),
            false => (axis, draw_large(sizes_max[axis], random)),
        });
        let case = draw_case(kernel, large, random)?;
        let is_within = case.shape.iter().zip(&sizes_max).all(|(size, max)| size <= max);
        if is_within && kernel.target.takes(&case) {
            return Some(case);
        }
    }
    None
}

/// The axis along which a case is large, if it is.
fn large_axis(target: Target, number: u64, axes_count: usize, row_axis: Option<usize>) -> Option<usize> {
    if axes_count == 0 {
        return None;
    }
    if number % LARGE_EVERY == LARGE_EVERY - 1 {
        return Some((number / LARGE_EVERY) as usize % axes_count);
    }
    row_axis.filter(|_| target != Target::External && number % LONG_EVERY == LONG_FIRST)
}

/// Draws from the upper half of the allowed range.
fn draw_large(max: usize, random: &mut Random) -> usize {
    max - random.below((max / 2).max(1))
}

/// Draws a length of a row: from the upper half, or beside a power of two or a boundary that the kernel names, within a factor of 32 of
/// the maximum.
fn draw_long(max: usize, boundaries: &[usize], random: &mut Random) -> usize {
    let at_least = (max / 32).max(1);
    let unit = match random.below(3) {
        0 => return draw_large(max, random),
        1 if !boundaries.is_empty() => boundaries[random.below(boundaries.len())].max(1),
        _ => return ((at_least << random.below(6)) + random.below(3)).clamp(2, max + 1) - 1,
    };
    // As many lengths between each power of two and the next.
    let near = at_least << random.below(5);
    let near = near + random.below(near.max(1));
    (near.div_ceil(unit) * unit + random.below(3)).clamp(2, max + 1) - 1
}

/// A case whose sizes' product passes 2^31: index arithmetic in 32 bits goes wrong there. Absent where the kernel does not take it.
fn huge(kernel: &Kernel<'_>, number: u64, random: &mut Random) -> Option<FuzzCase> {
    let is_limited = |limits: &FuzzLimits| !limits.sizes_max.is_empty() || limits.elements_max.is_some();
    let is_due =
        kernel.target == Target::Cuda && !kernel.limits.is_some_and(is_limited) && HUGE.contains(&number);
    let (_, cases) = cases(kernel).filter(|_| is_due)?;
    let shape = cases.huge.get((number - HUGE.start) as usize)?.to_vec();
    let mut case = draw_case(kernel, None, random)?;
    (case.shape, case.values, case.offset) = (shape, Values::Normal, 0);
    kernel.target.takes(&case).then_some(case)
}

fn draw_case(kernel: &Kernel<'_>, large: Option<(usize, usize)>, random: &mut Random) -> Option<FuzzCase> {
    let (op, target, own) = (&kernel.spec.op, kernel.target, kernel.spec.task.kernel());
    let backend = match target {
        Target::Builtin => Some(Backend::Cpu),
        Target::Cuda => Some(Backend::Cuda),
        Target::External => None,
    };
    let limits = most(target, large.is_some(), kernel.limits);
    let mut draw = Draw { backend, limits, large, boundaries: &kernel.boundaries, random };
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
    let row_axis = cases(kernel).and_then(|(_, cases)| cases.row_axis);
    let is_row = |(axis, _): (usize, usize)| row_axis == Some(axis);
    Some(FuzzCase {
        op: op.clone(),
        shape,
        dtype: kernel.dtype.clone(),
        params,
        seed: random.bits() >> 12,
        values: match kernel.declared {
            // A long row whose weights are spread shows what leaves some of them out.
            None if large.is_some_and(is_row) && values.contains(&Values::Spread) && random.below(2) == 0 => {
                Values::Spread
            }
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
        kernel: own.cloned(),
        declared: kernel.declared.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::own;
    use holdpoint_model::suite::{DeviceTask, Task};
    use holdpoint_model::{Suite, Workload};
    use serde_json::json;
    use std::collections::BTreeSet;

    fn workload(op: &str) -> Workload {
        let text = format!("schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"a\"\nop = {op:?}\n");
        Suite::parse(&text).unwrap().workloads.remove(0)
    }

    fn kernel(spec: &Workload, target: Target) -> Kernel<'_> {
        Kernel { spec, dtype: "f32".to_owned(), target, declared: None, limits: None, boundaries: Vec::new() }
    }

    #[test]
    fn every_op_has_cases_that_it_takes_and_they_differ() {
        let mut random = Random::new(1);
        let fuzzed = |op: &&str| Entry::find(op).is_some_and(|entry| entry.cases.is_some());
        let own = |backend| holdpoint_ops::names(backend).filter(fuzzed).collect::<Vec<_>>();
        let for_workers = own(Backend::Cpu).into_iter().filter(|op| own::is_for_workers(op)).collect();
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
        let own = serde_json::from_value(own).unwrap();
        spec.task = Task::Kernel(Box::new(own), DeviceTask::default());
        for number in 0..50 {
            let case = generate(&kernel(&spec, Target::Cuda), number, &mut random).unwrap();
            assert_eq!((case.shape[2] % 64, case.shape[3], case.offset), (0, 64, 0));
            assert_eq!(case.kernel.as_ref(), spec.task.kernel());
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
    fn rows_on_a_device_are_long_end_beside_boundaries_and_stay_few() {
        let (mut random, spec) = (Random::new(7), workload("attention"));
        let kernel = Kernel { boundaries: vec![96], dtype: "f16".to_owned(), ..kernel(&spec, Target::Cuda) };
        let cases: Vec<FuzzCase> =
            (0..300).map(|number| generate(&kernel, number, &mut random).unwrap()).collect();
        let long: Vec<&FuzzCase> =
            cases.iter().filter(|case| case.shape[2] > 512 && case.shape[..2] != [5, 13_107]).collect();
        assert!((20..45).contains(&long.len()), "{} are long", long.len());
        assert!(long.iter().any(|case| case.shape[2] > 15_000));
        assert!(
            long.iter().any(|case| [95, 0, 1].contains(&(case.shape[2] % 96)) && case.shape[2] % 32 != 0)
        );
        assert!(long.iter().filter(|case| case.values == Values::Spread).count() >= 8);
        assert!(long.iter().all(|case| case.values == Values::Spread || case.values == Values::Normal));
        for axis in [0, 1] {
            assert!(cases.iter().any(|case| case.shape[axis] > 32 && case.shape[axis] < 2000), "axis {axis}");
        }
        let products = |case: &&FuzzCase| case.shape.iter().product::<usize>() > 1 << 31;
        assert_eq!(cases.iter().filter(products).count(), 1);
        assert!(cases.iter().any(|case| case.shape[0] * case.shape[1] * case.shape[2].pow(2) > 1 << 31));
        // The kernel takes less than a hundredth of a second, the host draws a million values at most.
        for case in cases
            .iter()
            .filter(|case| !HUGE.contains(&(cases.iter().position(|c| c == *case).unwrap() as u64)))
        {
            let [batch, heads, steps, width] = case.shape[..] else { panic!() };
            let elements = batch * heads * steps * width;
            assert!(elements <= 1 << 21 && elements * steps <= 1 << 34, "{:?}", case.shape);
        }
        let mut widths: Vec<usize> = long.iter().map(|case| case.shape[3]).collect();
        widths.sort_unstable();
        widths.dedup();
        assert!(widths.len() >= 3, "{widths:?}");
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
