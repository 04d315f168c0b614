//! Limits on the size of a case, checked before anything is allocated for it.

use super::Target;
use crate::worker::own;
use holdpoint_model::FuzzCase;
use holdpoint_model::Values;
use holdpoint_model::limits::{
    CASE_DEVICE_ELEMENTS_MAX, CASE_ELEMENTS_MAX, CASE_HUGE_ELEMENTS_MAX, CASE_OPERATIONS_MAX,
};
use holdpoint_ops::{Load, load};

/// A case with more operations gets one call per request, others two.
const HEAVY_OPERATIONS: u64 = 500_000;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    #[error("shape {shape:?}: all tensors of a case have {elements} elements, at most {max} are allowed")]
    Elements { shape: Vec<usize>, elements: u64, max: u64 },
    #[error("shape {shape:?}: the oracle would take {operations} operations, at most {max} are allowed")]
    Operations { shape: Vec<usize>, operations: u64, max: u64 },
}

impl Target {
    pub fn check_size(self, case: &FuzzCase) -> Result<(), TooLarge> {
        let (Load { elements, operations }, shape) = (measure(self, case), case.shape.clone());
        let max = match self {
            Self::Cuda if case.values == Values::Normal => CASE_HUGE_ELEMENTS_MAX,
            Self::Cuda => CASE_DEVICE_ELEMENTS_MAX,
            _ => CASE_ELEMENTS_MAX,
        };
        if elements > max {
            return Err(TooLarge::Elements { shape, elements, max });
        }
        if operations > CASE_OPERATIONS_MAX {
            return Err(TooLarge::Operations { shape, operations, max: CASE_OPERATIONS_MAX });
        }
        Ok(())
    }
}

pub(super) fn is_heavy(case: &FuzzCase) -> bool {
    measure(Target::External, case).operations > HEAVY_OPERATIONS
}

fn measure(target: Target, case: &FuzzCase) -> Load {
    let main = product(&case.shape);
    match (target, &case.declared) {
        // On a device, only some rows of a large answer are compared with the oracle.
        (Target::Cuda, _) => Load { elements: main, operations: 0 },
        (_, Some(op)) => {
            let (inputs, outputs) = op.tensors(&case.shape).unwrap_or_default();
            // The oracle's outputs are as large as the kernel's.
            let all = inputs.iter().chain(&outputs).chain(&outputs);
            let elements = all.fold(0, |sum: u64, (_, dims)| sum.saturating_add(product(dims)));
            Load { elements, operations: main }
        }
        (_, None) => load(&own::request(case)),
    }
}

fn product(sizes: &[usize]) -> u64 {
    sizes.iter().fold(1, |all: u64, size| all.saturating_mul(*size as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn case(op: &str, shape: &[usize]) -> FuzzCase {
        let case = json!({"op": op, "shape": shape, "dtype": "f32", "seed": 1, "values": "normal"});
        serde_json::from_value(case).unwrap()
    }

    #[test]
    fn cases_beyond_memory_or_patience_are_refused_with_size_and_limit() {
        let refused = |target: Target, case: &FuzzCase| target.check_size(case).unwrap_err().to_string();
        let wide = case("attention", &[4, 16, 2048, 512]);
        assert!(refused(Target::External, &wide).contains("at most 67108864"), "{wide:?}");
        assert!(refused(Target::Builtin, &wide).contains("elements"));
        assert_eq!(Target::Cuda.check_size(&wide), Ok(()));
        assert!(refused(Target::Cuda, &case("attention", &[1 << 40, 1 << 40, 4, 4])).contains("elements"));
        let long = case("attention", &[1, 1, 100_000, 20]);
        assert!(refused(Target::External, &long).contains("200000000000 operations"), "{long:?}");
    }

    #[test]
    fn every_tensor_of_a_declared_op_counts() {
        let op = json!({"sizes": ["n"], "inputs": {"a": ["n"]}, "outputs": {"b": ["n * n"]}, "oracle": "it"});
        let mut case = case("square", &[6000]);
        case.declared = serde_json::from_value(op).unwrap();
        let problem = Target::External.check_size(&case).unwrap_err().to_string();
        assert!(problem.contains("72006000 elements"), "{problem}");
        case.shape = vec![500];
        assert_eq!(Target::External.check_size(&case), Ok(()));
    }
}
