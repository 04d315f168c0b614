//! Checked answers of a worker to inputs that are drawn here, for replays.

use super::arena::{Arena, Folders};
use super::exchange::Exchange;
use crate::meter::Slot;
use crate::program::WorkerError;
use holdpoint_model::fuzz::Finding;
use holdpoint_model::{FuzzCase, Suite};
use holdpoint_ops::{Dtype, Precision, Tolerance};

#[derive(Clone, Debug, PartialEq)]
pub struct Differs {
    /// How many values differ by more than is allowed.
    pub mismatches: u64,
    /// The first of them, counted from 0 over the whole output.
    pub first_index: usize,
    pub recorded: f32,
    pub now: f32,
}

/// Compares an answer with a recorded one: bit by bit, or by the tolerance of the element type.
pub fn compare(dtype: &str, recorded: &[u8], now: &[u8], is_exact: bool) -> Result<Option<Differs>, String> {
    let dtype = Dtype::parse(dtype).ok_or_else(|| format!("no element type {dtype:?} is known"))?;
    if recorded.len() != now.len() || !recorded.len().is_multiple_of(dtype.bytes()) {
        return Err(format!("{} bytes were recorded, {} are there now", recorded.len(), now.len()));
    }
    let Tolerance { atol, rtol } = dtype.tolerance();
    // Two devices may be off by the tolerance in opposite directions.
    let tolerance = Tolerance::new(2.0 * atol, 2.0 * rtol);
    let overflow = dtype.overflow();
    let width = dtype.bytes();
    let same = |(old, new): (&[u8], &[u8])| {
        old == new
            || !is_exact && {
                let (old, new) = (dtype.decode(old)[0], dtype.decode(new)[0]);
                let (new_wide, old_wide) = (f64::from(new), f64::from(old));
                tolerance.accepts(new_wide, old_wide)
                    || overflow.accepts(new_wide, old_wide, tolerance)
                    || old.is_nan() && new.is_nan()
            }
    };
    let different: Vec<usize> = recorded
        .chunks(width)
        .zip(now.chunks(width))
        .enumerate()
        .filter_map(|(at, pair)| (!same(pair)).then_some(at))
        .collect();
    Ok(different.first().map(|&first_index| {
        let at = |bytes: &[u8]| dtype.decode(&bytes[first_index * width..][..width])[0];
        Differs { mismatches: different.len() as u64, first_index, recorded: at(recorded), now: at(now) }
    }))
}

#[derive(Clone, Debug, PartialEq)]
pub struct OutputTensor {
    pub name: String,
    /// The last size varies fastest.
    pub shape: Vec<usize>,
    /// Little-endian values of the case's element type.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// SHA-256 of all inputs, one after the other.
    pub inputs_sha256: String,
    /// In the op's order.
    pub outputs: Vec<OutputTensor>,
    /// Whether a second call gave the same bits.
    pub is_deterministic: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    Right(Answers),
    /// A wrong answer, or none.
    Wrong(Finding),
    /// The worker has no kernel for it, which is not a failure.
    Skipped(String),
}

pub struct Answerer<'a> {
    slot: Slot<'a>,
    arena: Arena<'a>,
}

impl<'a> Answerer<'a> {
    /// `folders` are for the tensors' files.
    pub fn new(suite: &'a Suite, worker: &'a str, folders: Folders<'_>) -> std::io::Result<Self> {
        Ok(Self { slot: Slot::new(suite, worker, None), arena: Arena::new(suite, folders)? })
    }

    /// Asks twice, to see whether both answers have the same bits.
    pub fn answer(&mut self, case: &FuzzCase) -> Answered {
        self.ask(case).unwrap_or_else(|error| Answered::Wrong(super::failed(&mut self.slot, &error)))
    }

    fn ask(&mut self, case: &FuzzCase) -> Result<Answered, WorkerError> {
        let mut exchange = match Exchange::of_floats(case) {
            Ok(exchange) => exchange,
            Err(error) => {
                return Ok(Answered::Skipped(format!("there are no inputs for it: {}", error.detail)));
            }
        };
        let mut answers: Vec<Answers> = Vec::new();
        for _ in 0..2 {
            let evaluated = exchange.run(&mut self.arena, self.slot.worker()?)?;
            if let Some(reason) = evaluated.skipped {
                return Ok(Answered::Skipped(reason));
            }
            if let Some(finding) = evaluated.finding {
                return Ok(Answered::Wrong(finding));
            }
            answers.push(exchange.answers());
        }
        let is_deterministic = answers[0].outputs == answers[1].outputs;
        Ok(Answered::Right(Answers { is_deterministic, ..answers.swap_remove(0) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use holdpoint_ops::cases::{CaseLimits, Draw};
    use holdpoint_ops::{Backend, Entry, names};
    use holdpoint_stats::random::Random;
    use serde_json::json;

    fn bytes(values: &[f32]) -> Vec<u8> {
        Dtype::F32.encode(values)
    }

    #[test]
    fn the_first_value_that_differs_is_named_with_both() {
        let differs =
            compare("f32", &bytes(&[1.0, 2.0, 3.0]), &bytes(&[1.0, 2.5, 3.5]), true).unwrap().unwrap();
        assert_eq!(differs, Differs { mismatches: 2, first_index: 1, recorded: 2.0, now: 2.5 });
        assert_eq!(compare("f32", &bytes(&[f32::NAN]), &bytes(&[f32::NAN]), true), Ok(None));
    }

    #[test]
    fn a_last_bit_counts_by_bits_and_not_by_tolerance() {
        let (old, new) = (bytes(&[1.0, 0.0]), bytes(&[1.0 + f32::EPSILON, -0.0]));
        assert_eq!(compare("f32", &old, &new, true).unwrap().unwrap().mismatches, 2);
        assert_eq!(compare("f32", &old, &new, false), Ok(None));
        let far = bytes(&[1.0, 1e-3]);
        assert_eq!(compare("f32", &old, &far, false).unwrap().unwrap().first_index, 1);
        assert!(compare("f32", &bytes(&[1.0]), &bytes(&[f32::NAN]), false).unwrap().is_some());
        assert!(compare("f32", &old, &bytes(&[1.0]), false).is_err());
    }

    #[test]
    fn every_built_in_op_answers_and_the_same_twice() {
        let suite = Suite::parse(
            "schema_version = 1\nname = \"a\"\n[[workload]]\nname = \"w\"\nop = \"copy\"\nshape = [3]\n",
        );
        let (suite, dir) = (suite.unwrap(), tempfile::tempdir().unwrap());
        let folders = Folders { candidate: dir.path(), oracle: dir.path() };
        let mut answerer = Answerer::new(&suite, "builtin", folders).unwrap();
        let limits = CaseLimits { operations: 50_000, elements: 2_000 };
        let mut random = Random::new(1);
        for op in names(Backend::Cpu) {
            let mut drawn = || {
                let backend = Some(Backend::Cpu);
                let mut draw = Draw { backend, limits, large: None, boundaries: &[], random: &mut random };
                let (shape, params) = Entry::find(op)?.draw(&mut draw)?;
                serde_json::from_value(json!({
                    "op": op, "shape": shape, "dtype": "f32", "params": params, "seed": 5, "values": "normal",
                }))
                .ok()
            };
            let is_taken = |case: &FuzzCase| super::super::Target::Builtin.takes(case);
            let case: FuzzCase = (0..100).filter_map(|_| drawn()).find(is_taken).unwrap();
            let answered = answerer.answer(&case);
            let Answered::Right(answers) = &answered else { panic!("{op}: {answered:?}") };
            assert!(answers.is_deterministic && !answers.outputs.is_empty(), "{op}");
            assert_eq!(answerer.answer(&case), answered, "{op}");
            let Answered::Right(other) = answerer.answer(&FuzzCase { seed: 6, ..case.clone() }) else {
                panic!("{op}")
            };
            assert_ne!(other.inputs_sha256, answers.inputs_sha256, "{op}");
            // Parameters that no op has are skipped, not wrong.
            let params = serde_json::from_value(json!({ "colour": 3 })).unwrap();
            let other = answerer.answer(&FuzzCase { params, ..case.clone() });
            assert!(
                matches!(&other, Answered::Skipped(reason) if reason.contains("colour")),
                "{op}: {other:?}"
            );
        }
    }
}
