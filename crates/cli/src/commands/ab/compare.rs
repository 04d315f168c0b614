//! One comparison of two sides, from the first unit to the verdict.

use super::sides::Prepared;
use crate::args::DecideArgs;
use crate::error::CliError;
use crate::interrupt;
use crate::output::Output;
use crate::progress::AbProgress;
use holdpoint_gate::ab::{self as rule, AbPolicy, Deciding};
use holdpoint_measure::ab::{self, Decide, Sides};
use holdpoint_model::ab::Ended;
use holdpoint_model::limits::CALLS_PER_SAMPLE_MAX;
use holdpoint_model::{AbPlan, AbReport, PairRound};
use holdpoint_render::{Style, terminal};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

/// How often what has been measured so far is written: a machine that dies loses no more than this.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// What was asked for.
#[must_use]
pub fn plan(args: &DecideArgs) -> AbPlan {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    AbPlan {
        tolerance: args.tolerance,
        alarm_rate: args.alarm_rate,
        miss_rate: args.miss_rate,
        units_max: args.units_max,
        budget_s: args.budget,
        rounds_per_unit: args.rounds,
        round_ms: args.round_ms,
        units_at_once: args.at_once,
        // Drawn anew each time, so that no order is favoured for ever; kept in the report.
        seed: args.seed.unwrap_or(now.as_nanos() as u64 >> 8),
    }
}

/// A comparison under way.
pub struct Comparison<'a> {
    sides: &'a Sides,
    policy: AbPolicy,
    report: AbReport,
    deciding: Deciding,
}

impl<'a> Comparison<'a> {
    /// Nothing measured yet.
    ///
    /// # Errors
    /// When the plan makes no sense.
    pub fn new(prepared: &'a Prepared, plan: AbPlan, policy: AbPolicy) -> Result<Self, CliError> {
        Self::from(&prepared.sides, policy, begin(prepared, plan, policy))
    }

    /// Goes on from what an interrupted comparison left; the seed is the one it had, unless another `is_seed_given`.
    ///
    /// # Errors
    /// When there is no such report, or anything that its units depend on is not as it was.
    pub fn resume(
        prepared: &'a Prepared,
        plan: AbPlan,
        policy: AbPolicy,
        is_seed_given: bool,
        path: &Path,
    ) -> Result<Self, CliError> {
        let fresh = begin(prepared, plan, policy);
        let mut report = holdpoint_store::read_ab(path)?;
        let refused = |what: String| CliError::File {
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
            let x = rule::estimate::unit(&mut unit.rounds);
            unit.x =
                x.ok_or_else(|| refused("a unit of it has no rounds that count; remove it".to_owned()))?;
        }
        // More time and more units may be given than before.
        report.plan = AbPlan { seed: report.plan.seed, ..fresh.plan };
        let Self { mut report, deciding, .. } = Self::from(&prepared.sides, policy, report)?;
        if report.finished && !(0..report.workloads.len()).any(|i| deciding.wants_more(i)) {
            return Err(refused("it is finished; read it".to_owned()));
        }
        // Whether both sides are the same code takes no time to see, and is seen again.
        let unmeasured = report.workloads.values_mut().filter(|workload| workload.ended == Ended::SameCode);
        unmeasured.for_each(|workload| workload.ended = Ended::Interrupted);
        Self::from(&prepared.sides, policy, report)
    }

    fn from(sides: &'a Sides, policy: AbPolicy, report: AbReport) -> Result<Self, CliError> {
        let deciding = Deciding::replay(&report).map_err(|error| CliError::Input(error.to_string()))?;
        Ok(Self { sides, policy, report, deciding })
    }

    /// Measures until all is decided; now and then what there is so far is kept in the file.
    pub fn measure(&mut self, checkpoint: Option<&Path>, output: &Output) {
        let progress = AbProgress::new(&self.report, output);
        let mut saved = Instant::now();
        let (before, policy) = (self.deciding.clone(), self.policy);
        let ended: Vec<Ended> = self.report.workloads.values().map(|workload| workload.ended).collect();
        // The seed's rule is of a fixed length, whatever the evidence.
        let wanted = |index: usize| match ended[index] {
            Ended::Failed | Ended::Skipped | Ended::SameCode => false,
            _ => policy == AbPolicy::DisjointCi || before.wants_more(index),
        };
        let mut decider = Decider { deciding: &mut self.deciding, policy: self.policy };
        ab::measure(
            self.sides,
            &mut self.report,
            wanted,
            &mut decider,
            &interrupt::has_come,
            &mut |report| {
                progress.on(report);
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

    /// The judged report.
    #[must_use]
    pub fn finish(mut self) -> AbReport {
        self.deciding.finish();
        rule::judge(&mut self.report, &self.deciding, self.policy);
        self.report
    }
}

fn begin(prepared: &Prepared, plan: AbPlan, policy: AbPolicy) -> AbReport {
    let mut report = ab::begin(&prepared.sides, plan, prepared.base.clone(), prepared.head.clone());
    report.conditions.clone_from(&prepared.conditions);
    report.conditions.insert("--policy".to_owned(), policy.name().to_owned());
    report
}

/// Connects what measures with what decides.
struct Decider<'d> {
    deciding: &'d mut Deciding,
    policy: AbPolicy,
}

impl Decide for Decider<'_> {
    fn estimate(&mut self, rounds: &mut [PairRound]) -> Option<f64> {
        rule::estimate::unit(rounds)
    }

    fn push(&mut self, workload: usize, x: f64) -> bool {
        self.deciding.push(workload, x) || self.policy == AbPolicy::DisjointCi
    }

    fn drop_out(&mut self, workload: usize) {
        self.deciding.drop_out(workload);
    }
}

/// Puts what `calibrate` has shown on this machine beside each verdict.
pub fn add_calibration(report: &mut AbReport, dir: &Path) {
    let Some(machine) = &report.machine else { return };
    let path = holdpoint_store::baseline_path(dir, &report.suite, &machine.fingerprint);
    if !path.exists() {
        return;
    }
    match holdpoint_store::read_calibration(&path) {
        Ok(calibration) => {
            for (name, workload) in &mut report.workloads {
                workload.calibrated = calibration.workloads.get(name).cloned();
            }
        }
        Err(error) => report.notes.push(format!("the calibration could not be read: {error}")),
    }
}

/// The report for a terminal.
#[must_use]
pub fn text(report: &AbReport, evidence: bool, style: Style) -> String {
    let mut text = terminal::ab(report, style);
    if evidence {
        text.push('\n');
        text.push_str(&terminal::ab_evidence(report, style));
    }
    text
}
