//! Runs and checks a case of a built-in op on the CPU, in this process.

use holdpoint_model::fuzz::{Errors, Evaluated};
use holdpoint_model::limits::CASE_DEVICE_ELEMENTS_MAX;
use holdpoint_model::{FindingKind, FuzzCase};
use holdpoint_ops::{BuildError, Check, Dtype, Entry, Prepared, Request, Tensor, values};

pub(crate) fn request(case: &FuzzCase) -> Request {
    let width = Dtype::parse(&case.dtype).map_or(0, Dtype::bytes);
    Request {
        seed: case.seed,
        misalign: case.offset * width,
        kernel: case.kernel.clone(),
        declared: case.declared.clone().filter(|_| case.kernel.is_some()),
        ..Request::new(&case.op, &case.shape, &case.dtype, &case.params)
    }
}

/// Whether a case has so many elements that a device may lack the memory for it.
pub(crate) fn is_huge(case: &FuzzCase) -> bool {
    case.shape.iter().fold(1, |all: u64, size| all.saturating_mul(*size as u64)) > CASE_DEVICE_ELEMENTS_MAX
}

/// Whether an op is determined by its tensors alone, so that a user's worker can compute it.
pub(crate) fn is_for_workers(op: &str) -> bool {
    Entry::find(op).and_then(|entry| entry.cases).is_some_and(|cases| cases.for_workers)
}

/// Runs the case twice and checks it.
pub(crate) fn evaluate(case: &FuzzCase) -> Result<Evaluated, BuildError> {
    let mut op = Prepared::new(&request(case))?;
    let dtype = Dtype::parse(&case.dtype).unwrap_or(Dtype::F32);
    let leeway = values::fill(case.values, op.inputs(), case.seed, dtype);
    let given = bytes(op.inputs());
    op.poison();
    op.call();
    let first = bytes(op.outputs());
    let check = op.check_given(leeway);
    op.poison();
    op.call();
    let second = bytes(op.outputs());
    Ok(if bytes(op.inputs()) != given {
        Evaluated::wrong(FindingKind::InputChanged, "an input holds other values after the call")
    } else if check.passed && first != second {
        Evaluated::wrong(FindingKind::NotDeterministic, "the same inputs gave other bits the second time")
    } else {
        from_check(&check)
    })
}

pub(crate) fn skipped(reason: impl Into<String>) -> Evaluated {
    Evaluated { skipped: Some(reason.into()), ..Evaluated::default() }
}

fn bytes(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(Tensor::bytes).collect()
}

/// The outcome of a case by its check alone.
pub(crate) fn from_check(check: &Check) -> Evaluated {
    let errors = Some(Errors {
        values_count: check.total,
        max_abs_err: check.max_abs_err,
        mean_abs_err: check.mean_abs_err,
        max_rel_err: check.max_rel_err,
        rel_norm: check.rel_norm,
        correlation: check.correlation,
        accuracy: check.accuracy,
    });
    let checked_by = check.checked_by.clone();
    if check.passed {
        return Evaluated { errors, checked_by, ..Evaluated::default() };
    }
    let first = check.first_bad.as_deref().unwrap_or("something differs");
    let detail = format!("{first}; {} of {} values are wrong", check.mismatches, check.total);
    Evaluated { errors, checked_by, ..Evaluated::wrong(FindingKind::WrongAnswer, detail) }
}
