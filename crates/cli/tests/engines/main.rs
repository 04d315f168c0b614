//! Models, measured with the real ONNX Runtime. Where it cannot be had from PyPI, these tests are skipped, aloud.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

#[allow(dead_code)]
#[path = "../cli/common.rs"]
mod common;

use common::{Here, Ran};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// Set by `.ci/run`: without the packages of Python the tests fail instead of being skipped.
const REQUIRED: &str = "HOLDPOINT_REQUIRE_INTEROP";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
/// As few rounds as a model can be measured with.
const QUICK: &str =
    "[measure]\nrounds_min = 6\nrounds_max = 6\nround_ms = 0.5\ntime_budget_ms = 50\nwarmup_ms_max = 20\n";

/// The interpreter of an environment with ONNX Runtime, kept between runs, or why there is none.
static PYTHON: LazyLock<Result<String, String>> = LazyLock::new(|| {
    let venv = format!("{}/engines", env!("CARGO_TARGET_TMPDIR"));
    let python = format!("{venv}/bin/python3");
    let requirements = format!("{ROOT}/python/requirements-onnx.txt");
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", &requirements];
    start("python3", &["-m", "venv", &venv])?;
    start(&python, &install)?;
    Ok(python)
});

/// The last line of what a failing program prints, or why it does not start.
fn start(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).env("PYTHONPATH", format!("{ROOT}/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().map_err(|e| format!("{program}: {e}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    match output.status.success() {
        true => Ok(stdout),
        false => Err(format!("{program} {}: {stdout}\n{stderr}", arguments.join(" "))),
    }
}

/// A folder with models of two and of three layers, where ONNX Runtime is to be had.
struct Models {
    here: Here,
    python: &'static str,
}

impl Models {
    fn new() -> Option<Self> {
        let python = match &*PYTHON {
            Ok(python) => python,
            Err(why) => {
                assert!(std::env::var_os(REQUIRED).is_none(), "{REQUIRED} is set: {why}");
                eprintln!("skipped: {why}");
                return None;
            }
        };
        let here = Here::new();
        let script = format!("{ROOT}/examples/onnx-model/make_model.py");
        for (name, layers) in [("model.onnx", "2"), ("deeper.onnx", "3")] {
            start(python, &[&script, here.path(name).to_str().unwrap(), layers]).unwrap();
        }
        Some(Self { here, python })
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        let mut command = self.here.command(arguments);
        let variables =
            [("PYTHONPATH", format!("{ROOT}/python")), ("HOLDPOINT_PYTHON", self.python.to_owned())];
        common::ran(command.envs(variables).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap())
    }

    /// A suite of this model at two shapes.
    fn write_suite(&self, file: &str, model: &str) {
        let cases = "shape_cases = [\"image=1x3x16x16\", \"image=4x3x16x16\"]";
        self.here.write(file, &format!("name = \"m\"\n{QUICK}[engine]\nmodel = \"{model}\"\n{cases}\n"));
    }
}

#[test]
fn the_python_side_is_right() {
    let Ok(python) = &*PYTHON else { return assert!(Models::new().is_none()) };
    let tests = ["test_engine.py", "test_tensorrt.py"].map(|name| format!("{ROOT}/python/tests/{name}"));
    let options = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider"];
    let arguments: Vec<&str> = options.into_iter().chain(tests.iter().map(String::as_str)).collect();
    let printed = start(python, &arguments).unwrap();
    assert!(!printed.contains("skipped"), "{printed}");
}

#[test]
fn a_model_is_measured_and_checked() {
    let Some(models) = Models::new() else { return };
    let shape = ["--input-shape", "image=1x3x16x16", "--iters", "20"];
    models.run(&[&["run", "--engine", "model.onnx"], &shape[..]].concat()).ends(0);
    let report = models.here.json("artifacts/report.json");
    let measured = &report["benchmarks"]["default"];
    assert_eq!(measured["answer"]["passed"], true);
    assert_eq!(measured["identity"]["params"]["inputs"], "image=1x3x16x16");
    assert_eq!(measured["kernel"]["kernel_name"], "model.onnx");
    assert!(measured["throughput"]["frames_per_s"].as_f64().unwrap() > 0.0);
    assert_eq!(report["environment_lock"]["engine.threads"], "1");
    models.run(&["run", "--engine", "model.onnx", "--suite", "cpu"]).ends(64);
}

#[test]
fn a_sweep_measures_every_case_and_writes_the_seeds_files() {
    let Some(models) = Models::new() else { return };
    let cases = ["--shape-case", " image=4x3x16x16 ; ", "--shape-case", "image=1 3 8 8", "--iters", "20"];
    models.run(&[&["sweep", "--engine", "model.onnx"], &cases[..]].concat()).ends(0);
    let sweep = models.here.json("artifacts/perf_trt_shape_sweep.json");
    let labels: Vec<_> = sweep["cases"].as_array().unwrap().iter().map(|case| &case["label"]).collect();
    assert_eq!(labels, ["image_4x3x16x16", "image_1x3x8x8"]);
    assert_eq!((&sweep["status"], &sweep["summary"]["ok_count"]), (&"ok".into(), &2.into()));
    let page = models.here.read("artifacts/perf_trt_shape_sweep.md");
    assert!(
        page.contains("# Apex-X TensorRT Engine Shape Sweep") && page.contains("image_1x3x8x8"),
        "{page}"
    );
    // The files go through the same steps as those of any other run.
    let template = ["baseline", "template", "artifacts/perf_trt_shape_sweep.json", "--baseline", "base.json"];
    models.run(&template).ends(0);
    let base = models.here.json("base.json");
    assert_eq!(base["metrics"]["case.image_1x3x8x8.p95_ms"]["max_regression_ratio"], 0.8);
    assert_eq!(base["metrics"]["summary.p50_ms_max"]["max_regression_abs_ms"], 1.0);
    models.run(&["compare", "artifacts/perf_trt_shape_sweep.json", "--baseline", "base.json"]).ends(0);
    models.run(&["baseline", "template", "artifacts/report.json", "--baseline", "own.json"]).ends(0);
    let own = models.here.json("own.json");
    assert_eq!(own["metrics"]["image_1x3x8x8_p50_ms"]["max_regression_abs_ms"], 0.25);
}

#[test]
fn a_sweep_is_made_of_files_that_trtexec_wrote() {
    let here = Here::new();
    let file = common::data("tools/trtexec-times.json");
    let times = |shapes: &str| format!("{shapes}:{file}");
    let (small, large) = (times("image=1x3x64x64"), times("image=8x3x64x64"));
    here.run(&["sweep", "--times", &small, "--times", &large]).ends(0);
    let sweep = here.json("artifacts/perf_trt_shape_sweep.json");
    assert_eq!(sweep["cases"][1]["label"], "image_8x3x64x64");
    assert_eq!(sweep["cases"][0]["metrics"]["p50_ms"], sweep["summary"]["p50_ms_min"]);
    let report = here.json("artifacts/report.json");
    assert_eq!(report["metrics"]["image_8x3x64x64_p50_ms"], sweep["cases"][1]["metrics"]["p50_ms"]);
    here.run(&["sweep", "--times", &small, "--times", &small]).refuses(64, &["given twice"]);
    here.run(&["sweep", "--times", "image=1x3x64x64"]).refuses(64, &["the file of trtexec"]);
    here.run(&["sweep"]).ends(64);
}

#[test]
fn cases_are_checked_before_anything_is_measured() {
    let Some(models) = Models::new() else { return };
    let inputs = "its inputs: image=?x3x?x? float32";
    for (case, expected) in [
        ("image:1x3x8x8", "invalid shape case entry: 'image:1x3x8x8'"),
        ("image=1x3x0x8", "tensor dims must be > 0"),
        ("imgae=1x3x8x8", inputs),
        ("image=1x3x8", inputs),
        ("image=1x4x8x8", inputs),
    ] {
        let ran = models.run(&[
            "sweep",
            "--engine",
            "model.onnx",
            "--shape-case",
            "image=1x3x8x8",
            "--shape-case",
            case,
        ]);
        assert!(ran.stderr.contains(expected), "{case}: {}", ran.stderr);
        ran.ends(64);
        assert!(!models.here.path("artifacts/report.json").exists(), "{case} was found too late");
    }
    let ran = models.run(&["sweep", "--engine", "model.onnx"]);
    assert!(ran.stderr.contains("leaves sizes of 'image' open"), "{}", ran.stderr);
    ran.ends(64);
}

#[test]
fn a_model_that_cannot_run_here_is_skipped_with_its_reason() {
    let Some(models) = Models::new() else { return };
    for (arguments, reason) in [
        (vec!["--engine", "nix.onnx"], "engine_not_found:nix.onnx"),
        (vec!["--engine", "model.engine"], "engine_not_found:model.engine"),
        (vec!["--engine", "plugin:TileSSMScan"], "tensorrt_python_unavailable"),
        (
            vec!["--engine", "model.onnx", "--provider", "cuda", "--input-shape", "image=1x3x8x8"],
            "provider_unavailable:cuda",
        ),
    ] {
        models.run(&[&["sweep"], arguments.as_slice()].concat()).ends(2);
        let sweep = models.here.json("artifacts/perf_trt_shape_sweep.json");
        assert_eq!((&sweep["status"], &sweep["reason"]), (&"skipped".into(), &reason.into()));
    }
    let ran = models.run(&["run", "--engine", "model.onnx", "--python", "./nix"]);
    assert!(ran.stderr.contains("HOLDPOINT_PYTHON"), "{}", ran.stderr);
    ran.ends(64);
}

#[test]
fn the_example_is_measured() {
    let Some(models) = Models::new() else { return };
    let suite = std::fs::read_to_string(format!("{ROOT}/examples/onnx-model/perf.toml")).unwrap();
    models.here.write("perf.toml", &format!("{suite}{QUICK}"));
    models.run(&["run"]).ends(0).prints(&["image_1x3x64x64", "image_8x3x64x64", "frames/s"]);
}

#[test]
fn two_models_are_compared_side_by_side() {
    let Some(models) = Models::new() else { return };
    models.write_suite("model.toml", "model.onnx");
    models.write_suite("deeper.toml", "deeper.onnx");
    let sides = ["--base-suite", "model.toml", "--head-suite", "deeper.toml"];
    let ran = models.run(&[&["ab"], &sides[..], &["--units-max", "2", "--tolerance", "1%"]].concat());
    let sides = models.here.json("artifacts/ab.json");
    let workloads = sides["workloads"].as_object().unwrap();
    assert_eq!(
        workloads.keys().collect::<Vec<_>>(),
        ["image_1x3x16x16", "image_4x3x16x16"],
        "{}",
        ran.stderr
    );
    for workload in workloads.values() {
        let ended = &workload["ended"];
        assert!(["failed", "skipped"].iter().all(|bad| ended != *bad), "{ended}");
    }
}

#[test]
fn a_suite_with_a_model_is_gated_against_its_baseline() {
    let Some(models) = Models::new() else { return };
    models.write_suite("perf.toml", "model.onnx");
    let gate = ["gate", "--policy", "allowed-max", "--runs", "1"];
    models.run(&gate).ends(0);
    let baseline = models.here.baseline();
    models.here.edit(&baseline, |baseline| {
        for metric in baseline["metrics"].as_object_mut().unwrap().values_mut() {
            common::scale(metric, 1e6);
        }
    });
    models.run(&gate).ends(0);
    // Another model is what a gate is for; other settings are not comparable.
    models.write_suite("perf.toml", "deeper.onnx");
    models.run(&gate).ends(0);
    let suite = models.here.read("perf.toml");
    models.here.write("perf.toml", &suite.replace("[engine]", "[engine]\nthreads = 2"));
    models.run(&gate).ends(3);
}

#[test]
fn a_wrong_answer_of_a_model_is_no_time() {
    let Some(models) = Models::new() else { return };
    let reference = ["--reference", "deeper.onnx", "--input-shape", "image=1x3x16x16", "--iters", "5"];
    models.run(&[&["run", "--engine", "model.onnx"], &reference[..]].concat()).ends(4);
    let report = models.here.json("artifacts/report.json");
    assert_eq!(report["benchmarks"]["default"]["cause"], "wrong_answer");
    assert!(Path::new(models.python).exists());
}
