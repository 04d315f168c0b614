//! When a workload has units enough, and what they decide.

use holdpoint_model::ab::Ended;
use holdpoint_model::{AbPlan, AbReport, Unit};
use holdpoint_stats::sequential::{Decision, InvalidPlan, Plan, Sequential, e_bh};

/// A workload that is not slower and looks faster may go on to this many times the units that took.
const FASTER_UNITS_FACTOR: usize = 2;

/// The evidence about each workload of a suite, by its place in the report.
#[derive(Clone, Debug)]
pub struct Deciding {
    alarm_rate: f64,
    units_max: usize,
    workloads: Vec<Workload>,
}

#[derive(Clone, Debug)]
struct Workload {
    plan: Plan,
    evidence: Sequential,
    /// Units after which it was called not slower.
    pass_units_count: Option<usize>,
    /// Failed or skipped: it takes no units and no part in the suite's decisions.
    is_out: bool,
    /// The outcome of [`Deciding::finish`].
    called: Option<Decision>,
}

impl Deciding {
    /// No units yet. The workloads share the alarm rate, whether or not all of them turn out to run.
    pub fn new<'a>(
        plan: &AbPlan,
        workloads: impl ExactSizeIterator<Item = &'a str>,
    ) -> Result<Self, InvalidPlan> {
        // A suite of none has nothing to decide, which is for `judge_sides` to say.
        let workloads_count = workloads.len().max(1);
        let workload = |name: &str| {
            let plan = Plan {
                tolerance: plan.tolerance_of(name),
                alarm_rate: plan.alarm_rate,
                miss_rate: plan.miss_rate,
                workloads_count,
            };
            let evidence = Sequential::new(plan)?;
            Ok(Workload { plan, evidence, pass_units_count: None, is_out: false, called: None })
        };
        Ok(Self {
            alarm_rate: plan.alarm_rate,
            units_max: plan.units_max as usize,
            workloads: workloads.map(workload).collect::<Result<_, _>>()?,
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

    /// One more unit of a workload; whether it wants more.
    pub fn push(&mut self, index: usize, unit: &Unit) -> bool {
        let Some(workload) = self.workloads.get_mut(index) else { return false };
        workload.called = None;
        if workload.evidence.push(unit.x) == Decision::NotSlower {
            workload.pass_units_count.get_or_insert(workload.evidence.units_count());
        }
        self.wants_more(index)
    }

    /// Whether a workload should go on: it has not failed, has fewer than `units_max` units, and is undecided, or else
    /// not slower and perhaps faster.
    ///
    /// Slower and Faster end it, and so does `NotSlower`, with one exception, so that an improvement has a chance to be
    /// called: as long as the median lies below `1 / (1 + tolerance)`, the evidence for faster is at least 1, and
    /// fewer units have been spent than twice those that `NotSlower` took (or than the least number an alarm needs, if
    /// that is more). Going on costs no error rate: each line of evidence keeps its own.
    pub fn wants_more(&self, index: usize) -> bool {
        let Some(workload) = self.workloads.get(index) else { return false };
        let evidence = &workload.evidence;
        if workload.is_out || evidence.units_count() >= self.units_max {
            return false;
        }
        match self.decision(index) {
            Decision::Undecided => true,
            Decision::Slower | Decision::Faster => false,
            Decision::NotSlower => {
                let pass_units_count = workload.pass_units_count.unwrap_or(0);
                let enough = (FASTER_UNITS_FACTOR * pass_units_count).max(workload.plan.units_count_min());
                let looks_faster =
                    evidence.median_ratio().is_some_and(|r| r * (1.0 + workload.plan.tolerance) < 1.0);
                looks_faster && evidence.e_faster() >= 1.0 && evidence.units_count() < enough
            }
        }
    }

    /// A workload failed or cannot run: it wants no more.
    pub fn drop_out(&mut self, index: usize) {
        if let Some(workload) = self.workloads.get_mut(index) {
            (workload.is_out, workload.called) = (true, None);
        }
    }

    /// When all have ended: calls what is called only because others are called as well, by [`e_bh`] over the evidence
    /// for slower and over that for faster. A workload that is undecided may become slower; one that is undecided
    /// or not slower may become faster.
    ///
    /// Of the workloads then called slower, an expected share of at most the alarm rate is so wrongly, and in an unchanged
    /// suite the probability of any call is at most the alarm rate; the same for faster. Workloads that cannot be
    /// called any more take part with an e-value of 0, and those called already with the one that was enough: so what is
    /// called is the whole of what `e_bh` gives, which is what its promise is about.
    pub fn finish(&mut self) {
        self.workloads.iter_mut().for_each(|workload| workload.called = None);
        for (to, open) in [
            (Decision::Slower, &[Decision::Undecided] as &[Decision]),
            (Decision::Faster, &[Decision::Undecided, Decision::NotSlower]),
        ] {
            for index in e_bh(&self.e_values(to, open), self.alarm_rate) {
                if open.contains(&self.decision(index)) {
                    self.workloads[index].called = Some(to);
                }
            }
        }
    }

    fn e_values(&self, to: Decision, open: &[Decision]) -> Vec<f64> {
        let e_value = |(index, workload): (usize, &Workload)| match self.decision(index) {
            _ if workload.is_out => 0.0,
            decision if decision == to => workload.plan.alarm_e(),
            decision if !open.contains(&decision) => 0.0,
            _ if to == Decision::Slower => workload.evidence.e_slower(),
            _ => workload.evidence.e_faster(),
        };
        self.workloads.iter().enumerate().map(e_value).collect()
    }

    /// The present state of a workload.
    pub fn decision(&self, index: usize) -> Decision {
        let Some(workload) = self.workloads.get(index) else { return Decision::Undecided };
        workload.called.unwrap_or(workload.evidence.decision())
    }

    /// Whether it was called only because others were.
    pub fn is_called_together(&self, index: usize) -> bool {
        self.workloads.get(index).is_some_and(|workload| workload.called.is_some())
    }

    /// The evidence about a workload.
    pub fn evidence(&self, index: usize) -> Option<&Sequential> {
        self.workloads.get(index).map(|workload| &workload.evidence)
    }

    /// The question about a workload.
    pub fn plan(&self, index: usize) -> Option<&Plan> {
        self.workloads.get(index).map(|workload| &workload.plan)
    }
}
