//! Runs a case on a user's worker: tensors in a shared file with gaps between them that must not change, and checks of
//! everything that comes back.
//!
//! The worker cannot tell a check from a timing: it is always asked to time its calls, and their outputs are always
//! checked. Calls of one request have their own inputs and outputs, so an answer remembered from one is wrong for the
//! next.

use super::declared::Oracle;
use super::exchange::Exchange;
use super::size;
use crate::program::WorkerError;
use crate::worker::{Computed, Worker};
use holdpoint_model::fuzz::{Evaluated, Evaluation};
use holdpoint_model::{FailureCause, FindingKind, FuzzCase, Suite};
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes between tensors. All ones is NaN in every float type, so reading there spoils the answer.
pub(super) const GAP_BYTES: usize = 256;
pub(super) const POISON: u8 = 0xff;
/// Calls of one request, each with inputs of its own.
const CALLS: u64 = 2;

/// The tensors' file, and the workers that know the answers to declared ops.
pub(super) struct Arena<'a> {
    pub(super) tensors: Tensors,
    pub(super) oracle: Oracle<'a>,
}

impl<'a> Arena<'a> {
    pub(super) fn new(suite: &'a Suite, folders: Folders<'_>) -> std::io::Result<Self> {
        let tensors = Tensors::new(folders.candidate, "tensors")?;
        Ok(Self { tensors, oracle: Oracle::new(suite, folders.oracle) })
    }
}

/// Where tensors' files lie. The candidate is told of its own folder only.
#[derive(Clone, Copy, Debug)]
pub struct Folders<'a> {
    pub candidate: &'a Path,
    pub oracle: &'a Path,
}

pub(super) struct Tensors {
    file: File,
    path: String,
}

impl Tensors {
    pub(super) fn new(dir: &Path, name: &str) -> std::io::Result<Self> {
        // A new one: a file that is there already could be open elsewhere.
        let (file, path) = tempfile::Builder::new().prefix(name).tempfile_in(dir)?.keep()?;
        Ok(Self { file, path: path.display().to_string() })
    }

    /// Takes the file's name away.
    pub(super) fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }

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

pub(super) fn evaluate(
    arena: &mut Arena<'_>,
    worker: &mut dyn Worker,
    case: &FuzzCase,
) -> Result<Evaluated, WorkerError> {
    let calls = if size::is_heavy(case) { 1 } else { CALLS };
    let mut first = Exchange::new(case, case.seed, calls, 1)?;
    let evaluated = first.run(arena, worker)?;
    if evaluated.finding.is_some() || evaluated.skipped.is_some() {
        return Ok(evaluated);
    }
    // Other inputs at the same addresses, each call repeated, then the first again.
    let again = Exchange::new(case, case.seed ^ 0x5555, calls, 2)?.run(arena, worker)?;
    if again.finding.is_some() || again.skipped.is_some() {
        return Ok(again);
    }
    let before = std::mem::take(&mut first.after);
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
