//! Baselines from runs: values, spread, tolerances.

use crate::tolerance::{self, RUNS_MIN};
use holdpoint_model::baseline::DEFAULT_RATIO;
use holdpoint_model::suite::OP_INFERENCE;
use holdpoint_model::{Baseline, BaselineMetric, BaselineRun, Current, SCHEMA_VERSION};
use holdpoint_stats as stats;
use std::collections::BTreeMap;

/// A run from which no baseline can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// There is none.
    NoRuns,
    /// A run's status is neither `ok` nor `partial`: a baseline of it would pass everything that is missing.
    NotOk(String),
    /// Runs of different suites, machines, metrics or workloads.
    Mixed(&'static str),
    /// A promoted baseline holds what was promoted, and nothing else.
    Promoted,
    /// A run without metrics: a baseline of it would gate nothing.
    NoMetrics,
    /// A run of a GPU suite with none of the metrics that the originals' template has.
    NoTemplateMetrics,
    /// Not enough runs to know the spread.
    TooFewRuns {
        /// The metric.
        metric: String,
        /// How many there are.
        runs_count: usize,
    },
}

impl std::fmt::Display for RecordError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::NoRuns => f.write_str("no runs were given"),
            Self::NotOk(status) => write!(
                f,
                "the run's status is {status:?}; a baseline needs a run in which everything was measured"
            ),
            Self::Mixed(what) => write!(f, "the runs are of different {what}"),
            Self::Promoted => f.write_str(
                "the baseline was promoted, and names the reports that were; promote them again together with the new \
                 ones: \"holdpoint baseline promote REPORT…\"",
            ),
            Self::NoMetrics => f.write_str("the run has no metrics; a baseline of it would gate nothing"),
            Self::NoTemplateMetrics => f.write_str(
                "the run has none of the metrics of Apex-X's GPU template, such as \
                 benchmarks.tile_ops.tilepack.dispatch.p50_ms; take all it has: \"holdpoint baseline record\"",
            ),
            Self::TooFewRuns { metric, runs_count } => write!(
                f,
                "{metric}: runs in the baseline: {runs_count}; their spread takes at least {RUNS_MIN}: \
                 \"holdpoint baseline record\""
            ),
        }
    }
}

impl std::error::Error for RecordError {}

/// A baseline from runs of one suite on one machine: the value is the median over the runs, the tolerance
/// comes from their differences (the originals' default where there are too few).
pub fn record(runs: &[Current], alarm_rate: f64) -> Result<Baseline, RecordError> {
    let mut baseline = collect(runs)?;
    tolerance::fit(&mut baseline, alarm_rate);
    Ok(baseline)
}

/// A baseline with further runs of the same code.
pub fn append(mut baseline: Baseline, runs: &[Current], alarm_rate: f64) -> Result<Baseline, RecordError> {
    let new = collect(runs)?;
    if baseline.promoted.is_some() {
        return Err(RecordError::Promoted);
    }
    let fingerprint = |b: &Baseline| b.machine.as_ref().map(|machine| machine.fingerprint.clone());
    let commits = |b: &Baseline| b.runs.iter().map(|run| run.revision.clone()).collect::<Vec<_>>();
    let identities = |b: &Baseline| b.metrics.values().map(|m| m.identity.clone()).collect::<Vec<_>>();
    let differences = [
        ("suites", baseline.suite != new.suite),
        ("machines", fingerprint(&baseline) != fingerprint(&new)),
        ("status", baseline.required_status() != new.required_status()),
        (ENVIRONMENTS, baseline.environment_lock != new.environment_lock),
        ("metrics", !baseline.metrics.keys().eq(new.metrics.keys())),
        (WORKLOADS, identities(&baseline) != identities(&new)),
        ("revisions", commits(&baseline).first() != commits(&new).first()),
    ];
    if let Some((what, _)) = differences.into_iter().find(|(_, differ)| *differ) {
        return Err(RecordError::Mixed(what));
    }
    baseline.runs.extend(new.runs);
    for (metric, new) in baseline.metrics.values_mut().zip(new.metrics.into_values()) {
        metric.runs_ms.extend(new.runs_ms);
        metric.slow_stretches.extend(new.slow_stretches);
        metric.value_ms = stats::median(&metric.runs_ms).unwrap_or(metric.value_ms);
    }
    tolerance::fit(&mut baseline, alarm_rate);
    Ok(baseline)
}

/// The metrics that Apex-X's GPU template gates: the dispatches and the end-to-end paths, not the references.
const GPU_TEMPLATE: [&str; 12] = [
    "benchmarks.end_to_end_infer.torch_eager.p50_ms",
    "benchmarks.end_to_end_infer.torch_eager.p95_ms",
    "benchmarks.end_to_end_infer.torch_triton_fastpath.p50_ms",
    "benchmarks.end_to_end_infer.torch_triton_fastpath.p95_ms",
    "benchmarks.tile_ops.fusion_gate.dispatch.p50_ms",
    "benchmarks.tile_ops.fusion_gate.dispatch.p95_ms",
    "benchmarks.tile_ops.tilepack.dispatch.p50_ms",
    "benchmarks.tile_ops.tilepack.dispatch.p95_ms",
    "benchmarks.tile_ops.tileunpack.dispatch.p50_ms",
    "benchmarks.tile_ops.tileunpack.dispatch.p95_ms",
    "benchmarks.tilessm.triton_dispatch.p50_ms",
    "benchmarks.tilessm.triton_dispatch.p95_ms",
];
/// The originals' advice with it.
const GPU_TEMPLATE_NOTES: &str = "GPU baseline template; regenerate on the target self-hosted GPU runner and \
                                  adjust tolerances for stable CI.";

/// The originals' advice with that of a sweep.
const SWEEP_TEMPLATE_NOTES: &str = "TensorRT shape-sweep baseline template; regenerate on the target deployment GPU runner with a \
                                    production engine and shape-case set.";

/// A baseline from runs with the originals' template tolerances, wide enough for anything. Of places in the GPU report it has
/// those that the originals' template has, as far as the runs do.
pub fn template(runs: &[Current]) -> Result<Baseline, RecordError> {
    let mut baseline = collect(runs)?;
    if baseline.metrics.keys().any(|name| is_place(name)) {
        baseline.metrics.retain(|name, _| !is_place(name) || GPU_TEMPLATE.contains(&name.as_str()));
        baseline.baseline_notes = GPU_TEMPLATE_NOTES.to_owned();
    }
    if baseline.metrics.is_empty() {
        return Err(RecordError::NoTemplateMetrics);
    }
    if baseline.metrics.keys().all(|name| is_of_sweep(name)) {
        baseline.baseline_notes = SWEEP_TEMPLATE_NOTES.to_owned();
    }
    for (name, metric) in &mut baseline.metrics {
        let is_model = metric.identity.as_ref().is_some_and(|identity| identity.op == OP_INFERENCE);
        let name = if is_model { &format!("case.{name}") } else { name };
        (metric.max_regression_ratio, metric.max_regression_abs_ms) = template_tolerance(name);
    }
    Ok(baseline)
}

/// Sets every tolerance from the measured differences between runs.
pub fn fit_tolerances(baseline: &mut Baseline, alarm_rate: f64) -> Result<(), RecordError> {
    // All or nothing: a baseline with some tolerances wide and some tight would look fitted.
    if let Some((name, metric)) = baseline.metrics.iter().find(|(_, metric)| metric.runs_ms.len() < RUNS_MIN)
    {
        return Err(RecordError::TooFewRuns { metric: name.clone(), runs_count: metric.runs_ms.len() });
    }
    tolerance::fit(baseline, alarm_rate);
    Ok(())
}

/// Whether a metric is a place in the originals' GPU report.
fn is_place(metric: &str) -> bool {
    metric.starts_with("benchmarks.")
}

/// Whether a metric is one of the originals' sweep of a model.
fn is_of_sweep(metric: &str) -> bool {
    metric.starts_with("case.") || metric.starts_with("summary.")
}

/// The originals' three templates, told apart by how each names its metrics.
fn template_tolerance(metric: &str) -> (f64, f64) {
    let is_p95 = metric.ends_with("p95_ms");
    if metric.contains("end_to_end_infer") {
        (0.5, if is_p95 { 2.0 } else { 1.0 })
    } else if metric.starts_with("summary.") {
        (0.5, 1.0)
    } else if is_place(metric) || metric.starts_with("case.") {
        if is_p95 { (0.8, 0.5) } else { (0.6, 0.25) }
    } else if metric.contains("infer_p95") {
        (1.0, 5.0)
    } else {
        (0.75, 2.0)
    }
}

const ENVIRONMENTS: &str = "environments (precision, determinism, threads, seeds, versions)";
const WORKLOADS: &str = "workloads under the same names";

fn collect(runs: &[Current]) -> Result<Baseline, RecordError> {
    let first = runs.first().ok_or(RecordError::NoRuns)?;
    for run in runs {
        // What could not run here is no part of the baseline; a run must then be as partial as that.
        if let Some(status) =
            run.status.as_ref().filter(|status| !["ok", "partial"].contains(&status.as_str()))
        {
            return Err(RecordError::NotOk(status.clone()));
        }
        if run.status != first.status {
            return Err(RecordError::Mixed("status"));
        }
        if run.suite != first.suite {
            return Err(RecordError::Mixed("suites"));
        }
        let fingerprint = |run: &Current| run.machine.as_ref().map(|m| m.fingerprint.clone());
        if fingerprint(run) != fingerprint(first) {
            return Err(RecordError::Mixed("machines"));
        }
        if run.environment_lock != first.environment_lock {
            return Err(RecordError::Mixed(ENVIRONMENTS));
        }
        if !run.metrics.keys().eq(first.metrics.keys()) {
            return Err(RecordError::Mixed("metrics"));
        }
        if run.metrics.values().map(|m| &m.identity).ne(first.metrics.values().map(|m| &m.identity)) {
            return Err(RecordError::Mixed(WORKLOADS));
        }
    }
    if first.metrics.is_empty() {
        return Err(RecordError::NoMetrics);
    }
    Ok(Baseline {
        schema_version: SCHEMA_VERSION,
        suite: first.suite.clone(),
        baseline_notes: String::new(),
        required_status: Some(first.status.clone().unwrap_or_else(|| "ok".to_owned())),
        machine: first.machine.clone(),
        environment_lock: first.environment_lock.clone(),
        alarm_rate: None,
        runs: runs
            .iter()
            .map(|run| BaselineRun {
                timestamp_utc: run.timestamp_utc.clone().unwrap_or_default(),
                revision: run.revision.clone(),
                others_cpu: run.others_cpu,
            })
            .collect(),
        promoted: None,
        metrics: metrics(runs, first),
    })
}

/// The metrics over all runs, which have the same ones.
fn metrics(runs: &[Current], first: &Current) -> BTreeMap<String, BaselineMetric> {
    let metric = |(name, value): (&String, &holdpoint_model::MetricValue)| {
        let values = runs.iter().map(|run| Some(run.metrics.get(name)?.value_ms));
        let runs_ms: Vec<f64> = values.collect::<Option<_>>()?;
        let metric = BaselineMetric {
            value_ms: stats::median(&runs_ms)?,
            max_regression_ratio: DEFAULT_RATIO,
            max_regression_abs_ms: 0.0,
            workload: value.workload.clone(),
            identity: value.identity.clone(),
            answer_checked: value.answer_checked,
            spread: stats::spread(&runs_ms),
            smallest_visible_slowdown: None,
            noise: None,
            slow_stretches: runs.iter().filter_map(|run| run.metrics.get(name)?.slow_stretches).collect(),
            runs_ms,
        };
        Some((name.clone(), metric))
    };
    first.metrics.iter().filter_map(metric).collect()
}
