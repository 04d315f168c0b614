//! Holds a run against the history of its metrics.

use super::rule::{Standing, standing};
use crate::Judgement;
use crate::checks::{blank, check, overall_status, overall_verdict, row_check};
use crate::compare::{MetricRow, compare};
use crate::judge::judge_by;
use crate::policy::PASS_TIMES;
use crate::tolerance::TOLERANCE;
use crate::too_fast;
use holdpoint_model::{
    Allow, Baseline, BaselineMetric, Basis, Check, CheckStatus, Current, HistoryLevel, MetricValue,
    SCHEMA_VERSION, Verdict,
};
use std::collections::BTreeMap;

/// The policy's name in files.
pub(crate) const POLICY_HISTORY: &str = "history";

/// Judges a run against the level of each of its metrics. A metric without enough of a history is inconclusive.
pub fn judge_history(current: &Current, levels: &BTreeMap<String, HistoryLevel>) -> Judgement {
    let mut comparison = compare(current, &as_baseline(current, levels), Allow::default());
    // A level is of many runs, and so is what is beyond it: others' work is in its noise.
    comparison.rows.iter_mut().for_each(|row| row.busier = None);
    let mut judgement = judge_by(&comparison, POLICY_HISTORY, |row| match levels.get(&row.metric) {
        Some(level) => check(row, Some(level.fence), |value| judge_value(row, level, value)),
        None => blank(&row.metric, CheckStatus::Inconclusive, Verdict::Inconclusive, String::new()),
    });
    let stated = judgement.edit();
    let without: Vec<Check> = stated.ungated.drain(..).map(|metric| no_history(current, metric)).collect();
    stated.checks.extend(without);
    stated.checks.sort_by(|a, b| a.metric.cmp(&b.metric));
    stated.status = overall_status(&stated.checks).to_owned();
    stated.verdict = overall_verdict(&stated.checks);
    // The others are about baselines.
    stated.notes.clone_from(&current.notes);
    stated.basis = Some(Basis::History { levels: levels.clone() });
    judgement
}

/// The metrics that have drifted, which only the revision of the level that was accepted can settle.
pub fn drifted(judgement: &Judgement) -> Vec<&str> {
    let Some(Basis::History { levels }) = &judgement.basis else { return Vec::new() };
    let is_drift = |check: &&Check| {
        let level = levels.get(&check.metric).zip(check.current_ms);
        check.verdict == Verdict::Regressed
            && level.is_some_and(|(level, value)| standing(level, value) == Standing::Drifted)
    };
    judgement.checks.iter().filter(is_drift).map(|check| check.metric.as_str()).collect()
}

/// Whether runs side by side could settle it: something lies beyond its level, and nothing is broken or gone. A worse level is
/// asked about as well: the machine may have become slower, not the code.
pub fn needs_second_look(judgement: &Judgement) -> bool {
    let is_beyond = |check: &Check| {
        matches!(check.verdict, Verdict::Inconclusive | Verdict::Regressed)
            && check.regression_ratio.is_some()
    };
    let is_other = |check: &Check| check.verdict >= Verdict::Regressed && check.regression_ratio.is_none();
    judgement.checks.iter().any(is_beyond) && !judgement.checks.iter().any(is_other)
}

/// The levels in the shape of a baseline, so that missing, skipped and failed workloads are found in one way.
fn as_baseline(current: &Current, levels: &BTreeMap<String, HistoryLevel>) -> Baseline {
    let metric = |(name, level): (&String, &HistoryLevel)| {
        let is: Option<&MetricValue> = current.metrics.get(name);
        let metric = BaselineMetric {
            value_ms: level.level,
            max_regression_ratio: level.fence / level.level - 1.0,
            max_regression_abs_ms: 0.0,
            workload: is.and_then(|is| is.workload.clone()),
            identity: None,
            runs_ms: Vec::new(),
            slow_stretches: Vec::new(),
            answer_checked: None,
            spread: holdpoint_stats::spread(&level.newest),
            smallest_visible_slowdown: None,
            noise: None,
        };
        (name.clone(), metric)
    };
    Baseline {
        schema_version: SCHEMA_VERSION,
        suite: current.suite.clone(),
        baseline_notes: String::new(),
        required_status: None,
        machine: None,
        environment_lock: None,
        alarm_rate: None,
        runs: Vec::new(),
        promoted: None,
        metrics: levels.iter().map(metric).collect(),
    }
}

fn judge_value(row: &MetricRow, level: &HistoryLevel, value: f64) -> Check {
    let percent = |value: f64, of: f64| (value / of - 1.0) * 100.0;
    let change = percent(value, level.level);
    let noise = percent(level.fence, level.level);
    let count = level.points_count;
    let asked = level.tolerance.unwrap_or(TOLERANCE) * 100.0;
    let (verdict, reason) = match standing(level, value) {
        Standing::Improved => (
            Verdict::Improved,
            format!("{change:+.1} %: the last runs are better than the level, which was {noise:.1} % wide"),
        ),
        Standing::Inside if noise.abs() > PASS_TIMES * asked => (
            Verdict::Inconclusive,
            format!(
                "{change:+.1} %, but the noise of the last {count} runs is {noise:+.1} %, more than twice the tolerance of {asked:.1} %, and a \
                 slowdown below that would look the same: give --last-good REV to compare side by side"
            ),
        ),
        Standing::Inside if level.better.sign() * (value - level.floor) < 0.0 => (
            Verdict::Pass,
            format!(
                "{change:+.1} %, better than the noise of the last {count} runs ({noise:+.1} %), and not confirmed by others yet; the \
                 tolerance is {asked:.1} %"
            ),
        ),
        Standing::Inside => (
            Verdict::Pass,
            format!(
                "{change:+.1} %, within the noise of the last {count} runs ({noise:+.1} %); the tolerance is {asked:.1} %"
            ),
        ),
        Standing::Beyond { count } => (
            Verdict::Inconclusive,
            format!(
                "{change:+.1} %, the noise of the last {} runs is {noise:+.1} %; {count} of the last 5 runs {} beyond it, 4 would be a \
                 worse level: run again, or give --last-good REV to compare side by side",
                level.points_count,
                if count == 1 { "lies" } else { "lie" },
            ),
        ),
        Standing::Worse => (
            Verdict::Regressed,
            format!("{change:+.1} %, beyond the noise of {noise:+.1} % like at least 4 of the last 5 runs"),
        ),
        Standing::Drifted => {
            let accepted = level.accepted_level.unwrap_or(level.level);
            (
                Verdict::Regressed,
                format!(
                    "a drift: the last 20 runs are {:+.1} % from the level that was accepted",
                    percent(level.level, accepted)
                ),
            )
        }
    };
    let ratio = (value / level.level).powf(level.better.sign());
    let (verdict, reason) =
        match too_fast::check_this(ratio, None, "better").filter(|_| verdict <= Verdict::Pass) {
            Some(check) => (Verdict::Inconclusive, format!("{check}; {reason}")),
            None => (verdict, reason),
        };
    Check {
        current_ms: Some(value),
        regression_ratio: Some(value / level.level - 1.0),
        ..row_check(row, verdict, reason)
    }
}

fn no_history(current: &Current, metric: String) -> Check {
    let is = current.metrics.get(&metric);
    let reason = "its history is too short for a level: 14 runs are needed".to_owned();
    Check {
        workload: is.and_then(|is| is.workload.clone()),
        current_ms: is.map(|is| is.value_ms),
        ..blank(&metric, CheckStatus::Inconclusive, Verdict::Inconclusive, reason)
    }
}
