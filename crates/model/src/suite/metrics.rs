//! The metrics of a workload that are gated: a list of names, or a table with a tolerance for each.

use super::Task;
use crate::metric::{Better, Exact, METRIC_TIME, METRICS, Metric, MetricPlan, SIDE_METRICS};
use crate::waiver::LIMIT_MAX;
use indexmap::IndexMap;
use regex_lite::Regex;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Metrics by name, in order. A name without a tolerance is gated with a stored baseline only.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
pub struct Metrics(#[schemars(with = "Form")] pub IndexMap<String, MetricSpec>);

/// How one metric is measured and judged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetricSpec {
    /// How much worse it may become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<Tolerance>,
    /// Where a command prints the number: a regular expression, whose last match counts, and in it the first group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The same where it prints JSON: keys and positions, with dots between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Whether more of a printed number is better.
    #[serde(skip_serializing_if = "Better::is_lower")]
    pub better: Better,
    /// Tool that counts `instructions`: `perf` (default), the kernel's counters, or `valgrind`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<CountedBy>,
}

/// A program that counts instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountedBy {
    #[default]
    Perf,
    Valgrind,
}

/// How much worse something may be, written as `5%`; `0%` is for what is exact.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
pub struct Tolerance(#[schemars(with = "String")] f64);

/// As a suite has it.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema of what a visitor reads")]
enum Form {
    /// Names of metrics that a stored baseline gates.
    Names(Vec<String>),
    /// A tolerance for each, or a table where there is more to say.
    Table(BTreeMap<String, Setting>),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "the schema of what a visitor reads")]
enum Setting {
    Tolerance(Tolerance),
    Full(MetricSpec),
}

impl Metrics {
    /// The median time alone.
    pub(super) fn time() -> Self {
        Self(IndexMap::from([(METRIC_TIME.to_owned(), MetricSpec::default())]))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it is a table: it then says something of a metric.
    fn is_table(&self) -> bool {
        self.0.values().any(|spec| *spec != MetricSpec::default())
    }

    /// Completes a workload's metrics by the suite's. A list stands for itself; a table is added to the suite's, and to the median.
    pub(super) fn complete(&mut self, of_suite: &Self) {
        if self.is_empty() {
            self.clone_from(of_suite);
        } else if self.is_table() {
            let mut all = of_suite.0.clone();
            all.extend(std::mem::take(&mut self.0));
            self.0 = all;
        }
        if self.is_table() && !self.0.contains_key(METRIC_TIME) {
            self.0.shift_insert(0, METRIC_TIME.to_owned(), MetricSpec::default());
        }
    }

    /// Those that a run has and a stored baseline can gate.
    pub fn of_runs(&self) -> Vec<String> {
        self.0.keys().filter(|name| METRICS.contains(&name.as_str())).cloned().collect()
    }

    /// Those that two sides are compared by, beside the median.
    pub fn of_sides(&self) -> BTreeMap<String, MetricPlan> {
        let plan = |(name, spec): (&String, &MetricSpec)| {
            let better = match Metric::from_name(name) {
                Metric::Throughput => Better::Higher,
                _ => spec.better,
            };
            Some((name.clone(), MetricPlan { tolerance: spec.tolerance?.0, better }))
        };
        self.0.iter().filter_map(plan).collect()
    }

    /// Numbers that a command prints, by metric.
    pub fn printed(&self) -> impl Iterator<Item = (&String, &MetricSpec)> {
        self.0.iter().filter(|(_, spec)| spec.is_printed())
    }

    /// Whether two sides are compared by this one.
    pub fn is_of_sides(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|spec| spec.tolerance.is_some())
    }

    /// Refuses metrics that such a workload cannot have.
    pub(super) fn check(&self, task: &Task) -> Result<(), String> {
        if self.is_empty() {
            return Err(format!("metrics is empty; choose from {}", METRICS.join(", ")));
        }
        self.0.iter().try_for_each(|(name, spec)| spec.check(name, task))
    }
}

impl MetricSpec {
    fn is_printed(&self) -> bool {
        self.value.is_some() || self.json.is_some()
    }

    fn check(&self, name: &str, task: &Task) -> Result<(), String> {
        let (is_on_device, is_program) = (task.device().is_some(), task.call().is_some());
        let is_ours = is_on_device || *task == Task::Op;
        let known = SIDE_METRICS.iter().find(|(known, _)| *known == name).map(|(_, metric)| *metric);
        let is_of_runs = METRICS.contains(&name);
        let refuse = |what: &str| Err(format!("metric {name:?} {what}"));
        match known {
            _ if self.is_printed() && (known.is_some() || is_of_runs) => {
                return refuse("is measured; give what the program prints a name of its own");
            }
            None if !is_of_runs && !self.is_printed() => {
                let names: Vec<&str> = SIDE_METRICS.iter().map(|(name, _)| *name).collect();
                return refuse(&format!(
                    "is not known; choose from {METRIC_TIME}, {}, or say where a command prints it by value or json",
                    names.join(", ")
                ));
            }
            Some(_) if self.tolerance.is_none() && !is_of_runs => {
                return refuse("needs a tolerance: it is gated between two sides only");
            }
            Some(Metric::Cpu) if is_ours => {
                return Err("cpu_p50_ms is for commands, and for workers that report CPU time".to_owned());
            }
            Some(Metric::Energy) if *task == Task::Op || is_program => {
                return refuse("is for workloads of worker \"cuda\", and for workers that report it");
            }
            Some(Metric::Exact(Exact::Instructions)) if !is_program => {
                return refuse("is for commands");
            }
            Some(Metric::Exact(Exact::CodeBytes | Exact::Registers | Exact::SpillBytes)) if !is_on_device => {
                return refuse("is for workloads of worker \"cuda\"");
            }
            Some(Metric::Exact(Exact::FileBytes)) if is_ours => {
                return refuse("is for commands and workers of your own");
            }
            _ => {}
        }
        let is_exact = matches!(known, Some(Metric::Exact(_)));
        if !is_exact && self.tolerance.is_some_and(|tolerance| tolerance.0 == 0.0) {
            return refuse("is never the same twice; give it a tolerance above 0%");
        }
        if name == METRIC_TIME && self.tolerance.is_some() {
            return refuse("has the suite's tolerance, or that of gate.workloads; set it there");
        }
        if self.by.is_some() && known != Some(Metric::Exact(Exact::Instructions)) {
            return refuse("is not counted; `by` is for instructions");
        }
        if !self.is_printed() {
            return if self.better.is_lower() { Ok(()) } else { refuse("has a direction of its own") };
        }
        if !is_program {
            return refuse("is printed, which is for commands");
        }
        if self.tolerance.is_none() {
            return refuse("needs a tolerance");
        }
        match (&self.value, &self.json) {
            (Some(_), Some(_)) => refuse("has both value and json; leave one out"),
            (Some(pattern), None) => match Regex::new(pattern) {
                Ok(_) => Ok(()),
                Err(error) => refuse(&format!("has no usable regular expression: {error}")),
            },
            _ => Ok(()),
        }
    }

    /// The number in what a command printed; absent where there is none.
    pub fn read(&self, stdout: &str) -> Option<f64> {
        let text = match (&self.value, &self.json) {
            (Some(pattern), _) => {
                let found = Regex::new(pattern).ok()?.captures_iter(stdout).last()?;
                found.get(1).or(found.get(0))?.as_str().replace(['_', ','], "")
            }
            (None, Some(path)) => {
                let last_line = || serde_json::from_str(stdout.trim_end().lines().last()?).ok();
                let document: Value = serde_json::from_str(stdout).ok().or_else(last_line)?;
                let at = |value: Value, key: &str| match (&value, key.parse::<usize>()) {
                    (Value::Array(items), Ok(index)) => items.get(index).cloned(),
                    _ => value.get(key).cloned(),
                };
                let value = path.split('.').try_fold(document, at)?;
                value.as_str().map_or_else(|| value.to_string(), str::to_owned)
            }
            (None, None) => return None,
        };
        text.trim().parse().ok().filter(|number: &f64| number.is_finite())
    }
}

impl Serialize for Metrics {
    /// A list where that says it all, which older versions read too.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_table() { self.0.serialize(serializer) } else { serializer.collect_seq(self.0.keys()) }
    }
}

impl<'de> Deserialize<'de> for Metrics {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Metrics;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a list of metrics, or a table with a tolerance for each, such as { p99_ms = \"10%\" }",
                )
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut names: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some(name) = names.next_element::<String>()? {
                    let twice = Error::custom(format!("metric {name:?} is named twice"));
                    if metrics.0.insert(name, MetricSpec::default()).is_some() {
                        return Err(twice);
                    }
                }
                Ok(metrics)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<Metrics, A::Error> {
                let mut metrics = Metrics::default();
                while let Some((name, ShortSpec(spec))) = table.next_entry::<String, ShortSpec>()? {
                    metrics.0.insert(name, spec);
                }
                Ok(metrics)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A spec, or its tolerance alone.
struct ShortSpec(MetricSpec);

impl<'de> Deserialize<'de> for ShortSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ShortSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a tolerance such as \"5%\", or a table with one")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ShortSpec, E> {
                let tolerance = Some(Tolerance::parse(text)?);
                Ok(ShortSpec(MetricSpec { tolerance, ..MetricSpec::default() }))
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<ShortSpec, A::Error> {
                MetricSpec::deserialize(MapAccessDeserializer::new(table)).map(ShortSpec)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Tolerance {
    /// As a share: 0.05 is 5 %.
    pub fn share(self) -> f64 {
        self.0
    }

    fn parse<E: Error>(text: &str) -> Result<Self, E> {
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match percent.map(|percent| percent / 100.0) {
            Some(share) if (0.0..=LIMIT_MAX).contains(&share) => Ok(Self(share)),
            Some(_) => {
                Err(E::custom(format!("a tolerance is at least 0% and at most {:.0}%", LIMIT_MAX * 100.0)))
            }
            None => Err(E::custom("a percentage in quotes is wanted, such as \"5%\"")),
        }
    }
}

impl Serialize for Tolerance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0 * 100.0))
    }
}

impl<'de> Deserialize<'de> for Tolerance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?)
    }
}

#[cfg(test)]
mod tests {
    use crate::Suite;
    use crate::metric::Better;

    fn suite(workload: &str, rest: &str) -> Result<Suite, String> {
        let text = format!(
            "schema_version = 1\nname = \"mine\"\n{rest}\n[[workload]]\nname = \"a\"\ncommand = [\"x\"]\n{workload}\n"
        );
        Suite::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_adds_to_the_median_and_to_the_suites_own() {
        let gate = "[gate.metrics]\np99_ms = \"20%\"\ncpu_p50_ms = \"3%\"";
        let with = suite(
            "metrics.p99_ms = \"10%\"\n[workload.metrics.tokens]\nvalue = \"([0-9.]+) tokens/s\"\nbetter = \"higher\"\ntolerance = \"3%\"",
            gate,
        )
        .unwrap();
        let metrics = &with.workloads[0].metrics;
        assert_eq!(metrics.of_runs(), ["p50_ms", "p99_ms", "cpu_p50_ms"]);
        let plans = metrics.of_sides();
        assert_eq!(plans.keys().collect::<Vec<_>>(), ["cpu_p50_ms", "p99_ms", "tokens"]);
        assert_eq!((plans["p99_ms"].tolerance, plans["tokens"].better), (0.1, Better::Higher));
        // A list stands for itself, and gates nothing between two sides.
        let list = suite("metrics = [\"p95_ms\"]", gate).unwrap();
        assert_eq!(list.workloads[0].metrics.of_runs(), ["p95_ms"]);
        assert!(list.workloads[0].metrics.of_sides().is_empty());
        for suite in [with, list] {
            assert_eq!(Suite::parse(&suite.to_toml().unwrap()).unwrap(), suite);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_the_names_there_are() {
        for (workload, expected) in [
            ("metrics = { p98 = \"1%\" }", "metric \"p98\" is not known; choose from p50_ms, p95_ms,"),
            ("metrics = { p99_ms = \"0%\" }", "never the same twice"),
            ("metrics = { p99_ms = \"10\" }", "a percentage in quotes is wanted"),
            ("metrics = { p99_ms = 10 }", "a tolerance such as \"5%\""),
            ("metrics = { p99_ms = { tolerence = \"1%\" } }", "unknown field `tolerence`"),
            ("metrics = { p50_ms = \"1%\" }", "has the suite's tolerance"),
            ("metrics = { registers = \"0%\" }", "is for workloads of worker \"cuda\""),
            ("metrics = [\"peak_memory_mb\"]", "needs a tolerance"),
            ("metrics = [\"p50_ms\", \"p50_ms\"]", "named twice"),
            ("metrics = { t = { value = \"(\", tolerance = \"1%\" } }", "no usable regular expression"),
            ("metrics = { t = { value = \"a\", json = \"b\", tolerance = \"1%\" } }", "both value and json"),
            ("metrics = { p99_ms = { value = \"a\", tolerance = \"1%\" } }", "is measured"),
            ("metrics = { p99_ms = { by = \"perf\", tolerance = \"1%\" } }", "`by` is for instructions"),
            ("metrics = { mean_ms = { better = \"higher\", tolerance = \"1%\" } }", "a direction of its own"),
        ] {
            let error = suite(workload, "").unwrap_err();
            assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        }
        assert!(suite("metrics = { file_bytes = \"0%\", instructions = { by = \"valgrind\", tolerance = \"0.5%\" } }", "").is_ok());
    }

    #[test]
    fn a_printed_number_is_found() {
        let read = |how: &str, stdout: &str| {
            let suite = suite(&format!("metrics = {{ t = {{ {how}, tolerance = \"1%\" }} }}"), "").unwrap();
            suite.workloads[0].metrics.printed().next().unwrap().1.read(stdout)
        };
        let value = "value = 'rate: ([0-9.,]+)'";
        assert_eq!(read(value, "rate: 1\nrate: 1,250.5 tokens/s\n"), Some(1250.5));
        assert_eq!(read("value = '[0-9]+$'", "took 17"), Some(17.0));
        assert_eq!(read(value, "nothing"), None);
        let json = "json = \"stats.0.tokens\"";
        assert_eq!(read(json, "{\"stats\": [{\"tokens\": 12.5}]}\n"), Some(12.5));
        assert_eq!(read(json, "loading\n{\"stats\": [{\"tokens\": \"12.5\"}]}\n"), Some(12.5));
        assert_eq!(read(json, "{\"stats\": []}"), None);
    }
}
