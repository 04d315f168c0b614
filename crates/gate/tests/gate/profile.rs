//! What the rules find in counters taken on an H200, and two profiles beside each other.

use crate::identity;
use holdpoint_gate::profile::{Rules, add_findings, compare};
use holdpoint_interop::ncu::ncu_page;
use holdpoint_model::profile::{Profiled, WorkloadProfile};
use holdpoint_model::{KernelProfile, Profile, ProfileOutcome, SCHEMA_VERSION};

/// A recorded table as a profile.
fn recorded(name: &str) -> Profile {
    let path = format!("{}/../model/tests/data/tools/ncu-{name}.csv", env!("CARGO_MANIFEST_DIR"));
    let launches = ncu_page(&std::fs::read_to_string(path).unwrap()).unwrap();
    let kernels = launches.into_iter().map(|launch| KernelProfile {
        name: launch.kernel,
        grid: launch.grid,
        block: launch.block,
        launches_count: 1,
        metrics: launch.metrics,
        replayed_ns: None,
        findings: Vec::new(),
    });
    let profiled = Profiled { kernel_filter: None, raw: None, kernels: kernels.collect() };
    let workload = WorkloadProfile { identity: identity(), outcome: ProfileOutcome::Profiled(profiled) };
    let mut profile = Profile {
        schema_version: SCHEMA_VERSION,
        suite: "gpu".to_owned(),
        timestamp_utc: "2025-01-01T00:00:00Z".to_owned(),
        profiler: None,
        device: None,
        revision: None,
        missing_metrics: Vec::new(),
        profiles: [("w".to_owned(), workload)].into_iter().collect(),
    };
    add_findings(&mut profile, &Rules::built_in().unwrap());
    profile
}

fn kernels(profile: &mut Profile) -> &mut Vec<KernelProfile> {
    match &mut profile.profiles["w"].outcome {
        ProfileOutcome::Profiled(profiled) => &mut profiled.kernels,
        other => panic!("{other:?}"),
    }
}

fn found(name: &str) -> Vec<Vec<String>> {
    let mut profile = recorded(name);
    let rules = |kernel: &KernelProfile| kernel.findings.iter().map(|finding| finding.rule.clone()).collect();
    kernels(&mut profile).iter().map(rules).collect()
}

#[test]
fn recorded_kernels_are_what_their_authors_know_them_to_be() {
    // Tiles of 8 halves are rows of 16 bytes, half of what a sector holds; 64 blocks are few.
    assert_eq!(found("pack"), [["uncoalesced_loads", "small_grid", "stall_long_scoreboard"]]);
    // Two blocks of 120 registers a thread; it loads by the copy engine, so that it has no loads to be coalesced.
    let attention = found("attention");
    assert_eq!(attention[0], ["low_occupancy", "tensor_pipe_waits", "waits_for_latency"]);
    // Every lane reads a row of its own.
    assert_eq!(attention[1], ["uncoalesced_loads", "l1_bound", "stall_lg_throttle"]);
    // A copy is as quick as memory.
    assert_eq!(found("copy"), [["stall_long_scoreboard", "memory_bound", "poor_reuse"]]);
}

#[test]
fn a_profile_beside_itself_has_not_changed() {
    for name in ["pack", "attention", "ff", "copy"] {
        let profile = recorded(name);
        let comparison = compare(&profile, &profile, &Rules::built_in().unwrap());
        assert_eq!(comparison.differences, [""; 0], "{name}");
        let untouched = |kernel: &holdpoint_model::profile::KernelChange| {
            kernel.changes.is_empty() && kernel.findings_new.is_empty() && kernel.findings_gone.is_empty()
        };
        assert!(comparison.kernels.iter().all(untouched), "{name}");
    }
}

#[test]
fn swapping_the_sides_swaps_the_values_and_changes_nothing_else() {
    let rules = Rules::built_in().unwrap();
    let (base, mut head) = (recorded("ff"), recorded("ff"));
    for (at, kernel) in kernels(&mut head).iter_mut().enumerate() {
        kernel.metrics.values_mut().for_each(|value| *value *= 1.0 + 0.07 * (at as f64 + 1.0));
    }
    let (there, back) = (compare(&base, &head, &rules), compare(&head, &base, &rules));
    assert!(there.kernels.iter().all(|kernel| kernel.changes.len() > 5));
    for (a, b) in there.kernels.iter().zip(&back.kernels) {
        let of = |change: &holdpoint_model::profile::MetricChange| {
            (change.metric.clone(), change.weight.to_bits())
        };
        assert_eq!(
            a.changes.iter().map(of).collect::<Vec<_>>(),
            b.changes.iter().map(of).collect::<Vec<_>>()
        );
        assert_eq!((a.changes[0].base, a.changes[0].head), (b.changes[0].head, b.changes[0].base));
        assert_eq!((&a.findings_new, &a.findings_gone), (&b.findings_gone, &b.findings_new));
    }
}

#[test]
fn what_only_one_side_has_is_told() {
    let rules = Rules::built_in().unwrap();
    let (base, mut head) = (recorded("ff"), recorded("ff"));
    kernels(&mut head).remove(3);
    head.suite = "other".to_owned();
    head.profiles["w"].identity.dtype = "bf16".to_owned();
    let comparison = compare(&base, &head, &rules);
    assert_eq!(comparison.kernels.len(), 3);
    let told = comparison.differences.join("\n");
    for words in [
        "another suite: gpu in base, other in head",
        "only base has ff_refine_fast #2",
        "not the same: dtype",
    ] {
        assert!(told.contains(words), "{words}: {told}");
    }
    head.profiles.clear();
    let comparison = compare(&base, &head, &rules);
    assert!(
        comparison.kernels.is_empty() && comparison.differences.join("\n").contains("\"w\" is not in head")
    );
}
