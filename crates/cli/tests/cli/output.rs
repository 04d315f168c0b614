//! Output: what goes to stdout and stderr, as text and as JSON.

use crate::common::{Here, data, keys};
use serde_json::Value;

#[test]
fn json_output_equals_the_written_file() {
    let here = Here::new();
    let ran = here.run(&["--format", "json", "run", "--suite", "suite.toml"]);
    assert_eq!(ran.ends(0).stdout, here.read("artifacts/report.json"));
    let ran = here.run(&[
        "gate",
        "--format",
        "json",
        "--suite",
        "suite.toml",
        "--runs",
        "1",
        "--policy",
        "allowed-max",
    ]);
    assert_eq!(ran.ends(0).stdout, here.read(&here.baseline()));
    here.edit_times(1e9);
    let ran = here.run(&[
        "gate",
        "--format",
        "json",
        "--quiet",
        "--suite",
        "suite.toml",
        "--policy",
        "allowed-max",
    ]);
    assert_eq!(ran.ends(0).stdout, here.read("artifacts/comparison.json"));
    assert_eq!(ran.stderr, "");
}

#[test]
fn quiet_prints_nothing_but_errors() {
    let here = Here::new();
    for arguments in [
        &["run", "--suite", "suite.toml", "-q"][..],
        &["-q", "gate", "--suite", "suite.toml", "--runs", "1", "--policy", "allowed-max"],
        &["-q", "baseline", "show", "--suite", "suite.toml"],
        &["-q", "report"],
        &["-q", "doctor"],
    ] {
        let ran = here.run(arguments);
        assert_eq!((ran.ends(0).stdout.as_str(), ran.stderr.as_str()), ("", ""), "{arguments:?}");
    }
    here.run(&["-q", "report", "nowhere.json"]).refuses(64, &["nowhere.json"]);
}

#[test]
fn output_to_a_pipe_has_no_colour() {
    let here = Here::new();
    for value in ["", "1"] {
        let arguments =
            ["compare", &data("apex-cpu-report.json"), "--baseline", &data("apex-cpu-baseline.json")];
        let output = here.command(&arguments).env("NO_COLOR", value).output().unwrap();
        assert!(!output.stdout.contains(&0x1b), "a pipe is not a terminal");
    }
    let bad = here.command(&["--nonsense"]).env("NO_COLOR", "1").output().unwrap();
    assert!(!bad.stderr.contains(&0x1b));
}

#[test]
fn bad_usage_is_reported_on_stderr() {
    let here = Here::new();
    for arguments in [
        &["--nonsense"][..],
        &["gate", "--runs", "0"],
        &["compare", "a.json", "--baseline", "b.json", "--policy", "threshold", "--threshold", "nan"],
        &["completions", "tcl"],
    ] {
        let ran = here.run(arguments);
        assert_eq!(ran.ends(64).stdout, "", "{arguments:?}");
        ran.notes(&["--help"]);
    }
}

#[test]
fn doctor_json_has_the_keys_of_apex_x() {
    let here = Here::new();
    here.run(&["doctor"]).ends(0).prints(&["cuda", "triton"]);
    let caps: Value =
        serde_json::from_str(&here.run(&["doctor", "--format", "json"]).ends(0).stdout).unwrap();
    assert_eq!(
        keys(&caps),
        [
            "any_gpu_runtime",
            "compute_sanitizer",
            "cpu",
            "cuda",
            "fp8",
            "kind",
            "ncu",
            "nvml",
            "nvrtc",
            "schema_version",
            "tensorrt",
            "triton",
            "withheld_variables"
        ]
    );
    for key in ["available", "compute_capability", "device_count", "device_name", "reason"] {
        assert!(caps["cuda"].get(key).is_some(), "{key}");
    }
    assert_eq!(keys(&caps["triton"]), ["available", "reason", "version"]);
    for key in [
        "python_available",
        "python_version",
        "python_reason",
        "headers_available",
        "header_path",
        "int8_available",
        "int8_reason",
    ] {
        assert!(caps["tensorrt"].get(key).is_some(), "{key}");
    }
    assert_eq!(keys(&caps["fp8"]), ["available", "dtype_available", "reason", "supported_dtypes"]);
    for cap in [&caps["cuda"], &caps["triton"], &caps["fp8"], &caps["nvml"], &caps["nvrtc"]] {
        assert_eq!(cap["available"] == true, cap["reason"].is_null(), "{cap}");
    }
}

#[test]
fn doctor_names_nvrtc_and_counts_cached_kernels() {
    let here = Here::new();
    let kernels = here.cache().join("kernels");
    std::fs::create_dir_all(&kernels).unwrap();
    std::fs::write(kernels.join("a.cubin"), "").unwrap();
    let output = here.command(&["doctor", "--format", "json"]).output().unwrap();
    let caps: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(caps["nvrtc"]["kernels_count"], 1);
    assert_eq!(caps["nvrtc"]["kernels_dir"], kernels.to_string_lossy().as_ref());
    let key = if caps["nvrtc"]["available"] == true { "library_path" } else { "detail" };
    assert!(caps["nvrtc"][key].is_string(), "{caps}");
}

#[test]
fn tune_without_the_device_is_skipped_with_a_reason() {
    let here = Here::new();
    let arguments = ["tune", "--suite", "gpu", "--device", "4294967295"];
    here.run(&arguments).ends(2).prints(&["skipped", "cuda_", "0 workloads tuned"]);
    let ran = here.run(&[&arguments[..], &["--format", "json"]].concat());
    let tunings: Value = serde_json::from_str(&ran.ends(2).stdout).unwrap();
    let tunings = tunings.as_array().unwrap();
    assert!(!tunings.is_empty());
    for tuning in tunings {
        assert_eq!(tuning["status"], "skipped");
        assert!(tuning["reason"].is_string() && tuning["detail"].is_string(), "{tuning}");
    }
    here.run(&["tune", "--suite", "cpu"]).refuses(64, &["cpu", "cuda"]);
}

#[test]
fn completion_scripts_list_the_commands() {
    let here = Here::new();
    for shell in ["bash", "zsh", "fish"] {
        here.run(&["completions", shell]).ends(0).prints(&["holdpoint", "baseline", "fit"]);
    }
}

#[test]
fn worker_writes_only_to_stdout() {
    let here = Here::new();
    let requests = "{\"type\":\"hello\",\"protocol\":2}\n{\"type\":\"list\"}\nwhat?\n{\"type\":\"bye\"}\n";
    let output = here.command(&["worker", "--suite", "suite.toml"]).write_stdin(requests).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    let text = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let types: Vec<&str> = answers.iter().map(|answer| answer["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["hello", "workloads", "error", "bye"]);
    assert_eq!(answers[0]["protocol"], 2);
    assert_eq!(answers[1]["workloads"][0]["name"], "pack");
}

#[test]
fn the_binary_can_serve_as_a_worker() {
    let here = Here::new();
    let program = assert_cmd::cargo::cargo_bin!("holdpoint");
    let worker =
        format!("[workers.child]\ncommand = [{:?}, \"worker\", \"--suite\", \"suite.toml\"]\n", program);
    let outer =
        here.read("suite.toml").replace("op = \"tile_pack\"", "op = \"tile_pack\"\nworker = \"child\"");
    here.write("outer.toml", &outer.replacen("[[workload]]", &format!("{worker}[[workload]]"), 1));
    here.run(&["run", "--suite", "outer.toml"]).ends(0).prints(&["ok: 2 workloads measured"]);
}
