//! What can be seen of a worker from outside while it works: the time around a request, and the kernel's books on its
//! threads.

use std::fs;
use std::time::Instant;

/// Threads that are looked at; of a worker with more, these stand for all.
const THREADS_MAX: usize = 64;

/// The books on a process, or on one thread: how long it ran, and how long it was ready to run and did not.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Books {
    pub(crate) cpu_ns: u64,
    pub(crate) wait_ns: u64,
}

impl Books {
    /// All threads of a process; absent where the kernel keeps none.
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

/// A look at a worker's process that has begun.
pub(crate) struct Look {
    process_id: u32,
    books: Option<Books>,
    own: Option<Books>,
    start: Instant,
}

/// What a look has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    /// From the request to its answer.
    pub(crate) wall_ns: u64,
    /// Of the worker's threads, where the kernel tells. Threads that have ended meanwhile are not in it.
    pub(crate) books: Option<Books>,
    /// For how long this thread was kept from reading the answer.
    pub(crate) own_wait_ns: u64,
}

impl Look {
    /// Begins to look at a process.
    pub(crate) fn begin(process_id: u32) -> Self {
        let (books, own) = (Books::of_process(process_id), Books::of_this_thread());
        Self { process_id, books, own, start: Instant::now() }
    }

    /// Ends it.
    pub(crate) fn end(self) -> Seen {
        let wall_ns = u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let own = Books::of_this_thread().zip(self.own).map(|(after, before)| after.since(before));
        let books = Books::of_process(self.process_id).zip(self.books);
        Seen {
            wall_ns,
            books: books.map(|(after, before)| after.since(before)),
            own_wait_ns: own.map_or(0, |own| own.wait_ns),
        }
    }
}
