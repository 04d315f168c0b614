//! A case for a worker of the user's: tensors in a file that both map, with gaps between them that must stay as they are, and
//! everything that comes back looked at.
//!
//! The worker gets no chance to tell a check from a timing: it is always asked to time its calls, and their outputs are always
//! checked. Calls of one request have inputs and outputs of their own, so an answer kept from one is wrong for the next.

use super::answers::{Answers, OutputTensor};
use super::declared::{Declared, Oracle};
use super::own;
use crate::worker::{Computed, Worker, WorkerError};
use holdpoint_cuda::Dtype;
use holdpoint_model::fuzz::{CallPlaces, Errors, Evaluated, Evaluation, TensorPlace};
use holdpoint_model::{FailureCause, FindingKind, FuzzCase, Suite};
use holdpoint_workloads::{Leeway, PreparedOp, Request, Tensor, Tolerance, build, values};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes between tensors. All ones: not a number in any float type, so that what is read there spoils the answer.
pub(super) const GAP_BYTES: usize = 256;
pub(super) const POISON: u8 = 0xff;
/// Calls of one request, each with inputs of its own.
const CALLS: u64 = 2;

/// Ops whose tensors are all known from the case; the others have weights of their own.
pub(super) const OPS: &[&str] =
    &["attention", "tile_ssm", "fusion_gate", "tile_pack", "tile_unpack", "fused_pack_op_unpack"];

/// The oracle's side of one call.
struct Call {
    op: Op,
    leeway: Leeway,
    places: CallPlaces,
}

/// An op of ours, or one that the suite declares.
enum Op {
    Known(Box<dyn PreparedOp>),
    Declared(Declared),
}

impl Op {
    fn get(&mut self) -> &mut dyn PreparedOp {
        match self {
            Self::Known(op) => &mut **op,
            Self::Declared(op) => op,
        }
    }
}

/// The file that both sides see, and who knows the answers to declared ops.
pub(super) struct Arena<'a> {
    tensors: Tensors,
    oracle: Oracle<'a>,
}

impl<'a> Arena<'a> {
    /// An empty one.
    ///
    /// # Errors
    /// When no file can be made.
    pub(super) fn new(suite: &'a Suite, dir: &Path) -> std::io::Result<Self> {
        Ok(Self { tensors: Tensors::new(dir, "tensors")?, oracle: Oracle::new(suite, dir)? })
    }
}

/// A file of tensors.
pub(super) struct Tensors {
    file: File,
    path: String,
}

impl Tensors {
    pub(super) fn new(dir: &Path, name: &str) -> std::io::Result<Self> {
        let path = dir.join(name);
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        Ok(Self { file, path: path.display().to_string() })
    }

    /// Asks, and times the answer.
    pub(super) fn exchange(
        &mut self,
        worker: &mut dyn Worker,
        request: &mut Evaluation,
        bytes: &mut [u8],
    ) -> Result<(Computed, Duration), WorkerError> {
        let failed = |error: std::io::Error| {
            WorkerError::new(FailureCause::WorkerError, format!("the tensors' file: {error}"))
        };
        request.file.clone_from(&self.path);
        self.file.set_len(bytes.len() as u64).map_err(failed)?;
        self.file.rewind().and_then(|()| self.file.write_all(bytes)).map_err(failed)?;
        let start = Instant::now();
        let computed = worker.evaluate(request)?;
        let passed = start.elapsed();
        self.file.rewind().and_then(|()| self.file.read_exact(bytes)).map_err(failed)?;
        Ok((computed, passed))
    }
}

/// Runs a case and checks it.
///
/// # Errors
/// When the worker fails.
pub(super) fn evaluate(
    arena: &mut Arena<'_>,
    worker: &mut dyn Worker,
    case: &FuzzCase,
) -> Result<Evaluated, WorkerError> {
    let mut first = Exchange::new(case, case.seed, CALLS, 1)?;
    let evaluated = first.run(arena, worker)?;
    if evaluated.finding.is_some() || evaluated.skipped.is_some() {
        return Ok(evaluated);
    }
    // Other inputs at the same addresses, each call made twice, then the first again.
    let again = Exchange::new(case, case.seed ^ 0x5555, CALLS, 2)?.run(arena, worker)?;
    if again.finding.is_some() || again.skipped.is_some() {
        return Ok(again);
    }
    let before = first.after.clone();
    let repeated = first.run(arena, worker)?;
    if first.after != before {
        let detail = "the same inputs gave other bits the second time";
        return Ok(Evaluated::wrong(FindingKind::NotDeterministic, detail));
    }
    if repeated.finding.is_some() || repeated.skipped.is_some() {
        return Ok(repeated);
    }
    let errors = evaluated.errors.zip(again.errors).map(|(a, b)| a.worse(b));
    Ok(Evaluated { errors, ..evaluated })
}

/// One request and its answer.
pub(super) struct Exchange {
    calls: Vec<Call>,
    dtype: Dtype,
    request: Evaluation,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Whether outputs that are no floats, which no file holds, are computed here.
    is_completed: bool,
    /// By the worker's clock.
    pub(super) elapsed_ns: u64,
    /// From request to answer.
    pub(super) passed: Duration,
}

impl Exchange {
    /// Calls with inputs of their own, each to be made `repeats` times.
    ///
    /// # Errors
    /// When there are no such tensors.
    pub(super) fn new(case: &FuzzCase, seed: u64, calls: u64, repeats: u64) -> Result<Self, WorkerError> {
        let refused = |what: String| WorkerError::new(FailureCause::WorkerError, what);
        let dtype = Dtype::parse(&case.dtype)
            .ok_or_else(|| refused(format!("no element type {:?} is known", case.dtype)))?;
        let mut bytes = vec![POISON; GAP_BYTES];
        let calls: Vec<Call> = (0..calls)
            .map(|call| Self::call(case, dtype, seed.wrapping_add(call), &mut bytes))
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
            seed: (!OPS.contains(&case.op.as_str()) && case.declared.is_none()).then_some(seed),
            kernel: case.kernel.clone(),
        };
        let (after, elapsed_ns, passed) = (Vec::new(), 0, Duration::ZERO);
        Ok(Self { calls, dtype, request, after, before: bytes, is_completed: false, elapsed_ns, passed })
    }

    /// For ops that have outputs which are no floats: those are computed here.
    pub(super) fn completed(self) -> Self {
        Self { is_completed: true, ..self }
    }

    /// What the first call's inputs were, and what the last answer to it left behind.
    pub(super) fn answers(&mut self) -> Answers {
        let width = self.dtype.bytes();
        let part = |bytes: &[u8], place: &TensorPlace| {
            let start = place.byte_offset as usize;
            bytes[start..start + place.shape.iter().product::<usize>() * width].to_vec()
        };
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

    fn call(case: &FuzzCase, dtype: Dtype, seed: u64, bytes: &mut Vec<u8>) -> Result<Call, String> {
        let [atol, rtol] = dtype.tolerance();
        // The oracle computes in 32 and 64 bits, on inputs that the element type can hold.
        let tolerance = (dtype != Dtype::F32).then_some(Tolerance { atol, rtol });
        let mut op = match &case.declared {
            Some(declared) => Op::Declared(Declared::new(declared, &case.shape, dtype)?),
            None => {
                let request = Request { dtype: "f32", tolerance, seed, ..own::request(case) };
                Op::Known(build(&request).map_err(|error| error.to_string())?)
            }
        };
        let round = |value: f32| dtype.decode(&dtype.encode(&[value]))[0];
        let leeway = values::fill(case.values, &mut op.get().inputs(), seed, dtype.range(), &round);
        let mut lay = |tensors: Vec<Tensor<'_>>, is_input: bool| -> Vec<TensorPlace> {
            let mut places = Vec::new();
            for tensor in tensors {
                // Aligned to 64 bytes, then moved by the case's offset.
                bytes.resize(bytes.len().next_multiple_of(64) + case.offset * dtype.bytes(), POISON);
                let (name, shape) = (tensor.name.into_owned(), tensor.dims.clone());
                places.push(TensorPlace { name, shape, byte_offset: bytes.len() as u64 });
                match is_input {
                    true => bytes.extend(dtype.encode(tensor.values)),
                    false => bytes.resize(bytes.len() + tensor.values.len() * dtype.bytes(), POISON),
                }
                bytes.resize(bytes.len() + GAP_BYTES, POISON);
            }
            places
        };
        let inputs = lay(op.get().inputs(), true);
        let outputs = lay(op.get().outputs(), false);
        Ok(Call { op, leeway, places: CallPlaces { inputs, outputs } })
    }

    /// What is asked, in words.
    pub(super) fn asked(&self) -> String {
        format!("{} calls, {} times over", self.calls.len(), self.request.repeats)
    }

    /// Asks once, and looks at everything that comes back.
    ///
    /// # Errors
    /// When the worker fails.
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
            Computed::Skipped(reason) => {
                return Ok(Evaluated { skipped: Some(reason), ..Evaluated::default() });
            }
        }
        for call in &mut self.calls {
            let Op::Declared(declared) = &mut call.op else { continue };
            if let Err(problem) = arena.oracle.answer(&self.request, declared) {
                let reason = format!("the oracle has no answer: {problem}");
                return Ok(Evaluated { skipped: Some(reason), ..Evaluated::default() });
            }
        }
        Ok(self.check())
    }

    fn check(&mut self) -> Evaluated {
        let dtype = self.dtype;
        if self.elapsed_ns == 0 || u128::from(self.elapsed_ns) > self.passed.as_nanos() {
            let detail =
                format!("{} ns are told, {} ns have passed", self.elapsed_ns, self.passed.as_nanos());
            return Evaluated::wrong(FindingKind::TimeNotExplained, detail);
        }
        let mut errors: Option<Errors> = None;
        let mut changed: Vec<bool> = self.before.iter().zip(&self.after).map(|(a, b)| a != b).collect();
        for call in &mut self.calls {
            if self.is_completed {
                call.op.get().poison();
                call.op.get().call();
            }
            for (place, tensor) in call.places.outputs.iter().zip(call.op.get().outputs()) {
                let start = place.byte_offset as usize;
                let end = start + tensor.values.len() * dtype.bytes();
                changed[start..end].fill(false);
                let got = &self.after[start..end];
                let width = dtype.bytes();
                let left = got.chunks(width).position(|value| value.iter().all(|byte| *byte == POISON));
                if let Some(at) = left.filter(|_| !call.leeway.planted) {
                    let detail = format!("{}[{at}] of {} was not written", place.name, tensor.values.len());
                    return Evaluated::wrong(FindingKind::Unwritten, detail);
                }
                tensor.values.copy_from_slice(&dtype.decode(got));
            }
            let check = call.op.get().check_given(call.leeway);
            if !check.passed {
                return own::wrong(&check);
            }
            let here = own::errors(&check);
            errors = Some(errors.map_or(here, |errors| errors.worse(here)));
        }
        let Some(at) = changed.iter().position(|changed| *changed) else {
            return Evaluated { errors, ..Evaluated::default() };
        };
        let inputs = self.calls.iter_mut().flat_map(|call| {
            let lens: Vec<usize> = call.op.get().inputs().iter().map(|tensor| tensor.values.len()).collect();
            call.places.inputs.iter().zip(lens)
        });
        for (place, len) in inputs {
            let start = place.byte_offset as usize;
            if (start..start + len * dtype.bytes()).contains(&at) {
                let detail = format!("input {} holds other bytes after the call", place.name);
                return Evaluated::wrong(FindingKind::InputChanged, detail);
            }
        }
        let detail = format!("byte {at} of {} lies beside the tensors and was written", self.after.len());
        Evaluated::wrong(FindingKind::OutOfBounds, detail)
    }
}
