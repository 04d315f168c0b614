//! Reading a suite, and what makes no sense in one.

use super::{
    Cache, MeasurePlan, Metrics, Suite, TIMER_HOST, TIMERS_CUDA, Variant, WORKER_BUILTIN, WORKER_COMMAND,
    WORKER_CUDA, WorkloadSpec,
};
use crate::limits::{NAME_CHARS_MAX, WORKLOADS_MAX};
use crate::toml_file::{TomlError, invalid, parse_shown};
use serde_json::Value;
use std::collections::HashSet;

impl Suite {
    /// Reads and checks a suite.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        Self::parse_named(text, "")
    }

    /// Reads and checks a suite, which has this name where it gives none.
    pub fn parse_named(text: &str, name: &str) -> Result<Self, TomlError> {
        let mut suite: Self = parse_shown(text)?;
        if suite.name.is_empty() {
            suite.name = name.to_owned();
        }
        let suite = suite.completed()?;
        if !suite.has_listed_workloads() {
            Self::check_gated(&[&suite])?;
        }
        Ok(suite)
    }

    /// Checks that every workload with a tolerance of its own is one that one of these sides has: otherwise a name with a typing error
    /// would have no effect.
    pub fn check_gated(sides: &[&Self]) -> Result<(), TomlError> {
        let is_known =
            |name: &str| sides.iter().any(|side| side.workloads.iter().any(|workload| workload.name == name));
        let mut named =
            sides.iter().filter(|side| side.only.is_none()).flat_map(|side| side.gate.workloads.keys());
        match named.find(|name| !is_known(name)) {
            Some(name) => invalid("gate.workloads", format!("the suite has no workload {name:?}")),
            None => Ok(()),
        }
    }

    /// The suite with these benchmarks of its harness as workloads.
    pub fn with_benches(mut self, benches: Vec<WorkloadSpec>) -> Result<Self, TomlError> {
        self.workloads.extend(benches);
        self.harness = None;
        self.completed()
    }

    /// The suite with these workloads of a worker that lists them.
    pub fn with_listed(mut self, worker: &str, listed: Vec<WorkloadSpec>) -> Result<Self, TomlError> {
        self.workloads.extend(listed);
        if let Some(worker) = self.workers.get_mut(worker) {
            worker.all_workloads = false;
        }
        self.completed()
    }

    /// Makes a suite of the keys that its file would have.
    pub fn from_json(keys: Value) -> Result<Self, TomlError> {
        let suite: Self =
            serde_json::from_value(keys).map_err(|error| TomlError::Syntax(error.to_string()))?;
        suite.completed()
    }

    pub(super) fn completed(mut self) -> Result<Self, TomlError> {
        let metrics = self.gate.metrics.clone().unwrap_or_else(Metrics::time);
        for workload in &mut self.workloads {
            fill_defaults(workload, &metrics);
            workload.declared =
                self.ops.get(&workload.op).filter(|_| workload.worker == WORKER_CUDA).cloned();
        }
        self.check()?;
        Ok(self)
    }

    /// The text of a suite's file.
    pub fn to_toml(&self) -> Result<String, TomlError> {
        toml::to_string(self).map_err(|error| TomlError::Syntax(error.to_string()))
    }

    fn check(&self) -> Result<(), TomlError> {
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
        self.check_engine()?;
        if self.workloads.is_empty() && !self.has_listed_workloads() {
            return invalid(
                "workload",
                "the suite has none; add a [[workload]] table, a [harness], an [engine], or a worker with `all_workloads = true`",
            );
        }
        if self.workloads.len() > WORKLOADS_MAX {
            return invalid(
                "workload",
                format!("{} workloads, at most {WORKLOADS_MAX}", self.workloads.len()),
            );
        }
        self.measure.check()?;
        self.check_workers()?;
        self.check_fuzz()?;
        self.gate.check()?;
        self.history.as_ref().map_or(Ok(()), |history| history.check())?;
        let (mut seen, mut metrics_seen) = (HashSet::new(), HashSet::new());
        for (index, workload) in self.workloads.iter().enumerate() {
            let place = format!("workload {} ({:?})", index + 1, workload.name);
            check_name(&place, &workload.name)?;
            if !seen.insert(&workload.name) {
                return invalid(&place, "the name is used twice; names must be unique");
            }
            self.check_workload(&place, workload)?;
            for metric in workload.metrics.0.keys() {
                check_name(&place, metric)?;
                let metric = workload.metric_name(metric);
                if metrics_seen.contains(&metric) {
                    return invalid(
                        &place,
                        format!("metric {metric:?} is another workload's too; rename one"),
                    );
                }
                metrics_seen.insert(metric);
            }
        }
        Ok(())
    }

    fn check_workers(&self) -> Result<(), TomlError> {
        if let Some(build) = &self.build {
            if build.command.is_empty() {
                return invalid("build", "command is empty; give the program and its arguments");
            }
            check_ms("build", "timeout_s", build.timeout_s)?;
        }
        for (name, worker) in &self.workers {
            let place = format!("workers.{name}");
            check_name(&place, name)?;
            if name == WORKER_COMMAND {
                return invalid(&place, "this name is taken by holdpoint itself; choose another");
            }
            if worker.command.is_empty() {
                return invalid(&place, "command is empty; give the program and its arguments");
            }
        }
        for (name, op) in &self.ops {
            let place = format!("ops.{name}");
            check_name(&place, name)?;
            op.check().or_else(|problem| invalid(&place, problem))?;
            if !self.workers.contains_key(&op.oracle) {
                return invalid(
                    &place,
                    format!("oracle {:?} is not declared; add [workers.{}]", op.oracle, op.oracle),
                );
            }
        }
        Ok(())
    }

    fn check_fuzz(&self) -> Result<(), TomlError> {
        for (op, limits) in &self.fuzz {
            let place = format!("fuzz.{op}");
            let Some(workload) = self.workloads.iter().find(|workload| workload.op == *op) else {
                return invalid(&place, "no workload of the suite has this op");
            };
            limits.check(workload.shape.len()).or_else(|problem| invalid(&place, problem))?;
        }
        Ok(())
    }

    fn check_workload(&self, place: &str, workload: &WorkloadSpec) -> Result<(), TomlError> {
        let is_command = workload.worker == WORKER_COMMAND;
        if is_command == workload.command.is_empty() {
            return invalid(place, "`command = [program, arguments…]` and worker \"command\" go together");
        }
        if workload.op.is_empty() {
            return invalid(place, "needs an `op`, or a `command`");
        }
        let of_commands = [
            ("expect_stdout", workload.expect_stdout.is_some()),
            ("setup", !workload.setup.is_empty()),
            ("prepare", !workload.prepare.is_empty()),
            ("server", !workload.server.is_empty()),
            ("stdin", workload.stdin.is_some()),
            ("env", !workload.env.is_empty()),
        ];
        if let Some((key, _)) = of_commands.iter().find(|(_, is_given)| *is_given && !is_command) {
            return invalid(place, format!("`{key}` is for `command` workloads"));
        }
        let is_bad = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if let Some((name, _)) = workload.env.iter().find(is_bad) {
            return invalid(place, format!("env: {name:?} cannot be an environment variable"));
        }
        let is_built_in = [WORKER_BUILTIN, WORKER_CUDA].contains(&workload.worker.as_str());
        if !is_command && !is_built_in && !self.workers.contains_key(&workload.worker) {
            return invalid(
                place,
                format!("worker {:?} is not declared; add [workers.{}]", workload.worker, workload.worker),
            );
        }
        let is_cuda = workload.worker == WORKER_CUDA;
        if !is_cuda && (workload.timer.is_some() || workload.cache != Cache::Warm) {
            return invalid(place, "`timer` and `cache` are for workloads of worker \"cuda\"");
        }
        if !TIMERS_CUDA.contains(&workload.timer()) && is_cuda {
            let what =
                format!("timer {:?} is not known; choose from {}", workload.timer(), TIMERS_CUDA.join(", "));
            return invalid(place, what);
        }
        if workload.cache == Cache::Cold && workload.timer() == TIMER_HOST {
            return invalid(place, "a cold cache goes with a timer on the device, not with host_monotonic");
        }
        if let Some(kernel) = &workload.kernel {
            if !is_cuda || workload.variant != Variant::Fast {
                return invalid(
                    place,
                    "`kernel` is for worker \"cuda\", and takes the place of its fast variant",
                );
            }
            kernel.check().or_else(|problem| invalid(place, problem))?;
        }
        workload.metrics.check(&workload.worker).or_else(|problem| invalid(place, problem))?;
        if workload.iterations == Some(0) {
            return invalid(place, "iterations must be > 0");
        }
        if let Some(budget_ms) = workload.time_budget_ms {
            check_ms(place, "time_budget_ms", budget_ms)?;
        }
        if let Some(check) = workload.check
            && !(check.atol >= 0.0 && check.rtol >= 0.0 && check.atol.is_finite() && check.rtol.is_finite())
        {
            return invalid(place, "check.atol and check.rtol must be finite and not negative");
        }
        Ok(())
    }
}

/// Fills in values that follow from the rest of the table.
fn fill_defaults(workload: &mut WorkloadSpec, metrics: &Metrics) {
    workload.metrics.complete(metrics);
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
    fn check(&self) -> Result<(), TomlError> {
        if self.rounds_min == 0 || self.rounds_max < self.rounds_min || self.rounds_max > ROUNDS_MAX {
            return invalid("measure", format!("needs 1 <= rounds_min <= rounds_max <= {ROUNDS_MAX}"));
        }
        for (name, value) in [
            ("round_ms", self.round_ms),
            ("time_budget_ms", self.time_budget_ms),
            ("timeout_ms", self.timeout_ms),
        ] {
            check_ms("measure", name, value)?;
        }
        if !(0.0..=MS_MAX).contains(&self.warmup_ms_max) {
            return invalid("measure", "warmup_ms_max must be 0 or more");
        }
        if !(self.target_width > 0.0 && self.target_width <= 1.0) {
            return invalid("measure", "target_width is a share of the median: above 0, at most 1");
        }
        Ok(())
    }
}

/// More rounds than anybody waits for.
const ROUNDS_MAX: u32 = 100_000;
/// A day: whoever asks for longer has made a slip.
const MS_MAX: f64 = 86_400_000.0;

fn check_ms(place: &str, name: &str, value: f64) -> Result<(), TomlError> {
    if value > 0.0 && value <= MS_MAX {
        return Ok(());
    }
    invalid(place, format!("{name} is {value}; it must be above 0 and at most a day"))
}

/// Names end up in file names, metric names and tables.
fn check_name(place: &str, name: &str) -> Result<(), TomlError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::TIMER_PROCESS;

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
            (
                format!(
                    "{HEAD}[[workload]]\nname = \"a\"\ncommand = [\"x\"]\nmetrics = [\"cpu_p50_ms\"]\n\
                     [[workload]]\nname = \"a_cpu\"\ncommand = [\"x\"]\n"
                ),
                "metric \"a_cpu_p50_ms\" is another workload's too",
            ),
            (format!("{HEAD}[measure]\nrounds_max = 4294967295\n{workload}"), "rounds_max <= 100000"),
            (format!("{HEAD}{workload}metrics = [\"cpu_p50_ms\"]"), "cpu_p50_ms is for commands"),
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
