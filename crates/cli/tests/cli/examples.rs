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

#[test]
fn a_server_is_started_measured_and_ended() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        println!("skipped: no python3");
        return;
    }
    let here = Here::new();
    std::fs::create_dir_all(here.path("examples/serving")).unwrap();
    for file in ["perf.toml", "model.py", "client.py"] {
        take(&here, &format!("serving/{file}"));
    }
    let server = format!("{}/../../examples/serving/server.py", env!("CARGO_MANIFEST_DIR"));
    let server = std::fs::read_to_string(server).unwrap();
    let noted = "import os\nopen(\"servers\", \"a\").write(f\"{os.getpid()}\\n\")\n";
    here.write("examples/serving/server.py", &format!("{noted}{server}"));
    here.run(&[
        "ab",
        "--base-suite",
        "examples/serving/perf.toml",
        "--head-suite",
        "examples/serving/perf.toml",
        "--measure-same-code",
        "--units-max",
        "2",
    ]);
    let metrics = here.json("artifacts/comparison.json");
    let names: Vec<&str> =
        metrics["checks"].as_array().unwrap().iter().filter_map(|check| check["metric"].as_str()).collect();
    assert_eq!(
        names,
        ["chat_p50_ms", "chat_between_tokens_p99_ms", "chat_first_token_ms", "chat_tokens_per_s"]
    );
    let servers = std::fs::read_to_string(here.path("examples/serving/servers")).unwrap();
    assert!(servers.lines().count() >= 2, "a server for each side: {servers}");
    for id in servers.lines() {
        let command = std::fs::read_to_string(format!("/proc/{id}/cmdline")).unwrap_or_default();
        assert!(!command.contains("server.py"), "{id} is still running");
    }
}
