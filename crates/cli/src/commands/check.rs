//! `holdpoint check`: is a kernel right at a shape, how long does it take, and how near is that to what the device can do?

use super::run;
use crate::args::{CheckArgs, SuiteArg};
use crate::ceilings;
use crate::error::CliError;
use crate::output::Output;
use crate::sealing::{self, Sealing};
use crate::suites;
use holdpoint_measure::device_count;
use holdpoint_measure::fuzz::{Fuzzer, Target};
use holdpoint_measure::worker;
use holdpoint_model::check::{CheckedRoofline, Correctness, Performance, config};
use holdpoint_model::fuzz::{Errors, Evaluated};
use holdpoint_model::roofline::{CeilingUnit, Placed, Placement};
use holdpoint_model::suite::{WORKER_BUILTIN, WORKER_CUDA};
use holdpoint_model::{
    CheckDocument, ExitCode, FuzzCase, KernelCheck, Outcome, SCHEMA_VERSION, Suite, Values, WorkloadSpec,
};
use holdpoint_render::terminal;
use holdpoint_store::Scratch;
use serde_json::{Value, json};
use std::path::Path;

/// Inputs that every kernel is checked with at its shape: values and seeds.
const CASES: &[(Values, u64)] =
    &[(Values::Normal, 42), (Values::Normal, 43), (Values::Uniform, 44), (Values::Large, 45)];

/// Runs the command.
///
/// # Errors
/// When what is asked for makes no sense, or a file cannot be read or written.
pub fn run(args: &CheckArgs, output: &Output) -> Result<ExitCode, CliError> {
    let key = sealing::read_key(&args.seal)?;
    let dir = Scratch::new()?;
    let suite = suite(args, dir.path())?;
    if let Some(path) = &args.output {
        holdpoint_store::check_writable(path)?;
    }
    let correctness: Vec<Result<Correctness, String>> =
        suite.workloads.iter().map(|spec| correctness(&suite, spec, dir.path())).collect::<Result<_, _>>()?;
    let report = run::measure(&suite, output);
    let roofline = ceilings::roofline(&report, args.ceilings.as_deref());
    if let (Err(error), Some(_)) = (&roofline, &args.ceilings) {
        return Err(CliError::Inconclusive(error.to_string()));
    }
    let (mut checks, mut is_broken) = (Vec::new(), false);
    for (spec, correctness) in suite.workloads.iter().zip(correctness) {
        let outcome = report.benchmarks.get(&spec.name).map(|measurement| &measurement.outcome);
        let (measured, reason) = match outcome {
            Some(Outcome::Measured(measured)) => (Some(measured), None),
            Some(Outcome::Skipped { reason }) => (None, Some(reason.clone())),
            Some(Outcome::Failed(failure)) => {
                (None, Some(format!("{}: {}", failure.cause.as_str(), failure.detail)))
            }
            None => (None, Some("not measured".to_owned())),
        };
        let is_right = correctness.as_ref().is_ok_and(|correctness| correctness.passed);
        let measured = measured.filter(|_| is_right);
        let placed = roofline.as_ref().ok().and_then(|roofline| match roofline.workloads.get(&spec.name) {
            Some(Placement::Placed(placed)) => Some(&**placed),
            _ => None,
        });
        is_broken |= matches!(outcome, Some(Outcome::Failed(_))) || placed.is_some_and(is_impossible);
        let kernel = measured.and_then(|measured| measured.kernel.as_ref());
        checks.push(KernelCheck {
            schema_version: SCHEMA_VERSION,
            performance: measured.map(|measured| Performance::of(measured)),
            roofline: placed.filter(|_| is_right).map(CheckedRoofline::from),
            config: config(spec),
            kernel_name: kernel.map_or(&spec.op, |kernel| &kernel.kernel_name).clone(),
            timestamp: report.timestamp_utc.clone(),
            reason: correctness.as_ref().err().cloned().or(reason),
            correctness: correctness.ok(),
        });
    }
    let code = match exit_code(&checks) {
        ExitCode::Ok if is_broken => ExitCode::Broken,
        code => code,
    };
    let document = match <[KernelCheck; 1]>::try_from(checks) {
        Ok([one]) => CheckDocument::One(Box::new(one)),
        Err(many) => CheckDocument::Many(many),
    };
    if let Some(path) = &args.output {
        let mut sealing = Sealing::new(key, path);
        sealing.write_json(path, &document)?;
        sealing.seal(&run::origins("check", &suite, &report))?;
    }
    output.result(&document, |style| terminal::check(&document, style))?;
    if let Err(error) = roofline {
        output.note(&format!("no roofline: {error}"));
    }
    Ok(code)
}

/// The suite that was named, or one made of the shapes, element types and parameters that were.
fn suite(args: &CheckArgs, dir: &Path) -> Result<Suite, CliError> {
    if let Some(suite) = &args.suite {
        return suites::runnable(&SuiteArg { suite: suite.clone(), device: args.device });
    }
    let has_device = args.device.is_some() || device_count().unwrap_or(0) > 0;
    let worker_name = args.worker.as_deref().unwrap_or(if has_device { WORKER_CUDA } else { WORKER_BUILTIN });
    if ![WORKER_CUDA, WORKER_BUILTIN].contains(&worker_name) {
        return Err(CliError::Input(format!(
            "--worker {worker_name:?}: cuda or builtin is wanted; one of your own comes with its --suite"
        )));
    }
    let own = [if worker_name == WORKER_CUDA { "f16" } else { "f32" }.to_owned()];
    let dtypes: &[String] = if args.dtype.is_empty() { &own } else { &args.dtype };
    let mut axes = vec![json!({})];
    for text in &args.param {
        let problem =
            || CliError::Input(format!("--param {text:?}: NAME=VALUE or NAME=VALUE,VALUE is wanted"));
        let (name, values) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(problem)?;
        let values = values_of(values);
        axes = axes.iter().flat_map(|axis| values.iter().map(move |value| with(axis, name, value))).collect();
    }
    let mut workloads = Vec::new();
    for shape in &args.shape {
        let sizes: Result<Vec<usize>, _> = shape.split([',', 'x']).map(|size| size.trim().parse()).collect();
        let sizes = sizes
            .map_err(|_| CliError::Input(format!("--shape {shape:?}: sizes such as 8,4,64,64 are wanted")))?;
        for (dtype, params) in dtypes.iter().flat_map(|dtype| axes.iter().map(move |params| (dtype, params)))
        {
            workloads.push(json!({
                "name": format!("check_{}", workloads.len()), "op": args.op, "worker": worker_name, "shape": sizes,
                "dtype": dtype, "params": params,
            }));
        }
    }
    // A wrong request is told as what was typed, not as a file that nobody wrote.
    let wrong = |error: &dyn std::fmt::Display| CliError::Input(error.to_string());
    let suite = json!({"schema_version": SCHEMA_VERSION, "name": "check", "seed": 42, "workload": workloads});
    let suite: Suite = serde_json::from_value(suite).map_err(|error| wrong(&error))?;
    let text = suite.to_toml().map_err(|error| wrong(&error))?;
    let parsed = Suite::parse(&text).map_err(|error| wrong(&error))?;
    for spec in &parsed.workloads {
        worker::validate(spec).map_err(|error| wrong(&error))?;
    }
    let path = dir.join("check.toml");
    holdpoint_store::write_text(&path, &text)?;
    suites::runnable(&SuiteArg { suite: path.display().to_string(), device: args.device })
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

/// Whether the answers are right at a workload's shape, or why that cannot be told.
fn correctness(
    suite: &Suite,
    spec: &WorkloadSpec,
    dir: &Path,
) -> Result<Result<Correctness, String>, CliError> {
    let Some(target) = Target::for_workload(spec) else {
        return Ok(Err("a command has no inputs that could be chosen".to_owned()));
    };
    let case = |(values, seed): (Values, u64)| FuzzCase {
        op: spec.op.clone(),
        shape: spec.shape.clone(),
        dtype: spec.dtype.clone(),
        params: spec.params.clone(),
        seed,
        values,
        offset: 0,
        kernel: spec.kernel.clone(),
        declared: target.declared(suite, spec).cloned(),
    };
    target
        .check_size(&case(CASES[0]))
        .map_err(|error| CliError::Input(format!("workload {:?}: {error}", spec.name)))?;
    if !target.takes(&case(CASES[0])) {
        return Ok(Err(format!("holdpoint has no oracle for op {:?} at this shape", spec.op)));
    }
    let mut fuzzer = Fuzzer::new(suite, &spec.worker, target, dir)
        .map_err(|error| CliError::Internal(format!("a file for tensors: {error}")))?;
    let mut worst = Errors::default();
    let mut found = None;
    let mut cases_count = 0;
    for case in CASES.iter().copied().map(case) {
        let Evaluated { finding, errors, skipped } = fuzzer.evaluate(&case);
        if let Some(reason) = skipped {
            return Ok(Err(reason));
        }
        cases_count += 1;
        // The figures are those of values around one; large ones are held against their own size.
        if let Some(errors) = errors.filter(|_| case.values.is_ordinary() || finding.is_some()) {
            worst = worst.worse(errors);
        }
        if finding.is_some() {
            found = finding;
            break;
        }
    }
    Ok(Ok(Correctness {
        passed: found.is_none(),
        max_abs_error: worst.max_abs_err,
        mean_abs_error: worst.mean_abs_err,
        correlation: worst.correlation,
        rel_norm: worst.rel_norm,
        cases_count,
        finding: found,
    }))
}

/// A rate of twice a measured ceiling is no noise, and no ceiling of ours is that far below what a machine can do.
fn is_impossible(placed: &Placed) -> bool {
    let rate = match placed.ceiling.unit {
        CeilingUnit::Gflops => placed.throughput_gflops,
        CeilingUnit::GbPerS => placed.bandwidth_gb_s,
        CeilingUnit::Ms => None,
    };
    rate.is_some_and(|rate| rate > 2.0 * placed.ceiling.value)
}

/// Only wrong answers fail it; how quick it is never does.
fn exit_code(checks: &[KernelCheck]) -> ExitCode {
    let is = |passed: bool| {
        move |check: &KernelCheck| check.correctness.as_ref().is_some_and(|c| c.passed == passed)
    };
    if checks.iter().any(is(false)) {
        ExitCode::Failed
    } else if checks.iter().any(is(true)) {
        ExitCode::Ok
    } else {
        ExitCode::Skipped
    }
}
