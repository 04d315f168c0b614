//! `holdpoint replay`: keep the answers of a suite's workloads with their hashes, and compute them again.

use crate::Watch;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::evidence::sealing::{self, Origins, Sealing};
use crate::request::SuiteChoice;
use crate::suites;
use crate::tensors::TensorFolders;
use holdpoint_evidence::{EvidenceError, hash, replay};
use holdpoint_gate::HasExitCode;
use holdpoint_measure::fuzz::{Answered, Answerer, Answers, Folders, Target, compare};
use holdpoint_measure::run::environment_lock;
use holdpoint_measure::{clock, doctor, machine};
use holdpoint_model::replay::{
    ArtifactHash, ReplayCase, ReplayCompared, ReplayConfig, ReplayEnvironment, ReplayedOutput,
    ReplayedWorkload, artifact_name,
};
use holdpoint_model::suite::{DeviceTask, KernelSpec, Task, Variant, WORKER_BUILTIN, WORKER_CUDA};
use holdpoint_model::{
    ExitCode, FuzzCase, ReplayManifest, ReplayVerification, Revision, SCHEMA_VERSION, Suite, Values, Workload,
};
use holdpoint_store::StoreError;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Answers to be kept, or computed again.
#[derive(Clone, Debug)]
pub enum ReplayRequest {
    Record {
        suite: SuiteChoice,
        /// The suite's, if absent.
        seed: Option<u64>,
        /// Where the manifest goes; the answers go into a folder beside it.
        output: PathBuf,
        seal_key: Option<PathBuf>,
    },
    Verify {
        manifest: PathBuf,
        /// The suite that has the workers; that of the manifest, if absent.
        suite: Option<String>,
        /// In place of the recorded ones.
        worker: Option<String>,
        device: Option<u32>,
        compare: ReplayCompare,
        output: Option<PathBuf>,
        seal_key: Option<PathBuf>,
    },
}

/// How answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayCompare {
    /// Bit by bit where worker, instructions and device are those that were recorded, else by tolerance.
    Auto,
    Exact,
    /// By that of the element type.
    Tolerance,
}

/// The result of a subcommand.
#[derive(Debug)]
pub enum Replay {
    Recorded {
        manifest: Box<ReplayManifest>,
        path: String,
    },
    Verified(ReplayVerification),
    /// Nothing was recorded.
    WrongAnswer,
}

pub fn run(request: &ReplayRequest, watch: &dyn Watch) -> Result<CommandResult<Replay>, FlowError> {
    match request {
        ReplayRequest::Record { suite, seed, output: path, seal_key } => {
            let sealing = Sealing::new(sealing::read_key(seal_key.as_deref())?, path);
            record(suite, *seed, path, sealing, watch)
        }
        ReplayRequest::Verify { manifest, suite, worker, device, compare, output: path, seal_key } => {
            let key = sealing::read_key(seal_key.as_deref())?;
            let request = Request { suite: suite.as_deref(), worker: worker.as_deref(), device: *device };
            let (found, suite) = verify(manifest, &request, *compare, watch)?;
            if let Some(path) = path {
                let mut sealing = Sealing::new(key, path);
                sealing.write_json(path, &found)?;
                // Where nothing was computed there is nothing to seal.
                if let Some(suite) = &suite {
                    seal_of("replay verify", sealing, suite, found.revision.as_ref())?;
                }
            }
            let exit = found.exit_code();
            Ok(CommandResult::new(Replay::Verified(found), exit))
        }
    }
}

/// A wrong answer is no golden one, and nothing is written then.
fn record(
    choice: &SuiteChoice,
    seed: Option<u64>,
    path: &Path,
    mut sealing: Sealing,
    watch: &dyn Watch,
) -> Result<CommandResult<Replay>, FlowError> {
    let suite = suites::runnable(choice)?;
    holdpoint_store::check_writable(path)?;
    let dirs = TensorFolders::new()?;
    let (mut cases, mut workloads, mut files) = (Vec::new(), Vec::new(), Vec::new());
    let mut artifacts = BTreeMap::new();
    let folder = format!("{}.outputs", path.file_stem().unwrap_or_default().to_string_lossy());
    for spec in &suite.workloads {
        watch.progress(&spec.name);
        let case = case_of(spec, seed.unwrap_or(suite.seed_of(spec)));
        let answered = answer(&suite, spec, &case.clone().into(), dirs.folders())?;
        let mut replayed = ReplayedWorkload {
            worker: spec.worker().to_owned(),
            inputs_sha256: None,
            deterministic: false,
            outputs: Vec::new(),
            skipped: None,
        };
        match answered {
            Answered::Right(Answers { inputs_sha256, outputs, is_deterministic }) => {
                (replayed.inputs_sha256, replayed.deterministic) = (Some(inputs_sha256), is_deterministic);
                for tensor in outputs {
                    let name = artifact_name(&spec.name, &tensor.name);
                    let file = format!("{folder}/{name}.{}", spec.dtype);
                    let sha256 = hash::bytes(&tensor.bytes);
                    files.push((beside(path).join(&file), tensor.bytes));
                    artifacts.insert(name, ArtifactHash { path: file, sha256 });
                    let (name, shape, dtype) = (tensor.name, tensor.shape, spec.dtype.clone());
                    replayed.outputs.push(ReplayedOutput { name, shape, dtype });
                }
                cases.push(case);
            }
            Answered::Skipped(reason) => replayed.skipped = Some(reason),
            Answered::Wrong(finding) => {
                let what = format!("holdpoint: {}: {}: {}", spec.name, finding.kind.name(), finding.detail);
                let done = CommandResult::new(Replay::WrongAnswer, ExitCode::Broken).with_note(what);
                return Ok(done.with_note("nothing was recorded: an answer that is wrong is no evidence"));
            }
        }
        workloads.push((spec.name.clone(), replayed));
    }
    let config = ReplayConfig { suite: suite.name.clone(), workloads: cases };
    let Ok(Value::Object(config)) = serde_json::to_value(&config) else {
        return Err(FlowError::Internal("a configuration is an object".to_owned()));
    };
    let manifest = ReplayManifest {
        suite: Some(choice.name.clone()),
        workloads: workloads.into_iter().collect(),
        timestamp_utc: Some(clock::timestamp_utc()),
        revision: machine::revision(Path::new(".")),
        environment: Some(environment(&suite)),
        ..replay::manifest(seed.unwrap_or(suite.seed), config, artifacts)?
    };
    let folder = beside(path).join(&folder);
    let _lock = (!files.is_empty()).then(|| artifacts::lock(&folder, watch)).transpose()?;
    // The manifest last: until all of its answers are there, there is none, and no seal over it.
    sealing.unseal()?;
    holdpoint_store::remove(path)?;
    for (file, bytes) in &files {
        holdpoint_store::write_binary(file, bytes)?;
    }
    // The answers are sealed by their hashes in it.
    sealing.write_json(path, &manifest)?;
    seal_of("replay record", sealing, &suite, manifest.revision.as_ref())?;
    let path = path.display().to_string();
    let exit = manifest.exit_code();
    Ok(CommandResult::new(Replay::Recorded { manifest: Box::new(manifest), path }, exit))
}

fn seal_of(
    command: &'static str,
    sealing: Sealing,
    suite: &Suite,
    revision: Option<&Revision>,
) -> Result<(), FlowError> {
    let machine = machine::machine_for(suite);
    sealing.seal(&Origins { command, suite, revision, machine: Some(&machine) }).map(drop)
}

fn case_of(spec: &Workload, seed: u64) -> ReplayCase {
    ReplayCase {
        name: spec.name.clone(),
        op: spec.op.clone(),
        shape: spec.shape.clone(),
        dtype: spec.dtype.clone(),
        params: spec.params.clone(),
        seed,
        values: Values::Normal,
    }
}

fn environment(suite: &Suite) -> ReplayEnvironment {
    ReplayEnvironment {
        machine: machine::machine_for(suite),
        cpu_features: doctor::cpu_features(),
        toolchain: machine::toolchain(),
        environment_lock: environment_lock(suite, None, &BTreeMap::new()),
    }
}

fn answer(
    suite: &Suite,
    spec: &Workload,
    case: &FuzzCase,
    folders: Folders<'_>,
) -> Result<Answered, FlowError> {
    let skipped = |reason: &str| Ok(Answered::Skipped(reason.to_owned()));
    let Some(target) = Target::for_workload(spec) else {
        return skipped("a command has no tensors that could be kept");
    };
    if spec.variant == Variant::Reference {
        return skipped("the plain variant is the oracle, which every answer is held against");
    }
    // Who computes it is the suite's to say.
    let case = &FuzzCase { kernel: spec.task.kernel().cloned(), ..case.clone() };
    if !target.takes(case) {
        return skipped(
            "holdpoint has no inputs for this op, shape, dtype or these parameters with this worker",
        );
    }
    let answerer = Answerer::new(suite, spec.worker(), folders);
    let mut answerer =
        answerer.map_err(|error| FlowError::Internal(format!("a file for tensors: {error}")))?;
    Ok(answerer.answer(case))
}

/// The workers that are to answer.
struct Request<'a> {
    suite: Option<&'a str>,
    worker: Option<&'a str>,
    device: Option<u32>,
}

fn verify(
    path: &Path,
    request: &Request<'_>,
    how: ReplayCompare,
    watch: &dyn Watch,
) -> Result<(ReplayVerification, Option<Suite>), FlowError> {
    let mut found = ReplayVerification {
        schema_version: SCHEMA_VERSION,
        manifest_sha256: String::new(),
        revision: machine::revision(Path::new(".")),
        compared: ReplayCompared::Nothing,
        exact_count: 0,
        same: false,
        differences: Vec::new(),
        skipped: BTreeMap::new(),
        outputs_count: 0,
        values_count: 0,
        timestamp_utc: clock::timestamp_utc(),
    };
    let manifest = match replay::read(path) {
        Ok(manifest) => manifest,
        Err(error) => {
            found.differences.push(damage(error)?);
            return Ok((found, None));
        }
    };
    found.manifest_sha256.clone_from(&manifest.manifest_sha256);
    found.differences = replay::contradictions(&manifest)?;
    match replay::changed_files(&manifest, &beside(path)) {
        Ok(changed) => found.differences.extend(changed),
        Err(error) => found.differences.push(damage(error)?),
    }
    if !found.differences.is_empty() {
        return Ok((found, None));
    }
    let config: Result<ReplayConfig, _> = serde_json::from_value(Value::Object(manifest.config.clone()));
    let (Ok(config), Some(name)) = (config, request.suite.or(manifest.suite.as_deref())) else {
        found.skipped.insert(
            "the manifest".to_owned(),
            "its hashes are right, but its config names no workloads that holdpoint could run again"
                .to_owned(),
        );
        return Ok((found, None));
    };
    let suite = requested_suite(&manifest, &config, name, request)?;
    let here = environment(&suite);
    let is_same_place = manifest.environment.as_ref().is_some_and(|there| there.gives_the_same_bits(&here));
    let is_exact = match how {
        ReplayCompare::Auto => is_same_place && request.worker.is_none(),
        ReplayCompare::Exact => true,
        ReplayCompare::Tolerance => false,
    };
    let dirs = TensorFolders::new()?;
    for (case, spec) in config.workloads.into_iter().zip(&suite.workloads) {
        watch.progress(&spec.name);
        let recorded = &manifest.workloads[&spec.name];
        match answer(&suite, spec, &case.into(), dirs.folders())? {
            Answered::Right(answers) => {
                let is_exact = is_exact && (recorded.deterministic || how == ReplayCompare::Exact);
                let at = RecordedWorkload {
                    manifest: &manifest,
                    dir: beside(path),
                    name: &spec.name,
                    workload: recorded,
                };
                at.compare(&answers, is_exact, &mut found)?;
            }
            Answered::Wrong(finding) => {
                found.differences.push(format!("{}: {}: {}", spec.name, finding.kind.name(), finding.detail))
            }
            Answered::Skipped(reason) => {
                found.skipped.insert(spec.name.clone(), reason);
            }
        }
    }
    let is_exact = if found.outputs_count == 0 { is_exact } else { found.exact_count == found.outputs_count };
    found.compared = if is_exact { ReplayCompared::Exact } else { ReplayCompared::Tolerance };
    found.same = found.exit_code() == ExitCode::Ok;
    Ok((found, Some(suite)))
}

/// The suite that has the workers, with the workloads of the manifest: what the suite has become does not matter.
fn requested_suite(
    manifest: &ReplayManifest,
    config: &ReplayConfig,
    name: &str,
    request: &Request<'_>,
) -> Result<Suite, FlowError> {
    let choice = SuiteChoice::new(name, request.device);
    let mut suite = suites::load(&choice)?;
    // Which suite it is stands outside the manifest's hash: whoever can edit that must not choose what is run here.
    if request.suite.is_none() && !suite.workers.is_empty() {
        let what = format!(
            "the manifest names suite {name:?}, which starts programs of its own (workers {}); if you trust them: --suite {name}",
            suite.workers.keys().cloned().collect::<Vec<_>>().join(", ")
        );
        return Err(FlowError::Input(what));
    }
    if let Some(worker) = request.worker
        && ![WORKER_BUILTIN, WORKER_CUDA].contains(&worker)
        && !suite.workers.contains_key(worker)
    {
        let what = format!(
            "--worker {worker:?}: suite {name:?} has no such worker; builtin and cuda are always there"
        );
        return Err(FlowError::Input(what));
    }
    // The source of a user's own kernel is the suite's to name, as it is now.
    let mut kernels: BTreeMap<String, KernelSpec> = (suite.workloads.drain(..))
        .filter_map(|workload| Some((workload.name, workload.task.kernel()?.clone())))
        .collect();
    for case in &config.workloads {
        let Some(recorded) = manifest.workloads.get(&case.name) else {
            let what = format!("workload {:?} is in its config and not among its workloads", case.name);
            return Err(FlowError::Input(what));
        };
        let task = match (request.worker.unwrap_or(&recorded.worker), kernels.remove(&case.name)) {
            (WORKER_CUDA, Some(kernel)) => Task::Kernel(Box::new(kernel), DeviceTask::default()),
            (worker, _) => Task::of_worker(worker),
        };
        suite.workloads.push(Workload {
            shape: case.shape.clone(),
            dtype: case.dtype.clone(),
            params: case.params.clone(),
            ..Workload::new(&case.name, task, &case.op)
        });
    }
    suites::in_own_process(suite, &choice)
}

/// A workload in a manifest.
struct RecordedWorkload<'a> {
    manifest: &'a ReplayManifest,
    dir: PathBuf,
    name: &'a str,
    workload: &'a ReplayedWorkload,
}

impl RecordedWorkload<'_> {
    fn compare(
        &self,
        now: &Answers,
        is_exact: bool,
        found: &mut ReplayVerification,
    ) -> Result<(), FlowError> {
        if self.workload.inputs_sha256.as_ref() != Some(&now.inputs_sha256) {
            let what =
                "its inputs are not those that were recorded: how they are drawn from the seed has changed";
            found.differences.push(format!("{}: {what}", self.name));
            return Ok(());
        }
        let names = |outputs: &mut dyn Iterator<Item = (&String, &Vec<usize>)>| -> Vec<String> {
            outputs.map(|(name, shape)| format!("{name}{shape:?}")).collect()
        };
        let old = names(&mut self.workload.outputs.iter().map(|output| (&output.name, &output.shape)));
        let new = names(&mut now.outputs.iter().map(|output| (&output.name, &output.shape)));
        if old != new {
            found.differences.push(format!(
                "{}: outputs were {}, now {}",
                self.name,
                old.join(", "),
                new.join(", ")
            ));
            return Ok(());
        }
        for (output, tensor) in self.workload.outputs.iter().zip(&now.outputs) {
            let name = artifact_name(self.name, &output.name);
            let artifact = &self.manifest.artifact_hashes[&name];
            let file = self.dir.join(&artifact.path);
            let (is_equal, is_gone) = (hash::bytes(&tensor.bytes) == artifact.sha256, !file.exists());
            // Only a hash is left, and that has no tolerance.
            if !is_equal && is_gone && !is_exact {
                found.skipped.insert(name, format!("{} is gone", file.display()));
                continue;
            }
            found.outputs_count += 1;
            found.exact_count += u64::from(is_exact);
            found.values_count += output.shape.iter().product::<usize>() as u64;
            if is_equal {
                continue;
            }
            if is_gone {
                found.differences.push(format!(
                    "{name}: other bits than were recorded; where is not known, {} is gone",
                    file.display()
                ));
                continue;
            }
            let recorded = holdpoint_store::read_binary(&file)?;
            match compare(&output.dtype, &recorded, &tensor.bytes, is_exact) {
                Ok(None) => {}
                Ok(Some(differs)) => found.differences.push(format!(
                    "{name}[{}]: was {:?}, is {:?}; {} of {} values differ",
                    place(differs.first_index, &output.shape),
                    differs.recorded,
                    differs.now,
                    differs.mismatches,
                    output.shape.iter().product::<usize>()
                )),
                Err(what) => found.differences.push(format!("{name}: {what}")),
            }
        }
        Ok(())
    }
}

/// A flat position as coordinates, the last dimension fastest.
fn place(at: usize, shape: &[usize]) -> String {
    let mut rest = at;
    let mut parts: Vec<String> = Vec::new();
    for &size in shape.iter().rev() {
        parts.push((rest % size.max(1)).to_string());
        rest /= size.max(1);
    }
    parts.reverse();
    parts.join(",")
}

/// A manifest or an answer that is there and cannot be read is not what was recorded; one that is not there is the caller's mistake.
fn damage(error: EvidenceError) -> Result<String, FlowError> {
    match &error {
        EvidenceError::Format { .. } | EvidenceError::Store(StoreError::NotText { .. }) => {
            Ok(error.to_string())
        }
        EvidenceError::Store(StoreError::Read { source, .. })
            if source.kind() != std::io::ErrorKind::NotFound =>
        {
            Ok(error.to_string())
        }
        _ => Err(error.into()),
    }
}

fn beside(path: &Path) -> PathBuf {
    path.parent().map(Path::to_path_buf).unwrap_or_default()
}
