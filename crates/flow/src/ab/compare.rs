//! One comparison of two sides, from the first unit to the verdict.

use super::sides::PreparedSides;
use crate::error::FlowError;
use crate::watch::{Estimate, Progress, Watch};
use holdpoint_gate::ab::{self as rule, Deciding};
use holdpoint_gate::{Judgement, Policy, judge_sides};
use holdpoint_measure::ab::{self, Decide, Sides};
use holdpoint_measure::builds::Inventory;
use holdpoint_model::ab::{Ended, SameBuild};
use holdpoint_model::limits::CALLS_PER_SAMPLE_MAX;
use holdpoint_model::{AbPlan, AbReport, AbWorkload, Suite, Unit, UnitCost, UnitPlan};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often what has been measured so far is written: a machine that dies loses no more than this.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// A comparison under way.
pub(crate) struct OngoingComparison<'a> {
    sides: &'a Sides,
    inventories: &'a [Option<Inventory>; 2],
    policy: Policy,
    pub report: AbReport,
    deciding: Deciding,
}

impl<'a> OngoingComparison<'a> {
    /// Nothing measured yet.
    pub fn new(prepared: &'a PreparedSides, plan: AbPlan, policy: Policy) -> Result<Self, FlowError> {
        Self::from(prepared, policy, begin(prepared, plan, policy))
    }

    /// Goes on from what an interrupted comparison left; the seed is the one it had, unless another `is_seed_given`.
    pub fn resume(
        prepared: &'a PreparedSides,
        plan: AbPlan,
        policy: Policy,
        is_seed_given: bool,
        (path, mut report): (&Path, AbReport),
    ) -> Result<Self, FlowError> {
        let fresh = begin(prepared, plan, policy);
        let refused = |what: String| FlowError::File {
            path: path.to_owned(),
            what: format!("cannot go on from this: {what}, or leave out --resume to measure anew"),
        };
        let differences = rule::differences(&report, &fresh, is_seed_given);
        if !differences.is_empty() {
            return Err(refused(format!("{}; put that back as it was", differences.join("; "))));
        }
        let is_possible = |calls: u64| (1..=CALLS_PER_SAMPLE_MAX).contains(&calls);
        if let Some((name, _)) = report.workloads.iter().find(|(_, w)| !is_possible(w.calls_per_sample)) {
            return Err(refused(format!("calls_per_sample of {name} is out of bounds; put that back")));
        }
        // Times count, whatever was typed beside them.
        for unit in report.workloads.values_mut().flat_map(|workload| &mut workload.units) {
            rule::estimate::unit(unit)
                .ok_or_else(|| refused("a unit of it has no rounds that count; remove it".to_owned()))?;
        }
        let units_count = report.workloads.values().map(|workload| workload.units.len()).max().unwrap_or(0);
        if units_count > fresh.plan.units_max as usize {
            return Err(refused(format!(
                "it has {units_count} units of a workload; give --units-max {units_count}"
            )));
        }
        // More time and more units may be given than before.
        report.plan = AbPlan { seed: report.plan.seed, ..fresh.plan };
        let Self { mut report, deciding, .. } = Self::from(prepared, policy, report)?;
        if report.finished && !(0..report.workloads.len()).any(|i| deciding.wants_more(i)) {
            return Err(refused("it is finished; read it".to_owned()));
        }
        // Whether both sides are the same code takes no time to see, and is seen again.
        let is_seen_again =
            |workload: &&mut AbWorkload| workload.ended == Ended::SameCode && workload.same_build.is_none();
        let unmeasured = report.workloads.values_mut().filter(is_seen_again);
        unmeasured.for_each(|workload| workload.ended = Ended::Interrupted);
        Self::from(prepared, policy, report)
    }

    fn from(prepared: &'a PreparedSides, policy: Policy, report: AbReport) -> Result<Self, FlowError> {
        let deciding = replay(&report)?;
        let PreparedSides { sides, inventories, .. } = prepared;
        Ok(Self { sides, inventories, policy, report, deciding })
    }

    /// Measures until all is decided; now and then what there is so far is kept in the file. Builds that are not as they were made, before
    /// or afterwards, decide nothing.
    pub fn measure(&mut self, checkpoint: Option<&Path>, watch: &dyn Watch) {
        let ignored = &self.sides.head.gate.ignore_files;
        if !ab::refuse_changed_builds(&mut self.report, self.inventories, ignored) {
            self.measure_units(checkpoint, watch);
            ab::refuse_changed_builds(&mut self.report, self.inventories, ignored);
        }
    }

    fn measure_units(&mut self, checkpoint: Option<&Path>, watch: &dyn Watch) {
        let progress = watch.start(self.report.workloads.len());
        let mut saved = Instant::now();
        let (before, policy) = (self.deciding.clone(), self.policy);
        let ended: Vec<Ended> = self.report.workloads.values().map(|workload| workload.ended).collect();
        // The seed's rule is of a fixed length, whatever the evidence.
        let wanted = |index: usize| match ended[index] {
            Ended::Failed | Ended::Skipped | Ended::SameCode => false,
            _ => policy.is_fixed_length() || before.wants_more(index),
        };
        let names: Vec<String> = self.report.workloads.keys().cloned().collect();
        let mut decider = Decider {
            decided: (0..names.len()).filter(|index| !wanted(*index)).collect(),
            budget_s: self.report.plan.budget_s * names.len() as f64,
            names,
            start: Instant::now(),
            deciding: &mut self.deciding,
            policy,
            progress: &*progress,
        };
        ab::measure(
            self.sides,
            &mut self.report,
            wanted,
            &mut decider,
            &|| watch.is_interrupted(),
            &mut |report| {
                if let Some(path) = checkpoint
                    && saved.elapsed() > SAVE_EVERY
                {
                    // Should it fail, the last save tells.
                    let _ = holdpoint_store::write_json(path, report);
                    saved = Instant::now();
                }
            },
        );
    }

    /// Asks another question of the same sides: measuring goes on from the units there are until it is decided.
    pub fn ask(self, plan: AbPlan) -> Result<Self, FlowError> {
        let report = AbReport { plan, ..self.report };
        Ok(Self { deciding: replay(&report)?, report, ..self })
    }

    /// The judgement of what has been measured.
    pub fn judge(&self) -> Result<Judgement, FlowError> {
        judge_sides(&self.report, &self.report.plan, self.policy)
            .map_err(|error| FlowError::Input(error.to_string()))
    }
}

fn replay(report: &AbReport) -> Result<Deciding, FlowError> {
    Deciding::replay(report, &report.plan).map_err(|error| FlowError::Input(error.to_string()))
}

fn begin(prepared: &PreparedSides, plan: AbPlan, policy: Policy) -> AbReport {
    let workloads = prepared.sides.head.workloads.iter();
    let metrics = workloads.map(|spec| (spec.name.clone(), spec.metrics.of_sides()));
    let plan = AbPlan { metrics: metrics.filter(|(_, metrics)| !metrics.is_empty()).collect(), ..plan };
    let mut report = ab::begin(&prepared.sides, plan, prepared.base.clone(), prepared.head.clone());
    if let Some(same) = &prepared.same_build {
        mark_same_build(&mut report, same, &prepared.sides.head);
    }
    report.conditions.clone_from(&prepared.conditions);
    report.conditions.insert(holdpoint_gate::POLICY_CONDITION.to_owned(), policy.name().to_owned());
    report
}

/// Workloads of the same build are called once and not measured. Kernels are compiled from the checkouts when they are
/// prepared, and looked at then.
fn mark_same_build(report: &mut AbReport, same: &SameBuild, suite: &Suite) {
    for spec in suite.workloads.iter().filter(|spec| spec.task.device().is_none()) {
        if let Some(workload) = report.workloads.get_mut(&spec.name).filter(|w| w.ended != Ended::Skipped) {
            workload.same_build = Some(same.clone());
        }
    }
}

/// Connects what measures with what decides.
struct Decider<'d> {
    deciding: &'d mut Deciding,
    policy: Policy,
    progress: &'d dyn Progress,
    names: Vec<String>,
    /// Workloads that need no more units.
    decided: BTreeSet<usize>,
    start: Instant,
    /// For all workloads.
    budget_s: f64,
}

impl Decider<'_> {
    fn show(&self, workload: usize) {
        let Some((known, name)) = self.deciding.evidence(workload).zip(self.names.get(workload)) else {
            return;
        };
        let [slower, not_slower] = known.shares();
        self.progress.on_unit(&Estimate {
            workload: name,
            ratio: known.median_ratio().unwrap_or(1.0),
            interval: self
                .deciding
                .plan(workload)
                .and_then(|plan| known.median_ratio_interval(1.0 - 2.0 / plan.alarm_e())),
            slower,
            not_slower,
            decided_count: self.decided.len(),
            elapsed_s: self.start.elapsed().as_secs_f64(),
            budget_s: self.budget_s,
        });
    }
}

impl Decide for Decider<'_> {
    fn plan_unit(&mut self, workload: usize, units: &[Unit], cost: &UnitCost) -> UnitPlan {
        self.deciding.plan_unit(workload, units, cost)
    }

    fn noise(&self, units: &[Unit]) -> Option<f64> {
        rule::noise_within(units)
    }

    fn estimate(&mut self, unit: &mut Unit) -> Option<f64> {
        rule::estimate::unit(unit)
    }

    fn push(&mut self, workload: usize, unit: &Unit) -> bool {
        let wants_more = self.deciding.push(workload, unit) || self.policy.is_fixed_length();
        // Units that were under way come in after the one that decided.
        if !wants_more {
            self.decided.insert(workload);
        }
        self.show(workload);
        wants_more
    }

    fn lacks_pairs(&self, workload: usize) -> bool {
        self.deciding.lacks_pairs(workload)
    }

    fn drop_out(&mut self, workload: usize) {
        self.decided.insert(workload);
        self.deciding.drop_out(workload);
    }
}
