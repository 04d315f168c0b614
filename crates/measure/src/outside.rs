//! Observes a worker from outside while it works: elapsed time, and the scheduler statistics of its threads.

use crate::clock::nanos;
use std::fs;
use std::time::Instant;

/// In a worker with more threads, these stand for all.
const THREADS_MAX: usize = 64;

/// Scheduler statistics of a process or a thread: time running, and time ready to run without a CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Books {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Books {
    /// Summed over the threads; `None` where the kernel keeps no statistics.
    fn of_process(process_id: u32) -> Option<Self> {
        let threads = fs::read_dir(format!("/proc/{process_id}/task")).ok()?.flatten().take(THREADS_MAX);
        let books: Vec<Self> =
            threads.filter_map(|thread| Self::read(&thread.path().join("schedstat"))).collect();
        let sum = |of: fn(&Self) -> u64| books.iter().map(of).sum();
        (!books.is_empty()).then(|| Self { cpu_ns: sum(|b| b.cpu_ns), wait_ns: sum(|b| b.wait_ns) })
    }

    fn of_this_thread() -> Option<Self> {
        Self::read("/proc/thread-self/schedstat".as_ref())
    }

    fn read(path: &std::path::Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let mut fields = text.split_ascii_whitespace().map_while(|field| field.parse().ok());
        Some(Self { cpu_ns: fields.next()?, wait_ns: fields.next()? })
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wait_ns: self.wait_ns.saturating_sub(before.wait_ns),
        }
    }
}

/// An observation of a worker's process that has begun.
pub(crate) struct Look {
    process_id: u32,
    books: Option<Books>,
    own: Option<Books>,
    start: Instant,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// From the request to its answer.
    pub(crate) wall_ns: u64,
    /// Of the worker's threads, except those that ended meanwhile.
    pub(crate) books: Option<Books>,
    /// How long this thread waited for a CPU before it could read the answer.
    pub(crate) own_wait_ns: u64,
}

impl Look {
    pub(crate) fn begin(process_id: u32) -> Self {
        let (books, own) = (Books::of_process(process_id), Books::of_this_thread());
        Self { process_id, books, own, start: Instant::now() }
    }

    pub(crate) fn end(self) -> Seen {
        let wall_ns = nanos(self.start.elapsed());
        let own = Books::of_this_thread().zip(self.own).map(|(after, before)| after.since(before));
        let books = Books::of_process(self.process_id).zip(self.books);
        Seen {
            wall_ns,
            books: books.map(|(after, before)| after.since(before)),
            own_wait_ns: own.map_or(0, |own| own.wait_ns),
        }
    }
}
