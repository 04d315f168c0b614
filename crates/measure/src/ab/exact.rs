//! Quantities that need no statistics: sizes of files and counts of instructions.

use super::conditions::find;
use super::{Sides, find as find_workload};
use crate::program::resolve_program;
use crate::program::{Place, WorkerError, execute};
use holdpoint_model::ab::{Ended, ExactValues};
use holdpoint_model::metric::{Exact, Metric};
use holdpoint_model::suite::CountedBy;
use holdpoint_model::{AbReport, Suite, Workload};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Looks at a count that may not repeat: address layout and hash seeds can change it.
const LOOKS: usize = 2;

/// Counts what the plan asks for and the report does not have yet.
pub(super) fn count(sides: &Sides, report: &mut AbReport, stop: &dyn Fn() -> bool) {
    for (name, workload) in &mut report.workloads {
        let specs = (find_workload(&sides.base, name), find_workload(&sides.head, name));
        let (Some(base), Some(head)) = specs else { continue };
        for (metric, _) in report.plan.metrics_of(name) {
            let Metric::Exact(exact @ (Exact::FileBytes | Exact::Instructions)) = Metric::from_name(metric)
            else {
                continue;
            };
            if workload.ended == Ended::Skipped || workload.exact.contains_key(metric) || stop() {
                continue;
            }
            let by = head.metrics.0.get(metric).and_then(|spec| spec.by).unwrap_or_default();
            let counted = |suite: &Suite, spec: &Workload| match exact {
                Exact::FileBytes => file_bytes(suite, spec).map(|bytes| vec![bytes]),
                _ => (0..LOOKS).map(|_| instructions(suite, spec, by)).collect(),
            };
            let values = match (counted(&sides.base, base), counted(&sides.head, head)) {
                (Ok(base), Ok(head)) => ExactValues { base, head, reason: String::new() },
                (Err(reason), _) => {
                    ExactValues { reason: format!("base: {reason}"), ..ExactValues::default() }
                }
                (_, Err(reason)) => {
                    ExactValues { reason: format!("head: {reason}"), ..ExactValues::default() }
                }
            };
            workload.exact.insert(metric.to_owned(), values);
        }
    }
}

/// The size of the program that runs a workload.
fn file_bytes(suite: &Suite, spec: &Workload) -> Result<u64, String> {
    let dir = suite.dir.as_deref();
    let (command, dir) = match (spec.task.call(), suite.workers.get(spec.worker())) {
        (Some(call), _) => (&call.command, dir),
        (None, Some(worker)) => (&worker.command, worker.dir.as_deref().or(dir)),
        (None, None) => return Err("it runs in holdpoint itself".to_owned()),
    };
    let program = command.first().map_or("", String::as_str);
    let path = find(program, dir).ok_or_else(|| format!("there is no {program}"))?;
    fs::metadata(&path).map(|file| file.len()).map_err(|error| format!("{program}: {error}"))
}

/// The instructions of one call of a command and everything that it starts.
fn instructions(suite: &Suite, spec: &Workload, by: CountedBy) -> Result<u64, String> {
    let logs = tempfile::tempdir().map_err(|error| error.to_string())?;
    let mut command = counter(by, logs.path());
    let task = spec.task.call().ok_or("there is no command")?;
    let (program, arguments) = task.command.split_first().ok_or("there is no command")?;
    let place = Place { dir: suite.dir.clone(), ..Place::default() };
    // The counter is looked up on the path; the program, where it runs.
    command.push(match &place.dir {
        Some(dir) => resolve_program(dir, program).to_string_lossy().into_owned(),
        None => program.clone(),
    });
    command.extend_from_slice(arguments);
    let timeout = Duration::from_secs_f64(suite.measure.timeout_ms / 1e3);
    let failed = |error: WorkerError| [vec![error.detail], error.stderr_tail].concat().join("; ");
    execute(&command, task, &place, timeout, Stdio::null()).map_err(failed)?;
    let files = fs::read_dir(logs.path()).map_err(|error| error.to_string())?;
    let texts = files.flatten().filter_map(|file| fs::read_to_string(file.path()).ok());
    let counts: Vec<u64> = texts.filter_map(|text| read_count(by, &text)).collect();
    match (counts.is_empty(), by) {
        (false, _) => Ok(counts.iter().sum()),
        (true, CountedBy::Perf) => {
            Err("the kernel's counters do not work here: count by = \"valgrind\"".to_owned())
        }
        (true, CountedBy::Valgrind) => Err("valgrind counted nothing".to_owned()),
    }
}

/// A command line that counts the instructions of the one behind it and writes them into a folder.
fn counter(by: CountedBy, logs: &Path) -> Vec<String> {
    let logs = logs.to_string_lossy();
    let (words, last) = match by {
        CountedBy::Perf => (
            "perf stat -x , -e instructions:u",
            vec!["-o".to_owned(), format!("{logs}/perf"), "--".to_owned()],
        ),
        CountedBy::Valgrind => (
            "valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null --trace-children=yes",
            vec![format!("--log-file={logs}/%p")],
        ),
    };
    words.split(' ').map(str::to_owned).chain(last).collect()
}

/// `1234,,instructions:u,…` of perf, `==1== I   refs:      127,677` of valgrind.
fn read_count(by: CountedBy, text: &str) -> Option<u64> {
    let digits = match by {
        CountedBy::Perf => {
            text.lines().find(|line| line.contains("instructions"))?.split(',').next()?.to_owned()
        }
        CountedBy::Valgrind => {
            let (_, count) = text.lines().find(|line| line.contains(" refs:"))?.split_once(" refs:")?;
            count.trim().replace(',', "")
        }
    };
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_the_counters_write_them() {
        let perf = "# started on Mon\n\n127677,,instructions:u,214000,100.00,,\n";
        assert_eq!(read_count(CountedBy::Perf, perf), Some(127_677));
        assert_eq!(read_count(CountedBy::Perf, "<not supported>,,instructions:u,0,100.00,,\n"), None);
        let valgrind = "==7== Command: true\n==7== \n==7== I   refs:      127,677\n";
        assert_eq!(read_count(CountedBy::Valgrind, valgrind), Some(127_677));
        assert_eq!(read_count(CountedBy::Valgrind, "==7== Command: true\n"), None);
    }
}
