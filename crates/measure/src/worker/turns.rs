//! Turns of benchmarks: a harness takes the samples, in a process for one benchmark or for several.

use super::Coming;
use crate::harness::{
    Pace, Turn, decide_pace, has_older_form, has_one_sample, pace_of, set_pace, share_a_process,
};
use crate::program::{Place, WorkerError};
use crate::program::{draw_hash_seed, execute};
use holdpoint_model::FailureCause;
use holdpoint_model::protocol::{RunRequest, RunResult};
use holdpoint_model::suite::{BenchTask, Workload};
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Benchmarks that share a process. With more, the turns of the two sides would lie far apart.
const TOGETHER_MAX: usize = 8;

/// The turns of benchmarks that were announced, and those that were taken before they were asked for.
#[derive(Default)]
pub(super) struct Turns {
    /// Turns that have not been taken yet.
    coming: Vec<Coming>,
    /// Turns that were taken by the process of another benchmark, by workload: nanoseconds of their calls.
    taken: BTreeMap<String, VecDeque<Vec<f64>>>,
}

/// Where and for how long turns run.
#[derive(Clone, Copy)]
struct Within<'a> {
    place: &'a Place,
    timeout: Duration,
}

/// A benchmark, and the samples that are wanted of it.
type Wanted<'a> = (&'a BenchTask, u64);

impl Turns {
    pub(super) fn announce(&mut self, coming: Vec<Coming>) {
        self.coming = coming;
        self.taken.clear();
    }

    /// Lets a harness take the samples. Its calls are its own; its times are scaled to as many as were asked for.
    pub(super) fn run(
        &mut self,
        workloads: &[Workload],
        request: &RunRequest,
        place: &Place,
        timeout: Duration,
    ) -> Result<RunResult, WorkerError> {
        let name = &request.workload;
        let bench = find(workloads, name).ok_or_else(|| WorkerError::no_workload(name))?;
        let within = Within { place, timeout };
        let times_ns = match self.taken.get_mut(name).and_then(VecDeque::pop_front) {
            Some(times_ns) => times_ns,
            None => match self.take_together(workloads, bench, request, within) {
                Some(times_ns) => times_ns,
                None => take_alone(bench, request, within)?,
            },
        };
        let calls_per_sample = request.calls_per_sample;
        Ok(RunResult {
            workload: name.clone(),
            calls_per_sample,
            elapsed_ns: times_ns.iter().map(|ns| (ns * calls_per_sample as f64).round() as u64).collect(),
            ..RunResult::default()
        })
    }

    /// A turn of this benchmark and, in the same process, of those that come next; absent where there are none. If one of them fails,
    /// which one shows when each has a process of its own.
    fn take_together(
        &mut self,
        workloads: &[Workload],
        bench: &BenchTask,
        request: &RunRequest,
        within: Within<'_>,
    ) -> Option<Vec<f64>> {
        let is_ours = |bench: &BenchTask| pace_of(bench) == Some(Pace::Ours);
        let (mut names, mut turns) = (vec![&request.workload], vec![(bench, request.samples_count)]);
        for coming in self.coming.iter_mut().filter(|coming| coming.requests > 0) {
            if coming.workload == request.workload {
                coming.requests -= 1;
            } else if let Some(other) = find(workloads, &coming.workload)
                && turns.len() < TOGETHER_MAX
                && is_ours(bench)
                && is_ours(other)
                && share_a_process(bench, other)
            {
                coming.requests -= 1;
                names.push(&coming.workload);
                turns.push((other, coming.samples_count));
            }
        }
        if turns.len() == 1 {
            return None;
        }
        let Ok((times_ns, _)) = run_harness(&turns, request.seed, Pace::Ours, within) else {
            turns.iter().for_each(|(bench, _)| set_pace(bench, Pace::Alone));
            return None;
        };
        let mut all = names.into_iter().cloned().zip(times_ns);
        let (_, own) = all.next()?;
        all.for_each(|(name, times_ns)| self.taken.entry(name).or_default().push_back(times_ns));
        Some(own)
    }
}

fn find<'a>(workloads: &'a [Workload], name: &str) -> Option<&'a BenchTask> {
    workloads.iter().find(|workload| workload.name == name)?.task.bench()
}

fn take_alone(bench: &BenchTask, request: &RunRequest, within: Within<'_>) -> Result<Vec<f64>, WorkerError> {
    let pace = pace_of(bench);
    let turns = [(bench, request.samples_count)];
    let run = |pace: Pace| run_harness(&turns, request.seed, pace, within);
    let mut times_ns = match (run(pace.unwrap_or(Pace::Ours)), pace) {
        (Ok((times_ns, wall)), None) => {
            decide_pace(bench, wall, || run(Pace::Quick).ok().map(|(_, wall)| wall));
            times_ns
        }
        (Ok((times_ns, _)), Some(_)) => times_ns,
        (Err(error), None) if has_older_form(bench) => {
            let (times_ns, _) = run(Pace::Older).map_err(|_| error)?;
            set_pace(bench, Pace::Older);
            times_ns
        }
        (Err(error), _) => return Err(error),
    };
    Ok(times_ns.pop().unwrap_or_default())
}

/// Turns of benchmarks that share a process, or one for each sample: for each benchmark the nanoseconds of its calls, and how long
/// all of it took.
fn run_harness(
    turns: &[Wanted<'_>],
    seed: u64,
    pace: Pace,
    within: Within<'_>,
) -> Result<(Vec<Vec<f64>>, Duration), WorkerError> {
    let benches: Vec<&BenchTask> = turns.iter().map(|(bench, _)| *bench).collect();
    let Some(bench) = benches.first() else {
        return Err(WorkerError::new(FailureCause::WorkerError, "no benchmark was asked for"));
    };
    let one_sample = has_one_sample(bench);
    let most = turns.iter().map(|(_, samples)| *samples).max().unwrap_or(1);
    let (processes, samples) = if one_sample { (most, 1) } else { (1, most) };
    let dir = within.place.dir.as_deref().unwrap_or(Path::new(".")).join(&bench.folder);
    let place = Place { dir: Some(dir), ..within.place.clone() };
    let timeout = within.timeout * u32::try_from(turns.len()).unwrap_or(1);
    let (mut times_ns, mut wall) = (vec![Vec::new(); turns.len()], Duration::ZERO);
    for process in 0..processes {
        let turn = Turn::new()?;
        let mut seeded = bench.call.clone();
        draw_hash_seed(&mut seeded.env, &bench.call.env, seed.wrapping_add(process));
        seeded.env.extend(turn.env(bench));
        let command = turn.command(&bench.call.command, &benches, samples, pace);
        let finished = execute(&command, &seeded, &place, timeout, Stdio::piped())?;
        let mut reported_ns = 0.0;
        for ((bench, (_, wanted)), times_ns) in benches.iter().zip(turns).zip(&mut times_ns) {
            let wanted = if one_sample { 1 } else { *wanted };
            let read_ns = turn.read(bench, &finished.stdout, wanted)?;
            reported_ns += read_ns.iter().sum::<f64>();
            times_ns.extend(read_ns);
        }
        check_harness(reported_ns, finished.wall)?;
        wall += finished.wall;
    }
    Ok((times_ns, wall))
}

/// Each sample of a harness has at least one call, so all of them together take no longer than its process.
fn check_harness(reported_ns: f64, wall: Duration) -> Result<(), WorkerError> {
    let wall_ns = wall.as_nanos() as f64;
    if reported_ns <= 1.01 * wall_ns + 1e6 {
        return Ok(());
    }
    let detail = format!(
        "the harness reported samples of {:.3} ms in all, its process took {:.3} ms",
        reported_ns / 1e6,
        wall_ns / 1e6
    );
    Err(WorkerError::new(FailureCause::BadTime, detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_harness_reports_no_more_time_than_its_process_took() {
        let wall = Duration::from_millis(100);
        assert_eq!(check_harness(99e6, wall), Ok(()));
        let error = check_harness(150e6, wall).unwrap_err();
        assert_eq!(error.cause, FailureCause::BadTime);
        assert!(error.detail.contains("150.000 ms in all, its process took 100.000 ms"), "{error}");
    }
}
