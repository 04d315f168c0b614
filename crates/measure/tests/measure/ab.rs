//! Two sides at once: fresh processes, random order, and whatever either side does wrong.

use crate::common::{PLAN, is_gone, ready, suite, worker};
use crate::program::write_program;
use holdpoint_measure::ab::{self, Decide, Sides};
use holdpoint_model::ab::{Clock, Ended};
use holdpoint_model::{
    AbPlan, AbReport, AbWorkload, FailureCause, Side, SideName, Suite, Unit, UnitCost, UnitPlan,
};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Wants so many units of each workload and keeps what it was told.
pub(crate) struct Enough {
    pub units: usize,
    pub told: Vec<(usize, f64)>,
    pub out: Vec<usize>,
    pub rounds: u32,
    pub noise: Option<f64>,
    pub costs: Vec<UnitCost>,
    /// The workload that lacks pairs of processes from its second unit on.
    pub lacking: Option<usize>,
}

impl Decide for Enough {
    fn plan_unit(&mut self, _: usize, _: &[Unit], cost: &UnitCost) -> UnitPlan {
        self.costs.push(*cost);
        UnitPlan { rounds: self.rounds, samples: 1, skip: 0, quantile: 0.0, clock: Clock::Unwaited }
    }

    fn noise(&self, _: &[Unit]) -> Option<f64> {
        self.noise
    }

    fn estimate(&mut self, unit: &mut Unit) -> Option<f64> {
        let ns = |times: &[u64]| times.iter().min().map(|ns| (*ns as f64).ln());
        let round = unit.rounds.first()?;
        unit.x = ns(&round.head_ns)? - ns(&round.base_ns)?;
        Some(unit.x)
    }

    fn push(&mut self, workload: usize, unit: &Unit) -> bool {
        self.told.push((workload, unit.x));
        self.told.iter().filter(|(told, _)| *told == workload).count() < self.units
    }

    fn lacks_pairs(&self, workload: usize) -> bool {
        self.lacking == Some(workload) && self.told.iter().filter(|(told, _)| *told == workload).count() >= 2
    }

    fn drop_out(&mut self, workload: usize) {
        self.out.push(workload);
    }
}

pub(crate) fn enough(units: usize) -> Enough {
    let (told, out, costs) = (Vec::new(), Vec::new(), Vec::new());
    Enough { units, told, out, rounds: 3, noise: None, costs, lacking: None }
}

pub(crate) fn plan() -> AbPlan {
    AbPlan {
        tolerance: 0.01,
        tolerances: Default::default(),
        metrics: Default::default(),
        speedup_max: None,
        alarm_rate: 0.001,
        miss_rate: 0.01,
        units_max: 100,
        budget_s: 1_000.0,
        clock: None,
        units_at_once: 1,
        seed: 1,
    }
}

/// A side whose only worker has this script in it.
pub(crate) fn side(script: &str, pids: &Path) -> Suite {
    let workload = |name: &str| {
        format!("[[workload]]\nname = \"{name}\"\nop = \"copy\"\nshape = [2, 3]\nworker = \"w\"\n")
    };
    let rest = format!("[workers.w]\n{}{}{}", worker(script, pids), workload("bad"), workload("other"));
    suite(&format!("{PLAN}timeout_ms = 20000\n"), &rest)
}

pub(crate) fn named(label: &str) -> Side {
    Side { label: label.to_owned(), ..Side::default() }
}

struct Ran {
    report: AbReport,
    decide: Enough,
    pids: Vec<i32>,
}

fn compare_with(plan: AbPlan, base: &str, head: &str, units: usize, stop: &(dyn Fn() -> bool + Sync)) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let sides = Sides {
        base: ready(side(base, &pids)),
        head: ready(side(head, &pids)),
        pin: false,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan, named("base"), named("head"));
    let mut decide = enough(units);
    ab::measure(&sides, &mut report, |_| true, &mut decide, stop, &mut |_| {});
    let pids = std::fs::read_to_string(pids).unwrap_or_default();
    let pids: Vec<i32> = pids.lines().map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|pid| is_gone(*pid)), "a process is left");
    Ran { report, decide, pids }
}

fn compare(base: &str, head: &str, units: usize) -> Ran {
    compare_with(plan(), base, head, units, &|| false)
}

impl Ran {
    fn of(&self, name: &str) -> &AbWorkload {
        &self.report.workloads[name]
    }
}

/// Twice the time of the plain worker.
const SLOW: &str = "durations() { n=$1; list=4000; while [ \"$n\" -gt 1 ]; do list=$list,4000; n=$((n - 1)); done; printf '%s' \"$list\"; }";

#[test]
fn every_unit_is_a_fresh_pair_of_processes_and_every_sample_knows_its_place() {
    let ran = compare("", SLOW, 8);
    assert_eq!(ran.pids.iter().collect::<BTreeSet<_>>().len(), 16);
    assert!(ran.report.finished);
    let (mut firsts, mut orders) = (BTreeSet::new(), BTreeSet::new());
    for name in ["bad", "other"] {
        let workload = ran.of(name);
        assert_eq!(workload.ended, Ended::Decided);
        assert_eq!(
            workload.units.iter().map(|unit| unit.process).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        for unit in &workload.units {
            assert!((unit.x - 2_f64.ln()).abs() < 1e-12);
            assert_eq!(unit.rounds.iter().map(|round| round.round).collect::<Vec<_>>(), [0, 1, 2]);
            for round in &unit.rounds {
                assert!(round.base_ns.iter().all(|ns| *ns == 2000) && !round.base_ns.is_empty());
                assert!(round.head_ns.iter().all(|ns| *ns == 4000));
                assert_eq!(round.base_ns.len(), round.head_ns.len());
                firsts.insert(round.first.as_str());
                orders.insert(round.order);
            }
        }
        assert!(workload.spent_s > 0.0);
    }
    assert_eq!(firsts.len(), 2, "both sides go first now and then");
    assert_eq!(orders.into_iter().collect::<Vec<_>>(), [0, 1]);
}

/// A worker that is ready once as many processes were started as a pair has.
const WAITING: &str = "pids=$1
ready() { while [ $(($(wc -l < \"$pids\") % 2)) -ne 0 ]; do sleep 0.01; done; }
ready";

#[test]
fn both_sides_of_a_pair_load_at_the_same_time() {
    let ran = compare(WAITING, WAITING, 2);
    assert!(ran.of("other").failure.is_none(), "{:?}", ran.of("other").failure);
    assert_eq!((ran.of("other").ended, ran.pids.len()), (Ended::Decided, 4));
}

#[test]
fn a_workload_that_is_decided_stops_and_the_others_go_on() {
    struct Uneven(Enough);
    impl Decide for Uneven {
        fn plan_unit(&mut self, workload: usize, units: &[Unit], cost: &UnitCost) -> UnitPlan {
            self.0.plan_unit(workload, units, cost)
        }
        fn noise(&self, units: &[Unit]) -> Option<f64> {
            self.0.noise(units)
        }
        fn estimate(&mut self, unit: &mut Unit) -> Option<f64> {
            self.0.estimate(unit)
        }
        fn push(&mut self, workload: usize, unit: &Unit) -> bool {
            self.0.push(workload, unit) && workload == 1
        }
        fn drop_out(&mut self, _: usize) {}
    }
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let sides = Sides {
        base: ready(side("", &pids)),
        head: ready(side("", &pids)),
        pin: true,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    let mut decide = Uneven(enough(5));
    ab::measure(&sides, &mut report, |_| true, &mut decide, &|| false, &mut |_| {});
    assert_eq!((report.workloads["bad"].units.len(), report.workloads["other"].units.len()), (1, 5));
}

#[test]
fn a_side_that_dies_half_way_is_named_and_loses_no_samples() {
    // One or two runs to choose the batch, three rounds in the first unit; later processes die in their second round.
    let script = "n=0\nbad_run() { n=$((n + 1)); [ -e \"$0.seen\" ] && [ $n -ge 2 ] && exit 3; ok_run; }\nok_bye() { say '{\"type\":\"bye\"}'; exit 0; }";
    let dir = tempfile::tempdir().unwrap();
    let flag = dir.path().join("flag");
    let script = script.replace("$0.seen", flag.to_str().unwrap());
    let units = AtomicU32::new(0);
    let stop = || {
        // After the first unit has been taken the worker is to die.
        units.fetch_add(1, SeqCst);
        if units.load(SeqCst) == 18 {
            std::fs::write(&flag, "").unwrap();
        }
        false
    };
    let ran = compare_with(plan(), "", &script, 6, &stop);
    let bad = ran.of("bad");
    assert_eq!(bad.ended, Ended::Failed);
    let failure = bad.failure.as_ref().unwrap();
    assert_eq!((failure.side, failure.failure.cause), (SideName::Head, FailureCause::Crashed));
    assert!(failure.failure.detail.contains("exit status: 3"), "{:?}", failure.failure);
    assert!(bad.units.len() >= 2, "what was measured before is kept: {:?}", bad.units.len());
    assert!(bad.units.last().unwrap().rounds.len() < 3, "and so is the half unit");
    // The neighbour lost that unit at most, and went on to its end.
    assert_eq!((ran.of("other").ended, ran.of("other").units.len()), (Ended::Decided, 6));
    assert_eq!(ran.decide.out, [0]);
}

#[test]
fn a_side_that_cannot_be_started_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let mut head = side("", &pids);
    head.workers.get_mut("w").unwrap().command = vec!["/nowhere/worker".to_owned()];
    let sides =
        Sides { base: ready(side("", &pids)), head: ready(head), pin: false, measure_same_code: false };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    ab::measure(&sides, &mut report, |_| true, &mut enough(3), &|| false, &mut |_| {});
    for workload in report.workloads.values() {
        let failure = workload.failure.as_ref().unwrap();
        assert_eq!((failure.side, failure.failure.cause), (SideName::Head, FailureCause::NotStarted));
    }
}

#[test]
fn a_wrong_answer_breaks_the_side_that_gave_it() {
    let ran = compare("bad_verify() { answer false '\"y[3] is 7\"'; }", "", 3);
    let failure = ran.of("bad").failure.as_ref().unwrap();
    assert_eq!((failure.side, failure.failure.cause), (SideName::Base, FailureCause::WrongAnswer));
    assert_eq!(ran.of("bad").units.len(), 1, "its times are kept as evidence");
    assert_eq!(ran.of("other").ended, Ended::Decided);
}

#[test]
fn workers_with_other_workloads_are_not_compared() {
    let listed =
        "listed() { printf '{\"name\":\"%s\",\"op\":\"copy\",\"shape\":[2,4],\"dtype\":\"f32\"}' \"$1\"; }";
    let ran = compare("", listed, 3);
    for name in ["bad", "other"] {
        let workload = ran.of(name);
        assert_eq!(workload.ended, Ended::Skipped);
        assert!(workload.reason.contains("head's the suite asks for copy [2, 3]"), "{}", workload.reason);
        assert!(workload.units.is_empty());
    }
}

/// A side whose worker stands in for a device's, and tells this hash of its kernel.
fn device_side(code: &str, timer: &str, pids: &Path) -> Suite {
    let script = format!(
        "ok_prepare() {{ say \"{{\\\"type\\\":\\\"prepared\\\",\\\"workload\\\":\\\"$workload\\\",\\\"kernel\\\":{{\\\"op_name\\\":\\\"copy\\\",\\\"kernel_name\\\":\\\"copy_fast\\\",\\\"shape_bucket\\\":\\\"n=6\\\",\\\"selection_source\\\":\\\"heuristic\\\",\\\"launches_per_call\\\":1,\\\"code_sha256\\\":\\\"{code}\\\",\\\"launches\\\":[\\\"copy_fast (1,1,1)x(32,1,1)+0\\\"]}}}}\"; }}"
    );
    let rest = format!(
        "[workers.cuda]\n{}[[workload]]\nname = \"other\"\nop = \"copy\"\nshape = [2, 3]\nworker = \"cuda\"\ntimer = \"{timer}\"\n",
        worker(&script, pids)
    );
    suite(&format!("{PLAN}timeout_ms = 20000\n"), &rest)
}

#[test]
fn the_same_machine_code_on_both_sides_passes_without_being_measured() {
    let compare = |codes: [&str; 2], timer: &str, measure_same_code: bool| {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let [base, head] = codes.map(|code| device_side(code, timer, &pids));
        let sides = Sides { base: ready(base), head: ready(head), pin: false, measure_same_code };
        let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
        let mut decide = enough(2);
        ab::measure(&sides, &mut report, |_| true, &mut decide, &|| false, &mut |_| {});
        (report.workloads["other"].clone(), decide.out)
    };
    let (same, out) = compare(["0123456789abcdef"; 2], "cuda_graph", false);
    assert_eq!((same.ended, same.units.len()), (Ended::SameCode, 0));
    assert!(same.reason.contains("0123456789ab") && same.reason.contains("not measured"), "{}", same.reason);
    assert_eq!(out, [0]);
    for (codes, timer, measure_same_code) in [
        (["a", "b"], "cuda_graph", false),
        (["a", "a"], "cuda_graph", true),
        (["a", "a"], "host_monotonic", false),
    ] {
        let (workload, _) = compare(codes, timer, measure_same_code);
        assert_eq!((workload.ended, workload.units.len()), (Ended::Decided, 2), "{codes:?} {timer}");
    }
}

#[test]
fn what_only_one_suite_has_is_told() {
    let of = |names: &[&str]| {
        let text: String = names
            .iter()
            .map(|name| format!("[[workload]]\nname = \"{name}\"\ncommand = [\"true\"]\n"))
            .collect();
        Suite::parse(&format!("schema_version = 1\nname = \"s\"\n{text}")).unwrap()
    };
    let sides = Sides {
        base: ready(of(&["kept", "gone"])),
        head: ready(of(&["kept", "new"])),
        pin: false,
        measure_same_code: false,
    };
    let report = ab::begin(&sides, plan(), named("base"), named("head"));
    assert_eq!(report.workloads.keys().collect::<Vec<_>>(), ["kept", "gone"]);
    assert_eq!(report.workloads["gone"].ended, Ended::Skipped);
    assert!(report.workloads["gone"].reason.contains("base has this workload, head does not"));
    assert_eq!(report.notes, ["new is new in head: there is nothing to compare it with"]);
}

#[test]
fn suites_of_other_shapes_are_not_the_same_work() {
    let of = |size: usize| {
        let text = format!(
            "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\nop = \"tile_ssm\"\nshape = [1, {size}, 8]\n"
        );
        Suite::parse(&text).unwrap()
    };
    let sides = Sides { base: ready(of(16)), head: ready(of(32)), pin: false, measure_same_code: false };
    let report = ab::begin(&sides, plan(), named("base"), named("head"));
    assert!(report.workloads["w"].reason.contains("not the same work"), "{}", report.workloads["w"].reason);
}

#[test]
fn units_measured_at_the_same_time_all_count_in_the_order_in_which_they_began() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let sides = Sides {
        base: ready(side("", &pids)),
        head: ready(side("", &pids)),
        pin: true,
        measure_same_code: false,
    };
    let plan = AbPlan { units_at_once: 2, ..plan() };
    let mut report = ab::begin(&sides, plan, named("base"), named("head"));
    let mut decide = enough(9);
    let mut units_after = Vec::new();
    ab::measure(&sides, &mut report, |_| true, &mut decide, &|| false, &mut |report| {
        units_after.push(report.workloads["bad"].units.len());
    });
    // Four alone, then four by two, then whichever was better; perhaps one more than was wanted, because it was under way.
    let at_once = std::thread::available_parallelism().unwrap().get().min(2);
    let (measured, last) = units_after.split_at(units_after.len() - 1);
    let expected: &[usize] = if at_once == 2 { &[1, 2, 3, 4, 6, 8] } else { &[1, 2, 3, 4, 5, 6, 7, 8] };
    assert_eq!(measured, expected);
    assert!((9..=8 + at_once).contains(&last[0]), "{last:?}");
    for (index, workload) in report.workloads.values().enumerate() {
        let told: Vec<f64> = decide.told.iter().filter(|(of, _)| *of == index).map(|(_, x)| *x).collect();
        assert_eq!(told, workload.units.iter().map(|unit| unit.x).collect::<Vec<_>>());
        assert!(workload.units.iter().map(|unit| unit.process as usize).eq(0..told.len()));
        assert_eq!(workload.ended, Ended::Decided);
    }
    let spent_s: f64 = report.workloads.values().map(|workload| workload.spent_s).sum();
    assert!(spent_s <= report.elapsed_s, "what is spent at the same time is spent once");
}

/// Tells the state of a device with its samples.
#[test]
fn an_end_from_outside_keeps_what_there_is_and_it_goes_on_from_there() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let sides = Sides {
        base: ready(side("", &pids)),
        head: ready(side("", &pids)),
        pin: false,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    let units = AtomicU32::new(0);
    ab::measure(&sides, &mut report, |_| true, &mut enough(9), &|| units.load(SeqCst) >= 3, &mut |_| {
        units.fetch_add(1, SeqCst);
    });
    assert!(!report.finished);
    assert!(report.workloads.values().all(|w| w.ended == Ended::Interrupted && w.units.len() == 3));
    let spent_s = report.elapsed_s;
    ab::measure(&sides, &mut report, |index| index == 0, &mut enough(2), &|| false, &mut |_| {});
    assert!(report.finished && report.elapsed_s > spent_s);
    let processes: Vec<u32> = report.workloads["bad"].units.iter().map(|unit| unit.process).collect();
    assert_eq!(processes, [0, 1, 2, 3, 4]);
    assert_eq!(report.workloads["other"].units.len(), 3);
}

#[test]
fn one_workload_takes_no_more_than_eight_shares_of_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let sides = Sides {
        base: ready(side("", &pids)),
        head: ready(side("", &pids)),
        pin: false,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    let mut units_after = |spent_shares: f64, units: usize| {
        report.workloads["bad"].spent_s = spent_shares * report.plan.budget_s;
        ab::measure(&sides, &mut report, |index| index == 0, &mut enough(units), &|| false, &mut |_| {});
        (report.workloads["bad"].units.len(), report.workloads["bad"].ended)
    };
    assert_eq!(units_after(0.0, 1), (1, Ended::Decided));
    assert_eq!(units_after(7.9, 1), (2, Ended::Decided));
    assert_eq!(units_after(8.0, 1), (2, Ended::Budget));
}

#[test]
fn the_budget_and_the_number_of_units_end_it() {
    let ran = compare_with(AbPlan { units_max: 2, ..plan() }, "", "", 9, &|| false);
    assert!(ran.report.workloads.values().all(|w| w.ended == Ended::UnitsMax && w.units.len() == 2));
    let ran = compare_with(AbPlan { budget_s: 1e-6, ..plan() }, "", "", 9, &|| false);
    assert!(ran.report.workloads.values().all(|w| w.ended == Ended::Budget && w.units.len() == 1));
}

#[test]
fn a_command_is_called_once_on_each_side_before_anything_is_known_about_it() {
    let of = |program: &str| {
        let text = format!(
            "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\ncommand = [\"{program}\"]\n"
        );
        Suite::parse(&text).unwrap()
    };
    let sides =
        Sides { base: ready(of("true")), head: ready(of("true")), pin: false, measure_same_code: false };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    let mut decide = Enough { rounds: 1, ..enough(4) };
    ab::measure(&sides, &mut report, |_| true, &mut decide, &|| false, &mut |_| {});
    let units = &report.workloads["w"].units;
    assert_eq!(units.len(), 4);
    let calls = |unit: &Unit| unit.rounds.iter().map(|round| round.base_ns.len()).sum::<usize>();
    assert!(units.iter().all(|unit| calls(unit) == 1), "no call is made that does not count");
    if Path::new("/proc/self/schedstat").exists() {
        assert!(units.iter().flat_map(|unit| &unit.rounds).all(|round| round.tells_waits()));
    }
    assert_eq!(decide.costs[0].sample_s, 0.0);
    assert!(decide.costs[1..].iter().all(|cost| cost.sample_s > 0.0 && cost.unit_s_max > 0.0));
}

#[test]
fn programs_are_looked_up_where_their_side_is() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (dir, code) in dirs.iter().zip(["0", "7"]) {
        let path = dir.path().join("prog");
        write_program(&path, format!("#!/bin/sh\nexit {code}\n"));
    }
    let of = |dir: &Path| {
        let text = "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\ncommand = [\"./prog\"]\n";
        Suite { dir: Some(dir.to_owned()), ..Suite::parse(text).unwrap() }
    };
    let sides = Sides {
        base: ready(of(dirs[0].path())),
        head: ready(of(dirs[1].path())),
        pin: false,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    ab::measure(&sides, &mut report, |_| true, &mut enough(2), &|| false, &mut |_| {});
    let failure = report.workloads["w"].failure.as_ref().unwrap();
    assert_eq!(failure.side, SideName::Head);
    assert!(failure.failure.detail.contains("exit status: 7"));
}

#[test]
fn times_of_two_timers_are_not_compared() {
    let other = "ok_hello() { say '{\"type\":\"hello\",\"protocol\":2,\"name\":\"sh\",\"version\":\"1\",\"timer\":\"cuda_graph\",\"clock_resolution_ns\":1}'; }";
    let ran = compare("", other, 2);
    let workload = ran.of("bad");
    assert_eq!((workload.ended, workload.units.len()), (Ended::Skipped, 0));
    let expected = "not the same timer: base's worker names host_monotonic, head's cuda_graph";
    assert_eq!(workload.reason, expected);
}
