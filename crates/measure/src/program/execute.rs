//! Runs a program once: its wall time, waits and resources, and what it prints.

use super::{Place, Tail, WorkerError};
use crate::clock;
use crate::schedstat::SchedStat;
use holdpoint_model::FailureCause;
use holdpoint_model::limits::LINE_BYTES_MAX;
use holdpoint_model::suite::CommandTask;
use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{LazyLock, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};
use wait4::{ResUse, Wait4};

/// A process whose first thread used this share of its CPU time has no others that matter.
const MAIN_THREAD: f64 = 0.95;
/// How long what is run once may take: a build, say.
const SETUP_MAX: Duration = Duration::from_secs(3600);
/// How long a killed process may take to end.
const KILL_MAX: Duration = Duration::from_secs(5);
/// How long stdout may stay open after the program and its group are gone.
const STDOUT_GRACE: Duration = Duration::from_millis(500);

pub(crate) struct Finished {
    pub(crate) wall: Duration,
    /// How long it, and this thread for its end, waited for a CPU; absent where that cannot be told.
    pub(crate) waited_ns: Option<u64>,
    pub(crate) resources: ResUse,
    pub(crate) stdout: Vec<u8>,
}

/// Runs what a workload needs run once, unless that has been done in its folder. It may take as long as it likes.
pub(crate) fn set_up(task: &CommandTask, place: &Place) -> Result<(), WorkerError> {
    /// Folder, command line and environment of what has been run.
    type Done = HashSet<(Option<PathBuf>, Vec<String>, BTreeMap<String, String>)>;
    static DONE: LazyLock<Mutex<Done>> = LazyLock::new(Mutex::default);
    if task.setup.is_empty() {
        return Ok(());
    }
    // Units at the same time wait for the one that came first.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (place.dir.clone(), task.setup.clone(), task.env.clone());
    if !done.contains(&key) {
        execute(&task.setup, task, place, SETUP_MAX, Stdio::null()).map_err(|error| error.during("setup"))?;
        done.insert(key);
    }
    Ok(())
}

/// Variables from which languages read the seed of their hash tables, instead of drawing one at each start.
const HASH_SEEDS: [&str; 2] = ["PYTHONHASHSEED", "PERL_HASH_SEED"];

/// Gives a call the seed of its hash tables, unless the user does. Both sides of a comparison draw the same ones: how well a seed
/// suits a program is worth several per cent, and belongs to neither.
pub(crate) fn draw_hash_seed(
    env: &mut BTreeMap<String, String>,
    given: &BTreeMap<String, String>,
    seed: u64,
) {
    for name in HASH_SEEDS {
        if !given.contains_key(name) && std::env::var_os(name).is_none() {
            env.insert(name.to_owned(), (seed as u32).to_string());
        }
    }
}

/// Runs a command line at a place, with a workload's environment and stdin.
pub(crate) fn execute(
    command: &[String],
    task: &CommandTask,
    place: &Place,
    timeout: Duration,
    stdout: Stdio,
) -> Result<Finished, WorkerError> {
    let not_started = |what: String| WorkerError::new(FailureCause::NotStarted, what);
    let (program, arguments) =
        command.split_first().ok_or_else(|| not_started("empty command".to_owned()))?;
    let mut starting = place.command(program);
    starting.args(arguments).envs(&task.env).stdout(stdout).stderr(Stdio::piped());
    starting.stdin(match &task.stdin {
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
