//! A case of a built-in op on the CPU, run and checked in this process.

use holdpoint_cuda::Dtype;
use holdpoint_model::fuzz::{Errors, Evaluated};
use holdpoint_model::{FindingKind, FuzzCase};
use holdpoint_ops::{BuildError, Check, Request, Variant, build, values};

/// What a case asks of the ops.
pub(crate) fn request(case: &FuzzCase) -> Request<'_> {
    Request {
        op: &case.op,
        shape: &case.shape,
        dtype: &case.dtype,
        variant: Variant::Fast,
        params: &case.params,
        seed: case.seed,
        tolerance: None,
    }
}

/// Runs the case twice and checks it.
///
/// # Errors
/// When the op does not take it.
pub(crate) fn evaluate(case: &FuzzCase) -> Result<Evaluated, BuildError> {
    let mut op = build(&request(case))?;
    let leeway = values::fill(case.values, &mut op.inputs(), case.seed, Dtype::F32.range(), &|value| value);
    let given = bits(op.inputs());
    op.poison();
    op.call();
    let first = bits(op.outputs());
    let check = op.check_given(leeway);
    op.poison();
    op.call();
    let second = bits(op.outputs());
    Ok(if bits(op.inputs()) != given {
        Evaluated::wrong(FindingKind::InputChanged, "an input holds other values after the call")
    } else if !check.passed {
        wrong(&check)
    } else if first != second {
        Evaluated::wrong(FindingKind::NotDeterministic, "the same inputs gave other bits the second time")
    } else {
        Evaluated { errors: Some(errors(&check)), ..Evaluated::default() }
    })
}

fn bits(tensors: Vec<holdpoint_ops::Tensor<'_>>) -> Vec<u32> {
    tensors.iter().flat_map(|tensor| tensor.values.iter().map(|value| value.to_bits())).collect()
}

/// A check that failed, as an outcome.
pub(crate) fn wrong(check: &Check) -> Evaluated {
    let first = check.first_bad.as_deref().unwrap_or("something differs");
    let detail = format!("{first}; {} of {} values are wrong", check.mismatches, check.total);
    Evaluated { errors: Some(errors(check)), ..Evaluated::wrong(FindingKind::WrongAnswer, detail) }
}

pub(crate) fn errors(check: &Check) -> Errors {
    Errors {
        values_count: check.total,
        max_abs_err: check.max_abs_err,
        mean_abs_err: check.mean_abs_err,
        max_rel_err: check.max_rel_err,
        rel_norm: check.rel_norm,
        correlation: check.correlation,
    }
}
