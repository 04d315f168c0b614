//! `holdpoint fuzz`: look for inputs to which kernels give wrong answers, and run saved ones again.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::sealing::{self, Origins, Sealing};
use crate::request::SuiteChoice;
use crate::suites;
use crate::tensors::{TensorFolders, random_seed};
use holdpoint_gate::HasExitCode;
use holdpoint_measure::clock;
use holdpoint_measure::fuzz::{Fuzzer, Kernel, Plan, Target, kernels};
use holdpoint_measure::machine;
use holdpoint_model::fuzz::{FuzzedKernel, OnInaccurate, Replayed};
use holdpoint_model::{FuzzFile, FuzzReport, SCHEMA_VERSION, Suite};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Inputs to be looked for, or saved ones to be run again.
#[derive(Clone, Debug)]
pub enum FuzzRequest {
    Search(FuzzSearch),
    Replay {
        files: Vec<PathBuf>,
        /// The suite that has the worker; that of the file, if absent.
        suite: Option<String>,
        device: Option<u32>,
    },
}

/// A search for inputs that give wrong answers.
#[derive(Clone, Debug)]
pub struct FuzzSearch {
    pub suite: SuiteChoice,
    /// Ops or workloads; all, if empty.
    pub only: Vec<String>,
    /// Generated cases of each kernel, beside the suite's own shapes.
    pub cases: u64,
    /// Random, if absent.
    pub seed: Option<u64>,
    /// Stops a kernel at its first failing case.
    pub fail_fast: bool,
    /// The suite's, if absent.
    pub accuracy: Option<OnInaccurate>,
    /// In place of the workloads' own.
    pub dtypes: Vec<String>,
    pub output: Option<PathBuf>,
    /// The folder for cases that fail.
    pub save: PathBuf,
    pub seal_key: Option<PathBuf>,
}

/// The result of a search, or of saved cases run again.
#[derive(Debug)]
pub enum FuzzResult {
    Searched(FuzzReport),
    /// Saved cases by their files.
    Replayed(Vec<(String, Replayed)>),
}

pub fn run(request: &FuzzRequest, watch: &dyn Watch) -> Result<CommandResult<FuzzResult>, FlowError> {
    match request {
        FuzzRequest::Search(search) => run_search(search, watch),
        FuzzRequest::Replay { files, suite, device } => replay(files, suite.as_deref(), *device),
    }
}

fn run_search(request: &FuzzSearch, watch: &dyn Watch) -> Result<CommandResult<FuzzResult>, FlowError> {
    let key = sealing::read_key(request.seal_key.as_deref())?;
    let suite = suites::runnable(&request.suite)?;
    let kernels = kernels(&suite, &request.only, &request.dtypes);
    if let Some(name) =
        request.only.iter().find(|name| !kernels.iter().any(|k| k.spec.op == **name || k.spec.name == **name))
    {
        return Err(FlowError::Input(format!(
            "suite {:?} has no op or workload {name:?} that can be fuzzed",
            suite.name
        )));
    }
    if let Some(path) = &request.output {
        holdpoint_store::check_writable(path)?;
    }
    let (timestamp_utc, start) = (clock::timestamp_utc(), Instant::now());
    let seed = request.seed.unwrap_or_else(random_seed);
    let plan =
        Plan { cases_count: request.cases, seed, fail_fast: request.fail_fast, accuracy: request.accuracy };
    let mut found = Vec::new();
    for kernel in &kernels {
        let mut kernel = look(&suite, kernel, plan, watch)?;
        save(&mut kernel, &request.suite.name, &request.save)?;
        found.push(kernel);
    }
    let report = FuzzReport {
        schema_version: SCHEMA_VERSION,
        suite: suite.name.clone(),
        timestamp_utc,
        revision: machine::revision(Path::new(".")),
        seed,
        kernels: found,
        elapsed_s: start.elapsed().as_secs_f64(),
    };
    if let Some(path) = &request.output {
        let mut sealing = Sealing::new(key, path);
        sealing.write_json(path, &report)?;
        let machine = machine::machine_for(&suite);
        let revision = report.revision.as_ref();
        sealing.seal(&Origins { command: "fuzz", suite: &suite, revision, machine: Some(&machine) })?;
    }
    let exit = report.exit_code();
    Ok(CommandResult::new(FuzzResult::Searched(report), exit))
}

fn look(
    suite: &Suite,
    kernel: &Kernel<'_>,
    plan: Plan,
    watch: &dyn Watch,
) -> Result<FuzzedKernel, FlowError> {
    let dirs = TensorFolders::new()?;
    let mut fuzzer = Fuzzer::new(suite, kernel.spec.worker(), kernel.target, dirs.folders())
        .map_err(|error| FlowError::Internal(format!("a file for tensors: {error}")))?;
    let name = format!("{} {} by {}", kernel.name(), kernel.dtype, kernel.spec.worker());
    watch.progress(&name);
    Ok(fuzzer.run(kernel, plan, |count| {
        if count.is_multiple_of(1000) {
            watch.progress(&format!("{name}: {count} cases"));
        }
    }))
}

/// Every failing case in a file of its own, named after what it is.
fn save(kernel: &mut FuzzedKernel, suite: &str, dir: &Path) -> Result<(), FlowError> {
    let stem = format!("{}-{}-{}", kernel.worker, kernel.name(), kernel.dtype);
    for failure in kernel.failures.iter_mut().chain(&mut kernel.less_accurate) {
        let name = format!("{stem}-{}.json", failure.finding.kind.name());
        let file = FuzzFile {
            schema_version: SCHEMA_VERSION,
            suite: suites::absolute_name(suite)?,
            worker: kernel.worker.clone(),
            finding: failure.finding.clone(),
            shown: failure.shown,
            case: failure.case.clone(),
        };
        let path = dir.join(name.replace(['/', '\\'], "_"));
        std::fs::create_dir_all(dir)
            .map_err(|error| FlowError::Input(format!("{}: {error}", dir.display())))?;
        holdpoint_store::write_json(&path, &file)?;
        failure.file = Some(path.display().to_string());
    }
    Ok(())
}

fn replay(
    files: &[PathBuf],
    suite: Option<&str>,
    device: Option<u32>,
) -> Result<CommandResult<FuzzResult>, FlowError> {
    let mut outcomes = Vec::new();
    for path in files {
        let file: FuzzFile = holdpoint_store::read_document(path)?;
        let suite = suites::runnable(&SuiteChoice::new(suite.unwrap_or(&file.suite), device))?;
        let spec = suite.workloads.iter().find(|spec| spec.worker() == file.worker);
        let Some((target, worker)) = spec.and_then(|spec| Some((Target::for_workload(spec)?, spec.worker())))
        else {
            let problem =
                format!("{}: suite {:?} has no worker {:?}", path.display(), suite.name, file.worker);
            return Err(FlowError::Input(problem));
        };
        target
            .check_size(&file.case)
            .map_err(|error| FlowError::Input(format!("{}: {error}", path.display())))?;
        if !target.takes(&file.case) {
            return Err(FlowError::Input(format!(
                "{}: worker {worker:?} cannot have this op, shape, dtype, offset or parameters",
                path.display()
            )));
        }
        let dirs = TensorFolders::new()?;
        let mut fuzzer = Fuzzer::new(&suite, worker, target, dirs.folders())
            .map_err(|error| FlowError::Internal(format!("a file for tensors: {error}")))?;
        outcomes.push((path.display().to_string(), fuzzer.replay(&file.case, file.finding.kind, file.shown)));
    }
    let exit = outcomes.exit_code();
    Ok(CommandResult::new(FuzzResult::Replayed(outcomes), exit))
}
