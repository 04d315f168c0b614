//! `attention`.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::attention::{self, AttentionSpec, Scratch};
use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::rng::RandomState;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

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
    let space = match req.variant {
        Variant::Fast => Space::Fast(Box::new(Scratch::new(&spec))),
        Variant::Reference => Space::Reference(vec![0.0; spec.steps]),
    };
    Ok(Attention {
        dims: req.shape.to_vec(),
        // f32 sums over D and S against f64: 6e-7 apart at S = 512 and D = 64.
        tolerance: req.tolerance.unwrap_or(Tolerance::new(1e-5, 1e-4)),
        qkv: [rng.normals(spec.len()), rng.normals(spec.len()), rng.normals(spec.len())],
        space,
        got: Buffer::nan(spec.len()),
        want: OnceLock::new(),
        spec,
    })
}

/// Working space of the variant that is timed.
enum Space {
    Fast(Box<Scratch>),
    Reference(Vec<f64>),
}

pub(super) struct Attention {
    spec: AttentionSpec,
    dims: Vec<usize>,
    tolerance: Tolerance,
    qkv: [Buffer; 3],
    space: Space,
    got: Buffer,
    want: OnceLock<Buffer>,
}

impl Attention {
    fn oracle(&self) -> Buffer {
        let [q, k, v] = &self.qkv;
        let mut want = Buffer::nan(self.spec.len());
        attention::oracle(&self.spec, q, k, v, &mut vec![0.0; self.spec.steps], &mut want);
        want
    }
}

impl PreparedOp for Attention {
    fn call(&mut self) {
        let [q, k, v] = &self.qkv;
        match &mut self.space {
            Space::Fast(scratch) => attention::fast(&self.spec, q, k, v, scratch, &mut self.got),
            Space::Reference(scores) => attention::oracle(&self.spec, q, k, v, scores, &mut self.got),
        }
    }

    fn poison(&mut self) {
        self.got.fill(f32::NAN);
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let want = self.want.get_or_init(|| self.oracle());
        Comparison::new(self.tolerance).given(leeway).floats("out", &self.dims, &self.got, want).finish()
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

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        let [q, k, v] = &mut self.qkv;
        vec![
            Tensor::new("q", &self.dims, Domain::Exponent, q),
            Tensor::new("k", &self.dims, Domain::Exponent, k),
            Tensor::new("v", &self.dims, Domain::Weighed, v),
        ]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("out", &self.dims, Domain::Any, &mut self.got)]
    }
}
