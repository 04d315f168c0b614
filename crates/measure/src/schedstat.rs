//! The kernel's scheduler statistics: how long threads ran, and how long they waited for a CPU.

use crate::clock::nanos;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const THIS_THREAD: &str = "/proc/thread-self/schedstat";
/// In a worker with more threads, these stand for all.
const THREADS_MAX: usize = 64;

/// Time running, and time ready to run without a CPU, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct SchedStat {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl SchedStat {
    /// `None` where the kernel keeps no statistics.
    pub(crate) fn read(path: impl AsRef<Path>) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut fields = text.split_ascii_whitespace().map_while(|field| field.parse().ok());
        Some(Self { cpu_ns: fields.next()?, wait_ns: fields.next()? })
    }

    pub(crate) fn read_this_thread() -> Option<Self> {
        Self::read(THIS_THREAD)
    }

    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// The threads of a process, by number.
type Threads = BTreeMap<OsString, SchedStat>;

fn read_threads(process_id: u32) -> Threads {
    let threads = fs::read_dir(format!("/proc/{process_id}/task")).into_iter().flatten().flatten();
    let read =
        |thread: fs::DirEntry| Some((thread.file_name(), SchedStat::read(thread.path().join("schedstat"))?));
    threads.take(THREADS_MAX).filter_map(read).collect()
}

/// The waits of one thread, from a file that stays open: reading it must take little time.
pub(crate) struct ThreadWaits(File);

impl ThreadWaits {
    /// `None` where the kernel keeps no statistics.
    pub(crate) fn of_this_thread() -> Option<Self> {
        File::open(THIS_THREAD).ok().map(Self)
    }

    /// Nanoseconds for which the thread was ready to run without a CPU, since it began.
    pub(crate) fn total_ns(&self) -> Option<u64> {
        let mut buffer = [0; 64];
        let count = self.0.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..count]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

/// The wait that a sample surely has of the one booked while it was taken and, for `beside_ns`, counters were read.
///
/// The kernel likes to take the CPU away at the end of a system call, so most waits lie beside a short sample. What does not
/// fit into the sample is not a wait of its calls.
pub(crate) fn wait_within(booked_ns: u64, sample_ns: u64, beside_ns: u64) -> u64 {
    let wait_ns = booked_ns.saturating_sub(beside_ns);
    if wait_ns < sample_ns { wait_ns } else { 0 }
}

/// Observes a worker's process during a request.
pub(crate) struct Observer {
    process_id: u32,
    worker: Threads,
    own: Option<SchedStat>,
    start: Instant,
}

/// What a worker's threads did during a request, except those that ended meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkerTime {
    /// Of all threads.
    pub(crate) cpu_ns: u64,
    /// Of the thread that ran most.
    pub(crate) busiest_ns: u64,
    /// For how long the work had no CPU, at most: while any thread ran it was done, however long another one waited.
    pub(crate) wait_ns: u64,
}

impl WorkerTime {
    fn between(before: &Threads, after: &Threads, wall_ns: u64) -> Option<Self> {
        let did =
            |(id, thread): (&OsString, &SchedStat)| thread.since(before.get(id).copied().unwrap_or_default());
        let threads: Vec<SchedStat> = after.iter().map(did).collect();
        let busiest_ns = threads.iter().map(|thread| thread.cpu_ns).max()?;
        let wait_ns = threads.iter().map(|thread| thread.wait_ns).max()?;
        let cpu_ns = threads.iter().map(|thread| thread.cpu_ns).sum();
        Some(Self { cpu_ns, busiest_ns, wait_ns: wait_ns.min(wall_ns.saturating_sub(busiest_ns)) })
    }
}

/// Scheduler statistics of a worker during a request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Observation {
    /// From the request to its answer.
    pub(crate) wall_ns: u64,
    /// Absent where the kernel keeps no statistics.
    pub(crate) worker: Option<WorkerTime>,
    /// How long threads of this process waited for a CPU before they could read the answer.
    pub(crate) own_wait_ns: u64,
}

impl Observer {
    pub(crate) fn begin(process_id: u32) -> Self {
        let (worker, own) = (read_threads(process_id), SchedStat::read_this_thread());
        Self { process_id, worker, own, start: Instant::now() }
    }

    /// The request has been answered; another thread of ours waited so long for a CPU to read it.
    pub(crate) fn end(self, reader_wait_ns: u64) -> Observation {
        let wall_ns = nanos(self.start.elapsed());
        let own = SchedStat::read_this_thread().zip(self.own).map(|(after, before)| after.since(before));
        Observation {
            wall_ns,
            worker: WorkerTime::between(&self.worker, &read_threads(self.process_id), wall_ns),
            own_wait_ns: own.map_or(0, |own| own.wait_ns) + reader_wait_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_booked_beside_a_sample_is_not_a_wait_of_its_calls() {
        // As seen with two processes on one CPU: 1.4 ms without it, while the counter was read.
        assert_eq!(wait_within(1_400_000, 45_000, 1_405_000), 0);
        assert_eq!(wait_within(1_400_000, 5_000_000, 1_405_000), 0, "it would have fitted");
        assert_eq!(wait_within(1_400_000, 1_445_000, 5_000), 1_395_000, "this one interrupted the calls");
        assert_eq!(wait_within(100_000, 100_000, 0), 0, "it leaves nothing");
    }

    #[test]
    fn a_thread_that_waits_beside_one_that_runs_is_no_wait_of_the_work() {
        let seen = |threads: &[[u64; 2]], wall_ns| {
            let at = |(id, [cpu_ns, wait_ns]): (usize, [u64; 2])| {
                (OsString::from(id.to_string()), SchedStat { cpu_ns, wait_ns })
            };
            let after = threads.iter().copied().enumerate().map(at).collect();
            let time = WorkerTime::between(&Threads::new(), &after, wall_ns).unwrap();
            [time.cpu_ns, time.busiest_ns, time.wait_ns]
        };
        assert_eq!(seen(&[[20_000, 0], [50, 20_000]], 20_100), [20_050, 20_000, 100], "one of idle priority");
        assert_eq!(seen(&[[10_000, 9_000]], 20_000), [10_000, 10_000, 9_000]);
        assert_eq!(seen(&[[9_000, 8_000], [9_500, 7_000]], 20_000), [18_500, 9_500, 8_000], "a pool");
        assert_eq!(WorkerTime::between(&Threads::new(), &Threads::new(), 1), None);
    }

    #[test]
    fn waiting_never_becomes_less() {
        let Some(waits) = ThreadWaits::of_this_thread() else { return };
        let first = waits.total_ns();
        assert!(first.is_some() && waits.total_ns() >= first);
    }
}
