//! Any program as a workload: its wall time, CPU time and peak memory, one process per call.

use super::server::{self, Server};
use super::{Coming, Place, Prepared, Tail, Worker, WorkerError, peak};
use crate::clock;
use crate::harness::{
    Pace, Turn, decide_pace, has_older_form, has_one_sample, pace_of, set_pace, share_a_process,
};
use crate::schedstat::SchedStat;
use holdpoint_model::FailureCause;
use holdpoint_model::limits::{LINE_BYTES_MAX, clean_text};
use holdpoint_model::protocol::{RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::Answer;
use holdpoint_model::suite::{BenchSpec, MetricSpec, TIMER_PROCESS, WORKER_COMMAND, WorkloadSpec};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wait4::{ResUse, Wait4};

pub struct Commands {
    specs: Vec<WorkloadSpec>,
    /// By workload, from its `prepare` on.
    servers: BTreeMap<String, Server>,
    place: Place,
    timeout: Duration,
    clock_resolution_ns: u64,
    /// Turns of benchmarks that have not been taken yet.
    coming: Vec<Coming>,
    /// Turns of benchmarks that were taken by the process of another, by workload: nanoseconds of their calls.
    taken: BTreeMap<String, VecDeque<Vec<f64>>>,
}

/// Benchmarks that share a process. With more, the turns of the two sides would lie far apart.
const TOGETHER_MAX: usize = 8;

pub(crate) struct Finished {
    wall: Duration,
    /// How long it, and this thread for its end, waited for a CPU; absent where that cannot be told.
    waited_ns: Option<u64>,
    resources: ResUse,
    pub(crate) stdout: Vec<u8>,
}

impl Commands {
    /// No program may take longer than `timeout`.
    pub fn new(workloads: &[WorkloadSpec], place: Place, timeout: Duration) -> Self {
        Self {
            specs: workloads.iter().filter(|w| w.worker == WORKER_COMMAND).cloned().collect(),
            servers: BTreeMap::new(),
            place,
            timeout,
            clock_resolution_ns: clock::resolution_ns(),
            coming: Vec::new(),
            taken: BTreeMap::new(),
        }
    }

    fn spec(&self, name: &str) -> Result<&WorkloadSpec, WorkerError> {
        self.specs.iter().find(|spec| spec.name == name).ok_or_else(|| WorkerError::no_workload(name))
    }

    /// A workload whose server is running, if it has one.
    fn served(&self, name: &str) -> Result<WorkloadSpec, WorkerError> {
        let mut spec = self.spec(name)?.clone();
        match self.servers.get(name) {
            Some(server) => drop(spec.env.insert(server::PORT.to_owned(), server.port.to_string())),
            None if spec.server.is_empty() => {}
            None => return Err(WorkerError::new(FailureCause::NotStarted, "its server is not running")),
        }
        Ok(spec)
    }

    /// Calls a workload's command line, or another in its place, and before it what the workload needs run before each call.
    fn call(&self, spec: &WorkloadSpec, command: &[String], stdout: Stdio) -> Result<Finished, WorkerError> {
        let explain = |error: WorkerError| match self.servers.get(&spec.name) {
            Some(server) => server.explain(error),
            None => error,
        };
        if !spec.prepare.is_empty() {
            execute(&spec.prepare, spec, &self.place, self.timeout, Stdio::null())
                .map_err(|error| explain(error.during("prepare")))?;
        }
        execute(command, spec, &self.place, self.timeout, stdout).map_err(explain)
    }

    /// Lets a harness take the samples. Its calls are its own; its times are scaled to as many as were asked for.
    fn run_turn(
        &mut self,
        spec: &WorkloadSpec,
        bench: &BenchSpec,
        request: &RunRequest,
    ) -> Result<RunResult, WorkerError> {
        let times_ns = match self.taken.get_mut(&spec.name).and_then(VecDeque::pop_front) {
            Some(times_ns) => times_ns,
            None => match self.take_together(spec, request) {
                Some(times_ns) => times_ns,
                None => self.take_alone(spec, bench, request)?,
            },
        };
        let calls_per_sample = request.calls_per_sample;
        Ok(RunResult {
            workload: request.workload.clone(),
            calls_per_sample,
            elapsed_ns: times_ns.iter().map(|ns| (ns * calls_per_sample as f64).round() as u64).collect(),
            ..RunResult::default()
        })
    }

    fn take_alone(
        &self,
        spec: &WorkloadSpec,
        bench: &BenchSpec,
        request: &RunRequest,
    ) -> Result<Vec<f64>, WorkerError> {
        let pace = pace_of(bench);
        let turns = [(spec, request.samples_count)];
        let run = |pace: Pace| self.run_harness(&turns, request.seed, pace);
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

    /// A turn of this benchmark and, in the same process, of those that come next; absent where there are none. If one of them fails,
    /// which one shows when each has a process of its own.
    fn take_together(&mut self, spec: &WorkloadSpec, request: &RunRequest) -> Option<Vec<f64>> {
        let is_ours = |spec: &WorkloadSpec| spec.bench.as_ref().and_then(pace_of) == Some(Pace::Ours);
        let mut turns = vec![(spec, request.samples_count)];
        for coming in self.coming.iter_mut().filter(|coming| coming.requests > 0) {
            if coming.workload == spec.name {
                coming.requests -= 1;
            } else if let Some(other) = self.specs.iter().find(|other| other.name == coming.workload)
                && turns.len() < TOGETHER_MAX
                && is_ours(spec)
                && is_ours(other)
                && share_a_process(spec, other)
            {
                coming.requests -= 1;
                turns.push((other, coming.samples_count));
            }
        }
        if turns.len() == 1 {
            return None;
        }
        let Ok((times_ns, _)) = self.run_harness(&turns, request.seed, Pace::Ours) else {
            turns
                .iter()
                .filter_map(|(spec, _)| spec.bench.as_ref())
                .for_each(|bench| set_pace(bench, Pace::Alone));
            return None;
        };
        let names: Vec<String> = turns.iter().map(|(spec, _)| spec.name.clone()).collect();
        let mut all = names.into_iter().zip(times_ns);
        let (_, own) = all.next()?;
        all.for_each(|(name, times_ns)| self.taken.entry(name).or_default().push_back(times_ns));
        Some(own)
    }

    /// Turns of benchmarks that share a process, or one for each sample: for each benchmark the nanoseconds of its calls, and how long
    /// all of it took.
    fn run_harness(
        &self,
        turns: &[(&WorkloadSpec, u64)],
        seed: u64,
        pace: Pace,
    ) -> Result<(Vec<Vec<f64>>, Duration), WorkerError> {
        let benches: Vec<&BenchSpec> = turns.iter().filter_map(|(spec, _)| spec.bench.as_ref()).collect();
        let (Some((spec, _)), Some(bench)) = (turns.first(), benches.first()) else {
            return Err(WorkerError::new(FailureCause::WorkerError, "no benchmark was asked for"));
        };
        let one_sample = has_one_sample(bench);
        let most = turns.iter().map(|(_, samples)| *samples).max().unwrap_or(1);
        let (processes, samples) = if one_sample { (most, 1) } else { (1, most) };
        let dir = self.place.dir.as_deref().unwrap_or(Path::new(".")).join(&bench.folder);
        let place = Place { dir: Some(dir), ..self.place.clone() };
        let timeout = self.timeout * u32::try_from(turns.len()).unwrap_or(1);
        let (mut times_ns, mut wall) = (vec![Vec::new(); turns.len()], Duration::ZERO);
        for process in 0..processes {
            let turn = Turn::new()?;
            let mut seeded = (*spec).clone();
            draw_hash_seed(&mut seeded.env, &spec.env, seed.wrapping_add(process));
            seeded.env.extend(turn.env(bench));
            let command = turn.command(&spec.command, &benches, samples, pace);
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

    /// The peak of a program that stays below our own, by one more call.
    fn small_peak(&self, spec: &WorkloadSpec) -> Result<Option<u64>, WorkerError> {
        let Some(command) = peak::command_line(&spec.command, self.place.dir.as_deref()) else {
            return Ok(None);
        };
        let finished = self.call(spec, &command, Stdio::piped())?;
        Ok(String::from_utf8_lossy(&finished.stdout).trim().parse().ok())
    }
}

impl Worker for Commands {
    fn hello(&mut self) -> Result<WorkerInfo, WorkerError> {
        Ok(super::worker_info(WORKER_COMMAND, TIMER_PROCESS, self.clock_resolution_ns))
    }

    fn list(&mut self) -> Result<Vec<WorkloadInfo>, WorkerError> {
        Ok(self.specs.iter().map(super::workload_info).collect())
    }

    fn prepare(&mut self, workload: &str, _seed: u64) -> Result<Prepared, WorkerError> {
        let spec = self.spec(workload)?;
        set_up(spec, &self.place)?;
        let work = spec.work.clone();
        if !spec.server.is_empty() && !self.servers.contains_key(workload) {
            let server = Server::start(spec, &self.place, self.timeout)?;
            self.servers.insert(workload.to_owned(), server);
        }
        Ok(Prepared::ready(work, None))
    }

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        let spec = &self.served(&request.workload)?;
        if let Some(bench) = &spec.bench {
            return self.run_turn(spec, bench, request);
        }
        let (workload, calls_per_sample) = (request.workload.clone(), request.calls_per_sample);
        let mut result = RunResult { workload, calls_per_sample, ..RunResult::default() };
        let mut printed = Printed::new(spec);
        let mut seeded = spec.clone();
        for sample in 0..request.samples_count {
            draw_hash_seed(&mut seeded.env, &spec.env, request.seed.wrapping_add(sample));
            let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
            let mut waited_ns = Some(0);
            for _ in 0..calls_per_sample {
                let finished = self.call(&seeded, &spec.command, printed.stdout())?;
                wall += finished.wall;
                let usage = finished.resources.rusage;
                cpu += usage.utime + usage.stime;
                waited_ns = waited_ns.zip(finished.waited_ns).map(|(sum, ns)| sum + ns);
                result.peak_rss_bytes = result.peak_rss_bytes.max(peak::own_peak(usage.maxrss));
                printed.read(&finished.stdout);
            }
            result.elapsed_ns.push(clock::nanos(wall));
            result.cpu_ns.push(clock::nanos(cpu));
            result.wait_ns.extend(waited_ns.filter(|ns| *ns < clock::nanos(wall)));
        }
        // Of all samples, or of none.
        if result.wait_ns.len() < result.elapsed_ns.len() {
            result.wait_ns.clear();
        }
        result.printed = printed.finish();
        if result.peak_rss_bytes.is_none() && spec.metrics.is_of_sides("peak_memory_mb") {
            result.peak_rss_bytes = self.small_peak(spec)?;
        }
        Ok(result)
    }

    fn announce(&mut self, coming: Vec<Coming>) {
        self.coming = coming;
        self.taken.clear();
    }

    /// Checks the exit status, and stdout if the suite names the expected text.
    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        let spec = &self.served(workload)?;
        if spec.bench.is_some() {
            // A benchmark that fails has failed its turn.
            return Ok(None);
        }
        let Some(expected) = &spec.expect_stdout else {
            return self.call(spec, &spec.command, Stdio::null()).map(|_| None);
        };
        let finished = self.call(spec, &spec.command, Stdio::piped())?;
        let printed = String::from_utf8_lossy(&finished.stdout);
        let passed = printed.trim_end() == expected.trim_end();
        let clip = |text: &str| clean_text(text.trim_end()).chars().take(200).collect::<String>();
        Ok(Some(Answer {
            passed,
            values_count: 1,
            max_abs_err: 0.0,
            max_rel_err: 0.0,
            first_bad: (!passed)
                .then(|| format!("stdout: got {:?}, want {:?}", clip(&printed), clip(expected))),
            checked_by: None,
        }))
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        self.servers.remove(workload);
        Ok(())
    }
}

/// Variables from which languages read the seed of their hash tables, instead of drawing one at each start.
const HASH_SEEDS: [&str; 2] = ["PYTHONHASHSEED", "PERL_HASH_SEED"];

/// Gives a call the seed of its hash tables, unless the user does. Both sides of a comparison draw the same ones: how well a seed
/// suits a program is worth several per cent, and belongs to neither.
fn draw_hash_seed(env: &mut BTreeMap<String, String>, given: &BTreeMap<String, String>, seed: u64) {
    for name in HASH_SEEDS {
        if !given.contains_key(name) && std::env::var_os(name).is_none() {
            env.insert(name.to_owned(), (seed as u32).to_string());
        }
    }
}

/// The numbers that the calls of a workload print, by metric; absent once a call has printed none.
struct Printed<'a>(Vec<(&'a String, &'a MetricSpec, Option<Vec<f64>>)>);

impl<'a> Printed<'a> {
    fn new(spec: &'a WorkloadSpec) -> Self {
        Self(spec.metrics.printed().map(|(name, metric)| (name, metric, Some(Vec::new()))).collect())
    }

    /// Nothing is read where nothing is wanted.
    fn stdout(&self) -> Stdio {
        if self.0.is_empty() { Stdio::null() } else { Stdio::piped() }
    }

    fn read(&mut self, stdout: &[u8]) {
        let stdout = String::from_utf8_lossy(stdout);
        for (_, metric, values) in &mut self.0 {
            *values = values.take().zip(metric.read(&stdout)).map(|(mut values, value)| {
                values.push(value);
                values
            });
        }
    }

    fn finish(self) -> BTreeMap<String, Vec<f64>> {
        self.0.into_iter().filter_map(|(name, _, values)| Some((name.clone(), values?))).collect()
    }
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

/// Runs what a workload needs run once, unless that has been done in its folder. It may take as long as it likes.
pub(crate) fn set_up(spec: &WorkloadSpec, place: &Place) -> Result<(), WorkerError> {
    /// Folder, command line and environment of what has been run.
    type Done = HashSet<(Option<PathBuf>, Vec<String>, BTreeMap<String, String>)>;
    static DONE: LazyLock<Mutex<Done>> = LazyLock::new(Mutex::default);
    if spec.setup.is_empty() {
        return Ok(());
    }
    // Units at the same time wait for the one that came first.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (place.dir.clone(), spec.setup.clone(), spec.env.clone());
    if !done.contains(&key) {
        execute(&spec.setup, spec, place, SETUP_MAX, Stdio::null()).map_err(|error| error.during("setup"))?;
        done.insert(key);
    }
    Ok(())
}

/// Runs a command line at a place, with a workload's environment and stdin.
pub(crate) fn execute(
    command: &[String],
    spec: &WorkloadSpec,
    place: &Place,
    timeout: Duration,
    stdout: Stdio,
) -> Result<Finished, WorkerError> {
    let not_started = |what: String| WorkerError::new(FailureCause::NotStarted, what);
    let (program, arguments) =
        command.split_first().ok_or_else(|| not_started("empty command".to_owned()))?;
    let mut starting = place.command(program);
    starting.args(arguments).envs(&spec.env).stdout(stdout).stderr(Stdio::piped());
    starting.stdin(match &spec.stdin {
        Some(file) => {
            place.open(file).map(Stdio::from).map_err(|e| not_started(format!("stdin {file:?}: {e}")))?
        }
        None => Stdio::null(),
    });

    let (start, own_before) = (Instant::now(), SchedStat::read_this_thread());
    let (mut child, job) = place
        .spawn(&mut starting)
        .map_err(|e| not_started(format!("cannot start {program:?}: {e}; is it built and on the path?")))?;
    let reader = child.stdout.take().map(read_in_background);
    let stderr = child.stderr.take().map(Tail::new);
    let timed_out = !job.wait(timeout);
    let wall = start.elapsed();
    let own = SchedStat::read_this_thread().zip(own_before).map(|(after, before)| after.since(before));
    // It has ended and is not reaped yet, so the kernel still has its books.
    let booked = SchedStat::read(format!("/proc/{}/schedstat", child.id()));
    // Leftover processes would disturb the next call and keep stdout open.
    job.kill();
    if !job.wait(KILL_MAX) {
        let detail = format!("{program:?} was killed, yet does not end");
        return Err(WorkerError::new(FailureCause::TimedOut, detail));
    }
    let resources = child
        .wait4()
        .map_err(|e| WorkerError::new(FailureCause::Crashed, format!("cannot wait for {program:?}: {e}")))?;
    let failed = |cause, detail: String| {
        let stderr_tail = stderr.as_ref().map(Tail::last_lines).unwrap_or_default();
        Err(WorkerError { stderr_tail, ..WorkerError::new(cause, detail) })
    };
    if timed_out {
        let detail = format!("{program:?} ran longer than {} s and was killed", timeout.as_secs_f64());
        return failed(FailureCause::TimedOut, detail);
    }
    let stdout = match reader.map(|reader| reader.recv_timeout(STDOUT_GRACE)) {
        Some(Ok(stdout)) => stdout,
        Some(Err(_)) => {
            let detail = format!("{program:?} has ended, yet something it started holds its stdout open");
            return failed(FailureCause::TimedOut, detail);
        }
        None => Vec::new(),
    };
    if stdout.len() > LINE_BYTES_MAX {
        return failed(FailureCause::Flooded, format!("{program:?} printed over the limit of 4 MiB"));
    }
    if !resources.status.success() {
        let detail = format!("{program:?} ended with {}", resources.status);
        return failed(FailureCause::Crashed, detail);
    }
    let cpu_ns = clock::nanos(resources.rusage.utime + resources.rusage.stime) as f64;
    // The kernel tells the waits of the first thread only.
    let main = booked.filter(|main| main.cpu_ns as f64 >= MAIN_THREAD * cpu_ns);
    let waited_ns = main.zip(own).map(|(main, own)| {
        // While the program had a CPU, it did not matter that this thread had none.
        let rest_ns = clock::nanos(wall).saturating_sub(main.cpu_ns + main.wait_ns);
        main.wait_ns + own.wait_ns.min(rest_ns)
    });
    Ok(Finished { wall, waited_ns, resources, stdout })
}

/// A process whose first thread used this share of its CPU time has no others that matter.
const MAIN_THREAD: f64 = 0.95;
/// How long what is run once may take: a build, say.
const SETUP_MAX: Duration = Duration::from_secs(3600);
/// How long a killed process may take to end.
const KILL_MAX: Duration = Duration::from_secs(5);
/// How long stdout may stay open after the program and its group are gone.
const STDOUT_GRACE: Duration = Duration::from_millis(500);

/// Reads one byte past the limit and then closes: the writer gets a broken pipe, instead of filling our memory.
fn read_in_background(out: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output that cannot be read counts as missing.
        let _ = out.take(LINE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes);
        // The receiver is gone after a timeout.
        let _ = send.send(bytes);
    });
    receive
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
