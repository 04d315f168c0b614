//! `copy` and `fma`: what memory, caches and arithmetic can do at most.

use std::sync::OnceLock;

use serde::Deserialize;

use crate::buffer::Buffer;
use crate::compare::{Comparison, Tolerance};
use crate::error::BuildError;
use crate::fma;
use crate::rng::RandomState;
use crate::{Check, Domain, Leeway, PreparedOp, Request, Tensor, Variant, Work};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CopyParams {}

#[derive(Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct FmaParams {
    rounds: usize,
}

impl Default for FmaParams {
    fn default() -> Self {
        Self { rounds: 4096 }
    }
}

fn count(req: &Request<'_>) -> Result<usize, BuildError> {
    match *req.shape {
        [count] => Ok(count),
        _ => Err(super::shape_error(req, "one size is wanted, [N]")),
    }
}

/// What is done to every value.
#[derive(Clone, Copy)]
enum Doing {
    Copy,
    Fma { rounds: usize },
}

impl Doing {
    fn copy(req: &Request<'_>) -> Result<Self, BuildError> {
        let CopyParams {} = super::parse(req)?;
        Ok(Self::Copy)
    }

    fn fma(req: &Request<'_>) -> Result<Self, BuildError> {
        let FmaParams { rounds } = super::parse(req)?;
        if !(1..=1 << 24).contains(&rounds) {
            return Err(super::param_error(req, "rounds", "1 to 2^24 are wanted"));
        }
        Ok(Self::Fma { rounds })
    }
}

pub(super) fn validate_copy(req: &Request<'_>) -> Result<(), BuildError> {
    Doing::copy(req)?;
    count(req).map(drop)
}

pub(super) fn validate_fma(req: &Request<'_>) -> Result<(), BuildError> {
    Doing::fma(req)?;
    count(req).map(drop)
}

pub(super) fn prepare_copy(req: &Request<'_>) -> Result<Ceiling, BuildError> {
    prepare(req, Doing::copy(req)?)
}

pub(super) fn prepare_fma(req: &Request<'_>) -> Result<Ceiling, BuildError> {
    prepare(req, Doing::fma(req)?)
}

fn prepare(req: &Request<'_>, doing: Doing) -> Result<Ceiling, BuildError> {
    let count = count(req)?;
    Ok(Ceiling {
        doing,
        variant: req.variant,
        // Neither a copy nor a multiply-add leaves anything to rounding.
        tolerance: req.tolerance.unwrap_or(Tolerance::EXACT),
        input: RandomState::new(req.seed).uniforms(count),
        got: Buffer::nan(count),
        want: OnceLock::new(),
    })
}

pub(super) struct Ceiling {
    doing: Doing,
    variant: Variant,
    tolerance: Tolerance,
    input: Buffer,
    got: Buffer,
    want: OnceLock<Buffer>,
}

impl Ceiling {
    fn oracle(&self) -> Buffer {
        match self.doing {
            Doing::Copy => self.input.clone(),
            Doing::Fma { rounds } => {
                let mut want = Buffer::nan(self.input.len());
                fma::oracle(rounds, &self.input, &mut want);
                want
            }
        }
    }
}

impl PreparedOp for Ceiling {
    fn call(&mut self) {
        match (self.doing, self.variant) {
            (Doing::Copy, Variant::Fast) => self.got.copy_from_slice(&self.input),
            (Doing::Copy, Variant::Reference) => {
                for (out, x) in self.got.iter_mut().zip(&*self.input) {
                    *out = *x;
                }
            }
            (Doing::Fma { rounds }, Variant::Fast) => fma::fast(rounds, &self.input, &mut self.got),
            (Doing::Fma { rounds }, Variant::Reference) => fma::oracle(rounds, &self.input, &mut self.got),
        }
    }

    fn poison(&mut self) {
        self.got.fill(f32::NAN);
    }

    fn check_given(&self, leeway: Leeway) -> Check {
        let want = self.want.get_or_init(|| self.oracle());
        Comparison::new(self.tolerance)
            .given(leeway)
            .floats("out", &[self.got.len()], &self.got, want)
            .finish()
    }

    fn work(&self) -> Work {
        let elements = self.input.len() as u64;
        let flops = match self.doing {
            Doing::Copy => 0,
            Doing::Fma { rounds } => 2 * elements * rounds as u64,
        };
        Work { bytes: 8 * elements, flops, items: elements, item: "elements" }
    }

    fn inputs(&mut self) -> Vec<Tensor<'_>> {
        self.want.take();
        vec![Tensor::new("input", &[self.got.len()], Domain::Unit, &mut self.input)]
    }

    fn outputs(&mut self) -> Vec<Tensor<'_>> {
        vec![Tensor::new("out", &[self.got.len()], Domain::Any, &mut self.got)]
    }
}
