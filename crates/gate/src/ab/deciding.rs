//! When a workload has units enough, and what they decide.

use super::metrics;
use holdpoint_model::ab::{Clock, Ended};
use holdpoint_model::metric::{Metric, MetricPlan};
use holdpoint_model::{AbPlan, AbReport, Unit, UnitCost, UnitPlan};
use holdpoint_stats::sequential::{Decision, Interval, InvalidPlan, Plan, Sequential, e_bh};

/// A row that is not slower and looks faster may go on to this many times the units that took.
const FASTER_UNITS_FACTOR: usize = 2;

/// The evidence about each row of a suite: the median times of its workloads, in the order of the report, then their other
/// metrics.
#[derive(Clone, Debug)]
pub struct Deciding {
    alarm_rate: f64,
    units_max: usize,
    clock: Option<Clock>,
    /// Whether anything may be measured at the same time.
    may_overlap: bool,
    workloads_count: usize,
    /// Of each workload, the pair of processes that had its last unit.
    last_pairs: Vec<Option<u32>>,
    rows: Vec<DecidedRow>,
}

#[derive(Clone, Debug)]
struct DecidedRow {
    /// Its workload's place in the report.
    workload: usize,
    /// The metric, where it is not the median time.
    metric: Option<Compared>,
    plan: Plan,
    evidence: Sequential,
    /// Units after which it was called not slower.
    pass_units_count: Option<usize>,
    /// Failed or skipped: it takes no units and no part in the suite's decisions.
    is_out: bool,
    /// The outcome of [`Deciding::finish`], and the evidence that it took.
    called: Option<(Decision, f64)>,
}

/// A metric that is decided by evidence.
#[derive(Clone, Debug)]
pub struct Compared {
    pub name: String,
    pub plan: MetricPlan,
}

impl Compared {
    /// `ln(head / base)`, turned so that more is worse.
    fn x(&self, unit: &Unit) -> Option<f64> {
        let [base, head] = metrics::values(unit, &self.name)?;
        Some(self.plan.better.sign() * (head.ln() - base.ln()))
    }
}

impl Deciding {
    /// No units yet. The rows share the alarm rate, whether or not all of them turn out to be measured.
    pub fn new<'a>(
        plan: &AbPlan,
        workloads: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<Self, InvalidPlan> {
        let names: Vec<&str> = workloads.collect();
        let times = names.iter().enumerate().map(|(index, name)| (index, None, plan.tolerance_of(name)));
        let metrics = names.iter().enumerate().flat_map(|(index, name)| {
            let metrics = plan.metrics_of(name).filter(|(name, _)| !is_exact(name));
            metrics.map(move |(name, plan)| {
                (index, Some(Compared { name: name.to_owned(), plan }), plan.tolerance)
            })
        });
        let questions: Vec<(usize, Option<Compared>, f64)> = times.chain(metrics).collect();
        // A suite of none has nothing to decide, which is for `judge_sides` to say.
        let rows_count = questions.len().max(1);
        let row = |(workload, metric, tolerance): (usize, Option<Compared>, f64)| {
            let plan = Plan {
                tolerance,
                alarm_rate: plan.alarm_rate,
                miss_rate: plan.miss_rate,
                workloads_count: rows_count,
            };
            let evidence = Sequential::new(plan)?;
            Ok(DecidedRow {
                workload,
                metric,
                plan,
                evidence,
                pass_units_count: None,
                is_out: false,
                called: None,
            })
        };
        Ok(Self {
            alarm_rate: plan.alarm_rate,
            units_max: plan.units_max as usize,
            clock: plan.clock,
            may_overlap: plan.units_at_once > 1,
            workloads_count: names.len(),
            last_pairs: vec![None; names.len()],
            rows: questions.into_iter().map(row).collect::<Result<_, _>>()?,
        })
    }

    /// The evidence from the units of a report about a plan's question: the same as when they were taken, one by one.
    pub fn replay(report: &AbReport, plan: &AbPlan) -> Result<Self, InvalidPlan> {
        let mut deciding = Self::new(plan, report.workloads.keys().map(String::as_str))?;
        for (index, workload) in report.workloads.values().enumerate() {
            for unit in &workload.units {
                deciding.push(index, unit);
            }
            if matches!(workload.ended, Ended::Failed | Ended::Skipped | Ended::SameCode) {
                deciding.drop_out(index);
            }
        }
        Ok(deciding)
    }

    /// The plan of a workload's next unit.
    pub fn plan_unit(&self, index: usize, units: &[Unit], cost: &UnitCost) -> UnitPlan {
        let rows = || self.rows.iter().filter(|row| row.workload == index);
        let line = rows().find(|row| row.metric.is_none()).map_or(0.0, |row| row.plan.line());
        let samples_min = |row: &DecidedRow| {
            row.metric.as_ref().map_or(1, |metric| Metric::from_name(&metric.name).samples_min())
        };
        // A program that shares its CPU has other latencies, and prints other rates.
        let may_overlap = cost.may_overlap && self.may_overlap && rows().all(|row| row.metric.is_none());
        let samples_min = rows().map(samples_min).max().unwrap_or(1);
        let plan = super::plan_unit(units, &UnitCost { may_overlap, ..*cost }, line, samples_min);
        UnitPlan { clock: self.clock.unwrap_or(plan.clock), ..plan }
    }

    /// One more unit of a workload; whether it wants more.
    pub fn push(&mut self, workload: usize, unit: &Unit) -> bool {
        let last = self.last_pairs.get_mut(workload).and_then(|last| last.replace(unit.process));
        let is_fresh = last != Some(unit.process);
        for row in self.rows.iter_mut().filter(|row| row.workload == workload) {
            row.called = None;
            let x = row.metric.as_ref().map_or(Some(unit.x), |metric| metric.x(unit));
            if x.is_some_and(|x| row.evidence.push_from(is_fresh, x) == Decision::NotSlower) {
                row.pass_units_count.get_or_insert(row.evidence.units_count());
            }
        }
        self.wants_more(workload)
    }

    /// Whether a workload should go on: it has not failed, has fewer than `units_max` units, and one of its rows is
    /// undecided, or else not slower and perhaps faster.
    ///
    /// Slower and Faster end a row, and so does `NotSlower`, with one exception, so that an improvement has a chance to be
    /// called: as long as the median lies below `1 / (1 + tolerance)`, the evidence for faster is at least 1, and
    /// fewer units have been spent than twice those that `NotSlower` took (or than the least number an alarm needs, if
    /// that is more). Going on costs no error rate: each line of evidence keeps its own.
    pub fn wants_more(&self, workload: usize) -> bool {
        let Some(time) = self.rows.get(workload).filter(|_| workload < self.workloads_count) else {
            return false;
        };
        let units_count = time.evidence.units_count();
        // A metric that the first unit did not tell will not be told.
        let is_told = |row: &DecidedRow| row.evidence.units_count() > 0 || units_count == 0;
        let wants_more = |(index, row): (usize, &DecidedRow)| {
            row.workload == workload && is_told(row) && self.row_wants_more(index, row)
        };
        !time.is_out && units_count < self.units_max && self.rows.iter().enumerate().any(wants_more)
    }

    fn row_wants_more(&self, index: usize, row: &DecidedRow) -> bool {
        let evidence = &row.evidence;
        match self.decision(index) {
            Decision::Undecided => true,
            Decision::Slower | Decision::Faster => false,
            Decision::NotSlower => {
                let pass_units_count = row.pass_units_count.unwrap_or(0);
                let enough = (FASTER_UNITS_FACTOR * pass_units_count).max(row.plan.units_count_min());
                let looks_faster =
                    evidence.median_ratio().is_some_and(|r| r * (1.0 + row.plan.tolerance) < 1.0);
                looks_faster && evidence.e_faster() >= 1.0 && evidence.units_count() < enough
            }
        }
    }

    /// Whether only more pairs of processes are missing for a call: its next units should each have a fresh one.
    pub fn lacks_pairs(&self, workload: usize) -> bool {
        self.rows.iter().any(|row| row.workload == workload && row.evidence.lacks_pairs())
    }

    /// A workload failed or cannot run: it wants no more.
    pub fn drop_out(&mut self, workload: usize) {
        for row in self.rows.iter_mut().filter(|row| row.workload == workload) {
            (row.is_out, row.called) = (true, None);
        }
    }

    /// When all have ended: calls what is called only because others are called as well, by [`e_bh`] over the evidence
    /// for slower and over that for faster. A row that is undecided may become slower; one that is undecided
    /// or not slower may become faster.
    ///
    /// Of the rows then called slower, an expected share of at most the alarm rate is so wrongly, and in an unchanged
    /// suite the probability of any call is at most the alarm rate; the same for faster. Rows that cannot be
    /// called any more take part with an e-value of 0, and those called already with the one that was enough: so what is
    /// called is the whole of what `e_bh` gives, which is what its promise is about.
    pub fn finish(&mut self) {
        self.rows.iter_mut().for_each(|row| row.called = None);
        for (to, open) in [
            (Decision::Slower, &[Decision::Undecided] as &[Decision]),
            (Decision::Faster, &[Decision::Undecided, Decision::NotSlower]),
        ] {
            let called = e_bh(&self.e_values(to, open), self.alarm_rate);
            let needed = self.rows.len() as f64 / (called.len() as f64 * self.alarm_rate);
            for index in called {
                if open.contains(&self.decision(index)) {
                    self.rows[index].called = Some((to, needed));
                }
            }
        }
    }

    fn e_values(&self, to: Decision, open: &[Decision]) -> Vec<f64> {
        let e_value = |(index, row): (usize, &DecidedRow)| match self.decision(index) {
            _ if row.is_out => 0.0,
            decision if decision == to => row.plan.alarm_e(),
            decision if !open.contains(&decision) => 0.0,
            _ => row.evidence.e_to_call(to),
        };
        self.rows.iter().enumerate().map(e_value).collect()
    }

    /// The rows of metrics beside the median time: the number of each, its workload's place in the report and its metric.
    pub fn metric_rows(&self) -> impl Iterator<Item = (usize, usize, &Compared)> {
        let rows = self.rows.iter().enumerate();
        rows.filter_map(|(index, row)| Some((index, row.workload, row.metric.as_ref()?)))
    }

    /// The present state of a row. That of a workload's median time has the workload's place in the report.
    pub fn decision(&self, row: usize) -> Decision {
        let Some(row) = self.rows.get(row) else { return Decision::Undecided };
        row.called.map_or(row.evidence.decision(), |(decision, _)| decision)
    }

    /// The evidence that it takes, or took, to call a row slower or faster.
    pub fn alarm_e(&self, row: usize) -> Option<f64> {
        self.rows.get(row).map(|row| row.called.map_or(row.plan.alarm_e(), |(_, needed)| needed))
    }

    /// The interval that the decision about a row is read from.
    pub fn interval(&self, row: usize) -> Option<Interval> {
        self.evidence(row)?.interval_of(self.decision(row), self.alarm_e(row)?)
    }

    /// Whether a row was called only because others were.
    pub fn is_called_together(&self, row: usize) -> bool {
        self.rows.get(row).is_some_and(|row| row.called.is_some())
    }

    /// The evidence about a row.
    pub fn evidence(&self, row: usize) -> Option<&Sequential> {
        self.rows.get(row).map(|row| &row.evidence)
    }

    /// The question about a row.
    pub fn plan(&self, row: usize) -> Option<&Plan> {
        self.rows.get(row).map(|row| &row.plan)
    }
}

/// Whether a metric needs no evidence.
pub(crate) fn is_exact(metric: &str) -> bool {
    matches!(Metric::from_name(metric), Metric::Exact(_))
}
