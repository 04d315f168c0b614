//! Numbers of one side in a round beside its times.

use crate::machine;
use holdpoint_model::SideNumbers;
use holdpoint_model::protocol::RunResult;
use std::fs;

/// Lets the peak memory of a process count from now on. Where the kernel refuses, it counts from the start.
pub(super) fn reset_peak(process_id: u32) {
    let _ = fs::write(format!("/proc/{process_id}/clear_refs"), "5");
}

/// The numbers that a side reported. The memory of a worker is read from outside: its own word is not needed.
pub(super) fn take(result: &mut RunResult, process_id: Option<u32>) -> SideNumbers {
    SideNumbers {
        cpu_ns: std::mem::take(&mut result.cpu_ns),
        peak_rss_bytes: match process_id {
            Some(id) => machine::peak_rss_bytes_of(&id.to_string()),
            None => result.peak_rss_bytes,
        },
        sm_mhz: std::mem::take(&mut result.sm_mhz),
        printed: std::mem::take(&mut result.printed),
    }
}
