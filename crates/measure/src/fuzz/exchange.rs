//! One request to a user's worker, and the checks of its answer.

use super::answers::{Answers, OutputTensor};
use super::arena::{Arena, GAP_BYTES, POISON};
use super::call::{Call, IntegerOutputs, byte_range};
use super::declared::NoAnswer;
use crate::program::WorkerError;
use crate::worker::own;
use crate::worker::{Computed, Worker};
use holdpoint_model::fuzz::{Errors, Evaluated, Evaluation, Finding, TensorPlace};
use holdpoint_model::{FailureCause, FindingKind, FuzzCase};
use holdpoint_ops::Dtype;
use sha2::{Digest, Sha256};
use std::time::Duration;

pub(super) struct Exchange {
    calls: Vec<Call>,
    dtype: Dtype,
    request: Evaluation,
    before: Vec<u8>,
    pub(super) after: Vec<u8>,
    integers: IntegerOutputs,
    /// By the worker's clock.
    pub(super) elapsed_ns: u64,
    /// From request to answer.
    pub(super) passed: Duration,
}

impl Exchange {
    /// Calls with inputs of their own, each to be repeated `repeats` times.
    pub(super) fn new(case: &FuzzCase, seed: u64, calls: u64, repeats: u64) -> Result<Self, WorkerError> {
        Self::with_integers(case, seed, [calls, repeats], IntegerOutputs::Requested)
    }

    /// One call, with only its float outputs requested.
    pub(super) fn of_floats(case: &FuzzCase) -> Result<Self, WorkerError> {
        Self::with_integers(case, case.seed, [1, 1], IntegerOutputs::Computed)
    }

    fn with_integers(
        case: &FuzzCase,
        seed: u64,
        [calls, repeats]: [u64; 2],
        integers: IntegerOutputs,
    ) -> Result<Self, WorkerError> {
        let refused = |what: String| WorkerError::new(FailureCause::WorkerError, what);
        let dtype = Dtype::parse(&case.dtype)
            .ok_or_else(|| refused(format!("no element type {:?} is known", case.dtype)))?;
        let mut bytes = vec![POISON; GAP_BYTES];
        let calls: Vec<Call> = (0..calls)
            .map(|call| Call::new(case, dtype, seed.wrapping_add(call), integers, &mut bytes))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        let request = Evaluation {
            op: case.op.clone(),
            shape: case.shape.clone(),
            dtype: case.dtype.clone(),
            params: case.params.clone(),
            file: String::new(),
            bytes: bytes.len() as u64,
            calls: calls.iter().map(|call| call.places.clone()).collect(),
            repeats,
            seed: (!own::is_for_workers(&case.op) && case.declared.is_none()).then_some(seed),
            kernel: case.kernel.clone(),
            declared: case.declared.clone().filter(|_| case.kernel.is_some()),
        };
        let (after, elapsed_ns, passed) = (Vec::new(), 0, Duration::ZERO);
        Ok(Self { calls, dtype, request, after, before: bytes, integers, elapsed_ns, passed })
    }

    /// The first call's inputs, and the outputs of its last answer.
    pub(super) fn answers(&mut self) -> Answers {
        let part = |bytes: &[u8], place: &TensorPlace| bytes[byte_range(place, self.dtype)].to_vec();
        let places = &self.calls[0].places;
        let inputs: Vec<u8> = places.inputs.iter().flat_map(|place| part(&self.before, place)).collect();
        let outputs = places.outputs.iter().map(|place| OutputTensor {
            name: place.name.clone(),
            shape: place.shape.clone(),
            bytes: part(&self.after, place),
        });
        let inputs_sha256 = crate::machine::hex(&Sha256::digest(&inputs));
        Answers { inputs_sha256, outputs: outputs.collect(), is_deterministic: true }
    }

    pub(super) fn describe(&self) -> String {
        format!("{} calls, {} times over", self.calls.len(), self.request.repeats)
    }

    /// Sends the request and checks everything that comes back.
    pub(super) fn run(
        &mut self,
        arena: &mut Arena<'_>,
        worker: &mut dyn Worker,
    ) -> Result<Evaluated, WorkerError> {
        self.after.clone_from(&self.before);
        let computed;
        (computed, self.passed) = arena.tensors.exchange(worker, &mut self.request, &mut self.after)?;
        match computed {
            Computed::Timed(elapsed_ns) => self.elapsed_ns = elapsed_ns,
            Computed::Skipped(reason) => return Ok(own::skipped(reason)),
        }
        for call in &mut self.calls {
            let Some(oracle) = &call.oracle else { continue };
            match arena.oracle.answer(&self.request, oracle, worker, &mut call.case) {
                Ok(()) => {}
                Err(NoAnswer::Skipped(reason)) => {
                    return Ok(own::skipped(format!("the oracle has no answer: {reason}")));
                }
                Err(NoAnswer::Failed(detail)) => {
                    return Ok(Evaluated::wrong(FindingKind::OracleFailed, detail));
                }
            }
        }
        Ok(self.check())
    }

    fn check(&mut self) -> Evaluated {
        let dtype = self.dtype;
        if self.elapsed_ns == 0 || u128::from(self.elapsed_ns) > self.passed.as_nanos() {
            let (reported, passed) = (self.elapsed_ns, self.passed.as_nanos());
            let detail = format!("the worker reported {reported} ns, {passed} ns have passed");
            return Evaluated::wrong(FindingKind::TimeNotExplained, detail);
        }
        let mut errors: Option<Errors> = None;
        for call in &mut self.calls {
            if self.integers == IntegerOutputs::Computed {
                call.case.complete_integers();
            }
            if let Some(finding) = call.take_outputs(&self.after, dtype) {
                return Evaluated { finding: Some(finding), ..Evaluated::default() };
            }
            let evaluated = own::from_check(&call.case.check(call.leeway));
            if evaluated.finding.is_some() {
                return evaluated;
            }
            let worse = |here: Errors| errors.map_or(here, |errors| errors.worse(here));
            errors = evaluated.errors.map(worse);
        }
        match self.find_stray_write() {
            Some(finding) => Evaluated { finding: Some(finding), ..Evaluated::default() },
            None => Evaluated { errors, ..Evaluated::default() },
        }
    }

    /// Finds a byte that was changed outside all outputs.
    fn find_stray_write(&self) -> Option<Finding> {
        let ends = self.before.len()..self.before.len();
        let outputs = self.calls.iter().flat_map(|call| &call.places.outputs);
        let ranges = outputs.map(|place| byte_range(place, self.dtype)).chain([ends]);
        let mut from = 0;
        let at = ranges.into_iter().find_map(|range| {
            let part = std::mem::replace(&mut from, range.end)..range.start;
            let mut pairs = self.before[part.clone()].iter().zip(&self.after[part.clone()]);
            pairs.position(|(before, after)| before != after).map(|at| part.start + at)
        })?;
        let mut inputs = self.calls.iter().flat_map(|call| &call.places.inputs);
        Some(match inputs.find(|place| byte_range(place, self.dtype).contains(&at)) {
            Some(place) => Finding {
                kind: FindingKind::InputChanged,
                detail: format!("input {} holds other bytes after the call", place.name),
            },
            None => Finding {
                kind: FindingKind::OutOfBounds,
                detail: format!("byte {at} of {} lies beside the tensors and was written", self.after.len()),
            },
        })
    }
}
