//! Turns requests into runnable ops: parameters, validation, inputs, buffers, check. Must not compute
//! anything an op module could compute.

mod attention;
mod ceilings;
mod ff;
mod fused;
mod fusion;
mod infer;
mod load;
mod pack;
mod ssm;
mod tiles;
mod unpack;

pub use load::{Load, load};

use serde::de::DeserializeOwned;
use serde_json::Map;

use crate::error::{BuildError, OpError};
use crate::shape::Nchw;
use crate::{PreparedOp, Request, Tolerance};

type Validate = fn(&Request<'_>) -> Result<(), BuildError>;
type Build = fn(&Request<'_>) -> Result<Box<dyn PreparedOp>, BuildError>;

/// How one op is validated and built.
pub(crate) struct Entry {
    op: &'static str,
    validate: Validate,
    build: Build,
}

const ENTRIES: &[Entry] = &[
    Entry { op: "infer", validate: infer::validate, build: |req| boxed(infer::prepare(req)) },
    Entry { op: "tile_pack", validate: pack::validate, build: |req| boxed(pack::prepare(req)) },
    Entry { op: "tile_unpack", validate: unpack::validate, build: |req| boxed(unpack::prepare(req)) },
    Entry { op: "fusion_gate", validate: fusion::validate, build: |req| boxed(fusion::prepare(req)) },
    Entry { op: "tile_ssm", validate: ssm::validate, build: |req| boxed(ssm::prepare(req)) },
    Entry { op: "fused_pack_op_unpack", validate: fused::validate, build: |req| boxed(fused::prepare(req)) },
    Entry { op: "ff_path", validate: ff::validate, build: |req| boxed(ff::prepare(req)) },
    Entry { op: "attention", validate: attention::validate, build: |req| boxed(attention::prepare(req)) },
    Entry { op: "copy", validate: ceilings::validate_copy, build: |req| boxed(ceilings::prepare_copy(req)) },
    Entry { op: "fma", validate: ceilings::validate_fma, build: |req| boxed(ceilings::prepare_fma(req)) },
];

fn boxed<T: PreparedOp + 'static>(op: Result<T, BuildError>) -> Result<Box<dyn PreparedOp>, BuildError> {
    op.map(|op| Box::new(op) as Box<dyn PreparedOp>)
}

/// Finds the op and checks what every op has in common.
pub(crate) fn entry(req: &Request<'_>) -> Result<&'static Entry, BuildError> {
    let op = || req.op.to_owned();
    let entry = ENTRIES.iter().find(|e| e.op == req.op).ok_or_else(|| BuildError::UnknownOp { op: op() })?;
    if req.dtype != "f32" {
        return Err(BuildError::Dtype { op: op(), dtype: req.dtype.to_owned() });
    }
    if let Some(Tolerance { atol, rtol }) = req.tolerance {
        let fine = |v: f64| v.is_finite() && v >= 0.0;
        if !fine(atol) || !fine(rtol) {
            return Err(BuildError::Tolerance { op: op(), atol, rtol });
        }
    }
    check_size(req)?;
    load::check(req)?;
    Ok(entry)
}

impl Entry {
    pub(crate) fn validate(&self, req: &Request<'_>) -> Result<(), BuildError> {
        (self.validate)(req)
    }

    pub(crate) fn build(&self, req: &Request<'_>) -> Result<Box<dyn PreparedOp>, BuildError> {
        (self.build)(req)
    }
}

const ELEMENTS_MAX: usize = load::ELEMENTS_MAX as usize;

fn check_size(req: &Request<'_>) -> Result<(), BuildError> {
    if req.shape.contains(&0) {
        return Err(shape_error(req, "every size must be > 0"));
    }
    let total = req.shape.iter().try_fold(1usize, |total, &size| total.checked_mul(size));
    match total {
        Some(total) if total <= ELEMENTS_MAX => Ok(()),
        _ => Err(shape_error(req, "at most 2^31 elements")),
    }
}

fn shape_error(req: &Request<'_>, problem: impl Into<String>) -> BuildError {
    BuildError::Shape { op: req.op.to_owned(), shape: req.shape.to_vec(), problem: problem.into() }
}

fn param_error(req: &Request<'_>, param: &'static str, problem: impl ToString) -> BuildError {
    BuildError::Param { op: req.op.to_owned(), param, problem: problem.to_string() }
}

/// Names the parameter an op's own complaint is about.
fn at_param(req: &Request<'_>, param: &'static str) -> impl Fn(OpError) -> BuildError {
    move |error| param_error(req, param, error)
}

fn finite(req: &Request<'_>, param: &'static str, value: f64) -> Result<(), BuildError> {
    // Beyond f32 a finite number would turn into an infinity on its way into the op.
    if value.is_finite() && (value as f32).is_finite() {
        Ok(())
    } else {
        Err(param_error(req, param, format!("must be a finite f32, not {value}")))
    }
}

/// The four sizes of a feature map.
fn feature_map(req: &Request<'_>) -> Result<Nchw, BuildError> {
    match *req.shape {
        [batch, channels, height, width] => Ok(Nchw { batch, channels, height, width }),
        _ => Err(shape_error(req, "feature_map must be [B,C,H,W]")),
    }
}

/// Reads the parameters. serde names an unknown one itself; for a mistyped one each is tried alone.
fn parse<P: DeserializeOwned>(req: &Request<'_>) -> Result<P, BuildError> {
    P::deserialize(req.params).map_err(|error| {
        let culprit = req.params.iter().find_map(|(name, value)| {
            let alone = Map::from_iter([(name.clone(), value.clone())]);
            P::deserialize(&alone).err().map(|error| format!("{name}: {error}"))
        });
        BuildError::Params { op: req.op.to_owned(), problem: culprit.unwrap_or_else(|| error.to_string()) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Variant;
    use serde_json::{Value, json};

    #[test]
    fn the_table_and_the_public_list_name_the_same_ops() {
        let table: Vec<&str> = ENTRIES.iter().map(|e| e.op).collect();
        assert_eq!(table, crate::OPS);
    }

    /// Changes every seventh element of every output, one at a time.
    fn spoil<T: PreparedOp>(
        prepare: fn(&Request<'_>) -> Result<T, BuildError>,
        shape: &[usize],
        params: &Value,
    ) {
        let params = params.as_object().unwrap();
        let (op, dtype, variant) = ("op under test", "f32", Variant::Fast);
        let request = Request { op, shape, dtype, variant, params, seed: 9, tolerance: None };
        let mut prepared = prepare(&request).unwrap();
        prepared.call();
        assert!(prepared.check().passed, "{:?}", prepared.check());
        for output in 0..prepared.outputs().len() {
            for at in (0..prepared.outputs()[output].values.len()).step_by(7) {
                let good = prepared.outputs()[output].values[at];
                for bad in [good + 0.01 * good.abs().max(1.0), f32::NAN, f32::INFINITY] {
                    prepared.outputs()[output].values[at] = bad;
                    let check = prepared.check();
                    assert!(
                        !check.passed && check.mismatches == 1,
                        "output {output}[{at}] = {bad}: {check:?}"
                    );
                }
                prepared.outputs()[output].values[at] = good;
            }
        }
    }

    #[test]
    fn one_changed_element_fails_the_check() {
        let tiles = json!({"tile_size": 4, "indices": [1, 0]});
        let map = [1, 2, 8, 8];
        spoil(infer::prepare, &[1, 3, 64, 32], &json!({"tile_size_l0": 4}));
        spoil(pack::prepare, &map, &tiles);
        spoil(unpack::prepare, &map, &tiles);
        spoil(fusion::prepare, &map, &json!({}));
        spoil(ssm::prepare, &[1, 5, 9], &json!({"direction": "bidirectional"}));
        spoil(fused::prepare, &map, &tiles);
        let ff = json!({"tile_size_l0": 4, "tile_size_l1": 2, "kmax_l0": 2, "kmax_l1": 8});
        spoil(ff::prepare, &map, &ff);
        spoil(attention::prepare, &[1, 2, 9, 8], &json!({}));
        spoil(ceilings::prepare_copy, &[150], &json!({}));
        spoil(ceilings::prepare_fma, &[150], &json!({"rounds": 50}));
    }
}
