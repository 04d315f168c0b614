//! Processes that serve several units, and units on a device.

use crate::ab::{Enough, enough, named, plan, side};
use crate::common::{PLAN, ready, suite, worker};
use holdpoint_measure::ab::{self, Sides};
use holdpoint_model::AbPlan;

const ON_DEVICE: &str = r#"ok_run() { say "{\"type\":\"samples\",\"workload\":\"$workload\",\"calls_per_sample\":$calls,\"elapsed_ns\":[$(durations "$samples")],\"device\":{\"sm_mhz\":1980}}"; }"#;

#[test]
fn units_on_a_device_are_measured_one_after_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let pids = dir.path().join("pids");
    let [base, head] = [ON_DEVICE; 2].map(|script| side(script, &pids));
    let sides = Sides { base: ready(base), head: ready(head), pin: true, measure_same_code: false };
    let mut report = ab::begin(&sides, AbPlan { units_at_once: 2, ..plan() }, named("base"), named("head"));
    let mut units_after = Vec::new();
    ab::measure(&sides, &mut report, |_| true, &mut enough(7), &|| false, &mut |report| {
        units_after.push(report.workloads["other"].units.len());
    });
    assert_eq!(units_after, [1, 2, 3, 4, 5, 6, 7]);
}

/// Tells the timer of each workload: the host's clock for "bad".
const TIMERS: &str = r#"listed() { timer=cuda_graph; [ "$1" = bad ] && timer=host_monotonic; printf '{"name":"%s","op":"copy","shape":[2,3],"dtype":"f32","timer":"%s"}' "$1" "$timer"; }"#;

#[test]
fn only_workloads_timed_by_the_device_share_processes() {
    // The suite says how our CUDA worker times, other workers say so themselves.
    for (name, script) in [("cuda", ""), ("w", TIMERS)] {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let workload = |workload: &str, timer: &str| {
            let timer = if name == "cuda" { format!("timer = \"{timer}\"\n") } else { String::new() };
            format!(
                "[[workload]]\nname = \"{workload}\"\nop = \"copy\"\nshape = [2, 3]\nworker = \"{name}\"\n{timer}"
            )
        };
        let side = || {
            let workloads = [
                workload("bad", "host_monotonic"),
                workload("other", "cuda_graph"),
                workload("good", "cuda_graph"),
            ];
            let command = worker(script, &pids);
            let rest = format!("[workers.{name}]\n{command}units_per_process = 8\n{}", workloads.concat());
            suite(&format!("{PLAN}timeout_ms = 20000\n"), &rest)
        };
        let sides = Sides { base: ready(side()), head: ready(side()), pin: false, measure_same_code: false };
        let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
        ab::measure(&sides, &mut report, |_| true, &mut enough(3), &|| false, &mut |_| {});
        let processes = |workload: &str| -> Vec<u32> {
            report.workloads[workload].units.iter().map(|unit| unit.process).collect()
        };
        assert_eq!(processes("other"), [0, 0, 0], "{name}");
        assert_eq!(processes("good"), [0, 0, 0], "{name}");
        assert_eq!(processes("bad"), [0, 1, 2], "{name}");
        assert_eq!(std::fs::read_to_string(&pids).unwrap().lines().count(), 6, "{name}: two a pair");
    }
}

#[test]
fn a_workload_that_lacks_pairs_gets_processes_of_its_own() {
    for (units_per_process, bad) in [(8, [0, 0, 0, 1, 2]), (1, [0, 1, 2, 3, 4])] {
        let dir = tempfile::tempdir().unwrap();
        let pids = dir.path().join("pids");
        let workload = |name: &str| {
            format!("[[workload]]\nname = \"{name}\"\nop = \"copy\"\nshape = [2, 3]\nworker = \"w\"\n")
        };
        let side = || {
            let script = TIMERS.replace("host_monotonic", "cuda_graph");
            let (command, workloads) = (worker(&script, &pids), ["bad", "other"].map(workload).concat());
            let rest = format!("[workers.w]\n{command}units_per_process = {units_per_process}\n{workloads}");
            suite(&format!("{PLAN}timeout_ms = 20000\n"), &rest)
        };
        let sides = Sides { base: ready(side()), head: ready(side()), pin: false, measure_same_code: false };
        let mut report = ab::begin(&sides, plan(), named("base"), named("head"));
        ab::measure(
            &sides,
            &mut report,
            |_| true,
            &mut Enough { lacking: Some(0), ..enough(5) },
            &|| false,
            &mut |_| {},
        );
        let processes = |workload: &str| -> Vec<u32> {
            report.workloads[workload].units.iter().map(|unit| unit.process).collect()
        };
        assert_eq!(processes("bad"), bad, "{units_per_process}");
        let shared = if units_per_process == 8 { [0; 5] } else { [0, 1, 2, 3, 4] };
        assert_eq!(processes("other"), shared, "{units_per_process}");
    }
}
