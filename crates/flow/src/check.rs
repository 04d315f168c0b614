//! `holdpoint check`: is a kernel right at a shape, how long does it take, and how near is that to what the device can do?

use crate::Watch;
use crate::ceilings;
use crate::command_result::CommandResult;
use crate::error::FlowError;
use crate::evidence::sealing::{self, Sealing};
use crate::request::SuiteChoice;
use crate::run;
use crate::suites;
use crate::tensors::{TensorFolders, random_seed};
use holdpoint_gate::{KernelChecks, Unchecked};
use holdpoint_measure::ReadySuite;
use holdpoint_measure::fuzz::{Fuzzer, Target};
use holdpoint_measure::worker;
use holdpoint_measure::{Event, device_count};
use holdpoint_model::check::Correctness;
use holdpoint_model::fuzz::{Errors, Evaluated, Finding};
use holdpoint_model::suite::{WORKER_BUILTIN, WORKER_CUDA};
use holdpoint_model::{CheckDocument, FuzzCase, KernelCheck, SCHEMA_VERSION, Suite, Values, Workload};
use holdpoint_store::Scratch;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Kernels to be checked.
#[derive(Clone, Debug)]
pub struct CheckRequest {
    pub subject: CheckSubject,
    pub device: Option<u32>,
    /// The report of a ceilings suite; those that are kept, if absent.
    pub ceilings: Option<PathBuf>,
    /// Of the inputs; random, if absent.
    pub seed: Option<u64>,
    pub output: Option<PathBuf>,
    pub seal_key: Option<PathBuf>,
}

/// What is checked.
#[derive(Clone, Debug)]
pub enum CheckSubject {
    /// The workloads of a suite.
    Suite(String),
    Kernel(KernelShapes),
}

/// One kernel at every combination of these.
#[derive(Clone, Debug)]
pub struct KernelShapes {
    pub op: String,
    pub shapes: Vec<String>,
    pub dtypes: Vec<String>,
    /// NAME=VALUES.
    pub params: Vec<String>,
    /// The worker that runs it; `cuda` where there is a device, if absent.
    pub worker: Option<String>,
}

/// Inputs that every kernel is checked with at its shape: values, each from a seed of its own.
const CASES: [Values; 4] = [Values::Normal, Values::Normal, Values::Uniform, Values::Large];

pub fn run(request: &CheckRequest, watch: &dyn Watch) -> Result<CommandResult<CheckDocument>, FlowError> {
    let key = sealing::read_key(request.seal_key.as_deref())?;
    let (dir, dirs) = (Scratch::new()?, TensorFolders::new()?);
    let suite = suite(&request.subject, request.device, dir.path())?;
    if let Some(path) = &request.output {
        holdpoint_store::check_writable(path)?;
    }
    let seed = request.seed.unwrap_or_else(random_seed);
    let correctness = check_answers(&suite, seed, &dirs, watch)?;
    let report = run::measure(&suite, watch);
    let roofline = ceilings::roofline(&report, request.ceilings.as_deref());
    if let (Err(error), Some(_)) = (&roofline, &request.ceilings) {
        return Err(FlowError::Inconclusive(error.to_string()));
    }
    let mut checks = KernelChecks::default();
    for (spec, correctness) in suite.workloads.iter().zip(correctness) {
        checks.add(spec, correctness, &report, roofline.as_ref().ok());
    }
    let exit = checks.exit_code();
    let document = match <[KernelCheck; 1]>::try_from(checks.checks) {
        Ok([one]) => CheckDocument::One(Box::new(one)),
        Err(many) => CheckDocument::Many(many),
    };
    if let Some(path) = &request.output {
        let mut sealing = Sealing::new(key, path);
        sealing.write_json(path, &document)?;
        sealing.seal(&run::origins("check", &suite, &report))?;
    }
    let mut done = CommandResult::new(document, exit);
    done.notes.extend(roofline.err().map(|error| format!("no roofline: {error}")));
    Ok(done)
}

/// The suite that was named, or one made of the shapes, element types and parameters that were.
fn suite(subject: &CheckSubject, device: Option<u32>, dir: &Path) -> Result<ReadySuite, FlowError> {
    let kernel = match subject {
        CheckSubject::Suite(name) => return suites::runnable(&SuiteChoice::new(name, device)),
        CheckSubject::Kernel(shapes) => shapes,
    };
    let has_device = device.is_some() || device_count().unwrap_or(0) > 0;
    let worker_name =
        kernel.worker.as_deref().unwrap_or(if has_device { WORKER_CUDA } else { WORKER_BUILTIN });
    if ![WORKER_CUDA, WORKER_BUILTIN].contains(&worker_name) {
        return Err(FlowError::Input(format!(
            "--worker {worker_name:?}: cuda or builtin is wanted; one of your own comes with its --suite"
        )));
    }
    let own = [if worker_name == WORKER_CUDA { "f16" } else { "f32" }.to_owned()];
    let dtypes: &[String] = if kernel.dtypes.is_empty() { &own } else { &kernel.dtypes };
    let mut axes = vec![json!({})];
    for text in &kernel.params {
        let problem =
            || FlowError::Input(format!("--param {text:?}: NAME=VALUE or NAME=VALUE,VALUE is wanted"));
        let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(problem)?;
        let values = values_of(values);
        axes = axes.iter().flat_map(|axis| values.iter().map(move |value| with(axis, name, value))).collect();
    }
    let mut workloads = Vec::new();
    for shape in &kernel.shapes {
        let sizes: Result<Vec<usize>, _> = shape.split([',', 'x']).map(|size| size.trim().parse()).collect();
        let sizes = sizes.map_err(|_| {
            FlowError::Input(format!("--shape {shape:?}: sizes such as 8,4,64,64 are wanted"))
        })?;
        for (dtype, params) in dtypes.iter().flat_map(|dtype| axes.iter().map(move |params| (dtype, params)))
        {
            workloads.push(json!({
                "name": format!("check_{}", workloads.len()), "op": kernel.op, "worker": worker_name, "shape": sizes,
                "dtype": dtype, "params": params,
            }));
        }
    }
    // Errors name what was typed, not a file that nobody wrote.
    let wrong = |error: &dyn std::fmt::Display| FlowError::Input(error.to_string());
    let suite = json!({"schema_version": SCHEMA_VERSION, "name": "check", "seed": 42, "workload": workloads});
    let suite = Suite::from_json(suite).map_err(|error| wrong(&error))?;
    let text = suite.to_toml().map_err(|error| wrong(&error))?;
    for spec in &suite.workloads {
        worker::validate(spec).map_err(|error| wrong(&error))?;
    }
    let path = dir.join("check.toml");
    holdpoint_store::write_text(&path, &text)?;
    suites::runnable(&SuiteChoice::new(&path.display().to_string(), device))
}

/// Values with commas between them: `false,true`, `[0,1],[2,3]`; what is no number, truth value or list is a word.
fn values_of(text: &str) -> Vec<Value> {
    let list: Option<Vec<Value>> = serde_json::from_str(&format!("[{text}]")).ok();
    list.filter(|values| !values.is_empty()).unwrap_or_else(|| {
        let value = |word: &str| serde_json::from_str(word).unwrap_or_else(|_| json!(word));
        text.split(',').map(value).collect()
    })
}

/// One more parameter.
fn with(params: &Value, name: &str, value: &Value) -> Value {
    let mut params = params.clone();
    params[name] = value.clone();
    params
}

/// Whether the answers of each workload are right at its shape, or why that is not known.
type Answers = Vec<Result<Correctness, Unchecked>>;

fn check_answers(
    suite: &Suite,
    seed: u64,
    dirs: &TensorFolders,
    watch: &dyn Watch,
) -> Result<Answers, FlowError> {
    let progress = watch.start(suite.workloads.len());
    // One process for all workloads of a worker: on a device it takes longer to start than most checks.
    let mut fuzzers: Vec<((&str, Target), Fuzzer<'_>)> = Vec::new();
    let mut answers = Vec::new();
    for spec in &suite.workloads {
        progress.on_event(Event::Checking(&spec.name));
        answers.push(match Target::for_workload(spec) {
            None => Err(unchecked("a command has no inputs that could be chosen".to_owned())),
            Some(target) => {
                let key = (spec.worker(), target);
                if fuzzers.iter().all(|(known, _)| *known != key) {
                    let fuzzer = Fuzzer::new(suite, spec.worker(), target, dirs.folders())
                        .map_err(|error| FlowError::Internal(format!("a file for tensors: {error}")))?;
                    fuzzers.push((key, fuzzer));
                }
                let at = fuzzers.iter().position(|(known, _)| *known == key).unwrap_or(0);
                correctness(suite, (spec, seed), target, &mut fuzzers[at].1)?
            }
        });
        progress.on_event(Event::Done(&spec.name));
    }
    Ok(answers)
}

fn correctness(
    suite: &Suite,
    (spec, first_seed): (&Workload, u64),
    target: Target,
    fuzzer: &mut Fuzzer<'_>,
) -> Result<Result<Correctness, Unchecked>, FlowError> {
    let case = |(values, seed): (Values, u64)| FuzzCase {
        op: spec.op.clone(),
        shape: spec.shape.clone(),
        dtype: spec.dtype.clone(),
        params: spec.params.clone(),
        seed,
        values,
        offset: 0,
        kernel: spec.task.kernel().cloned(),
        declared: target.declared(suite, spec).cloned(),
    };
    target
        .check_size(&case((CASES[0], first_seed)))
        .map_err(|error| FlowError::Input(format!("workload {:?}: {error}", spec.name)))?;
    if !target.takes(&case((CASES[0], first_seed))) {
        return Ok(Err(unchecked(format!("holdpoint has no oracle for op {:?} at this shape", spec.op))));
    }
    let mut worst = Errors::default();
    let (mut found, mut oracle) = (None, None);
    let mut cases_count = 0;
    let unanswered_before = fuzzer.unanswered_count();
    for case in CASES.into_iter().zip((0..).map(|at| first_seed.wrapping_add(at))).map(case) {
        let Evaluated { finding, errors, skipped, checked_by } = fuzzer.evaluate(&case);
        if let Some(reason) = skipped {
            let by_oracle = fuzzer.unanswered_count() > unanswered_before;
            let reason = match cases_count {
                0 => reason,
                count => format!("{reason}; {count} of {} cases were right before", CASES.len()),
            };
            return Ok(Err(Unchecked { reason, by_oracle }));
        }
        cases_count += 1;
        oracle = checked_by;
        // The figures are those of values around one; large ones are held against their own size.
        if let Some(errors) = errors.filter(|_| case.values.is_ordinary() || finding.is_some()) {
            worst = worst.worse(errors);
        }
        if finding.is_some() {
            found = finding;
            break;
        }
    }
    let mut call_ms = None;
    if found.is_none() {
        match best_call_ms(fuzzer, |at| case((CASES[0], first_seed.wrapping_add(CASES.len() as u64 + at)))) {
            Ok(best_ms) => call_ms = best_ms,
            Err(finding) => found = Some(finding),
        }
    }
    Ok(Ok(Correctness {
        passed: found.is_none(),
        max_abs_error: worst.max_abs_err,
        mean_abs_error: worst.mean_abs_err,
        correlation: worst.correlation,
        rel_norm: worst.rel_norm,
        cases_count,
        seed: Some(first_seed),
        call_ms,
        finding: found,
        checked_by: oracle,
    }))
}

fn unchecked(reason: String) -> Unchecked {
    Unchecked { reason, by_oracle: false }
}

/// Looks at how long a checked call takes, of which the best counts: others may use the machine meanwhile.
const LOOKS: u64 = 3;
/// A call of this length is looked at once.
const LONG_MS: f64 = 50.0;

/// How long a call takes whose answer is checked; each look has inputs of its own.
fn best_call_ms(fuzzer: &mut Fuzzer<'_>, case: impl Fn(u64) -> FuzzCase) -> Result<Option<f64>, Finding> {
    let mut best_ms = f64::INFINITY;
    for look in 0..LOOKS {
        let Some(call_ns) = fuzzer.time_call(&case(look))? else { return Ok(None) };
        best_ms = best_ms.min(call_ns / 1e6);
        if best_ms > LONG_MS {
            break;
        }
    }
    Ok(Some(best_ms))
}
