//! Where the time of a run goes, for whoever works on that: with `HOLDPOINT_TRACE=FILE`, each step appends a line to the file.
//! Without it nothing is measured.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Names the file. Workers inherit it, and several processes append to the same one.
const VARIABLE: &str = "HOLDPOINT_TRACE";

fn file() -> Option<&'static Mutex<File>> {
    static FILE: OnceLock<Option<Mutex<File>>> = OnceLock::new();
    let open = || {
        let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
        OpenOptions::new().create(true).append(true).open(path).ok().map(Mutex::new)
    };
    FILE.get_or_init(open).as_ref()
}

/// Runs a step. Its line has the second it began at, the process, its name, what it was about, and how many milliseconds it took,
/// separated by tabs. Steps within a step have lines of their own, before it.
pub fn step<T>(name: &str, about: &str, run: impl FnOnce() -> T) -> T {
    let Some(file) = file() else { return run() };
    let began_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    let start = Instant::now();
    let result = run();
    let took_ms = start.elapsed().as_secs_f64() * 1e3;
    let line = format!("{began_s:.6}\t{}\t{name}\t{about}\t{took_ms:.3}\n", std::process::id());
    if let Ok(mut file) = file.lock() {
        // Whoever cannot write it must not fail for that.
        let _ = file.write_all(line.as_bytes());
    }
    result
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_step_gives_what_it_computes() {
        assert_eq!(super::step("sum", "two numbers", || 1 + 2), 3);
    }
}
