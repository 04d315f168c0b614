//! Judges two sides by their units.

mod exact;
mod power;
mod resolution;

use crate::Judgement;
use crate::ab::{Blocks, Compared, Deciding, estimate, evidence, is_exact, metrics};
use crate::checks::{blank, overall_status, overall_verdict, status_of};
use crate::policy::{Pair, Policy};
use holdpoint_model::ab::{AbEvidence, DisjointCiKeys, Ended};
use holdpoint_model::document::is_close;
use holdpoint_model::metric::{METRIC_TIME, MetricPlan};
use holdpoint_model::suite::{TIMER_HOST, metric_name};
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, Basis, Check, ComparedSides, MetricKeys, PairRound, PairedKeys,
    SCHEMA_VERSION, Stated, Verdict,
};
use holdpoint_stats::sequential::{Decision, InvalidPlan};
use resolution::why_blind;

/// More than a plan can ask for.
const UNITS_MAX: usize = 20_000;

/// The policy among the conditions of a comparison.
pub const POLICY_CONDITION: &str = "--policy";

/// Samples of two sides that cannot be judged.
#[derive(Debug, thiserror::Error)]
pub enum SidesError {
    #[error(transparent)]
    Plan(#[from] InvalidPlan),
    #[error("policy {} needs a baseline, not two sides; choose sequential or disjoint-ci", .0.name())]
    Policy(Policy),
    #[error("{0} has more units than its plan allows: it was edited")]
    Units(String),
    #[error("{name}: unit {unit} says x is {stated}, its rounds say {computed}: it was edited")]
    Unit { name: String, unit: usize, stated: f64, computed: f64 },
    #[error("{name}: unit {unit} has no samples on a side, or a time of zero: it was edited")]
    Samples { name: String, unit: usize },
    #[error("{name} is called the same code, yet {what}: it was edited")]
    SameCode { name: String, what: &'static str },
}

/// Judges every workload and the comparison as a whole.
///
/// `plan` holds the question: tolerance and error rates. It may be another one than the samples were taken for: evidence is valid at any
/// time, so units that were taken until one question was answered may answer another, or be too few for it.
pub fn judge_sides(report: &AbReport, plan: &AbPlan, policy: Policy) -> Result<Judgement, SidesError> {
    if policy.takes_baseline() {
        return Err(SidesError::Policy(policy));
    }
    check_units(report)?;
    let mut deciding = Deciding::replay(report, plan)?;
    deciding.finish();
    let sides = Sides { report, plan, deciding: &deciding, policy };
    let times = (0..report.workloads.len()).filter_map(|index| sides.judge_time(index));
    // Medians first, a check for each workload: readers count on that.
    let mut checks: Vec<Check> = times.collect();
    let metrics: Vec<Check> = checks.iter().flat_map(|time| sides.judge_metrics(time)).collect();
    checks.extend(metrics);
    let mut verdict = overall_verdict(&checks);
    if !report.finished {
        verdict = verdict.max(Verdict::Inconclusive);
    }
    Ok(Judgement::new(Stated {
        schema_version: SCHEMA_VERSION,
        suite: report.suite.clone(),
        status: if report.finished { overall_status(&checks) } else { "fail" }.to_owned(),
        verdict,
        policy: policy.name().to_owned(),
        timestamp_utc: Some(report.timestamp_utc.clone()),
        required_status: "ok".to_owned(),
        current_status: None,
        machine: report.machine.clone(),
        revision: report.head.revision.clone(),
        sides: Some(ComparedSides {
            base: report.base.clone(),
            head: report.head.clone(),
            finished: report.finished,
        }),
        notes: report.notes.iter().cloned().chain(power::notes(report)).collect(),
        ungated: Vec::new(),
        checks,
        threshold: None,
        basis: Some(Basis::Sides { plan: plan.clone() }),
    }))
}

/// Judges samples by the plan and the policy that they were taken for.
pub fn judge_recorded(report: &AbReport) -> Result<Judgement, SidesError> {
    judge_sides(report, &report.plan, recorded_policy(report))
}

/// The policy that samples were taken for.
pub fn recorded_policy(report: &AbReport) -> Policy {
    let name = report.conditions.get(POLICY_CONDITION);
    name.and_then(|name| Policy::from_name(name, None)).unwrap_or(Policy::Sequential)
}

/// Units must be as many as the plan allows and say what their rounds say.
fn check_units(report: &AbReport) -> Result<(), SidesError> {
    // Units that were under way when the last one was decided are kept.
    let most = report.plan.units_max.saturating_add(report.plan.units_at_once) as usize;
    for (name, workload) in &report.workloads {
        if workload.units.len() > most.min(UNITS_MAX) {
            return Err(SidesError::Units(name.clone()));
        }
        let contradiction = match workload.ended {
            Ended::SameCode if !workload.units.is_empty() => Some("it was measured"),
            Ended::SameCode
                if workload.same_build.as_ref().is_some_and(|b| b.base_sha256 != b.head_sha256) =>
            {
                Some("its builds differ")
            }
            Ended::SameCode if workload.same_build.is_some() => None,
            Ended::SameCode if workload.identity.timer == TIMER_HOST => Some("it is timed on the host"),
            Ended::SameCode if workload.kernels.as_ref().is_some_and(|sides| !sides.are_same()) => {
                Some("its code differs")
            }
            _ => None,
        };
        if let Some(what) = contradiction {
            return Err(SidesError::SameCode { name: name.clone(), what });
        }
        for (index, unit) in workload.units.iter().enumerate() {
            let mut again = unit.clone();
            let Some(computed) = estimate::unit(&mut again) else {
                return Err(SidesError::Samples { name: name.clone(), unit: index });
            };
            let marks = |rounds: &[PairRound]| {
                rounds.iter().map(|round| (round.left_out, round.trouble.clone())).collect::<Vec<_>>()
            };
            if !is_close(computed, unit.x) || marks(&again.rounds) != marks(&unit.rounds) {
                let (name, stated) = (name.clone(), unit.x);
                return Err(SidesError::Unit { name, unit: index, stated, computed });
            }
        }
    }
    Ok(())
}

/// Share of a workload's time in which its timed calls ran on a device.
fn busy_share(workload: &AbWorkload) -> Option<f64> {
    workload.busy_s().filter(|_| workload.spent_s > 0.0).map(|busy_s| (busy_s / workload.spent_s).min(1.0))
}

/// Samples of two sides and the rule that they are judged by.
struct Sides<'a> {
    report: &'a AbReport,
    plan: &'a AbPlan,
    deciding: &'a Deciding,
    policy: Policy,
}

impl Sides<'_> {
    /// The median time of a workload.
    fn judge_time(&self, index: usize) -> Option<Check> {
        let &Self { report, plan, deciding, policy } = self;
        let (name, workload) = report.workloads.get_index(index)?;
        let blocks = Blocks::new(workload);
        let evidence = evidence::evidence(workload, &blocks, deciding, index);
        let ended = ended(workload, report, deciding.decision(index));
        let (verdict, reason, disjoint_ci) = match (unmeasured(workload, ended), &evidence) {
            (Some((verdict, reason)), _) => (verdict, reason, None),
            (None, None) => (Verdict::Inconclusive, not_measured(workload, ended), None),
            (None, Some(evidence)) => match deciding.plan(index) {
                None => (Verdict::Inconclusive, "there is no plan for it".to_owned(), None),
                Some(plan) => {
                    let judged = policy.judge_pair(&Pair {
                        workload,
                        ended,
                        evidence,
                        blocks: &blocks,
                        deciding,
                        plan,
                        index,
                        metric: None,
                        speedup_max: self.plan.speedup_max,
                    });
                    let (verdict, reason) = self.unless_blind(index, workload, None, (judged.0, judged.1));
                    (verdict, reason, judged.2)
                }
            },
        };
        let [baseline_ms, current_ms] = medians_ms(disjoint_ci.as_ref(), evidence.as_ref());
        Some(Check {
            workload: Some(name.clone()),
            baseline_ms,
            current_ms,
            allowed_max_ms: baseline_ms
                .filter(|_| policy == Policy::Sequential)
                .map(|base_ms| base_ms * (1.0 + plan.tolerance_of(name))),
            regression_ratio: change(disjoint_ci.as_ref(), evidence.as_ref()),
            paired: Some(PairedKeys {
                identity: workload.identity.clone(),
                ended,
                spent_s: workload.spent_s,
                busy_share: busy_share(workload),
                evidence,
                disjoint_ci,
                calibrated: None,
                metric: None,
            }),
            ..blank(&metric_name(name, METRIC_TIME), status_of(verdict), verdict, reason)
        })
    }

    /// Green only where the times could have shown something else.
    fn unless_blind(
        &self,
        row: usize,
        workload: &AbWorkload,
        metric: Option<&str>,
        judged: (Verdict, String),
    ) -> (Verdict, String) {
        let known = self.deciding.evidence(row).zip(self.deciding.plan(row));
        let why_blind = || {
            let (evidence, plan) = known?;
            why_blind(workload, metric, evidence.xs(), plan.tolerance)
        };
        match judged.0 {
            Verdict::Pass | Verdict::Improved => {
                why_blind().map_or(judged, |reason| (Verdict::Inconclusive, reason))
            }
            _ => judged,
        }
    }

    /// The other metrics of the workload whose median time was judged: by evidence, then the exact ones.
    fn judge_metrics(&self, time: &Check) -> Vec<Check> {
        let (Some(name), Some(paired)) = (&time.workload, &time.paired) else { return Vec::new() };
        let Some((index, _, workload)) = self.report.workloads.get_full(name) else { return Vec::new() };
        let rows = self.deciding.metric_rows().filter(|(_, workload, _)| *workload == index);
        let by_evidence = rows.map(|(row, _, metric)| self.judge_metric(row, metric, workload, paired));
        let exact = self.plan.metrics_of(name).filter(|(metric, _)| is_exact(metric));
        let exact = exact.map(|(metric, plan)| {
            let judged = match unmeasured(workload, paired.ended) {
                Some((verdict, reason)) => exact::ExactVerdict { verdict, reason, values: None },
                None => exact::judge(workload, metric, plan, self.plan.speedup_max),
            };
            let worse = judged.values.map(|[base, head]| head / base - 1.0).filter(|worse| worse.is_finite());
            let keys = metric_keys(metric, plan, judged.values);
            (keys, None, worse, judged.verdict, judged.reason)
        });
        let check = |(metric, evidence, worse, verdict, reason): JudgedMetric| {
            let ms = |value: Option<f64>| value.filter(|_| metric.name.ends_with("_ms"));
            let paired = PairedKeys {
                // Its time is the workload's, and counted there.
                spent_s: 0.0,
                busy_share: None,
                evidence,
                disjoint_ci: None,
                metric: Some(metric.clone()),
                ..paired.clone()
            };
            Check {
                workload: time.workload.clone(),
                baseline_ms: ms(metric.base),
                current_ms: ms(metric.head),
                allowed_max_ms: ms(metric.base).map(|base_ms| base_ms * (1.0 + metric.tolerance)),
                regression_ratio: worse,
                paired: Some(paired),
                ..blank(&metric_name(name, &metric.name), status_of(verdict), verdict, reason)
            }
        };
        by_evidence.chain(exact).map(check).collect()
    }

    fn judge_metric(
        &self,
        row: usize,
        metric: &Compared,
        workload: &AbWorkload,
        time: &PairedKeys,
    ) -> JudgedMetric {
        let &Self { report, deciding, policy, .. } = self;
        let known = deciding.evidence(row);
        let ended = ended(workload, report, deciding.decision(row));
        let times = time.evidence.as_ref();
        let evidence = times.and_then(|times| evidence::metric_evidence(times, deciding, row));
        let (verdict, reason) = match (unmeasured(workload, ended), &evidence, deciding.plan(row)) {
            (Some(unmeasured), ..) => unmeasured,
            _ if policy != Policy::Sequential => {
                let reason = format!("policy {} judges median times only", policy.name());
                (Verdict::Inconclusive, reason)
            }
            (None, Some(evidence), Some(plan)) => {
                let blocks = &Blocks { base: Vec::new(), head: Vec::new() };
                let pair = Pair {
                    workload,
                    ended,
                    evidence,
                    blocks,
                    deciding,
                    plan,
                    index: row,
                    metric: Some(metric),
                    speedup_max: self.plan.speedup_max,
                };
                let (verdict, reason, _) = policy.judge_pair(&pair);
                self.unless_blind(row, workload, Some(&metric.name), (verdict, reason))
            }
            _ if workload.units.is_empty() => (Verdict::Inconclusive, not_measured(workload, ended)),
            _ => (Verdict::Inconclusive, metrics::why_missing(&metric.name).to_owned()),
        };
        let sign = metric.plan.better.sign();
        let values = known.and_then(|known| metrics::typical(workload, &metric.name, sign, known));
        let worse = evidence.as_ref().map(|evidence| evidence.ratio - 1.0);
        let keys = MetricKeys {
            units: metrics::of_units(workload, &metric.name),
            ..metric_keys(&metric.name, metric.plan, values)
        };
        (keys, evidence, worse, verdict, reason)
    }
}

/// A metric, its evidence, how much worse it is, the verdict and the reason.
type JudgedMetric = (MetricKeys, Option<AbEvidence>, Option<f64>, Verdict, String);

fn metric_keys(name: &str, plan: MetricPlan, values: Option<[f64; 2]>) -> MetricKeys {
    let MetricPlan { tolerance, better } = plan;
    let [base, head] = values.map_or([None, None], |values| values.map(Some));
    MetricKeys { name: name.to_owned(), tolerance, better, base, head, units: Vec::new() }
}

/// Why there is nothing to judge by evidence.
fn unmeasured(workload: &AbWorkload, ended: Ended) -> Option<(Verdict, String)> {
    match (&workload.failure, ended) {
        (_, Ended::Skipped) => Some((Verdict::Skipped, skipped(workload))),
        (None, Ended::SameCode) if workload.kernels.is_none() && workload.same_build.is_none() => {
            let reason = "called the same code, but the hashes of both sides' code are not there";
            Some((Verdict::Inconclusive, reason.to_owned()))
        }
        (None, Ended::SameCode) => Some((Verdict::Pass, workload.reason.clone())),
        (Some(_), _) | (_, Ended::Failed) => Some((Verdict::Broken, failed(workload))),
        _ => None,
    }
}

/// The measuring side sees that no more units are wanted, and not why.
fn ended(workload: &AbWorkload, report: &AbReport, decision: Decision) -> Ended {
    let may_be_full = matches!(workload.ended, Ended::Decided | Ended::Interrupted);
    let is_full = report.finished && workload.units.len() >= report.plan.units_max as usize;
    if may_be_full && is_full && decision == Decision::Undecided { Ended::UnitsMax } else { workload.ended }
}

/// The times that were compared: of two medians, those; of units, two times that differ by the units' ratio.
fn medians_ms(keys: Option<&DisjointCiKeys>, evidence: Option<&AbEvidence>) -> [Option<f64>; 2] {
    match (keys, evidence) {
        (Some(keys), _) => [Some(keys.baseline_median_ms), Some(keys.candidate_median_ms)],
        (None, Some(evidence)) => paired_ms(evidence).map(Some),
        (None, None) => [None, None],
    }
}

/// Both sides' times as the units see them. The medians of all samples tell how long a call takes, and not which side is
/// faster: a slow minute may hold more samples of one side. So their geometric mean is the level, and the units' ratio the
/// difference; swapping the sides swaps the times.
pub(crate) fn paired_ms(evidence: &AbEvidence) -> [f64; 2] {
    let level_ms = (evidence.base.p50_ms * evidence.head.p50_ms).sqrt();
    let half = evidence.ratio.sqrt();
    [level_ms / half, level_ms * half]
}

/// How much slower head is, as a share: by the intervals where they decided, else by the units.
fn change(keys: Option<&DisjointCiKeys>, evidence: Option<&AbEvidence>) -> Option<f64> {
    let by_intervals = keys.map(|keys| keys.delta_pct / 100.0);
    by_intervals.or(evidence.map(|evidence| evidence.ratio - 1.0))
}

fn skipped(workload: &AbWorkload) -> String {
    if !workload.reason.is_empty() {
        return workload.reason.clone();
    }
    workload.failure.as_ref().map_or("it could not be measured here".to_owned(), |f| f.failure.detail.clone())
}

fn failed(workload: &AbWorkload) -> String {
    let Some(failure) = &workload.failure else { return "a side failed".to_owned() };
    let what = &failure.failure;
    let said = what.stderr_tail.last().map_or_else(String::new, |line| format!("; it says: {line}"));
    format!("{} failed: {}: {}{said}", failure.side.as_str(), what.cause.as_str(), what.detail)
}

fn not_measured(workload: &AbWorkload, ended: Ended) -> String {
    match ended {
        Ended::Interrupted => "interrupted before its first unit: --resume goes on",
        Ended::Budget if !workload.reason.is_empty() => &workload.reason,
        Ended::Budget => "the budget was spent before its first unit: give it a longer --budget",
        _ => "there are no units",
    }
    .to_owned()
}
