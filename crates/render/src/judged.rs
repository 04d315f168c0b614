//! What was decided, by whichever command: one row per metric or workload, for pages that show either.

use crate::summary::ab as sides;
use crate::{summary, text};
use holdpoint_model::ab::SideFailure;
use holdpoint_model::{
    AbReport, Check, Judgement, Machine, Report, Revision, Toolchain, UsedWaiver, Verdict,
};

/// A judged comparison.
#[derive(Clone, Copy, Debug)]
pub enum Judged<'a> {
    /// A run against its baseline, with its report where there is one.
    Run(&'a Judgement, Option<&'a Report>),
    /// Two sides.
    Sides(&'a AbReport),
}

/// One metric or workload. Text in it is as it came.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    pub(crate) verdict: Verdict,
    pub(crate) reason: &'a str,
    pub(crate) was_ms: Option<f64>,
    pub(crate) is_ms: Option<f64>,
    /// How much slower, as a share.
    pub(crate) change: Option<f64>,
    /// 95 % interval of the change.
    pub(crate) interval: Option<[f64; 2]>,
    /// How much slower it may be, as a share.
    pub(crate) allowed: Option<f64>,
    pub(crate) waiver: Option<&'a UsedWaiver>,
    pub(crate) failure: Option<&'a SideFailure>,
    pub(crate) seconds: Option<f64>,
}

impl<'a> Judged<'a> {
    /// Name of the suite.
    #[must_use]
    pub fn suite(self) -> &'a str {
        match self {
            Self::Run(j, _) => &j.suite,
            Self::Sides(r) => &r.suite,
        }
    }

    /// The verdict of the whole: the worst of what the file says of it and of its rows.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        self.worst().map_or(self.said(), |worst| worst.max(self.said()))
    }

    /// What the file says of the whole.
    fn said(self) -> Verdict {
        match self {
            Self::Run(j, _) => j.verdict,
            Self::Sides(r) => r.verdict,
        }
    }

    /// The verdict of the worst row.
    fn worst(self) -> Option<Verdict> {
        match self {
            Self::Run(j, _) => j.checks.iter().map(|check| check.verdict).max(),
            Self::Sides(r) => r.workloads.values().map(|workload| workload.verdict).max(),
        }
    }

    /// Name of the policy that decided.
    #[must_use]
    pub fn policy(self) -> &'a str {
        match self {
            Self::Run(j, _) => &j.policy,
            Self::Sides(r) => &r.policy,
        }
    }

    /// The revision under test.
    #[must_use]
    pub fn revision(self) -> Option<&'a Revision> {
        match self {
            Self::Run(j, _) => j.revision.as_ref(),
            Self::Sides(r) => r.head.revision.as_ref(),
        }
    }

    /// The sentence about the whole, of the verdict that counts.
    pub(crate) fn sentence(self) -> String {
        let verdict = self.verdict();
        match self {
            Self::Run(j, _) if verdict != j.verdict => {
                summary::of_judgement(&Judgement { verdict, ..j.clone() })
            }
            Self::Sides(r) if verdict != r.verdict => sides::of_ab(&AbReport { verdict, ..r.clone() }),
            Self::Run(j, _) => summary::of_judgement(j),
            Self::Sides(r) => sides::of_ab(r),
        }
    }

    /// What a row is.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Run(..) => "metric",
            Self::Sides(_) => "workload",
        }
    }

    /// What was compared with what, and by which rule.
    pub(crate) fn facts(self) -> Vec<String> {
        match self {
            Self::Run(j, _) => {
                let commit = j.revision.as_ref().map(text::revision);
                let facts = [commit.map(|commit| format!("{commit} against its baseline"))];
                facts.into_iter().flatten().chain([format!("policy {}", j.policy)]).collect()
            }
            Self::Sides(r) => vec![sides::sides(r), format!("policy {}", r.policy), sides::promise(r)],
        }
    }

    pub(crate) fn notes(self) -> Vec<String> {
        match self {
            Self::Run(j, _) => j.notes.clone(),
            Self::Sides(r) => sides::notes(r).into_iter().map(|(_, note)| note).collect(),
        }
    }

    pub(crate) fn machine(self) -> Option<&'a Machine> {
        match self {
            Self::Run(j, report) => j.machine.as_ref().or(report.and_then(|r| r.machine.as_ref())),
            Self::Sides(r) => r.machine.as_ref(),
        }
    }

    pub(crate) fn toolchain(self) -> Option<&'a Toolchain> {
        match self {
            Self::Run(_, report) => report.map(|report| &report.toolchain),
            Self::Sides(r) => Some(&r.toolchain),
        }
    }

    pub(crate) fn began(self) -> Option<&'a str> {
        match self {
            Self::Run(j, _) => j.timestamp_utc.as_deref(),
            Self::Sides(r) => Some(&r.timestamp_utc),
        }
    }

    /// The rows, the worst first and among equals the largest change.
    pub(crate) fn rows(self) -> Vec<Row<'a>> {
        let mut rows: Vec<Row<'a>> = match self {
            Self::Run(j, _) => j.checks.iter().map(of_check).collect(),
            Self::Sides(r) => of_sides(r),
        };
        let size = |row: &Row<'_>| row.change.map_or(0.0, f64::abs);
        rows.sort_by(|a, b| b.verdict.cmp(&a.verdict).then(size(b).total_cmp(&size(a))));
        rows
    }
}

/// A row for what is wrong with the evidence itself.
pub(crate) fn of_problem(problem: &str) -> Row<'_> {
    Row {
        name: "evidence",
        verdict: Verdict::Inconclusive,
        reason: problem,
        was_ms: None,
        is_ms: None,
        change: None,
        interval: None,
        allowed: None,
        waiver: None,
        failure: None,
        seconds: None,
    }
}

fn of_check(check: &Check) -> Row<'_> {
    let allowed = check.allowed_max_ms.zip(check.baseline_ms).map(|(max, was)| max / was - 1.0);
    Row {
        name: &check.metric,
        verdict: check.verdict,
        reason: &check.reason,
        was_ms: check.baseline_ms,
        is_ms: check.current_ms,
        change: check.regression_ratio,
        interval: None,
        allowed: allowed.filter(|share| share.is_finite()),
        waiver: check.waiver.as_ref(),
        failure: None,
        seconds: None,
    }
}

fn of_sides(r: &AbReport) -> Vec<Row<'_>> {
    let tolerance = (!sides::is_disjoint_ci(r)).then_some(r.plan.tolerance);
    let row = |(name, w)| {
        let w: &holdpoint_model::AbWorkload = w;
        let [was_ms, is_ms] = sides::medians_ms(r, w);
        let interval = w.evidence.as_ref().and_then(|evidence| evidence.ratio_interval);
        Row {
            name,
            verdict: w.verdict,
            reason: &w.reason,
            was_ms,
            is_ms,
            change: w.change(),
            interval: interval.map(|ends| ends.map(|ratio| ratio - 1.0)),
            allowed: tolerance,
            waiver: w.waiver.as_ref(),
            failure: w.failure.as_ref(),
            seconds: (w.spent_s > 0.0).then_some(w.spent_s),
        }
    };
    r.workloads.iter().map(|(name, w)| row((name.as_str(), w))).collect()
}

/// What an hour of a machine costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Rate {
    per_hour: f64,
    currency: String,
}

impl Rate {
    /// Reads `2.49 USD`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, currency) = text.trim().split_once(' ')?;
        let per_hour = number.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate > 0.0)?;
        let currency = currency.trim();
        let is_word = |c: char| c.is_alphabetic() || "€$£¥".contains(c);
        let is_currency = (1..=8).contains(&currency.chars().count()) && currency.chars().all(is_word);
        is_currency.then(|| Self { per_hour, currency: currency.to_owned() })
    }

    /// What so many seconds cost: `0.029 USD at 2.49 USD an hour`.
    pub(crate) fn of(&self, seconds: f64) -> String {
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
        assert_eq!(rate.of(3600.0), "2.50 USD at 2.5 USD an hour");
        assert_eq!(rate.of(36.0), "0.0250 USD at 2.5 USD an hour");
        for bad in ["", "2.5", "USD 2.5", "-1 USD", "NaN USD", "2 <b>", "0 EUR", "1 EUR an hour"] {
            assert_eq!(Rate::parse(bad), None, "{bad}");
        }
    }
}
