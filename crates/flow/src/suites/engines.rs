//! Models: the interpreter that runs their worker, and suites made of flags.

use crate::error::FlowError;
use crate::request::EngineChoice;
use holdpoint_measure::ReadySuite;
use holdpoint_measure::program::WorkerError;
use holdpoint_model::suite::{EngineSpec, WORKER_ENGINE};
use holdpoint_model::{FailureCause, SCHEMA_VERSION, Suite};
use serde_json::json;

/// Names the interpreter where no flag and no suite does.
const PYTHON_VARIABLE: &str = "HOLDPOINT_PYTHON";
/// How long a worker may take over one request: large models load, and TensorRT's engines are built, for minutes.
const TIMEOUT_MS: f64 = 600_000.0;

/// The suite with the cases of its model as workloads.
pub fn expand(mut suite: Suite) -> Result<Suite, FlowError> {
    if let Some(engine) = &mut suite.engine {
        engine.python.get_or_insert_with(python);
    }
    suite.with_engine().map_err(|error| FlowError::Input(error.to_string()))
}

/// The interpreter: the one that was named, or that of the environment that holdpoint is installed in.
fn python() -> String {
    // A path in the variable is relative to the current folder, not to that of a suite.
    let named = std::env::var(PYTHON_VARIABLE).ok().filter(|name| !name.is_empty()).map(|name| {
        let path = std::path::absolute(&name).ok().filter(|_| name.contains('/'));
        path.map_or(name, |path| path.to_string_lossy().into_owned())
    });
    let beside = || {
        let path = std::env::current_exe().ok()?.parent()?.join("python3");
        path.is_file().then(|| path.to_string_lossy().into_owned())
    };
    named.or_else(beside).unwrap_or_else(|| "python3".to_owned())
}

/// A suite of one model, named after its file. Cases that do not fit the model are refused here, before anything is measured.
pub fn suite(choice: &EngineChoice, shape_cases: &[String]) -> Result<ReadySuite, FlowError> {
    let model = &choice.model;
    let name = model.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "_-.".contains(c) { c } else { '_' };
    let name: String = name.trim_start_matches('.').chars().map(plain).collect();
    let engine = EngineSpec {
        input_shapes: choice.input_shapes.clone(),
        shape_cases: shape_cases.to_vec(),
        provider: choice.provider.unwrap_or_default(),
        threads: choice.threads.unwrap_or(1),
        plugins: choice.plugins.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        reference: choice.reference.as_ref().map(|path| path.to_string_lossy().into_owned()),
        check: choice.check,
        python: choice.python.clone(),
        ..EngineSpec::new(model.to_string_lossy())
    };
    let keys = json!({
        "schema_version": SCHEMA_VERSION,
        "name": if name.is_empty() { WORKER_ENGINE.to_owned() } else { name },
        "seed": choice.seed,
        "engine": engine,
        "measure": {"timeout_ms": TIMEOUT_MS},
        "gate": {"metrics": ["p50_ms", "p95_ms"]},
    });
    let suite = Suite::from_json(keys).map_err(|error| FlowError::Input(error.to_string()))?;
    let mut suite = expand(suite)?;
    for workload in &mut suite.workloads {
        workload.iterations = choice.iterations;
    }
    let failed = |error| unusable(&suite, &error);
    let ready = ReadySuite::list(suite.clone()).map_err(failed)?;
    ready.try_start(WORKER_ENGINE).map_err(failed)?;
    Ok(ready)
}

/// Why a model's worker cannot serve its cases.
fn unusable(suite: &Suite, error: &WorkerError) -> FlowError {
    let python = suite.workers.get(WORKER_ENGINE).and_then(|worker| worker.command.first());
    let python = python.map_or("python3", String::as_str);
    let remedy = format!(
        "models are measured by a worker in Python: install the wheel of holdpoint in an environment, and name its interpreter with \
         --python or the variable {PYTHON_VARIABLE} (docs/engines.md)"
    );
    let has_no_package = error.stderr_tail.iter().any(|line| line.contains("No module named holdpoint"));
    FlowError::Input(match error.cause {
        FailureCause::NotStarted => format!("{}; {remedy}", error.detail),
        _ if has_no_package => format!("{python} has no package holdpoint; {remedy}"),
        FailureCause::WorkerError => error.detail.clone(),
        _ => format!("the worker of the model: {}; it says: {}", error.detail, error.stderr_tail.join(" · ")),
    })
}
