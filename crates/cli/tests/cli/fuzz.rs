//! Wrong answers are found: planted bugs and cheats, each by the worker that has it, and what breaks on the way.

use crate::common::{Here, Ran};
use serde_json::Value;

/// A suite with one workload, whose worker has one thing planted; none where there is no Python.
#[allow(clippy::print_stdout)] // A test that does nothing says so.
fn planted(name: &str, op: &str, timeout_ms: u32) -> Option<Here> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    let here = Here::new();
    let root = env!("CARGO_MANIFEST_DIR");
    let shape = if op == "attention" { "[1, 1, 8, 32]" } else { "[1, 8, 16]" };
    let suite = format!(
        "schema_version = 1
        name = \"planted\"
        [measure]
        timeout_ms = {timeout_ms}
        [workers.mine]
        command = [\"python3\", \"{root}/tests/fuzz/planted.py\", \"{root}/../../examples\", \"{name}\"]
        [[workload]]
        name = \"it\"
        worker = \"mine\"
        op = \"{op}\"
        shape = {shape}
        dtype = \"f32\"
        "
    );
    here.write("planted.toml", &suite);
    Some(here)
}

fn fuzz(here: &Here, arguments: &[&str]) -> (Ran, Value) {
    let ran = here
        .run(&[&["fuzz", "--suite", "planted.toml", "--format", "json", "--seed", "1"], arguments].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap();
    (ran, report)
}

/// Minutes: nothing here may depend on how busy the machine is.
const PATIENT_MS: u32 = 300_000;

/// That what is planted is found within 200 cases, as one of these kinds.
#[track_caller]
fn is_found(name: &str, op: &str, kinds: &[&str]) {
    let Some(here) = planted(name, op, PATIENT_MS) else { return };
    let (ran, report) = fuzz(&here, &["--fail-fast", "--cases", "199"]);
    assert_eq!(ran.code, 1, "{name}: {ran:#?}");
    let failure = &report["kernels"][0]["failures"][0];
    let kind = failure["finding"]["kind"].as_str().unwrap();
    assert!(kinds.contains(&kind), "{name}: {failure:#}");
    assert!(failure["found_after"].as_u64().unwrap() <= 200, "{name}: {failure:#}");
    // The small case shows it again, unless that is left to chance.
    let file = failure["file"].as_str().unwrap();
    if name != "missing_barrier" {
        here.run(&["fuzz", "replay", file]).ends(1).prints(&["wrong", kind]);
    }
}

const WRONG: &[&str] = &["wrong_answer"];

#[test]
fn planted_bugs_in_sums_masks_and_scales_are_found() {
    for name in ["wrong_scale", "mask_off_by_one", "no_maximum", "half_sums", "adds_up"] {
        is_found(name, "attention", WRONG);
    }
}

#[test]
fn planted_bugs_of_places_are_found() {
    for name in
        ["tail_off_by_one", "transposed_tile", "order_of_heads", "last_head", "unaligned", "stale_row"]
    {
        is_found(name, "attention", WRONG);
    }
}

#[test]
fn planted_bugs_of_some_lengths_are_found() {
    for name in ["nan_at_one_index", "multiples_of_64", "long_sequences"] {
        is_found(name, "attention", WRONG);
    }
}

#[test]
fn planted_bugs_of_a_scan_are_found() {
    for name in ["short_clamp", "nan_tokens", "gate_turned", "state_of_the_first_batch"] {
        is_found(name, "tile_ssm", WRONG);
    }
}

#[test]
fn a_missing_barrier_is_found() {
    is_found("missing_barrier", "attention", &["wrong_answer", "not_deterministic"]);
}

#[test]
fn writing_too_little_too_much_or_elsewhere_is_found() {
    is_found("unwritten_tail", "attention", &["unwritten"]);
    is_found("past_the_end", "attention", &["out_of_bounds"]);
    is_found("input_changed", "attention", &["input_changed"]);
}

#[test]
fn an_output_left_from_the_last_run_is_caught() {
    is_found("left_from_the_last_run", "attention", &["unwritten"]);
}

#[test]
fn answers_kept_by_pointer_are_caught() {
    is_found("kept_by_pointer", "attention", WRONG);
}

#[test]
fn answers_kept_by_input_are_caught() {
    is_found("kept_by_input", "tile_ssm", &["answers_remembered"]);
}

#[test]
fn work_on_another_stream_is_caught() {
    is_found("another_stream", "attention", &["unwritten"]);
}

#[test]
fn a_constant_within_the_absolute_tolerance_is_caught() {
    is_found("constant", "attention", WRONG);
}

#[test]
fn a_clock_that_does_not_see_the_work_is_caught() {
    is_found("clock_stopped_early", "tile_ssm", &["time_not_explained"]);
    is_found("told_too_long", "tile_ssm", &["time_not_explained"]);
}

#[test]
fn work_skipped_when_timed_is_caught() {
    is_found("skipped_when_timed", "tile_ssm", &["work_skipped"]);
    is_found("repeats_left_out", "tile_ssm", &["work_skipped"]);
}

#[test]
fn an_honest_worker_passes_in_every_type() {
    for (op, cases) in [("attention", "40"), ("tile_ssm", "199")] {
        let Some(here) = planted("honest", op, PATIENT_MS) else { return };
        let (ran, report) = fuzz(&here, &["--cases", cases, "--dtype", "f32,f16,bf16"]);
        assert_eq!(ran.code, 0, "{ran:#?}");
        let kernels = report["kernels"].as_array().unwrap();
        assert_eq!(kernels.len(), 3);
        for kernel in kernels {
            assert_eq!(kernel["cases_count"], kernel["passed_count"], "{kernel:#}");
            assert!(kernel["cases_count"].as_u64().unwrap() > 40 && kernel["refused_count"] == 0);
            assert!(kernel["errors"]["correlation"].as_f64().unwrap() > 0.999, "{kernel:#}");
        }
    }
}

#[test]
fn the_worker_of_the_examples_passes() {
    let Some(here) = planted("honest", "attention", PATIENT_MS) else { return };
    std::fs::create_dir_all(here.path("examples")).unwrap();
    for name in ["kernel.toml", "kernel_worker.py"] {
        let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(path, here.path(&format!("examples/{name}"))).unwrap();
    }
    let ran = here.run(&["fuzz", "--suite", "examples/kernel.toml", "--cases", "10"]);
    ran.ends(0).prints(&["attention  bf16", "tile_ssm   f16", "cases of 3 kernels passed"]);
    assert!(!here.files().iter().any(|name| name.starts_with(".holdpoint")), "nothing failed");
}

#[test]
fn a_worker_that_breaks_on_some_cases_fails_those_and_the_others_go_on() {
    for (name, words) in [
        (
            "crashes",
            "crashed: it ended while it worked on evaluate (exit status: 3); its last words: planted crash",
        ),
        ("garbage", "garbage: not an answer"),
        ("error", "worker_error: planted error"),
    ] {
        let Some(here) = planted(name, "attention", PATIENT_MS) else { return };
        let (ran, report) = fuzz(&here, &["--cases", "30"]);
        assert_eq!(ran.code, 1, "{name}: {ran:#?}");
        let kernel = &report["kernels"][0];
        let [failure] = kernel["failures"].as_array().unwrap().as_slice() else { panic!("{kernel:#}") };
        assert_eq!(failure["finding"]["kind"], "failed");
        assert!(failure["finding"]["detail"].as_str().unwrap().contains(words), "{failure:#}");
        assert_eq!(
            (&kernel["cases_count"], &failure["case"]["shape"][2]),
            (&31.into(), &21.into()),
            "{name}"
        );
        assert!(
            kernel["passed_count"].as_u64().unwrap() > failure["found_after"].as_u64().unwrap(),
            "{name}"
        );
    }
}

#[test]
fn a_worker_that_hangs_is_given_up_after_some_time_outs() {
    let Some(here) = planted("hangs", "attention", 2000) else { return };
    let (ran, report) = fuzz(&here, &["--cases", "199"]);
    assert_eq!(ran.code, 1, "{ran:#?}");
    let kernel = &report["kernels"][0];
    let detail = kernel["failures"][0]["finding"]["detail"].as_str().unwrap();
    // On a busy machine an honest answer may be late as well, the first one included.
    assert!(detail.contains("timed_out: no answer to "), "{kernel:#}");
    assert!(kernel["skipped"].as_str().unwrap().contains("given up after"), "{kernel:#}");
    assert!(kernel["cases_count"].as_u64().unwrap() < 199);
}

#[test]
fn cases_that_the_worker_has_no_kernel_for_are_counted_apart() {
    let Some(here) = planted("refuses", "attention", PATIENT_MS) else { return };
    let (ran, report) = fuzz(&here, &["--cases", "40"]);
    assert_eq!(ran.code, 0, "{ran:#?}");
    let kernel = &report["kernels"][0];
    let count = |key: &str| kernel[key].as_u64().unwrap();
    assert_eq!(
        (count("cases_count") + count("refused_count"), &kernel["skipped"]),
        (41, &"at most 20 steps".into())
    );
    assert!(count("refused_count") > 0 && count("cases_count") > 0);
    let Some(here) = planted("refuses_all", "attention", PATIENT_MS) else { return };
    here.run(&["fuzz", "--suite", "planted.toml", "--cases", "5"])
        .ends(2)
        .prints(&["skipped", "no kernel here"]);
}

#[test]
fn a_saved_case_fails_until_the_kernel_is_right() {
    let Some(here) = planted("long_sequences", "attention", PATIENT_MS) else { return };
    here.run(&["fuzz", "--suite", "planted.toml", "--fail-fast", "--save", "cases"]).ends(1).prints(&[
        "wrong         attention: wrong_answer: out[",
        "\n              [1,1,61,1] f32",
        "\n              again: holdpoint fuzz replay cases/mine-attention-f32-wrong_answer.json\n",
    ]);
    let file = "cases/mine-attention-f32-wrong_answer.json";
    assert_eq!(here.json(file)["case"]["shape"], serde_json::json!([1, 1, 61, 1]));
    here.run(&["fuzz", "replay", file]).ends(1).prints(&["wrong", "out["]);
    here.write("right.toml", &here.read("planted.toml").replace("long_sequences", "honest"));
    here.run(&["fuzz", "replay", file, "--suite", "right.toml"]).ends(0).prints(&["passed"]);
    here.write("none.toml", &here.read("planted.toml").replace("long_sequences", "refuses_all"));
    here.run(&["fuzz", "replay", file, "--suite", "none.toml"]).ends(2).prints(&["skipped"]);
}

#[test]
fn files_that_are_no_cases_are_refused() {
    let Some(here) = planted("long_sequences", "attention", PATIENT_MS) else { return };
    here.run(&["fuzz", "--suite", "planted.toml", "--fail-fast", "--save", "."]).ends(1);
    let (file, good) =
        ("mine-attention-f32-wrong_answer.json", here.json("mine-attention-f32-wrong_answer.json"));
    let refused = |change: &dyn Fn(&mut Value), word: &str| {
        let mut bad = good.clone();
        change(&mut bad);
        here.write("bad.json", &bad.to_string());
        here.run(&["fuzz", "replay", "bad.json"]).refuses(64, &["bad.json", word]);
    };
    refused(&|bad| bad["case"]["values"] = "odd".into(), "odd");
    refused(&|bad| bad["case"]["shape"] = serde_json::json!([1, 2]), "shape");
    refused(&|bad| bad["case"]["shape"] = serde_json::json!([9, 99999, 99999, 99999]), "shape");
    refused(&|bad| bad["case"]["offset"] = 1_000_000_000_000_u64.into(), "shape");
    refused(&|bad| bad["case"]["dtype"] = "f7".into(), "dtype");
    refused(&|bad| bad["worker"] = "yours".into(), "yours");
    refused(&|bad| bad["schema_version"] = 9.into(), "9");
    here.write("bad.json", &here.read(file)[..100]);
    here.run(&["fuzz", "replay", "bad.json"]).refuses(64, &["bad.json", "is the file cut off?"]);
    here.run(&["fuzz", "replay", "nowhere.json"]).refuses(64, &["nowhere.json"]);
    here.run(&["fuzz", "--suite", "planted.toml", "softmax"]).refuses(64, &["softmax"]);
}

/// The bugs in `planted_cuda.py`, each in a source of its own; where there is no device all of them are skipped aloud.
#[test]
#[allow(clippy::print_stdout)]
fn bugs_planted_in_the_source_of_a_cuda_kernel_are_found() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let here = Here::new();
    let script = format!("{root}/crates/cli/tests/fuzz/planted_cuda.py");
    let source = format!("{root}/examples/attention.cu");
    let folder = here.path(".").display().to_string();
    match std::process::Command::new("python3").args([&script, &source, &folder]).status() {
        Ok(status) => assert!(status.success()),
        Err(_) => return println!("skipped: no python3"),
    }
    let (ran, report) = fuzz(&here, &["--fail-fast", "--cases", "299", "--accuracy", "fail"]);
    let kernels = report["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 26);
    if ran.code == 2 {
        assert!(kernels.iter().all(|kernel| kernel["skipped"].is_string()), "{ran:#?}");
        return println!("skipped: no device ({})", kernels[0]["skipped"]);
    }
    for kernel in kernels {
        let (name, failures) = (kernel["workload"].as_str().unwrap(), kernel["failures"].as_array().unwrap());
        assert_eq!(failures.is_empty(), name == "right", "{name}: {kernel:#}");
    }
}

/// An op that only its suite knows, with a worker of this body in place of the kernel's.
#[allow(clippy::print_stdout)]
pub(crate) fn declared(kernel: &str) -> Option<Here> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    let here = Here::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let suite = std::fs::read_to_string(format!("{examples}/matmul.toml")).unwrap();
    let suite = suite.replacen("\"matmul.py\"", "\"mine.py\"", 1);
    here.write("planted.toml", &suite.replace("\"matmul.py\"", &format!("\"{examples}/matmul.py\"")));
    let head = format!("import sys\nsys.path.insert(0, {examples:?})\nimport kernel_worker, matmul\n");
    here.write("mine.py", &format!("{head}{kernel}\nkernel_worker.main()\n"));
    Some(here)
}

#[test]
fn an_op_that_the_suite_declares_is_held_against_the_worker_that_it_names() {
    let Some(here) = declared("") else { return };
    let (ran, report) = fuzz(&here, &["--cases", "60", "--dtype", "f32,f16"]);
    assert_eq!((ran.code, &report["kernels"][1]["passed_count"]), (0, &61.into()), "{ran:#?}");
    here.run(&["check", "--suite", "planted.toml"]).prints(&["matmul", "yes"]);
    let wrong = "kernel_worker.KERNELS['matmul'] = \\\n    lambda shape, params, a, b: matmul.product(shape, params, a[:-1] + [0.0], b)";
    let here = declared(wrong).unwrap();
    let (ran, report) = fuzz(&here, &["--cases", "60", "--fail-fast"]);
    let failure = &report["kernels"][0]["failures"][0];
    assert_eq!((ran.code, &failure["finding"]["kind"]), (1, &"wrong_answer".into()), "{ran:#?}");
    assert_eq!(failure["case"]["shape"], serde_json::json!([1, 1, 1]), "{failure:#}");
    here.run(&["fuzz", "replay", failure["file"].as_str().unwrap()]).ends(1).prints(&["wrong_answer"]);
}

#[test]
fn inputs_are_new_in_every_run_and_the_seed_draws_them_again() {
    let here = Here::new();
    here.write(
        "ops.toml",
        "schema_version = 1\nname = \"ops\"\n[[workload]]\nname = \"copy\"\nop = \"copy\"\nshape = [70]\n",
    );
    let search = |more: &[&str]| {
        let ran =
            here.run(&[&["fuzz", "--suite", "ops.toml", "--cases", "5", "--format", "json"], more].concat());
        serde_json::from_str::<Value>(&ran.ends(0).stdout).unwrap()
    };
    let (one, other) = (search(&[]), search(&[]));
    assert_ne!(one["seed"], other["seed"]);
    let again = search(&["--seed", &one["seed"].to_string()]);
    assert_eq!((&again["seed"], &again["kernels"][0]["sizes"]), (&one["seed"], &one["kernels"][0]["sizes"]));
    here.run(&["fuzz", "--suite", "ops.toml", "--cases", "5", "--seed", "7"])
        .ends(0)
        .prints(&["7: --seed 7 draws the same cases"]);
}

#[test]
fn an_oracle_that_fails_breaks_the_run_and_its_case_is_named() {
    let Some(here) = declared("") else { return };
    let suite = here.read("planted.toml");
    here.write(
        "planted.toml",
        &suite.replace("\"exact\"]", "\"exact\", \"||\"]").replace("matmul.py", "none.py"),
    );
    let (ran, report) = fuzz(&here, &["--cases", "3"]);
    let failure = &report["kernels"][0]["failures"][0];
    assert_eq!((ran.code, &failure["finding"]["kind"]), (4, &"oracle_failed".into()), "{ran:#?}");
    assert!(failure["finding"]["detail"].as_str().unwrap().starts_with("exact: "), "{failure:#}");
    assert_eq!(failure["case"]["shape"], serde_json::json!([8, 12, 16]), "{failure:#}");
    here.run(&["fuzz", "replay", failure["file"].as_str().unwrap()]).ends(4).prints(&["oracle_failed"]);
    here.run(&["check", "--suite", "planted.toml"]).ends(4).prints(&["oracle_failed", "broken: 1 of 1"]);
    here.write("planted.toml", &suite.replace("oracle = \"exact\"", "oracle = \"nobody\""));
    here.run(&["fuzz", "--suite", "planted.toml"])
        .refuses(64, &["ops.matmul", "oracle \"nobody\" is not declared"]);
}

/// A candidate with a process outside of its group and its job.
const WATCHER: &str = r#"
import os, subprocess
away = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True, env={})
with open("pids", "w") as file:
    file.write(f"{os.getpid()} {away.pid}")
"#;
/// An oracle that fails while a thread of these may run.
const WATCHED: &str = r#"
import os
def evaluate(request, compute=kernel_worker.evaluate):
    for pid in open("pids").read().split():
        for task in os.listdir(f"/proc/{pid}/task"):
            state = open(f"/proc/{pid}/task/{task}/stat").read().rpartition(")")[2].split()[0]
            if state != "T":
                raise SystemExit(f"process {pid} could write here, it is in state {state}")
    return compute(request)
kernel_worker.evaluate = evaluate
kernel_worker.KERNELS["matmul"] = matmul.exact
"#;

#[test]
fn the_candidate_stands_still_while_the_oracle_works() {
    let Some(here) = declared(WATCHER) else { return };
    let oracle = here.read("mine.py").replace(WATCHER, WATCHED);
    here.write("exact.py", &oracle);
    let suite = here.read("planted.toml");
    let exact = suite.lines().find(|line| line.ends_with("\"exact\"]")).unwrap();
    here.write("planted.toml", &suite.replace(exact, "command = [\"python3\", \"exact.py\"]"));
    let (ran, report) = fuzz(&here, &["--cases", "5"]);
    assert_eq!((ran.code, &report["kernels"][0]["passed_count"]), (0, &6.into()), "{ran:#?}");
}
