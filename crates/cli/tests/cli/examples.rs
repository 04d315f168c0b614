//! The examples that the documentation points to do what it says.

use crate::common::Here;

/// Copies a file of `examples/` and shortens its measuring.
fn take(here: &Here, name: &str) {
    let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let quick = "[measure]\nrounds_min = 6\nrounds_max = 6\nwarmup_ms_max = 20.0\n\n[[workload]]";
    std::fs::create_dir_all(here.path("examples")).unwrap();
    here.write(&format!("examples/{name}"), &text.replacen("[[workload]]", quick, 1));
}

#[test]
fn a_command_is_measured_with_its_cpu_time() {
    let here = Here::new();
    take(&here, "command.toml");
    here.run(&["run", "--suite", "examples/command.toml"]).ends(0).prints(&["sort", "CPU p50"]);
    let report = here.json("artifacts/report.json");
    let sort = &report["benchmarks"]["sort"];
    assert_eq!((&sort["status"], &sort["answer"]["passed"]), (&"measured".into(), &true.into()));
    assert!(report["metrics"]["sort_cpu_p50_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn a_worker_in_plain_python_is_measured() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let here = Here::new();
    take(&here, "python.toml");
    take(&here, "worker.py");
    here.run(&["run", "--suite", "examples/python.toml"]).ends(0).prints(&["dot", "FLOP/s"]);
    let report = here.json("artifacts/report.json");
    assert_eq!(report["benchmarks"]["dot"]["answer"]["passed"], true);
}
