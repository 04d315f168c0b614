//! One kernel at one shape: right, quick, near the roof.

use crate::common::Here;
use serde_json::Value;

#[test]
fn one_kernel_gives_the_file_of_the_original() {
    let here = Here::new();
    let ran =
        here.run(&["check", "attention", "--shape", "1,2,17,32", "--worker", "builtin", "-o", "check.json"]);
    ran.ends(0).prints(&["attention", "1,2,17,32", "yes", "1 of 1 kernel right"]);
    ran.notes(&["no roofline", "holdpoint roofline --measure"]);
    let check = here.json("check.json");
    assert_eq!(check["correctness"]["passed"], true);
    assert!(check["correctness"]["max_abs_error"].as_f64().is_some_and(|error| error < 1e-4), "{check}");
    assert!(check["correctness"]["correlation"].as_f64().is_some_and(|c| c > 0.9999), "{check}");
    for key in
        ["mean_time_ms", "std_dev_ms", "throughput_gflops", "bandwidth_gb_s", "median_ms", "p95_ms", "p99_ms"]
    {
        assert!(check["performance"][key].as_f64().is_some_and(|value| value >= 0.0), "{key}: {check}");
    }
    assert_eq!(check["config"]["seq_len"], 17);
    assert_eq!((&check["config"]["dtype"], &check["kernel_name"]), (&"float32".into(), &"attention".into()));
    assert!(check["timestamp"].as_str().is_some_and(|time| time.ends_with('Z')));
}

#[test]
fn a_matrix_goes_over_shapes_and_parameters() {
    let here = Here::new();
    let shapes = ["--shape", "1,1,5,8", "--shape", "1,2,9,4"];
    let mut args =
        vec!["check", "attention", "--worker", "builtin", "--param", "causal=false,true", "--format", "json"];
    args.extend(shapes);
    let checks: Value = serde_json::from_str(&here.run(&args).ends(0).stdout).unwrap();
    let seen: Vec<(u64, bool)> = checks
        .as_array()
        .unwrap()
        .iter()
        .map(|check| {
            (check["config"]["seq_len"].as_u64().unwrap(), check["config"]["causal"].as_bool().unwrap())
        })
        .collect();
    assert_eq!(seen, [(5, false), (5, true), (9, false), (9, true)]);
}

#[test]
fn tiles_need_not_be_named_and_can_be() {
    let here = Here::new();
    let check = |more: &[&str]| {
        let args = ["check", "tile_pack", "--shape", "1,3,32,48", "--worker", "builtin", "--format", "json"];
        let checked = here.run(&[&args, more].concat());
        serde_json::from_str::<Value>(&checked.ends(0).stdout).unwrap()
    };
    assert_eq!(check(&[])["correctness"]["passed"], true);
    let named = check(&["--param", "indices=[0,5],[2]", "--param", "order_mode=none,hilbert"]);
    let passed = named.as_array().unwrap().iter().map(|check| &check["correctness"]["passed"]);
    assert_eq!(passed.collect::<Vec<_>>(), [true; 4]);
}

#[test]
fn what_makes_no_sense_is_refused_in_the_words_that_were_typed() {
    let here = Here::new();
    let check = |args: &[&str], words: &[&str]| {
        let args: Vec<&str> = ["check"].iter().chain(args).copied().collect();
        here.run(&args).refuses(64, words);
    };
    check(&["attention", "--shape", "8,x"], &["8,x", "8,4,64,64"]);
    check(&["nothing", "--shape", "3", "--worker", "builtin"], &["unknown op \"nothing\"", "attention"]);
    check(&["attention", "--shape", "1,1,4,8", "--worker", "builtin", "--param", "colour=1"], &["colour"]);
    check(&["attention", "--shape", "1,1,4,8", "--worker", "builtin", "--param", "causal"], &["NAME=VALUE"]);
    check(&["attention", "--shape", "1,1,4,8", "--worker", "mine"], &["mine", "cuda or builtin"]);
}

#[test]
fn a_wrong_kernel_ends_with_1_and_has_no_times() {
    let here = Here::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let suite = format!(
        "
        schema_version = 1
        name = \"wrong\"
        [workers.mine]
        command = [\"python3\", \"{root}/tests/fuzz/planted.py\", \"{root}/../../examples\", \"wrong_scale\"]
        [[workload]]
        name = \"it\"
        worker = \"mine\"
        op = \"attention\"
        shape = [1, 1, 8, 32]
        dtype = \"f32\"
        "
    );
    here.write("wrong.toml", &suite);
    let ran = here.run(&["check", "--suite", "wrong.toml", "-o", "check.json"]);
    ran.ends(1).prints(&["wrong_answer", "1 of 1 kernel"]);
    let check = here.json("check.json");
    assert_eq!((&check["correctness"]["passed"], &check["performance"]), (&Value::Bool(false), &Value::Null));
}

/// A product of matrices that is right where tensors are given, and does nothing where it is timed.
const IDLE: &str = r#"
import time
def answer(request, of_tensors=kernel_worker.answer):
    kind, name = request["type"], request.get("workload")
    if kind == "list":
        return {"type": "workloads", "workloads": [{"name": "matmul", "op": "matmul", "shape": [24, 24, 24], "dtype": "f32"}]}
    if kind == "prepare":
        return {"type": "prepared", "workload": name}
    if kind == "run":
        calls, elapsed_ns = request["calls_per_sample"], []
        values = [0.0] * 576
        for _ in range(request["samples_count"]):
            start = time.perf_counter_ns()
            for _ in range(calls):
                WORK
            elapsed_ns.append(time.perf_counter_ns() - start)
        return {"type": "samples", "workload": name, "calls_per_sample": calls, "elapsed_ns": elapsed_ns}
    if kind == "verify":
        return {"type": "verified", "workload": name, "answer": None}
    if kind == "release":
        return {"type": "released", "workload": name}
    return of_tensors(request)
kernel_worker.answer = answer
"#;

#[test]
fn a_worker_that_is_right_when_it_is_checked_and_idle_when_it_is_timed_is_broken() {
    let Some(here) = crate::fuzz::declared(&IDLE.replace("WORK", "pass")) else { return };
    let suite = here.read("planted.toml").replace("[8, 12, 16]", "[24, 24, 24]");
    here.write("planted.toml", &suite);
    let check = ["check", "--suite", "planted.toml", "--output", "check.json"];
    here.run(&check).ends(4).prints(&["yes", "the timed calls do not do the work", "broken: 1 of 1 kernel"]);
    let checked = here.json("check.json");
    assert_eq!((&checked["performance"], &checked["broken"]), (&Value::Null, &true.into()), "{checked:#}");
    assert!(checked["correctness"]["seed"].is_u64(), "{checked:#}");
    // The same worker, if it does the work.
    let honest = IDLE.replace("WORK", "matmul.product([24, 24, 24], {}, values, values)");
    let here = crate::fuzz::declared(&honest).unwrap();
    here.write("planted.toml", &suite);
    here.run(&check).ends(0).prints(&["yes", "ok: 1 of 1 kernel right"]);
    assert!(here.json("check.json")["correctness"]["call_ms"].as_f64().is_some_and(|ms| ms > 0.0));
}

/// A quarter of the rows, which may look like a tenth on a busy machine: the worker's own times count in neither case.
#[test]
fn times_of_a_worker_that_does_part_of_the_work_when_it_is_timed_are_not_shown() {
    let partly = IDLE.replace("WORK", "matmul.product([6, 24, 24], {}, values[:144], values)");
    let Some(here) = crate::fuzz::declared(&partly) else { return };
    here.write("planted.toml", &here.read("planted.toml").replace("[8, 12, 16]", "[24, 24, 24]"));
    let ran = here.run(&["check", "--suite", "planted.toml", "--output", "check.json"]);
    let checked = here.json("check.json");
    if ran.code == 4 {
        ran.prints(&["the timed calls do not do the work"]);
        assert_eq!(checked["performance"], Value::Null, "{checked:#}");
    } else {
        ran.ends(0).prints(&["not shown", "the worker's own times"]);
        let shown = &checked["performance"]["median_ms"];
        assert_eq!(shown, &checked["correctness"]["call_ms"], "{checked:#}");
    }
}

#[test]
fn an_oracle_without_an_answer_makes_no_kernel_right() {
    let honest = IDLE.replace("WORK", "matmul.product([24, 24, 24], {}, values, values)");
    let Some(here) = crate::fuzz::declared(&honest) else { return };
    let skips = "kernel_worker.evaluate = lambda request: {'type': 'skipped', 'workload': 'matmul', 'reason': 'not today'}";
    here.write(
        "exact.py",
        &format!(
            "{}{skips}\nkernel_worker.main()\n",
            here.read("mine.py").replace("kernel_worker.main()", "")
        ),
    );
    let suite = here.read("planted.toml").replace("[8, 12, 16]", "[24, 24, 24]");
    let exact = suite.lines().find(|line| line.ends_with("\"exact\"]")).unwrap();
    let suite = suite.replace(exact, "command = [\"python3\", \"exact.py\"]");
    let copy = "[[workload]]\nname = \"copied\"\nop = \"copy\"\nshape = [70]\n";
    here.write("planted.toml", &format!("{suite}\n{copy}"));
    here.run(&["check", "--suite", "planted.toml"]).ends(2).prints(&[
        "the oracle has no answer: not today",
        "the oracle of 1 of 2 kernels had no answer; 1 checked and right",
    ]);
    here.run(&["fuzz", "--suite", "planted.toml", "--cases", "3"])
        .ends(2)
        .prints(&["not today", "the oracles skipped every case of 1 of 2 kernels; 4 cases were checked"]);
}
