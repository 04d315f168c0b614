//! How long a thread has waited for a CPU.

use std::fs::File;
use std::os::unix::fs::FileExt;

pub(super) struct Waits(File);

impl Waits {
    /// `None` where the kernel keeps no statistics.
    pub(super) fn of_this_thread() -> Option<Self> {
        File::open("/proc/thread-self/schedstat").ok().map(Self)
    }

    /// Nanoseconds for which the thread was ready to run without a CPU, since it began.
    pub(super) fn total_ns(&self) -> Option<u64> {
        let mut buffer = [0; 64];
        let count = self.0.read_at(&mut buffer, 0).ok()?;
        let text = std::str::from_utf8(&buffer[..count]).ok()?;
        text.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_never_becomes_less() {
        let Some(waits) = Waits::of_this_thread() else { return };
        let first = waits.total_ns();
        assert!(first.is_some() && waits.total_ns() >= first);
    }
}
