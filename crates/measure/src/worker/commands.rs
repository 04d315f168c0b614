//! Any program as a workload: its wall time, CPU time and peak memory, one process per call.

use super::server::{self, Server};
use super::turns::Turns;
use super::{Coming, Prepared, Worker};
use crate::clock;
use crate::program::{Finished, draw_hash_seed, execute, set_up};
use crate::program::{Place, WorkerError, peak};
use holdpoint_model::FailureCause;
use holdpoint_model::limits::clean_text;
use holdpoint_model::protocol::{RunRequest, RunResult, WorkerInfo, WorkloadInfo};
use holdpoint_model::report::Answer;
use holdpoint_model::suite::{
    CommandTask, MetricSpec, Metrics, TIMER_PROCESS, Task, WORKER_COMMAND, Workload,
};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

pub struct Commands {
    specs: Vec<Workload>,
    /// By workload, from its `prepare` on.
    servers: BTreeMap<String, Server>,
    place: Place,
    timeout: Duration,
    clock_resolution_ns: u64,
    turns: Turns,
}

impl Commands {
    /// No program may take longer than `timeout`.
    pub fn new(workloads: &[Workload], place: Place, timeout: Duration) -> Self {
        Self {
            specs: workloads.iter().filter(|w| w.task.call().is_some()).cloned().collect(),
            servers: BTreeMap::new(),
            place,
            timeout,
            clock_resolution_ns: clock::resolution_ns(),
            turns: Turns::default(),
        }
    }

    fn spec(&self, name: &str) -> Result<&Workload, WorkerError> {
        self.specs.iter().find(|spec| spec.name == name).ok_or_else(|| WorkerError::no_workload(name))
    }

    /// What a command's calls need, with the port of its server, which is running if it has one.
    fn served(&self, name: &str, task: &CommandTask) -> Result<CommandTask, WorkerError> {
        let mut task = task.clone();
        match self.servers.get(name) {
            Some(server) => drop(task.env.insert(server::PORT.to_owned(), server.port.to_string())),
            None if task.server.is_empty() => {}
            None => return Err(WorkerError::new(FailureCause::NotStarted, "its server is not running")),
        }
        Ok(task)
    }

    /// Calls a workload's command line, or another in its place, and before it what the workload needs run before each call.
    fn call(
        &self,
        name: &str,
        task: &CommandTask,
        command: &[String],
        stdout: Stdio,
    ) -> Result<Finished, WorkerError> {
        let explain = |error: WorkerError| match self.servers.get(name) {
            Some(server) => server.explain(error),
            None => error,
        };
        if !task.prepare.is_empty() {
            execute(&task.prepare, task, &self.place, self.timeout, Stdio::null())
                .map_err(|error| explain(error.during("prepare")))?;
        }
        execute(command, task, &self.place, self.timeout, stdout).map_err(explain)
    }

    fn run_calls(
        &self,
        task: &CommandTask,
        metrics: &Metrics,
        request: &RunRequest,
    ) -> Result<RunResult, WorkerError> {
        let task = &self.served(&request.workload, task)?;
        let (workload, calls_per_sample) = (request.workload.clone(), request.calls_per_sample);
        let mut result = RunResult { workload, calls_per_sample, ..RunResult::default() };
        let mut printed = Printed::new(metrics);
        let mut seeded = task.clone();
        for sample in 0..request.samples_count {
            draw_hash_seed(&mut seeded.env, &task.env, request.seed.wrapping_add(sample));
            let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
            let mut waited_ns = Some(0);
            for _ in 0..calls_per_sample {
                let finished = self.call(&request.workload, &seeded, &task.command, printed.stdout())?;
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
        if result.peak_rss_bytes.is_none() && metrics.is_of_sides("peak_memory_mb") {
            result.peak_rss_bytes = self.small_peak(&request.workload, task)?;
        }
        Ok(result)
    }

    /// The peak of a program that stays below our own, by one more call.
    fn small_peak(&self, name: &str, task: &CommandTask) -> Result<Option<u64>, WorkerError> {
        let Some(command) = peak::command_line(&task.command, self.place.dir.as_deref()) else {
            return Ok(None);
        };
        let finished = self.call(name, task, &command, Stdio::piped())?;
        Ok(String::from_utf8_lossy(&finished.stdout).trim().parse().ok())
    }

    /// Checks the exit status, and stdout if the suite names the expected text.
    fn check(&self, name: &str, task: &CommandTask) -> Result<Option<Answer>, WorkerError> {
        let task = &self.served(name, task)?;
        let Some(expected) = &task.expect_stdout else {
            return self.call(name, task, &task.command, Stdio::null()).map(|_| None);
        };
        let finished = self.call(name, task, &task.command, Stdio::piped())?;
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
        let work = spec.work.clone();
        if let Some(task) = spec.task.call() {
            set_up(task, &self.place)?;
            if !task.server.is_empty() && !self.servers.contains_key(workload) {
                let server = Server::start(task, &self.place, self.timeout)?;
                self.servers.insert(workload.to_owned(), server);
            }
        }
        Ok(Prepared::ready(work, None))
    }

    fn run(&mut self, request: &RunRequest) -> Result<RunResult, WorkerError> {
        let spec = self.spec(&request.workload)?;
        match &spec.task {
            Task::Command(task) => self.run_calls(task, &spec.metrics, request),
            Task::Benchmark(_) => self.turns.run(&self.specs, request, &self.place, self.timeout),
            _ => Err(WorkerError::no_workload(&request.workload)),
        }
    }

    fn announce(&mut self, coming: Vec<Coming>) {
        self.turns.announce(coming);
    }

    fn verify(&mut self, workload: &str) -> Result<Option<Answer>, WorkerError> {
        match &self.spec(workload)?.task {
            Task::Command(task) => self.check(workload, task),
            // A benchmark that fails has failed its turn.
            _ => Ok(None),
        }
    }

    fn release(&mut self, workload: &str) -> Result<(), WorkerError> {
        self.servers.remove(workload);
        Ok(())
    }
}

/// The numbers that the calls of a workload print, by metric; absent once a call has printed none.
struct Printed<'a>(Vec<(&'a String, &'a MetricSpec, Option<Vec<f64>>)>);

impl<'a> Printed<'a> {
    fn new(metrics: &'a Metrics) -> Self {
        Self(metrics.printed().map(|(name, metric)| (name, metric, Some(Vec::new()))).collect())
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
