//! The rules as they are written down.

use holdpoint_model::profile::Severity;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The rules that come with holdpoint.
const BUILT_IN: &str = include_str!("../../data/bottlenecks.toml");

/// The metrics to count, and rules for their values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    #[serde(rename = "metric")]
    pub(super) metrics: Vec<Metric>,
    #[serde(default, rename = "rule")]
    pub(super) rules: Vec<Rule>,
    pub(super) stalls: Stalls,
    #[serde(default, rename = "stall")]
    pub(super) stall: Vec<Stall>,
}

/// Rules that cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct RulesError(String);

impl std::fmt::Display for RulesError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RulesError {}

/// One counter.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Metric {
    pub name: String,
    pub title: String,
    pub unit: Unit,
    /// The least change that is listed: so many points …
    #[serde(default)]
    pub step: Option<f64>,
    /// … or such a share of the larger of the two.
    #[serde(default)]
    pub step_ratio: Option<f64>,
    #[serde(default)]
    pub required: bool,
}

/// How a counter is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Percent,
    Bytes,
    Count,
    Number,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rule {
    pub id: String,
    pub severity: Severity,
    pub when: Vec<Condition>,
    pub what: String,
    pub remedy: String,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    pub metric: String,
    #[serde(default)]
    pub per: Option<String>,
    #[serde(default)]
    pub above: Option<f64>,
    #[serde(default)]
    pub at_least: Option<f64>,
    #[serde(default)]
    pub below: Option<f64>,
    #[serde(default)]
    pub at_most: Option<f64>,
}

impl Condition {
    pub(super) fn holds(&self, value: f64) -> bool {
        self.above.is_none_or(|bound| value > bound)
            && self.at_least.is_none_or(|bound| value >= bound)
            && self.below.is_none_or(|bound| value < bound)
            && self.at_most.is_none_or(|bound| value <= bound)
    }
}

/// When the largest stall is worth naming.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stalls {
    pub share: f64,
    pub issue_metric: String,
    pub issue_below: f64,
    pub step_ratio: f64,
}

/// One reason for which a warp does not issue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stall {
    pub reason: String,
    /// Not a wait at all.
    #[serde(default)]
    pub is_work: bool,
    pub what: String,
    pub remedy: String,
}

impl Stall {
    /// Its counter: warps in this state per instruction issued.
    pub(super) fn metric(&self) -> String {
        format!("smsp__average_warps_issue_stalled_{}_per_issue_active.ratio", self.reason)
    }
}

impl Rules {
    /// The rules that come with holdpoint.
    pub fn built_in() -> Result<Self, RulesError> {
        Self::parse(BUILT_IN)
    }

    /// Reads rules.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let rules: Self =
            toml::from_str(text).map_err(|error| RulesError(error.to_string().trim().to_owned()))?;
        let mut known = BTreeSet::new();
        for metric in &rules.metrics {
            if !is_name(&metric.name) {
                return Err(RulesError(format!("metric {:?} is no name of a counter", metric.name)));
            }
            if metric.name.contains("time_duration") {
                let what = "a duration under a profiler is no time of the kernel's, and no rule may use it";
                return Err(RulesError(format!("metric {:?}: {what}", metric.name)));
            }
            let steps = [metric.step, metric.step_ratio];
            let is_step = |step: &&f64| **step > 0.0 && step.is_finite();
            let count = steps.iter().flatten().count();
            if count != 1 || steps.iter().flatten().filter(is_step).count() != 1 {
                let what = "one of step and step_ratio is wanted, above 0";
                return Err(RulesError(format!("metric {:?}: {what}", metric.name)));
            }
            if !known.insert(metric.name.as_str()) {
                return Err(RulesError(format!("metric {:?} is there twice", metric.name)));
            }
        }
        let stalls = [(&"stalls", &rules.stalls.issue_metric)];
        let conditions = rules.rules.iter().flat_map(|rule| {
            rule.when
                .iter()
                .flat_map(|condition| [Some(&condition.metric), condition.per.as_ref()])
                .flatten()
                .map(move |name| (rule.id.as_str(), name))
        });
        let conditions: Vec<(&str, &String)> =
            conditions.chain(stalls.into_iter().map(|(id, name)| (*id, name))).collect();
        if let Some((rule, name)) = conditions.iter().find(|(_, name)| !known.contains(name.as_str())) {
            return Err(RulesError(format!(
                "rule {rule:?} speaks of {name:?}, which is not among the metrics"
            )));
        }
        if let Some(stall) = rules.stall.iter().find(|stall| !is_name(&stall.metric())) {
            return Err(RulesError(format!("stall {:?} is no name of a reason", stall.reason)));
        }
        Ok(rules)
    }

    /// The counters to ask a profiler for.
    pub fn metric_names(&self) -> Vec<String> {
        let stalls = self.stall.iter().map(Stall::metric);
        self.metrics.iter().map(|metric| metric.name.clone()).chain(stalls).collect()
    }

    /// The counters without which a profile says nothing.
    pub fn required_names(&self) -> Vec<String> {
        let required = self.metrics.iter().filter(|metric| metric.required);
        required.map(|metric| metric.name.clone()).collect()
    }
}

/// A name that can stand in a list on a command line.
fn is_name(name: &str) -> bool {
    name.contains("__") && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_rules_can_be_read() {
        let rules = Rules::built_in().unwrap();
        assert!(rules.rules.len() > 10 && rules.stall.len() > 10);
        assert_eq!(rules.required_names().len(), 3);
        assert!(
            rules.metric_names().iter().all(|name| !name.contains("time_duration")),
            "no time is asked for"
        );
    }

    #[test]
    fn rules_that_make_no_sense_are_refused_with_words() {
        let stalls =
            "[stalls]\nshare = 0.3\nissue_metric = \"a__b.sum\"\nissue_below = 80.0\nstep_ratio = 0.1\n";
        let metric = "[[metric]]\nname = \"a__b.sum\"\ntitle = \"a\"\nunit = \"count\"\n";
        let with = |rest: &str| Rules::parse(&format!("{stalls}{metric}{rest}")).map_err(|e| e.to_string());
        assert!(with("step = 1.0\n").is_ok());
        assert!(with("").unwrap_err().contains("step"));
        assert!(with("step = nan\n").unwrap_err().contains("above 0"));
        let rule = "step = 1.0\n[[rule]]\nid = \"x\"\nseverity = \"high\"\nwhat = \"\"\nremedy = \"\"\nwhen = [{ metric = \"c__d.sum\" }]\n";
        assert!(with(rule).unwrap_err().contains("c__d.sum"));
        assert!(with(&rule.replace("high", "loud")).unwrap_err().contains("loud"));
        let twice = format!("step = 1.0\n{metric}step = 1.0\n");
        assert!(with(&twice).unwrap_err().contains("twice"));
        let timed = format!("{stalls}{metric}step = 1.0\n").replace("a__b.sum", "gpu__time_duration.sum");
        assert!(Rules::parse(&timed).unwrap_err().to_string().contains("no time"));
        let flag = format!("{stalls}{metric}step = 1.0\n").replace("a__b.sum", "--a__b");
        assert!(Rules::parse(&flag).unwrap_err().to_string().contains("no name"));
    }
}
