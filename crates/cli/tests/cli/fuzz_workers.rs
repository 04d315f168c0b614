//! Right workers behind the protocol are called right: holdpoint's own and one in Python, for every op; and cases that are large or
//! fail now and then.

use crate::common::{Here, Ran};
use serde_json::{Value, json};

/// A small workload of every op, and of both families of `tile_unpack`.
const EVERY_OP: &[(&str, &str, &str)] = &[
    ("attention", "[1, 2, 8, 32]", "{ causal = true }"),
    ("tile_ssm", "[1, 8, 16]", "{ direction = \"bidirectional\", merge_mode = \"gated\" }"),
    ("fusion_gate", "[1, 2, 9, 7]", "{}"),
    ("tile_pack", "[2, 2, 16, 16]", "{ tile_size = 4, indices = [0, 5, 9, 3] }"),
    ("tile_unpack", "[2, 2, 16, 16]", "{ tile_size = 4, indices = [0, 5, 9, 3] }"),
    ("tile_unpack", "[1, 2, 16, 16]", "{ tile_size = 4, indices = [0, 5, 9], levels = [1, 0, 1] }"),
    ("fused_pack_op_unpack", "[1, 2, 16, 16]", "{ tile_size = 4, indices = [0, 5, 9, 3] }"),
    ("infer", "[1, 3, 32, 32]", "{ tile_size_l0 = 1, kmax_l0 = 2 }"),
    ("ff_path", "[1, 4, 16, 16]", "{ tile_size_l0 = 8, tile_size_l1 = 4, kmax_l0 = 3, kmax_l1 = 8 }"),
    ("copy", "[70]", "{}"),
    ("fma", "[33]", "{ rounds = 50 }"),
];
/// Those whose inputs and outputs are all tensors of the protocol come first.
const EXTERNAL_COUNT: usize = 7;

fn suite(worker: &str, command: &[&str], ops: &[(&str, &str, &str)]) -> String {
    let mut text = "schema_version = 1\nname = \"workers\"\n[measure]\ntimeout_ms = 300000\n".to_owned();
    if !command.is_empty() {
        text += &format!("[workers.{worker}]\ncommand = {}\n", json!(command));
    }
    for (at, (op, shape, params)) in ops.iter().enumerate() {
        text += &format!(
            "[[workload]]\nname = \"w{at}\"\nworker = \"{worker}\"\nop = \"{op}\"\nshape = {shape}\nparams = {params}\n"
        );
    }
    text
}

const OWN: &[&str] = &[env!("CARGO_BIN_EXE_holdpoint"), "worker", "--suite", "cpu-ops"];

#[allow(clippy::print_stdout)] // A test that does nothing says so.
fn python(script: &str, arguments: &[&str]) -> Option<Vec<String>> {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return None;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    let files = [format!("{root}/tests/fuzz/{script}"), format!("{root}/../../examples")];
    let arguments = arguments.iter().map(|argument| (*argument).to_owned());
    Some(["python3".to_owned()].into_iter().chain(files).chain(arguments).collect())
}

fn here_with(command: &[String], ops: &[(&str, &str, &str)]) -> Here {
    let here = Here::new();
    let command: Vec<&str> = command.iter().map(String::as_str).collect();
    here.write("workers.toml", &suite("mine", &command, ops));
    here
}

fn fuzz(here: &Here, arguments: &[&str]) -> (Ran, Value) {
    let ran = here
        .run(&[&["fuzz", "--suite", "workers.toml", "--format", "json", "--seed", "1"], arguments].concat());
    let report = serde_json::from_str(&ran.stdout).unwrap();
    (ran, report)
}

#[track_caller]
fn all_pass(here: &Here, arguments: &[&str], kernels_count: usize) {
    let (ran, report) = fuzz(here, arguments);
    let kernels = report["kernels"].as_array().unwrap();
    for kernel in kernels {
        assert_eq!(kernel["failures"], json!([]), "{kernel:#}");
        assert_eq!((&kernel["passed_count"], &kernel["refused_count"]), (&kernel["cases_count"], &json!(0)));
    }
    assert_eq!((ran.code, kernels.len()), (0, kernels_count), "{ran:#?}");
}

#[test]
fn every_op_gives_the_same_answers_from_another_process() {
    let record = |here: &Here, suite: &str| {
        here.run(&["replay", "record", "--suite", suite]).ends(0);
        here.json("artifacts/replay.json")["artifact_hashes"].clone()
    };
    let here = Here::new();
    here.write("inside.toml", &suite("builtin", &[], EVERY_OP));
    let inside = record(&here, "inside.toml");
    let command = [OWN[0], "worker", "--suite", "inside.toml"];
    here.write("outside.toml", &suite("builtin", &command, EVERY_OP));
    assert_eq!(record(&here, "outside.toml"), inside);
    assert!(inside.as_object().unwrap().len() >= EVERY_OP.len(), "{inside:#}");
}

#[test]
fn holdpoints_own_worker_passes_every_op_behind_the_protocol() {
    let command: Vec<String> = OWN.iter().map(|&word| word.to_owned()).collect();
    let here = here_with(&command, &EVERY_OP[..EXTERNAL_COUNT]);
    all_pass(&here, &["--cases", "150"], 6);
    let (ran, report) = fuzz(&here, &["--cases", "3", "--dtype", "f16"]);
    assert_eq!(ran.code, 2, "an element type that it does not have is no wrong answer: {ran:#?}");
    assert!(report["kernels"][0]["skipped"].as_str().unwrap().contains("f16"));
    let checked = here.run(&["check", "--suite", "workers.toml", "--format", "json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    for check in checked.as_array().unwrap() {
        assert_eq!(check["correctness"]["passed"], true, "{check:#}");
    }
}

#[test]
fn an_honest_worker_in_python_passes_every_op() {
    let Some(command) = python("honest.py", &[]) else { return };
    let here = here_with(&command, &EVERY_OP[1..EXTERNAL_COUNT]);
    all_pass(&here, &["--cases", "200", "--dtype", "f32,f16"], 10);
    // A case of attention takes ten times as long.
    let here = here_with(&command, &EVERY_OP[..1]);
    all_pass(&here, &["--cases", "39", "--dtype", "f32,f16"], 2);
}

/// The campaign of docs/results/fuzz.md, which takes the better part of an hour:
/// `cargo test -p holdpoint --test cli -- --ignored --nocapture five_thousand`.
#[test]
#[ignore = "takes the better part of an hour"]
#[allow(clippy::print_stdout)]
fn five_thousand_cases_of_every_op_accuse_no_honest_worker() {
    let Some(command) = python("honest.py", &[]) else { return };
    let here = here_with(&command, &EVERY_OP[..EXTERNAL_COUNT]);
    let campaign = ["fuzz", "--cases", "5000", "--dtype", "f32,f16", "--suite"];
    let ran = here.run(&[&campaign[..], &["workers.toml"]].concat());
    println!("{}{}", ran.stdout, ran.stderr);
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let matmul = std::fs::read_to_string(format!("{example}/matmul.toml")).unwrap();
    here.write("matmul.toml", &matmul.replace("examples/", &format!("{example}/")));
    let declared = here.run(&[&campaign[..], &["matmul.toml"]].concat());
    println!("{}{}", declared.stdout, declared.stderr);
    assert_eq!((ran.code, declared.code), (0, 0));
}

/// Runs the planted worker with default settings, and gives its first failure.
#[track_caller]
fn find(name: &str, workload: usize) -> Option<(Here, Value)> {
    let command = python("planted.py", &[name])?;
    let here = here_with(&command, &EVERY_OP[workload..=workload]);
    let (ran, report) = fuzz(&here, &["--fail-fast"]);
    let failure = report["kernels"][0]["failures"][0].clone();
    assert_eq!((ran.code, &failure["finding"]["kind"]), (1, &json!("wrong_answer")), "{name}: {ran:#?}");
    Some((here, failure))
}

#[test]
fn bugs_beyond_small_sizes_are_found_with_default_settings() {
    for (name, axis, least) in
        [("keys_beyond_512", 2, 513), ("heads_above_8", 1, 9), ("batch_index_3", 0, 4), ("width_96", 3, 96)]
    {
        let Some((here, failure)) = find(name, 0) else { return };
        let size = failure["case"]["shape"][axis].as_u64().unwrap();
        assert!(size >= least, "{name}: {failure:#}");
        here.run(&["fuzz", "replay", failure["file"].as_str().unwrap()]).ends(1).prints(&["wrong_answer"]);
    }
}

#[test]
fn weights_that_are_left_out_because_they_are_small_are_found() {
    let Some((_, failure)) = find("weights_under_0_001", 0) else { return };
    assert!(failure["found_after"].as_u64().unwrap() <= 200, "{failure:#}");
}

#[test]
fn errors_within_the_tolerance_are_named_and_fail_where_that_is_asked_for() {
    for (name, word) in
        [("truncated", "truncated instead of rounded"), ("scale_a_thousandth_off", "% too large")]
    {
        let Some(command) = python("planted.py", &[name]) else { return };
        let here = here_with(&command, &EVERY_OP[..1]);
        let common = ["--dtype", "f16", "--cases", "30"];
        let (ran, report) = fuzz(&here, &common);
        let kernel = &report["kernels"][0];
        assert_eq!((ran.code, &kernel["failures"]), (0, &json!([])), "{name}: {kernel:#}");
        let finding = &kernel["less_accurate"]["finding"];
        assert_eq!(finding["kind"], "less_accurate", "{name}: {kernel:#}");
        assert!(finding["detail"].as_str().unwrap().contains(word), "{name}: {finding}");
        here.run(&[&["fuzz", "--suite", "workers.toml"][..], &common].concat()).ends(0).prints(&[
            "inaccurate",
            "less accurate than it should be",
            word,
        ]);
        let (ran, report) = fuzz(&here, &[&common[..], &["--accuracy", "fail", "--fail-fast"]].concat());
        let failure = &report["kernels"][0]["failures"][0];
        assert_eq!((ran.code, &failure["finding"]["kind"]), (1, &json!("less_accurate")), "{name}: {ran:#?}");
        here.run(&["fuzz", "replay", failure["file"].as_str().unwrap()]).ends(1).prints(&["less_accurate"]);
        here.write("workers.toml", &here.read("workers.toml").replace(name, "honest"));
        here.run(&["fuzz", "replay", failure["file"].as_str().unwrap()]).ends(0);
        here.write(
            "workers.toml",
            &format!("{}[fuzz.attention]\naccuracy = \"fail\"\n", here.read("workers.toml")),
        );
        let (ran, _) = fuzz(&here, &common);
        assert_eq!(ran.code, 0, "the honest worker: {ran:#?}");
    }
}

#[test]
fn wrong_whole_numbers_are_found() {
    for (name, output) in [("indices_unsorted", "indices["), ("origins_swapped", "origins[")] {
        let Some((_, failure)) = find(name, 3) else { return };
        let detail = failure["finding"]["detail"].as_str().unwrap();
        assert!(detail.starts_with(output), "{name}: {detail}");
    }
    let Some((_, failure)) = find("priority_of_another_level", 4) else { return };
    assert!(failure["finding"]["detail"].as_str().unwrap().starts_with("priority_map["), "{failure:#}");
    assert!(failure["case"]["params"].get("levels").is_none(), "{failure:#}");
}

#[test]
fn the_sizes_that_were_run_are_printed_and_set_by_the_suite() {
    let command: Vec<String> = OWN.iter().map(|&word| word.to_owned()).collect();
    let here = here_with(&command, &EVERY_OP[..1]);
    let (_, report) = fuzz(&here, &["--cases", "100"]);
    let max = |report: &Value| -> Vec<u64> {
        let sizes = report["kernels"][0]["sizes"].as_array().unwrap().iter();
        sizes.map(|size| size["max"].as_u64().unwrap()).collect()
    };
    let [batch, heads, steps, head_dim] = max(&report)[..] else { panic!("{report:#}") };
    assert!(batch > 4 && heads > 16 && steps > 750 && head_dim > 128, "{report:#}");
    let limits = "[fuzz.attention]\nsizes_max = [2, 3, 40, 64]\n";
    here.write("workers.toml", &format!("{}{limits}", here.read("workers.toml")));
    let (_, report) = fuzz(&here, &["--cases", "100"]);
    assert_eq!(max(&report)[..2], [2, 3], "{report:#}");
    assert!(max(&report)[2] <= 40 && max(&report)[3] <= 64, "{report:#}");
    here.run(&["fuzz", "--suite", "workers.toml", "--cases", "100"])
        .prints(&["attention f32 by mine: batch 1–2, heads 1–3, steps 1–"]);
}

#[test]
fn a_bug_that_shows_once_in_fifty_runs_is_replayed_until_it_shows() {
    let Some(command) = python("planted.py", &["once_in_fifty_cases"]) else { return };
    let here = here_with(&command, &EVERY_OP[1..2]);
    let (ran, report) = fuzz(&here, &["--fail-fast"]);
    let failure = &report["kernels"][0]["failures"][0];
    assert_eq!(ran.code, 1, "{ran:#?}");
    let count = |key: &str| failure["shown"][key].as_u64().unwrap();
    assert!(count("failed_count") == 3 && (75..=160).contains(&count("runs_count")), "{failure:#}");
    let file = failure["file"].as_str().unwrap();
    assert_eq!(here.json(file)["shown"], failure["shown"]);
    let again = here.run(&["fuzz", "replay", file]);
    again.ends(1).prints(&[" in 3 of 1", " runs: "]);
    here.write("workers.toml", &here.read("workers.toml").replace("once_in_fifty_cases", "honest"));
    here.run(&["fuzz", "replay", file]).ends(0).prints(&["passed", "wrong in 0 of "]);
}

#[test]
fn a_small_file_that_asks_for_a_large_case_is_refused_with_size_and_limit() {
    let command: Vec<String> = OWN.iter().map(|&word| word.to_owned()).collect();
    let here = here_with(&command, &EVERY_OP[..EXTERNAL_COUNT]);
    for (op, shape) in [
        ("attention", json!([4, 16, 4096, 64])),
        ("attention", json!([1, 1, 1_000_000, 4])),
        ("fusion_gate", json!([1, 1024, 128, 128])),
        ("tile_ssm", json!([u64::MAX, 3, 3])),
        ("tile_pack", json!([64, 1024, 64, 64])),
    ] {
        let case = json!({"op": op, "shape": shape, "dtype": "f16", "seed": 1, "values": "normal"});
        let finding = json!({"kind": "wrong_answer", "detail": "it differs"});
        let file = json!({"schema_version": 1, "suite": "workers.toml", "worker": "mine", "finding": finding,
            "case": case});
        here.write("large.json", &file.to_string());
        here.run(&["fuzz", "replay", "large.json"]).refuses(64, &["large.json", "shape", "at most"]);
    }
    let text = here.read("workers.toml").replace("[1, 2, 8, 32]", "[4, 16, 4096, 64]");
    here.write("workers.toml", &text);
    here.run(&["check", "--suite", "workers.toml"]).refuses(64, &["w0", "elements", "at most"]);
    let (ran, report) = fuzz(&here, &["--cases", "3", "attention"]);
    assert_eq!((ran.code, &report["kernels"][0]["refused_count"]), (0, &json!(1)), "{ran:#?}");
    let shape = ["check", "attention", "--worker", "builtin", "--shape"];
    here.run(&[&shape[..], &["4,16,4096,64"]].concat()).refuses(64, &["elements", "at most"]);
    here.run(&[&shape[..], &["1,1,100000000,1"]].concat()).refuses(64, &["elements", "at most"]);
}
