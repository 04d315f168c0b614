//! `profile`, with stand-ins for the profiler and the device.

use crate::common::{Here, Ran, ran};
use crate::fakes;

fn profile(here: &Here, fake: &str, worker: &str, more: &[&str]) -> Ran {
    let arguments = [&["profile", "--suite", "fake.toml"][..], more].concat();
    ran(fakes::command(here, fake, worker, &arguments).output().unwrap())
}

#[test]
fn kernels_are_counted_and_what_holds_them_is_told() {
    let here = fakes::here();
    let told = profile(&here, "", "", &[]);
    told.ends(0).notes(&["artifacts/profile.json"]);
    insta::assert_snapshot!("profile", told.stdout);
    let document = here.json("artifacts/profile.json");
    assert_eq!(document["profiler"]["version"], "2025.3.1.0");
    assert_eq!(document["device"]["name"], "NVIDIA H200");
    let missing = document["missing_metrics"].to_string();
    assert!(missing.contains("branch_resolving") && !missing.contains("throughput"), "{missing}");
    let workload = &document["profiles"]["w"];
    assert_eq!(
        (&workload["status"], &workload["kernel_filter"]),
        (&"profiled".into(), &"^(ff_begin_fast|ff_refine_fast)$".into())
    );
    let kernels = workload["kernels"].as_array().unwrap();
    assert_eq!(kernels.len(), 4, "the same name with other grids is another");
    for kernel in kernels {
        let metrics = kernel["metrics"].as_object().unwrap();
        assert!(metrics.len() > 40 && metrics.keys().all(|name| !name.contains("duration")), "{metrics:?}");
        assert!(metrics.values().all(|value| value.is_f64() || value.is_u64()), "{metrics:?}");
    }
    let stores = kernels[2]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["rule"] == "uncoalesced_stores")
        .unwrap();
    assert_eq!(stores["evidence"]["smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct"], 25.0);
    for file in ["w.csv", "w.ncu-rep", "w.ncu.log"] {
        assert!(here.path(&format!("artifacts/profile-raw/{file}")).exists(), "{file}");
    }
    assert_eq!(here.left_over(), [""; 0]);
}

#[test]
fn the_profiler_is_told_the_workloads_own_kernels_and_leaves_clocks_alone() {
    let here = fakes::here();
    profile(&here, "", "", &[]).ends(0);
    let words = here.read("args.txt");
    for words_wanted in [
        "--kernel-name regex:^(ff_begin_fast|ff_refine_fast)$",
        "--launch-count 4",
        "--clock-control none",
        "--cache-control none",
        "--target-processes all",
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    ] {
        assert!(words.contains(words_wanted), "{words_wanted}: {words}");
    }
    assert!(words.trim_end().ends_with("./worker.sh"), "{words}");
    profile(&here, "", "", &["--kernel", "gemm"]).ends(0);
    assert!(here.read("args.txt").lines().nth(1).unwrap().contains("--kernel-name regex:gemm"));
}

#[test]
fn a_profiler_that_cannot_count_is_unavailable_with_a_reason_and_a_remedy() {
    for (fake, reason, words) in [
        ("permission", "ncu_no_permission", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("gvisor", "ncu_not_supported", "profile on the host"),
        ("no_kernel", "no_kernel_profiled", "copy_fast, draw_normal"),
        ("no_report", "no_kernel_profiled", "--kernel"),
        ("nan", "counters_not_read", "is not a number"),
        ("garbage", "ncu_failed", "raw page of ncu"),
        ("cut", "ncu_failed", "cut off"),
        ("import_fails", "ncu_failed", "Could not open report file"),
        ("flood", "ncu_failed", "too much"),
        ("no_version", "ncu_not_usable", "Segmentation fault"),
        ("app_fails", "failed_under_ncu", "it works without ncu"),
        ("hang", "ncu_timed_out", "--timeout"),
    ] {
        let here = fakes::here();
        let told = profile(&here, fake, "", &["--timeout", "2"]);
        told.ends(2).prints(&["unavailable", reason, words, "0 workloads profiled"]);
        let workload = here.json("artifacts/profile.json")["profiles"]["w"].clone();
        assert_eq!(
            (&workload["status"], &workload["reason"]),
            (&"unavailable".into(), &reason.into()),
            "{fake}"
        );
        assert!(workload["remedy"].is_string(), "{fake}: {workload}");
    }
}

#[test]
fn without_a_profiler_nothing_is_run() {
    let here = fakes::here();
    let mut command = fakes::command(&here, "", "crash", &["profile", "--suite", "fake.toml"]);
    let told = ran(command.env("HOLDPOINT_NCU", "/nowhere/ncu").output().unwrap());
    told.ends(2).prints(&["ncu_not_found", "/nowhere/ncu", "install Nsight Compute"]);
}

#[test]
fn without_a_device_its_reason_is_the_workloads() {
    let here = fakes::here();
    profile(&here, "", "skipped", &[]).ends(2).prints(&[
        "unavailable",
        "cuda_unavailable",
        "install the NVIDIA driver",
    ]);
    assert!(!here.path("args.txt").exists(), "the profiler was started");
}

#[test]
fn a_workload_that_fails_by_itself_is_broken() {
    for (worker, words) in [("crash", "crashed"), ("wrong", "wrong_answer: out[7]"), ("garbage", "garbage")] {
        let here = fakes::here();
        profile(&here, "", worker, &[]).ends(4).prints(&["failed", words]);
        assert!(!here.path("args.txt").exists(), "the profiler was started");
    }
    let here = fakes::here();
    profile(&here, "", "hang", &["--timeout", "1"]).ends(4).prints(&["timed_out"]);
}

#[test]
fn a_counter_that_the_profiler_refuses_is_left_out_and_named() {
    let here = fakes::here();
    profile(&here, "refuses_metric", "", &[]).ends(0);
    let words = here.read("args.txt");
    let asked: Vec<bool> = words.lines().map(|line| line.contains("lts__t_bytes.sum")).collect();
    assert_eq!(asked, [true, false]);
}

#[test]
fn two_profiles_are_compared_kernel_by_kernel() {
    let here = fakes::here();
    profile(&here, "", "", &["-o", "base.json"]).ends(0);
    let same = ["--against", "base.json", "--comparison", "comparison.json"];
    profile(&here, "", "", &same).ends(0).prints(&["4 kernels compared, 0 with changed counters"]);
    here.edit("base.json", |base| {
        base["device"]["name"] = "NVIDIA L4".into();
        let kernels = base["profiles"]["w"]["kernels"].as_array_mut().unwrap();
        kernels[0]["metrics"]["lts__t_sector_hit_rate.pct"] = 97.0.into();
        kernels[0]["metrics"]["dram__bytes.sum"] = 3_500_000.0.into();
        kernels[0]["metrics"]["smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct"] = 30.0.into();
        kernels[2]["name"] = "ff_tokens_slow".into();
    });
    let compared = [
        "profile",
        "--from",
        "artifacts/profile.json",
        "--against",
        "base.json",
        "--comparison",
        "comparison.json",
    ];
    let told = here.run(&compared);
    told.ends(0);
    let (_, table) = told.stdout.split_once("profile: 1 workload profiled").unwrap();
    insta::assert_snapshot!("profile_comparison", table.split_once('\n').unwrap().1.trim_start());
    let changes = here.json("comparison.json")["kernels"][0].clone();
    assert_eq!(changes["findings_gone"], serde_json::json!(["uncoalesced_loads"]));
    let weights: Vec<f64> =
        changes["changes"].as_array().unwrap().iter().map(|c| c["weight"].as_f64().unwrap()).collect();
    assert!(weights.len() >= 3 && weights.is_sorted_by(|a, b| a >= b), "{weights:?}");
}

#[test]
fn bad_input_is_refused_in_a_line() {
    let here = fakes::here();
    profile(&here, "", "", &["nobody"]).refuses(64, &["nobody", "it has w"]);
    profile(&here, "", "", &["--against", "nowhere.json"]).refuses(64, &["nowhere.json"]);
    here.write("bad.json", "{\"schema_version\": 1}");
    profile(&here, "", "", &["--against", "bad.json"]).refuses(64, &["bad.json", "not a profile"]);
    here.write("rules.toml", "[[metric]]\nname = \"a\"\n");
    let told = profile(&here, "", "", &["--rules", "rules.toml"]);
    told.ends(64).notes(&["rules.toml"]);
    here.run(&["profile", "--suite", "cpu"]).refuses(64, &["no kernels", "gpu"]);
    assert!(!here.path("artifacts").exists());
}

#[test]
fn what_regressed_is_profiled_and_the_verdict_stays() {
    let here = fakes::here();
    let suite = here.read("suite.toml");
    here.write("suite.toml", &suite.replace("[\"true\"]", "[\"true\"]\nmetrics = [\"p50_ms\", \"p95_ms\"]"));
    let gate = |fake: &str, more: &[&str]| {
        let arguments =
            [
                &[
                    "gate",
                    "--suite",
                    "suite.toml",
                    "--runs",
                    "1",
                    "--confirm",
                    "0",
                    "--policy",
                    "allowed-max",
                ][..],
                more,
            ]
            .concat();
        ran(fakes::command(&here, fake, "", &arguments).output().unwrap())
    };
    gate("", &[]).ends(0);
    here.edit_times(1e-6);
    gate("", &["--profile-on", "regression"])
        .ends(1)
        .prints(&["what regressed was profiled, 4 kernels", "artifacts/profile.json"]);
    let profile = here.json("artifacts/profile.json");
    assert_eq!(
        crate::common::keys(&profile["profiles"]),
        ["true"],
        "built-in ops of the CPU have no kernels"
    );
    assert!(here.json("artifacts/comparison.json")["notes"].to_string().contains("profile.json"));
    gate("permission", &["--profile-on", "regression"])
        .ends(1)
        .prints(&["could not be profiled (ncu_no_permission)"]);
    here.edit_times(1e9);
    gate("", &[]).ends(0);
    assert!(!here.path("artifacts/profile.json").exists(), "a profile of an earlier gate is left");
}

#[test]
fn side_by_side_both_sides_are_profiled() {
    let here = fakes::here();
    let arguments =
        ["ab", "--base", "true", "--head", "sleep 0.02", "--budget", "5", "--profile-on", "regression"];
    let told = ran(fakes::command(&here, "", "", &arguments).output().unwrap());
    told.ends(1).prints(&["what regressed was profiled, 4 kernels", "counters changed in 0 kernels"]);
    for file in ["profile.json", "profile-base.json", "profile-comparison.json"] {
        assert!(here.path(&format!("artifacts/{file}")).exists(), "{file}");
    }
    let words = here.read("args.txt");
    assert!(
        words.lines().next().unwrap().ends_with("sleep 0.02") && words.trim_end().ends_with("true"),
        "{words}"
    );
}
