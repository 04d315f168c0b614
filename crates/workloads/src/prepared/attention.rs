//! `attention`.

use serde::Deserialize;

use crate::attention::{self, AttentionSpec, Scratch};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::rng::RandomState;
use crate::{Check, PreparedOp, Request, Variant, Work};

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Params {
    causal: bool,
}

fn plan(req: &Request<'_>) -> Result<AttentionSpec, BuildError> {
    let Params { causal } = super::parse(req)?;
    match *req.shape {
        [batch, heads, steps, width] => Ok(AttentionSpec { heads: batch * heads, steps, width, causal }),
        _ => Err(super::shape_error(req, "q, k and v must be [B,H,S,D]")),
    }
}

pub(super) fn validate(req: &Request<'_>) -> Result<(), BuildError> {
    plan(req).map(drop)
}

pub(super) fn prepare(req: &Request<'_>) -> Result<Attention, BuildError> {
    let spec = plan(req)?;
    let mut rng = RandomState::new(req.seed);
    let mut op = Attention {
        dims: req.shape.to_vec(),
        variant: Variant::Reference,
        // f32 sums over D and S against f64: 6e-7 apart at S = 512 and D = 64.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-5, 1e-4)),
        qkv: [rng.normals(spec.len()), rng.normals(spec.len()), rng.normals(spec.len())],
        scores: vec![0.0; spec.steps],
        scratch: Scratch::new(&spec),
        got: Buffer::nan(spec.len()),
        want: Buffer::default(),
        spec,
    };
    op.call();
    op.want = op.got.clone();
    op.variant = req.variant;
    op.poison();
    Ok(op)
}

pub(super) struct Attention {
    spec: AttentionSpec,
    dims: Vec<usize>,
    variant: Variant,
    tolerance: Tolerance,
    qkv: [Buffer; 3],
    scores: Vec<f64>,
    scratch: Scratch,
    got: Buffer,
    want: Buffer,
}

impl PreparedOp for Attention {
    fn call(&mut self) {
        let [q, k, v] = &self.qkv;
        match self.variant {
            Variant::Fast => attention::fast(&self.spec, q, k, v, &mut self.scratch, &mut self.got),
            Variant::Reference => {
                attention::oracle(&self.spec, q, k, v, &mut self.scores, &mut self.got);
            }
        }
    }

    fn poison(&mut self) {
        self.got.fill(f32::NAN);
    }

    fn check(&self) -> Check {
        Comparison::new(self.tolerance).floats("out", &self.dims, &self.got, &self.want).finish()
    }

    fn work(&self) -> Work {
        let AttentionSpec { heads, steps, width, causal } = self.spec;
        let per_head = if causal { steps * (steps + 1) / 2 } else { steps * steps };
        let pairs = (heads * per_head) as u64;
        Work {
            bytes: 4 * 4 * self.spec.len() as u64,
            // Two products of depth D, and scale, maximum, subtract, exp, sum and divide per score.
            flops: pairs * (4 * width as u64 + 6),
            items: (self.dims[0] * steps) as u64,
            item: "tokens",
        }
    }
}

#[cfg(test)]
impl super::Outputs for Attention {
    fn outputs(&mut self) -> Vec<&mut [f32]> {
        vec![&mut self.got]
    }
}
