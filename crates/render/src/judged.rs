//! A judgement together with the file of samples behind it, and its rows in the order that pages show them.

use crate::table::Cell;
use crate::units;
use holdpoint_model::ab::SideFailure;
use holdpoint_model::judgement::{EVIDENCE_METRIC, STATUS_METRIC};
use holdpoint_model::{
    AbPlan, AbReport, Check, Machine, Report, Revision, Source, Stated, Toolchain, Verdict,
};

/// The policy that decides by cudadent42's rule, which promises no error rate.
const DISJOINT_CI: &str = "disjoint-ci";

/// A judgement and the file that it was made from.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    pub judgement: &'a Stated,
    pub source: Option<Source<'a>>,
}

/// One metric or workload. Text in it is as it came.
#[derive(Clone, Debug)]
pub(crate) struct CheckRow<'a> {
    pub(crate) check: &'a Check,
    pub(crate) verdict: Verdict,
    /// How much slower, as a share; of a metric of which more is better, how much more.
    pub(crate) change: Option<f64>,
    /// The changes that the evidence has not ruled out.
    pub(crate) interval: Option<[f64; 2]>,
    /// How much slower it may be, as a share.
    pub(crate) allowed: Option<f64>,
    pub(crate) failure: Option<&'a SideFailure>,
}

impl<'a> CheckRow<'a> {
    pub(crate) fn name(&self) -> &'a str {
        self.check.name()
    }

    /// Machine time, where it is known.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.check.paired.as_ref().map(|paired| paired.spent_s).filter(|spent_s| *spent_s > 0.0)
    }

    /// The values of both sides, with their unit.
    pub(crate) fn values(&self) -> [Option<String>; 2] {
        match self.check.metric_keys() {
            Some(keys) => [keys.base, keys.head].map(|value| Some(units::metric(&keys.name, value?))),
            None => [self.check.baseline_ms, self.check.current_ms].map(|ms| ms.map(units::time)),
        }
    }

    pub(crate) fn value_cells(&self) -> [Cell; 2] {
        self.values().map(|value| Cell::new(value.as_deref().unwrap_or(units::MISSING)))
    }

    pub(crate) fn interval_cell(&self) -> Cell {
        let interval = self.interval.map(|[low, high]| units::percent_interval(low, high));
        Cell::new(interval.as_deref().unwrap_or(units::MISSING))
    }
}

impl<'a> Judged<'a> {
    pub fn new(judgement: &'a Stated, source: Option<Source<'a>>) -> Self {
        Self { judgement, source }
    }

    pub fn is_sides(self) -> bool {
        self.judgement.sides.is_some()
    }

    pub(crate) fn is_disjoint_ci(self) -> bool {
        self.judgement.policy == DISJOINT_CI
    }

    /// Whether more than the median times of two sides were judged.
    pub(crate) fn has_metrics(self) -> bool {
        self.judgement.checks.iter().any(|check| check.metric_keys().is_some())
    }

    /// Titles of the columns of values.
    pub(crate) fn value_titles(self) -> [&'static str; 2] {
        if self.is_sides() { ["base", "head"] } else { ["baseline", "current"] }
    }

    pub(crate) fn sides(self) -> Option<&'a AbReport> {
        match self.source {
            Some(Source::Sides(report)) => Some(report),
            _ => None,
        }
    }

    pub(crate) fn run(self) -> Option<&'a Report> {
        match self.source {
            Some(Source::Run(report)) => Some(report),
            _ => None,
        }
    }

    pub(crate) fn plan(self) -> Option<&'a AbPlan> {
        self.judgement.basis.as_ref()?.plan()
    }

    pub(crate) fn failure(self, check: &Check) -> Option<&'a SideFailure> {
        self.sides()?.workloads.get(check.workload.as_ref()?)?.failure.as_ref()
    }

    /// The revision under test.
    pub fn revision(self) -> Option<&'a Revision> {
        self.judgement.revision.as_ref()
    }

    /// The word for a row.
    pub(crate) fn noun(self) -> &'static str {
        if self.is_sides() && !self.has_metrics() { "workload" } else { "metric" }
    }

    pub(crate) fn machine(self) -> Option<&'a Machine> {
        self.judgement.machine.as_ref().or(self.run().and_then(|report| report.machine.as_ref()))
    }

    pub(crate) fn toolchain(self) -> Option<&'a Toolchain> {
        match self.source? {
            Source::Run(report) => Some(&report.toolchain),
            Source::Sides(report) => Some(&report.toolchain),
        }
    }

    pub(crate) fn began(self) -> Option<&'a str> {
        self.judgement.timestamp_utc.as_deref()
    }

    /// The rows: a problem with the evidence first, then the worst and among equals the largest change.
    pub(crate) fn rows(self) -> Vec<CheckRow<'a>> {
        let mut rows: Vec<CheckRow<'a>> = self.judgement.checks.iter().map(|check| self.row(check)).collect();
        let size = |row: &CheckRow<'_>| row.change.map_or(0.0, f64::abs);
        let is_problem = |row: &CheckRow<'_>| row.name() == EVIDENCE_METRIC;
        rows.sort_by(|a, b| {
            let worse = b.verdict.cmp(&a.verdict).then(size(b).total_cmp(&size(a)));
            is_problem(b).cmp(&is_problem(a)).then(worse)
        });
        rows
    }

    pub(crate) fn row(self, check: &'a Check) -> CheckRow<'a> {
        let allowed = check.allowed_max_ms.zip(check.baseline_ms).map(|(max, was)| max / was - 1.0);
        let plan = self.plan().filter(|_| !self.is_disjoint_ci());
        let workload = check.workload.as_deref().unwrap_or_default();
        let tolerance = plan.map(|plan| plan.tolerance_of_metric(workload, &check.metric));
        // Another rule's decision is not read from it.
        let evidence = check.evidence().filter(|_| !self.is_disjoint_ci());
        let interval = evidence.and_then(|evidence| evidence.ratio_interval);
        let turned = |worse: f64| check.change_of_value(worse);
        let interval = interval.map(|ends| ends.map(|ratio| turned(ratio - 1.0)));
        CheckRow {
            check,
            verdict: check.verdict,
            change: check.regression_ratio.map(turned),
            interval: interval.map(|[low, high]| [low.min(high), low.max(high)]),
            allowed: tolerance.or(allowed).map(turned).filter(|share| share.is_finite()),
            failure: self.failure(check),
        }
    }
}

/// The name of a row for people.
pub(crate) fn shown_name(raw: &str) -> &str {
    match raw {
        STATUS_METRIC => "status of the run",
        EVIDENCE_METRIC => "evidence",
        name => name,
    }
}

/// The price of an hour on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    per_hour: f64,
    currency: String,
}

impl Rate {
    /// Reads `2.49 USD`.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, currency) = text.trim().split_once(' ')?;
        let per_hour = number.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let currency = currency.trim();
        let is_word = |c: char| c.is_alphabetic() || "€$£¥".contains(c);
        let is_currency = (1..=8).contains(&currency.chars().count()) && currency.chars().all(is_word);
        is_currency.then(|| Self { per_hour, currency: currency.to_owned() })
    }

    /// The cost of so many seconds: `0.029 USD at 2.49 USD an hour`.
    pub(crate) fn describe_cost(&self, seconds: f64) -> String {
        let Self { per_hour, currency } = self;
        let cost = per_hour * seconds / 3600.0;
        let cost = if cost < 0.1 { format!("{cost:.4}") } else { format!("{cost:.2}") };
        format!("{cost} {currency} at {per_hour} {currency} an hour")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_a_number_and_a_currency() {
        let rate = Rate::parse("2.5 USD").unwrap();
        assert_eq!(rate.describe_cost(3600.0), "2.50 USD at 2.5 USD an hour");
        assert_eq!(rate.describe_cost(36.0), "0.0250 USD at 2.5 USD an hour");
        for bad in ["", "2.5", "USD 2.5", "-1 USD", "NaN USD", "2 <b>", "0 EUR", "1 EUR an hour"] {
            assert_eq!(Rate::parse(bad), None, "{bad}");
        }
    }
}
