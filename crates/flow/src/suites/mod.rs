//! Finding a suite: built in, a file, or flags (a model).

pub mod engines;

use crate::Watch;
use crate::error::FlowError;
use crate::request::{OwnProcess, SuiteChoice, WorkerRequest};
use holdpoint_measure::{ReadySuite, harness, worker};
use holdpoint_model::Suite;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::{WORKER_BUILTIN, WORKER_CUDA, WorkerSpec};
use std::path::{Path, PathBuf};

/// The suites that come with the binary.
const BUILT_IN: &[(&str, &str)] = &[
    ("cpu", include_str!("../../../../suites/cpu.toml")),
    ("cpu-ops", include_str!("../../../../suites/cpu-ops.toml")),
    ("gpu", include_str!("../../../../suites/gpu.toml")),
    ("gpu-torch", include_str!("../../../../suites/gpu-torch.toml")),
    ("attention-10", include_str!("../../../../suites/attention-10.toml")),
    ("attention-27", include_str!("../../../../suites/attention-27.toml")),
    ("gpu-large", include_str!("../../../../suites/gpu-large.toml")),
    ("gpu-power", include_str!("../../../../suites/gpu-power.toml")),
    ("ceilings", include_str!("../../../../suites/ceilings.toml")),
    ("ceilings-gpu", include_str!("../../../../suites/ceilings-gpu.toml")),
];

/// Reads the suite that was named, and checks that its built-in ops can do what it asks.
pub fn load(choice: &SuiteChoice) -> Result<Suite, FlowError> {
    let name = choice.name.as_str();
    let built_in = BUILT_IN.iter().find(|(built_in, _)| *built_in == name);
    let suite = match built_in {
        Some((_, text)) => {
            Suite::parse(text).map_err(|e| FlowError::Input(format!("suite {name:?}: {e}")))?
        }
        None if Path::new(name).exists() || name.contains(['/', '.']) => {
            let suite = holdpoint_store::read_suite(Path::new(name))?;
            let folder = Path::new(name).parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = choice.workdir.as_deref().or(folder).unwrap_or(Path::new("."));
            Suite { dir: Some(absolute(folder)?), ..suite }
        }
        None => {
            let names: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(FlowError::Input(format!(
                "no suite {name:?}; built-in suites: {}; one of your own is given by its file, such as ./{name}.toml",
                names.join(", ")
            )));
        }
    };
    pass_on(&suite)?;
    let refused = |error: &dyn std::fmt::Display| FlowError::Input(format!("suite {name:?}: {error}"));
    let suite = harness::complete(suite).map_err(|error| refused(&error))?;
    let suite = engines::expand(suite).map_err(|error| refused(&error))?;
    // A program in place of the built-in ops knows for itself what it can do.
    for workload in suite.workloads.iter().filter(|workload| !suite.workers.contains_key(workload.worker())) {
        let checked = match workload.worker() {
            WORKER_BUILTIN | WORKER_CUDA => worker::validate(workload),
            _ => Ok(()),
        };
        checked
            .map_err(|e| FlowError::Input(format!("suite {name:?}, workload {:?}: {e}", workload.name)))?;
    }
    Ok(suite)
}

/// A suite that is read once for a command.
#[derive(Clone, Debug)]
pub(crate) struct LoadedSuite {
    pub choice: SuiteChoice,
    pub as_written: Suite,
    /// The same with its own ops on a device in a process of their own; later with all workloads.
    pub as_run: Suite,
}

impl LoadedSuite {
    pub fn read(choice: &SuiteChoice) -> Result<Self, FlowError> {
        let as_written = load(choice)?;
        let as_run = in_own_process(as_written.clone(), choice)?;
        Ok(Self { choice: choice.clone(), as_written, as_run })
    }
}

/// Lets builds and measured programs see the variables that a suite names.
pub fn pass_on(suite: &Suite) -> Result<(), FlowError> {
    holdpoint_process::pass_on(&suite.pass_env).map_err(|secret| {
        let secret = clean_text(secret);
        FlowError::Input(format!(
            "suite {:?}: pass_env names {secret}, a secret of holdpoint's or of CI, which nothing measured may see; remove it",
            suite.name
        ))
    })
}

/// Units of a comparison that one pair of processes on a device serves.
pub(crate) const UNITS_PER_CUDA_PROCESS: u32 = 8;

/// The workers that holdpoint brings along.
const OWN_WORKERS: &[&str] = &[WORKER_BUILTIN, WORKER_CUDA];

/// A suite to be measured: its ops on a device run in a process of their own, which a fault or a hang may take with it.
pub(crate) fn runnable(choice: &SuiteChoice) -> Result<ReadySuite, FlowError> {
    ready(unbuilt(choice)?)
}

/// A suite with all of its workloads, and tolerances of no others.
pub fn ready(suite: Suite) -> Result<ReadySuite, FlowError> {
    let suite = list(suite)?;
    check_gated(&[&*suite])?;
    Ok(suite)
}

/// Refuses tolerances of workloads that none of these sides has.
pub fn check_gated(sides: &[&Suite]) -> Result<(), FlowError> {
    let name = sides.first().map_or("", |side| side.name.as_str());
    Suite::check_gated(sides).map_err(|error| FlowError::Input(format!("suite {name:?}: {error}")))
}

/// The same before its harness, if it has one, was asked for its benchmarks: that takes a build.
pub fn unbuilt(choice: &SuiteChoice) -> Result<Suite, FlowError> {
    in_own_process(load(choice)?, choice)
}

/// A suite with the benchmarks of its harness and the workloads that its workers list, built in the suite's folder.
pub fn list(suite: Suite) -> Result<ReadySuite, FlowError> {
    let dir = suite.dir.clone();
    ReadySuite::list(suite).map_err(|error| {
        let place = dir.map_or_else(String::new, |dir| format!(" (in {})", dir.display()));
        let said = error.stderr_tail.last().map_or_else(String::new, |line| format!("; it says: {line}"));
        FlowError::Input(format!("{error}{place}{said}"))
    })
}

/// Points out commands that are harnesses.
pub(crate) fn note_harnesses(suite: &Suite, watch: &dyn Watch) {
    let dir = suite.dir.as_deref().unwrap_or(Path::new("."));
    for task in suite.workloads.iter().filter_map(|workload| workload.task.command()) {
        if let Some(harness) = harness::recognise(&task.command, dir) {
            let (program, kind) = (task.command.join(" "), harness.name());
            watch.note(&format!(
                "{program} looks like benchmarks of {kind}: as a command, the time that the harness gives itself is \
                 measured; a suite with `[harness] kind = \"{kind}\"` measures its benchmarks (docs/harness.md)"
            ));
        }
    }
}

/// A suite all of whose own ops run in processes of their own, with a slowdown put into them.
pub fn separate(suite: Suite, choice: &SuiteChoice, slowdown: f64) -> Result<Suite, FlowError> {
    placed(suite, choice, OWN_WORKERS, slowdown)
}

/// A suite whose own ops on a device run in a process of their own.
pub(crate) fn in_own_process(suite: Suite, choice: &SuiteChoice) -> Result<Suite, FlowError> {
    placed(suite, choice, &[WORKER_CUDA], 0.0)
}

fn placed(mut suite: Suite, choice: &SuiteChoice, names: &[&str], slowdown: f64) -> Result<Suite, FlowError> {
    suite.device = choice.device.unwrap_or(suite.device);
    for name in names {
        if !is_own(&suite, name) {
            continue;
        }
        let served = SuiteChoice::new(&absolute_name(&choice.name)?, Some(suite.device));
        let worker = WorkerRequest { suite: served, worker: Some((*name).to_owned()), slowdown, tail: 0.0 };
        let command = OwnProcess::Worker(worker).words()?;
        // A process on a device takes a quarter of a second to start; what it allocates is placed anew for each unit.
        let (single_threaded, units_per_process) = match *name {
            WORKER_BUILTIN => (true, 1),
            _ => (false, UNITS_PER_CUDA_PROCESS),
        };
        suite.workers.insert(
            (*name).to_owned(),
            WorkerSpec { command, single_threaded, units_per_process, all_workloads: false, dir: None },
        );
    }
    Ok(suite)
}

/// Whether the suite has workloads for one of our own workers, and no program in its place.
pub fn is_own(suite: &Suite, name: &str) -> bool {
    OWN_WORKERS.contains(&name)
        && suite.workloads.iter().any(|workload| workload.worker() == name)
        && !suite.workers.contains_key(name)
}

/// The same suite, as another process in another folder would have to name it.
pub(crate) fn absolute_name(name: &str) -> Result<String, FlowError> {
    if BUILT_IN.iter().any(|(built_in, _)| *built_in == name) {
        return Ok(name.to_owned());
    }
    Ok(absolute(Path::new(name))?.to_string_lossy().into_owned())
}

fn absolute(path: &Path) -> Result<PathBuf, FlowError> {
    path.canonicalize().map_err(|error| FlowError::File { path: path.to_owned(), what: error.to_string() })
}
