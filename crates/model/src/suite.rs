//! Suites: workloads as data, read from TOML.

use crate::limits::{NAME_CHARS_MAX, WORKLOADS_MAX, clean_text};
use crate::report::METRICS;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};

/// A suite file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// Version of this format.
    pub schema_version: u32,
    /// Name of the suite; baselines and trends are kept by it.
    pub name: String,
    /// What the suite is for.
    #[serde(default)]
    pub description: String,
    /// Seed of all inputs, unless a workload has its own.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How to measure, for all workloads that do not say otherwise.
    #[serde(default)]
    pub measure: MeasurePlan,
    /// Programs that speak the worker protocol, by name.
    #[serde(default)]
    pub workers: BTreeMap<String, WorkerSpec>,
    /// The workloads, in order.
    #[serde(default, rename = "workload")]
    pub workloads: Vec<WorkloadSpec>,
}

/// The seeds' default.
fn default_seed() -> u64 {
    123
}

/// A program that speaks the worker protocol on stdin and stdout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkerSpec {
    /// Program and arguments.
    pub command: Vec<String>,
}

/// When a workload has been measured enough.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MeasurePlan {
    /// Rounds that are always taken.
    pub rounds_min: u32,
    /// Rounds after which measuring ends.
    pub rounds_max: u32,
    /// How long one round of one workload aims to last.
    pub round_ms: f64,
    /// Stop once the 95 % interval of the median is this narrow, as a share of the median.
    pub target_width: f64,
    /// Cap on the measuring time of one workload, warm-up not counted.
    pub time_budget_ms: f64,
    /// Cap on warm-up.
    pub warmup_ms_max: f64,
    /// How long a worker may take over one request.
    pub timeout_ms: f64,
}

impl Default for MeasurePlan {
    fn default() -> Self {
        Self {
            rounds_min: 10,
            rounds_max: 400,
            round_ms: 5.0,
            target_width: 0.01,
            time_budget_ms: 1_000.0,
            warmup_ms_max: 300.0,
            timeout_ms: 60_000.0,
        }
    }
}

/// One workload of a suite: what to run. It does not run itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Unique within the suite; metrics are named after it.
    pub name: String,
    /// What to compute; `command` when `command` is given.
    #[serde(default)]
    pub op: String,
    /// Which worker runs it: `builtin` (default), `command`, or a name from `[workers]`.
    #[serde(default)]
    pub worker: String,
    /// Program and arguments of a `command` workload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// What a `command` workload must print on stdout; its exit status must always be 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_stdout: Option<String>,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    /// Element type.
    #[serde(default = "default_dtype")]
    pub dtype: String,
    /// Which implementation of a built-in op is timed.
    #[serde(default)]
    pub variant: Variant,
    /// What else the op wants to know.
    #[serde(default)]
    pub params: Map<String, Value>,
    /// Seed of the inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The metrics to gate: `p50_ms`, `p95_ms`, `p99_ms`, `mean_ms`, `min_ms`, `cpu_p50_ms`.
    #[serde(default = "default_metrics")]
    pub metrics: Vec<String>,
    /// Exactly this many samples, instead of measuring until the interval is narrow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Cap on the measuring time of this workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_budget_ms: Option<f64>,
    /// How the answer is checked, where the op's own tolerance does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<CheckSpec>,
    /// Work per call, for throughput; built-in ops declare their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
}

fn default_dtype() -> String {
    "f32".to_owned()
}

fn default_metrics() -> Vec<String> {
    vec!["p50_ms".to_owned()]
}

/// Which implementation of a built-in op is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Variant {
    /// The quick one.
    #[default]
    Fast,
    /// The plain oracle itself.
    Reference,
}

/// Tolerance of the answer check: right when `|got - want| <= atol + rtol·|want|`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckSpec {
    /// Absolute tolerance.
    pub atol: f64,
    /// Relative tolerance.
    pub rtol: f64,
}

/// Work of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Work {
    /// Bytes that must move: each input read once, each output written once.
    pub bytes: u64,
    /// Floating-point operations.
    pub flops: u64,
    /// Items in the workload's own unit.
    pub items: u64,
    /// That unit, plural: `tiles`, `frames`.
    pub item: String,
}

/// What makes two measurements the same workload: only such times may be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// What was computed.
    pub op: String,
    /// Shape of the main input.
    #[serde(default)]
    pub shape: Vec<usize>,
    /// Element type.
    #[serde(default)]
    pub dtype: String,
    /// The clock and what it enclosed: `host_monotonic`, `process_wall`, …
    pub timer: String,
    /// Everything else that the op was told.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
}

/// Clock reads around calls in the same process.
pub const TIMER_HOST: &str = "host_monotonic";
/// Clock reads around the start and end of a process.
pub const TIMER_PROCESS: &str = "process_wall";
/// Name of the worker that holds the built-in ops.
pub const WORKER_BUILTIN: &str = "builtin";
/// Name of the worker that runs programs.
pub const WORKER_COMMAND: &str = "command";

impl WorkloadSpec {
    /// The identity of this workload when timed with `timer`.
    #[must_use]
    pub fn identity(&self, timer: &str) -> Identity {
        let mut params = self.params.clone();
        if self.variant == Variant::Reference {
            params.insert("variant".to_owned(), Value::from("reference"));
        }
        if !self.command.is_empty() {
            params.insert("command".to_owned(), Value::from(self.command.clone()));
        }
        Identity {
            op: self.op.clone(),
            shape: self.shape.clone(),
            dtype: self.dtype.clone(),
            timer: timer.to_owned(),
            params,
        }
    }

    /// The clock that the suite promises for this workload.
    #[must_use]
    pub fn timer(&self) -> &'static str {
        if self.worker == WORKER_COMMAND { TIMER_PROCESS } else { TIMER_HOST }
    }

    /// The flat name of one of this workload's metrics.
    #[must_use]
    pub fn metric_name(&self, metric: &str) -> String {
        format!("{}_{metric}", self.name)
    }
}

/// A suite file that cannot be used.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum SuiteError {
    /// Not TOML, or not of the suite's form.
    #[error("{0}")]
    Syntax(String),
    /// A value that makes no sense.
    #[error("{place}: {what}")]
    Invalid {
        /// Where in the file.
        place: String,
        /// What is wrong and what would be right.
        what: String,
    },
}

impl Suite {
    /// Reads and checks a suite.
    ///
    /// # Errors
    /// When the text is not TOML, not of the suite's form, or holds values that make no sense.
    pub fn parse(text: &str) -> Result<Self, SuiteError> {
        let mut suite: Self =
            toml::from_str(text).map_err(|error| SuiteError::Syntax(syntax_error(text, &error)))?;
        for workload in &mut suite.workloads {
            fill_defaults(workload);
        }
        suite.check()?;
        Ok(suite)
    }

    /// The seed of a workload's inputs.
    #[must_use]
    pub fn seed_of(&self, workload: &WorkloadSpec) -> u64 {
        workload.seed.unwrap_or(self.seed)
    }

    fn check(&self) -> Result<(), SuiteError> {
        if self.schema_version != crate::SCHEMA_VERSION {
            return invalid(
                "schema_version",
                format!(
                    "{} is not known here; this holdpoint reads {}",
                    self.schema_version,
                    crate::SCHEMA_VERSION
                ),
            );
        }
        check_name("name", &self.name)?;
        if self.workloads.is_empty() {
            return invalid("workload", "the suite has none; add a [[workload]] table".to_owned());
        }
        if self.workloads.len() > WORKLOADS_MAX {
            return invalid(
                "workload",
                format!("{} workloads, at most {WORKLOADS_MAX}", self.workloads.len()),
            );
        }
        self.measure.check()?;
        self.check_workers()?;
        let mut seen = HashSet::new();
        for (index, workload) in self.workloads.iter().enumerate() {
            let place = format!("workload {} ({:?})", index + 1, workload.name);
            check_name(&place, &workload.name)?;
            if !seen.insert(&workload.name) {
                return invalid(&place, "the name is used twice; names must be unique".to_owned());
            }
            self.check_workload(&place, workload)?;
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), SuiteError> {
        for (name, worker) in &self.workers {
            let place = format!("workers.{name}");
            check_name(&place, name)?;
            if name == WORKER_BUILTIN || name == WORKER_COMMAND {
                return invalid(&place, "this name is taken by holdpoint itself; choose another".to_owned());
            }
            if worker.command.is_empty() {
                return invalid(&place, "command is empty; give the program and its arguments".to_owned());
            }
        }
        Ok(())
    }

    fn check_workload(&self, place: &str, workload: &WorkloadSpec) -> Result<(), SuiteError> {
        let is_command = workload.worker == WORKER_COMMAND;
        if is_command == workload.command.is_empty() {
            return invalid(
                place,
                "`command = [program, arguments…]` and worker \"command\" go together".to_owned(),
            );
        }
        if workload.op.is_empty() {
            return invalid(place, "needs an `op`, or a `command`".to_owned());
        }
        if workload.expect_stdout.is_some() && !is_command {
            return invalid(place, "`expect_stdout` is for `command` workloads".to_owned());
        }
        if !is_command && workload.worker != WORKER_BUILTIN && !self.workers.contains_key(&workload.worker) {
            return invalid(
                place,
                format!("worker {:?} is not declared; add [workers.{}]", workload.worker, workload.worker),
            );
        }
        if workload.metrics.is_empty() {
            return invalid(place, format!("metrics is empty; choose from {}", METRICS.join(", ")));
        }
        let mut metrics_seen = HashSet::new();
        for metric in &workload.metrics {
            if !METRICS.contains(&metric.as_str()) {
                return invalid(
                    place,
                    format!("metric {metric:?} is not known; choose from {}", METRICS.join(", ")),
                );
            }
            if metric == "cpu_p50_ms" && workload.worker == WORKER_BUILTIN {
                return invalid(
                    place,
                    "cpu_p50_ms is for commands, and for workers that report CPU time".to_owned(),
                );
            }
            if !metrics_seen.insert(metric) {
                return invalid(place, format!("metric {metric:?} is named twice"));
            }
        }
        if workload.iterations == Some(0) {
            return invalid(place, "iterations must be > 0".to_owned());
        }
        if let Some(budget_ms) = workload.time_budget_ms {
            check_ms(place, "time_budget_ms", budget_ms)?;
        }
        if let Some(check) = workload.check
            && !(check.atol >= 0.0 && check.rtol >= 0.0 && check.atol.is_finite() && check.rtol.is_finite())
        {
            return invalid(place, "check.atol and check.rtol must be finite and not negative".to_owned());
        }
        Ok(())
    }
}

/// What is wrong, in one line that names the place.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map_or_else(String::new, |before| {
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!(" at line {line} column {column}")
    });
    let lines: Vec<String> = error.message().lines().map(clean_text).collect();
    format!("TOML parse error{place}: {}", lines.join("; "))
}

/// What follows from the rest of the table need not be written.
fn fill_defaults(workload: &mut WorkloadSpec) {
    if workload.worker.is_empty() {
        workload.worker =
            if workload.command.is_empty() { WORKER_BUILTIN } else { WORKER_COMMAND }.to_owned();
    }
    if workload.op.is_empty() && !workload.command.is_empty() {
        workload.op = WORKER_COMMAND.to_owned();
    }
    if workload.worker == WORKER_COMMAND {
        workload.dtype = String::new();
    }
}

impl MeasurePlan {
    fn check(&self) -> Result<(), SuiteError> {
        if self.rounds_min == 0 || self.rounds_max < self.rounds_min {
            return invalid("measure", "needs 1 <= rounds_min <= rounds_max".to_owned());
        }
        for (name, value) in [
            ("round_ms", self.round_ms),
            ("time_budget_ms", self.time_budget_ms),
            ("timeout_ms", self.timeout_ms),
        ] {
            check_ms("measure", name, value)?;
        }
        if !(0.0..=MS_MAX).contains(&self.warmup_ms_max) {
            return invalid("measure", "warmup_ms_max must be 0 or more".to_owned());
        }
        if !(self.target_width > 0.0 && self.target_width <= 1.0) {
            return invalid(
                "measure",
                "target_width is a share of the median: above 0, at most 1".to_owned(),
            );
        }
        Ok(())
    }
}

/// A day: whoever asks for longer has made a slip.
const MS_MAX: f64 = 86_400_000.0;

fn check_ms(place: &str, name: &str, value: f64) -> Result<(), SuiteError> {
    if value > 0.0 && value <= MS_MAX {
        return Ok(());
    }
    invalid(place, format!("{name} is {value}; it must be above 0 and at most a day"))
}

/// Names end up in file names, metric names and tables.
fn check_name(place: &str, name: &str) -> Result<(), SuiteError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && name.len() <= NAME_CHARS_MAX && name.chars().all(allowed) && !name.starts_with('.')
    {
        return Ok(());
    }
    invalid(
        place,
        format!("{name:?} is not a usable name: letters, digits, '_', '-', '.', at most {NAME_CHARS_MAX}"),
    )
}

fn invalid<T>(place: &str, what: String) -> Result<T, SuiteError> {
    Err(SuiteError::Invalid { place: clean_text(place), what: clean_text(&what) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Suite::parse(text).unwrap_err().to_string()
    }

    const HEAD: &str = "schema_version = 1\nname = \"mine\"\n";

    #[test]
    fn a_command_is_all_a_first_suite_needs() {
        let suite = Suite::parse(&format!("{HEAD}[[workload]]\nname = \"ls\"\ncommand = [\"ls\", \"-l\"]\n"))
            .unwrap();
        let workload = &suite.workloads[0];
        assert_eq!((workload.op.as_str(), workload.worker.as_str()), ("command", "command"));
        assert_eq!(workload.metric_name("p50_ms"), "ls_p50_ms");
        assert_eq!(workload.timer(), TIMER_PROCESS);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let workload = "[[workload]]\nname = \"a\"\nop = \"x\"\n";
        for (text, expected) in [
            (HEAD.to_owned(), "the suite has none"),
            ("schema_version = 9\nname = \"a\"".to_owned(), "9 is not known here"),
            (format!("{HEAD}{workload}{workload}"), "workload 2 (\"a\"): the name is used twice"),
            (format!("{HEAD}{workload}metrics = [\"p51\"]"), "metric \"p51\" is not known"),
            (format!("{HEAD}{workload}worker = \"gpu\""), "worker \"gpu\" is not declared"),
            (format!("{HEAD}{workload}iterations = 0"), "iterations must be > 0"),
            (format!("{HEAD}{workload}time_budget_ms = nan"), "must be above 0"),
            (format!("{HEAD}{workload}typo = 1"), "unknown field `typo`"),
            (format!("{HEAD}{workload}op = \"y\""), "duplicate key"),
            (format!("{HEAD}[[workload]]\nname = \"../a\"\nop = \"x\""), "not a usable name"),
            (format!("{HEAD}[measure]\nrounds_min = 0\n{workload}"), "rounds_min"),
        ] {
            let error = error_of(&text);
            assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        }
    }
}
