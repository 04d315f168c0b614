//! A turn: a process of a harness that runs one benchmark or several, and the times that it leaves.

use super::{Pace, of};
use crate::program::WorkerError;
use holdpoint_model::FailureCause;
use holdpoint_model::suite::BenchTask;
use tempfile::TempDir;

/// A process about to run a turn of one benchmark or of several.
pub(crate) struct Turn {
    out: TempDir,
}

impl Turn {
    pub(crate) fn new() -> Result<Self, WorkerError> {
        let out = TempDir::new().map_err(|error| {
            WorkerError::new(FailureCause::NotStarted, format!("cannot make a folder for a harness: {error}"))
        })?;
        Ok(Self { out })
    }

    /// The command line of a turn of at least so many samples, if the benchmark's own settings allow.
    pub(crate) fn command(
        &self,
        command: &[String],
        benches: &[&BenchTask],
        samples: u64,
        pace: Pace,
    ) -> Vec<String> {
        let Some(first) = benches.first() else { return command.to_vec() };
        let (harness, id, out) = (of(first), &first.id, self.out.path());
        let ids: Vec<&str> = benches.iter().map(|bench| bench.id.as_str()).collect();
        let options = match (ids.len(), pace) {
            (1, Pace::Quick) => harness.quick_turn(id, out),
            (1, Pace::Older) => harness.older_turn(id, samples),
            (1, _) => None,
            _ => harness.turns(&ids, samples, out),
        };
        command.iter().cloned().chain(options.unwrap_or_else(|| harness.turn(id, samples, out))).collect()
    }

    /// The variable that tells a harness where to leave its files, if it takes one.
    pub(crate) fn env(&self, bench: &BenchTask) -> Option<(String, String)> {
        Some((of(bench).folder_variable()?.to_owned(), self.out.path().display().to_string()))
    }

    /// Nanoseconds per call of so many samples of a benchmark: medians of as many stretches where the harness took more, and all it
    /// took where the benchmark's own settings made it take fewer.
    pub(crate) fn read(
        &self,
        bench: &BenchTask,
        stdout: &[u8],
        samples: u64,
    ) -> Result<Vec<f64>, WorkerError> {
        let BenchTask { kind, id, .. } = bench;
        let failed = |what: String| {
            WorkerError::new(FailureCause::Mismatch, format!("{}, benchmark {id:?}: {what}", kind.as_str()))
        };
        let all = of(bench)
            .read(self.out.path(), &String::from_utf8_lossy(stdout))
            .map_err(|error| failed(error.to_string()))?;
        let series = all.into_iter().find(|series| series.name == *id || series.name.is_empty());
        let times_ms = series.ok_or_else(|| failed("a turn of it left no times".to_owned()))?.times_ms;
        if times_ms.is_empty() || samples == 0 {
            return Err(failed("a turn of it took no samples".to_owned()));
        }
        let (count, len) = (times_ms.len().min(samples as usize), times_ms.len());
        let stretch = |i: usize| &times_ms[i * len / count..(i + 1) * len / count];
        let median_ns = |i: usize| holdpoint_stats::median(stretch(i)).unwrap_or(f64::NAN) * 1e6;
        let times_ns: Vec<f64> = (0..count).map(median_ns).collect();
        match times_ns.iter().all(|ns| ns.is_finite() && *ns > 0.0) {
            true => Ok(times_ns),
            false => Err(failed("a sample took no time".to_owned())),
        }
    }
}
