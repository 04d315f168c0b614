//! The inputs of both sides: the same in a round, new in each, and no answer kept from earlier ones counts.

use crate::ab::{enough, named, plan, side};
use crate::common::ready;
use holdpoint_measure::ab::{self, Sides};
use holdpoint_model::ab::Ended;
use holdpoint_model::{AbReport, FailureCause, SideName};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

fn compare(base: &str, head: &str, units: usize, dir: &Path) -> AbReport {
    let pids = dir.join("pids");
    let sides = Sides {
        base: ready(side(base, &pids)),
        head: ready(side(head, &pids)),
        pin: false,
        measure_same_code: false,
    };
    let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
    ab::measure(&sides, &mut report, |_| true, &mut enough(units), &|| false, &mut |_| {});
    report
}

/// Writes down the seed of each request, one file a side.
const SEEDS: &str = "seeds=$1.SIDE
plain_run() { say \"{\\\"type\\\":\\\"samples\\\",\\\"workload\\\":\\\"$workload\\\",\\\"calls_per_sample\\\":$calls,\\\"elapsed_ns\\\":[$(durations \"$samples\")]}\"; }
ok_run() { number seed; echo \"$$ $workload $value\" >> \"$seeds\"; plain_run; }
bad_run() { ok_run; }";

#[test]
fn both_sides_get_the_same_inputs_in_a_round_and_new_ones_in_each() {
    let dir = tempfile::tempdir().unwrap();
    let [base, head] = ["base", "head"].map(|name| SEEDS.replace("SIDE", name));
    let report = compare(&base, &head, 3, dir.path());
    assert!(report.workloads.values().all(|workload| workload.ended == Ended::Decided), "{report:#?}");
    let read = |name: &str| {
        let text = std::fs::read_to_string(dir.path().join(format!("pids.{name}"))).unwrap();
        let mut processes: Vec<(String, BTreeMap<String, Vec<u64>>)> = Vec::new();
        for line in text.lines() {
            let [process, workload, seed] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
            if processes.last().is_none_or(|(last, _)| last != process) {
                processes.push((process.to_owned(), BTreeMap::new()));
            }
            let seeds = &mut processes.last_mut().unwrap().1;
            seeds.entry(workload.to_owned()).or_default().push(seed.parse().unwrap());
        }
        processes
    };
    let (base, head) = (read("base"), read("head"));
    // The first pair has also chosen the batch, before its rounds.
    assert_eq!((base.len(), head.len()), (3, 3));
    let mut seen = BTreeSet::new();
    for ((_, base), (_, head)) in base.iter().zip(&head) {
        for (workload, seeds) in base {
            let rounds = |seeds: &[u64]| seeds[seeds.len() - 3..].to_vec();
            assert_eq!(rounds(seeds), rounds(&head[workload]), "{workload}");
            assert!(rounds(seeds).into_iter().all(|seed| seen.insert(seed)), "{workload}: {seeds:?}");
        }
    }
}

/// Computes at every sixteenth call, and else leaves the answer that it has. A run makes sixteen calls.
const NOW_AND_THEN: &str = "n=0; kept=
work() { before=$((n / 16)); n=$((n + $1)); [ $((n / 16)) -eq $before ] || kept=$seed; ran=1; }
bad_prepare() { number seed; seed=$value; ran=; ok_prepare; }
bad_run() { number seed; seed=$value; work 16; ok_run; }
bad_verify() { [ -n \"$ran\" ] || work 1; if [ \"$kept\" = \"$seed\" ]; then answer true null; else answer false '\"stale\"'; fi; }";

#[test]
fn a_side_that_computes_only_now_and_then_is_caught_by_single_calls() {
    let dir = tempfile::tempdir().unwrap();
    for (base, head, side) in [("", NOW_AND_THEN, SideName::Head), (NOW_AND_THEN, "", SideName::Base)] {
        let report = compare(base, head, 4, dir.path());
        let failure = report.workloads["bad"].failure.as_ref().unwrap();
        assert_eq!((failure.side, failure.failure.cause), (side, FailureCause::WrongAnswer));
        assert!(failure.failure.detail.contains("after one call on new inputs: stale"), "{failure:?}");
        assert_eq!(report.workloads["other"].ended, Ended::Decided, "an honest worker passes");
    }
}

/// A worker that says how long the first call on new inputs takes.
fn first_ns(ns: u64) -> String {
    format!(
        "bad_run() {{ say \"{{\\\"type\\\":\\\"samples\\\",\\\"workload\\\":\\\"$workload\\\",\\\"calls_per_sample\\\":$calls,\\\"first_ns\\\":{ns},\\\"elapsed_ns\\\":[$(durations \"$samples\")]}}\"; }}"
    )
}

#[test]
fn answers_kept_within_a_request_are_caught_if_only_one_side_keeps_them() {
    let dir = tempfile::tempdir().unwrap();
    let report = compare(&first_ns(2_100), &first_ns(500_000), 6, dir.path());
    let failure = report.workloads["bad"].failure.as_ref().unwrap();
    assert_eq!((failure.side, failure.failure.cause), (SideName::Head, FailureCause::BadTime));
    assert!(failure.failure.detail.contains("kept from call to call"), "{failure:?}");
    let report = compare(&first_ns(500_000), &first_ns(600_000), 6, dir.path());
    assert_eq!(
        report.workloads["bad"].ended,
        Ended::Decided,
        "data that prepare something do so on both sides"
    );
}

/// A worker whose workload keeps answers, as it says itself.
const REMEMBERS: &str = "ok_list() { say \"{\\\"type\\\":\\\"workloads\\\",\\\"workloads\\\":[$(listed bad | sed 's/}/,\"remembers\":true}/'),$(listed other),$(listed good)]}\"; }";

#[test]
fn a_cache_is_compared_with_a_cache_only() {
    let dir = tempfile::tempdir().unwrap();
    for (base, head, side) in [("", REMEMBERS, "head"), (REMEMBERS, "", "base")] {
        let report = compare(base, head, 2, dir.path());
        let workload = &report.workloads["bad"];
        assert_eq!(workload.ended, Ended::Skipped, "{workload:?}");
        assert!(
            workload.reason.contains(&format!("not the same work: only {side} remembers")),
            "{workload:?}"
        );
        assert_eq!(report.workloads["other"].ended, Ended::Decided);
    }
    let report = compare(REMEMBERS, REMEMBERS, 2, dir.path());
    assert_eq!(report.workloads["bad"].ended, Ended::Decided, "{:?}", report.workloads["bad"]);
    assert_eq!(report.notes, ["bad: it remembers answers, so a cache is what is measured"]);
}

#[test]
fn a_side_that_counts_other_work_is_pointed_out() {
    let dir = tempfile::tempdir().unwrap();
    let works = |flops: u32| {
        format!("bad_prepare() {{ ok_prepare | sed 's/\"work\":null/\"work\":{{\"flops\":{flops}}}/'; }}")
    };
    let report = compare(&works(200), &works(100), 2, dir.path());
    assert_eq!(report.workloads["bad"].ended, Ended::Decided, "{:?}", report.workloads["bad"]);
    let [note] = report.notes.as_slice() else { panic!("{:?}", report.notes) };
    assert!(note.contains("not the same work, as the sides count it: base 200 operations"), "{note}");
}
