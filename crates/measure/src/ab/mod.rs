//! Measures base and head while both are alive, in short rounds with random order.
//!
//! A unit is a fresh pair of processes and a few rounds of each. [`Decide`] plans each unit, gets it and returns
//! whether more are wanted; this module does not know how that is decided.

mod at_once;
mod conditions;
mod distrust;
mod exact;
mod first_calls;
mod fresh;
mod lane;
mod numbers;
mod pair;
mod trouble;

pub use conditions::conditions;
pub use distrust::refuse_changed_builds;
pub use trouble::{CLOCK_STEP_NS, FREQUENCY, STEAL, WAIT};

use crate::meter::ALIVE_MAX;
use crate::program::{Copies, Place};
use crate::ready::ReadySuite;
use crate::{clock, machine};
use at_once::AtOnce;
use fresh::Fresh;
use holdpoint_model::ab::{Clock, Ended, SideFailure};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, SCHEMA_VERSION, Side, SideName, Suite, Unit, UnitCost, UnitPlan, Workload,
};
use holdpoint_stats::random::Random;
use lane::Lane;
use pair::{Pair, is_pinned};
use std::path::Path;
use std::time::Instant;
use trouble::Watch;

/// Two suites to be measured side by side. Revisions differ in the folder that their programs run in.
#[derive(Clone, Debug)]
pub struct Sides {
    pub base: ReadySuite,
    pub head: ReadySuite,
    /// Pins all processes of a unit to one CPU, even programs not declared as single-threaded.
    pub pin: bool,
    /// Measures workloads even if machine code, launches and inputs are the same on both sides.
    pub measure_same_code: bool,
}

impl Sides {
    fn pair(&self) -> [&Suite; 2] {
        [&self.base, &self.head]
    }
}

/// Decides how units are measured, and whether more are needed.
pub trait Decide {
    /// Plans the next unit of a workload from those it has.
    fn plan_unit(&mut self, workload: usize, units: &[Unit], cost: &UnitCost) -> UnitPlan;

    /// The variance between the rounds of these units; absent where it cannot be known.
    fn noise(&self, units: &[Unit]) -> Option<f64>;

    /// Marks the rounds of a unit, sets its number, `ln(head / base)`, and returns it.
    fn estimate(&mut self, unit: &mut Unit) -> Option<f64>;

    /// Adds a unit of a workload; returns whether more are wanted.
    fn push(&mut self, workload: usize, unit: &Unit) -> bool;

    /// Whether its next units should each have processes of their own, although its worker's serve several.
    fn lacks_pairs(&self, _workload: usize) -> bool {
        false
    }

    /// Nothing more will come of a workload.
    fn drop_out(&mut self, workload: usize);
}

/// A comparison in which nothing has been measured yet.
pub fn begin(sides: &Sides, plan: AbPlan, base: Side, head: Side) -> AbReport {
    let (mut notes, mut workloads) = (Vec::new(), indexmap::IndexMap::new());
    for spec in &sides.head.workloads {
        match find(&sides.base, &spec.name) {
            Some(was) => _ = workloads.insert(spec.name.clone(), blank(spec, incomparable(was, spec))),
            None => notes.push(format!("{} is new in head: there is nothing to compare it with", spec.name)),
        }
    }
    for spec in &sides.base.workloads {
        if find(&sides.head, &spec.name).is_none() {
            let reason = "base has this workload, head does not; was it removed or renamed?".to_owned();
            workloads.insert(spec.name.clone(), blank(spec, Some(reason)));
        }
    }
    AbReport {
        schema_version: SCHEMA_VERSION,
        suite: sides.head.name.clone(),
        timestamp_utc: clock::timestamp_utc(),
        finished: false,
        plan,
        base,
        head,
        branch: machine::branch(sides.head.dir.as_deref().unwrap_or(Path::new("."))),
        machine: Some(machine::machine_for(&sides.head)),
        toolchain: machine::toolchain(),
        conditions: Default::default(),
        elapsed_s: 0.0,
        notes,
        workloads,
    }
}

fn find<'a>(suite: &'a Suite, name: &str) -> Option<&'a Workload> {
    suite.workloads.iter().find(|spec| spec.name == name)
}

/// Why two workloads of the same name cannot be compared. Their parameters may differ: that is a reason to compare
/// suites.
fn incomparable(base: &Workload, head: &Workload) -> Option<String> {
    let [base, head] = [base, head].map(|spec| {
        let op = spec.task.bench().map_or(&spec.op, |bench| &bench.id);
        format!("{op} {:?} {} by {}", spec.shape, spec.dtype, spec.timer())
    });
    (base != head).then(|| format!("not the same work: base is {base}, head is {head}"))
}

fn blank(spec: &Workload, skipped: Option<String>) -> AbWorkload {
    AbWorkload {
        identity: spec.identity(spec.timer()),
        ended: if skipped.is_some() { Ended::Skipped } else { Ended::Interrupted },
        reason: skipped.unwrap_or_default(),
        spent_s: 0.0,
        failure: None,
        kernels: None,
        same_build: None,
        exact: Default::default(),
        calls_per_sample: 1,
        units: Vec::new(),
    }
}

/// Measures until every workload is decided, the budget is spent, or `stop` returns true. Continues from the units
/// already in the report. `wanted` selects workloads by their position in the report.
pub fn measure(
    sides: &Sides,
    report: &mut AbReport,
    wanted: impl Fn(usize) -> bool,
    decide: &mut dyn Decide,
    stop: &(dyn Fn() -> bool + Sync),
    on_unit: &mut dyn FnMut(&AbReport),
) {
    // Not on the budget: it is for units.
    set_up(sides, report, &wanted, decide);
    exact::count(sides, report, stop);
    let (start, elapsed_before_s) = (Instant::now(), report.elapsed_s);
    let mut lanes: Vec<Lane> = Vec::new();
    for (index, (name, workload)) in report.workloads.iter().enumerate() {
        let specs = (find(&sides.base, name), find(&sides.head, name));
        let goes_on = wanted(index) && workload.ended != Ended::Failed;
        if let (Some(base), Some(head), true) = (specs.0, specs.1, goes_on) {
            lanes.push(Lane::new(index, [base, head], workload));
        }
    }
    let units = report.workloads.values().flat_map(|workload| &workload.units);
    let units_before = units.map(|unit| unit.process.saturating_add(1)).max().unwrap_or(0);
    let mut runner = Runner {
        sides,
        random: Random::new(report.plan.seed ^ (u64::from(units_before) << 32)),
        watches: Vec::new(),
        cpus: crate::program::cpus_allowed(),
        process: units_before,
        reused: None,
        at_once: AtOnce::default(),
        fresh: Fresh::new(sides),
    };
    let mut left = lanes.len();
    for lanes in lanes.chunks_mut(ALIVE_MAX) {
        let total_s = report.plan.budget_s * report.workloads.len() as f64;
        let share = lanes.len() as f64 / left.max(1) as f64;
        let end_s = report.elapsed_s + (total_s - report.elapsed_s).max(0.0) * share;
        left -= lanes.len();
        loop {
            end_those_with_enough(lanes, report);
            let mut active: Vec<&mut Lane> = lanes.iter_mut().filter(|lane| lane.goes_on).collect();
            if active.is_empty() {
                break;
            }
            let is_stopped = stop();
            let left_s = (end_s - report.elapsed_s) / active.len() as f64;
            // Where not even the shortest unit fits any more, what is left of the budget cannot be used.
            let is_over = active.iter().all(|lane| lane.is_over(left_s));
            if is_stopped || is_over {
                let ended = if is_stopped { Ended::Interrupted } else { Ended::Budget };
                active.iter().for_each(|lane| report.workloads[lane.index].ended = ended);
                break;
            }
            // Those that need processes of their own come last, so that the others can keep theirs.
            if active.iter().any(|lane| !lane.has_own_processes) {
                active.retain(|lane| !lane.has_own_processes);
            }
            for lane in &mut active {
                lane.plan_unit(report, decide, left_s);
            }
            runner.measure_units(&mut active, report, decide, stop);
            report.elapsed_s = elapsed_before_s + start.elapsed().as_secs_f64();
            if active.iter().any(|lane| lane.plan.rounds > 0) {
                on_unit(report);
            }
        }
    }
    let changed = runner.fresh.changed_copies();
    drop(runner);
    crate::jobs::sweep();
    report.finished = !stop();
    if let Some(original) = changed.get() {
        let is_base = sides.base.dir.as_ref().is_some_and(|dir| Path::new(original).starts_with(dir));
        let side = if is_base { SideName::Base } else { SideName::Head };
        distrust::refuse(report, side, &clean_text(&original.to_string_lossy()));
    }
}

/// A workload may use its own share of the budget and so many others that were left unused. In a suite of hundreds, one whose change
/// lies at the tolerance would otherwise take hours.
const SHARES_MAX: f64 = 8.0;

/// Ends workloads that have used their share of the budget, and their share of what others left.
fn end_those_with_enough(lanes: &mut [Lane], report: &mut AbReport) {
    let most_s = SHARES_MAX * report.plan.budget_s;
    for lane in lanes.iter_mut().filter(|lane| lane.goes_on) {
        let workload = &mut report.workloads[lane.index];
        if workload.spent_s >= most_s && !workload.units.is_empty() {
            (lane.goes_on, workload.ended) = (false, Ended::Budget);
        }
    }
}

/// Runs what the workloads of either side need run once.
fn set_up(sides: &Sides, report: &mut AbReport, wanted: &dyn Fn(usize) -> bool, decide: &mut dyn Decide) {
    let workloads = report.workloads.iter_mut().enumerate().filter(|(index, _)| wanted(*index));
    for (index, (name, workload)) in workloads {
        let prepared = [(SideName::Base, &sides.base), (SideName::Head, &sides.head)].map(|(side, suite)| {
            let place = Place { dir: suite.dir.clone(), ..Place::default() };
            let ran = find(suite, name)
                .and_then(|spec| spec.task.call())
                .map_or(Ok(()), |call| crate::program::set_up(call, &place));
            ran.err().map(|error| SideFailure { side, failure: error.into() })
        });
        if let Some(failure) = prepared.into_iter().flatten().next() {
            (workload.ended, workload.failure) = (Ended::Failed, Some(failure));
            decide.drop_out(index);
        }
    }
}

struct Runner<'a> {
    sides: &'a Sides,
    random: Random,
    /// One for each unit that is measured at the same time.
    watches: Vec<Watch>,
    cpus: Vec<usize>,
    process: u32,
    /// A pair that serves several units, and how many it has served.
    reused: Option<(Pair<'a>, u32)>,
    at_once: AtOnce,
    fresh: Fresh,
}

impl<'a> Runner<'a> {
    /// Measures several units at the same time, each on its own CPU. All of them count, whatever the first ones decide,
    /// in the order in which they began: which one ends first may depend on its times.
    fn measure_units(
        &mut self,
        lanes: &mut [&mut Lane<'a>],
        report: &mut AbReport,
        decide: &mut dyn Decide,
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        let start = Instant::now();
        let units_count = self.units_at_once(lanes, report);
        lanes.iter_mut().for_each(|lane| lane.begin());
        self.random.shuffle(&mut self.cpus);
        self.watches.resize_with(units_count.max(self.watches.len()), Watch::new);
        let copies = self.fresh.copies(&mut self.random);
        let mut units: Vec<OneUnit<'a, '_>> = Vec::new();
        for (at, watch) in self.watches.iter_mut().take(units_count).enumerate() {
            units.push(OneUnit {
                sides: self.sides,
                cpu: self.cpus.get(at).copied(),
                copies: copies.clone(),
                random: Random::new(self.random.bits()),
                watch,
                lanes: lanes.iter().map(|lane| (**lane).clone()).collect(),
            });
        }
        let is_first = lanes.iter().all(|lane| lane.plan.rounds == 0);
        let units_per_pair = match () {
            // These processes have only shown how long a sample is.
            () if is_first => u32::MAX,
            () if units_count == 1 => units_per_process(self.sides, lanes),
            () => 1,
        };
        let (mut pair, served) = self.reused.take().map_or((None, 0), |(pair, served)| (Some(pair), served));
        std::thread::scope(|scope| {
            let (first, others) = units.split_at_mut(1);
            for unit in others {
                scope.spawn(move || unit.measure(&mut None, stop));
            }
            first.iter_mut().for_each(|unit| unit.measure(&mut pair, stop));
            // A pair that serves no other unit ends while this unit's time still runs.
            if served + 1 >= units_per_pair {
                pair = None;
            }
        });
        // Time spent in parallel counts once.
        let cost_s: f64 = units.iter().flat_map(|unit| &unit.lanes).map(|lane| lane.spent_s).sum();
        let share = start.elapsed().as_secs_f64() / cost_s;
        let measured: Vec<Vec<Lane>> = units.into_iter().map(|unit| unit.lanes).collect();
        for of_unit in measured {
            for (lane, measured) in lanes.iter_mut().zip(of_unit) {
                lane.take_over(measured);
                lane.spent_s *= share;
                lane.finish(self.process, report, decide, stop());
            }
            // A number that was typed may be the last one; the next pair needs another all the same.
            self.process = self.process.wrapping_add(u32::from(pair.is_none()));
        }
        self.at_once.push(lanes, report, decide, units_count);
        self.reused = pair.map(|pair| (pair, if is_first { 0 } else { served + 1 }));
    }

    /// One, if a unit is not pinned, uses a device, or the length of a sample is not chosen yet.
    fn units_at_once(&self, lanes: &[&mut Lane], report: &AbReport) -> usize {
        let is_held = |lane: &Lane| is_pinned(self.sides, &lane.specs()) || lane.plan.clock == Clock::Tandem;
        let is_on_device = |lane: &Lane| {
            let units = &report.workloads[lane.index].units;
            units.iter().flat_map(|unit| &unit.rounds).any(|round| round.state.device.is_some())
        };
        let alone = lanes.iter().any(|lane| !lane.has_batch || !is_held(lane) || is_on_device(lane));
        let most = (report.plan.units_at_once as usize).clamp(1, self.cpus.len().max(1));
        if alone { 1 } else { self.at_once.choose(lanes, most) }
    }
}

/// Units that a pair of processes serves: the lowest number of all its workers.
fn units_per_process(sides: &Sides, lanes: &[&mut Lane]) -> u32 {
    let sides_and_specs = lanes.iter().flat_map(|lane| sides.pair().into_iter().zip(lane.specs()));
    let units = sides_and_specs
        .map(|(suite, spec)| suite.workers.get(spec.worker()).map_or(1, |worker| worker.units_per_process));
    if lanes.iter().any(|lane| lane.has_own_processes) { 1 } else { units.min().unwrap_or(1) }
}

struct OneUnit<'a, 'w> {
    sides: &'a Sides,
    cpu: Option<usize>,
    copies: Copies,
    random: Random,
    watch: &'w mut Watch,
    lanes: Vec<Lane<'a>>,
}

impl<'a> OneUnit<'a, '_> {
    /// A fresh pair of processes, and the rounds of each workload.
    fn measure(&mut self, reused: &mut Option<Pair<'a>>, stop: &dyn Fn() -> bool) {
        let Self { sides, cpu, copies, random, watch, lanes } = self;
        let shared = Instant::now();
        let mut pair = reused.take().unwrap_or_else(|| Pair::new(sides, *cpu, copies.clone()));
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        random.shuffle(&mut order);
        for at in &order {
            lanes[*at].attempt(&mut pair, |lane, pair| pair.start(lane, random));
        }
        let mut shared_s = shared.elapsed().as_secs_f64();
        let each_s = shared_s / lanes.len().max(1) as f64;
        lanes.iter_mut().for_each(|lane| lane.spending.add_start(each_s));
        // How many rounds one workload has must not change the order of the next.
        let mut randoms: Vec<Random> = lanes.iter().map(|_| Random::new(random.bits())).collect();
        pair.announce(lanes, &order);
        // One workload after the other, so that only the other side comes between a workload and its caches.
        for (position, at) in order.into_iter().enumerate() {
            let position = u32::try_from(position).unwrap_or(u32::MAX);
            let random = &mut randoms[at];
            lanes[at].attempt(&mut pair, |lane, pair| pair.prepare(lane, random));
            Lane::pass_blame(lanes, at);
            for round in 0..lanes[at].plan.rounds {
                if stop() {
                    break;
                }
                lanes[at].attempt(&mut pair, |lane, pair| pair.round(lane, [round, position], random, watch));
                Lane::pass_blame(lanes, at);
            }
            if !stop() {
                lanes[at].attempt(&mut pair, |lane, pair| pair.ask_for_one(lane, random));
                Lane::pass_blame(lanes, at);
                lanes[at].attempt(&mut pair, |lane, pair| pair.verify(lane));
                Lane::pass_blame(lanes, at);
            }
        }
        // A pair that lost a process, or was stopped, serves no further unit.
        let ending = Instant::now();
        *reused = Some(pair).filter(|pair| pair.is_whole() && !stop());
        shared_s += ending.elapsed().as_secs_f64();
        let each_s = shared_s / lanes.len().max(1) as f64;
        lanes.iter_mut().for_each(|lane| lane.spent_s += each_s);
        Lane::book_rounds(lanes);
    }
}
