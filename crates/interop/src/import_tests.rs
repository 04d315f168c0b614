//! Files of other tools, as they wrote them or as their documents describe them (docs/imports.md says which).

use super::*;
use holdpoint_model::current::Unmeasured;
use std::collections::BTreeMap;

fn text(name: &str) -> String {
    let path = format!("{}/../model/tests/data/tools/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn folder(names: &[&str]) -> Source {
    Source::Folder(names.iter().map(|name| ((*name).to_owned(), text(name))).collect())
}

fn file(name: &str) -> Imported {
    import(&Source::File(text(name))).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// Metrics with their values and numbers of samples.
fn metrics(imported: &Imported) -> Vec<(&str, f64, usize)> {
    let metrics = imported.current.metrics.iter();
    metrics
        .map(|(name, metric)| {
            (name.as_str(), metric.value_ms, imported.samples_ms.get(name).map_or(1, Vec::len))
        })
        .collect()
}

const NO_SAMPLES: &str =
    "metrics are one number without samples: their noise is not known, and a change may be noise";

#[test]
fn asv_has_a_metric_for_each_combination_of_parameters() {
    let path = "asv/runner/8578dec4-existing-py_python3.json";
    let imported = file(path);
    let found = metrics(&imported);
    assert_eq!(found[0], ("words_Words_time_count(200, 'plain')_p50_ms", 0.012_126_333_350_200_486, 6));
    assert_eq!(found.iter().map(|(_, _, samples)| *samples).collect::<Vec<_>>(), [6; 4]);
    assert_eq!(imported.left_out, ["words.peakmem_list (no time)", "words.track_size (no time)"]);
    let skipped = &imported.current.unmeasured["words_Words_time_count(2000, 'sorted')_p50_ms"];
    assert_eq!(*skipped, Unmeasured::Skipped("asv skipped it".to_owned()));
    assert!(imported.current.revision.unwrap().commit.starts_with("8578dec4"));
    let all = import(&folder(&[path, "asv/benchmarks.json", "asv/runner/machine.json"])).unwrap();
    assert_eq!(all.left_out, ["words.peakmem_list (bytes)", "words.track_size (bytes)"]);
    let mut two = BTreeMap::from([("a.json".to_owned(), text(path)), ("b.json".to_owned(), text(path))]);
    let error = import(&Source::Folder(two.clone())).unwrap_err().to_string();
    assert_eq!(error, "folder: has the results of 2 commits; name the file of one");
    two.insert("b.json".to_owned(), "{}".to_owned());
    assert!(import(&Source::Folder(two)).is_ok());
    let failed = text(path).replace("[3.810059999977966e-05]", "null");
    let failed = import(&Source::File(failed)).unwrap();
    assert!(matches!(failed.current.unmeasured["words_time_join_p50_ms"], Unmeasured::Failed(_)));
}

#[test]
fn trials_of_benchmark_tools_are_named_by_their_groups() {
    let found = file("benchmark-tools.json");
    let names: Vec<&str> = metrics(&found).iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, ["trig/(\"sin\", 0_0)_p50_ms", "utf8/join_p50_ms", "utf8/replace_p50_ms"]);
    let join = metrics(&found)[1];
    assert!((join.1 - 1_035.75e-6).abs() < 1e-9 && join.2 == 4, "{join:?}");
}

#[test]
fn trtexec_has_the_times_of_every_inference_or_of_every_layer() {
    let found = file("trtexec-times.json");
    let names: Vec<(&str, usize)> =
        metrics(&found).iter().map(|(name, _, samples)| (*name, *samples)).collect();
    let expected = ["d2h", "enqueue", "gpu_compute", "h2d", "latency"].map(|name| format!("{name}_p50_ms"));
    assert_eq!(names, expected.iter().map(|name| (name.as_str(), 5)).collect::<Vec<_>>());
    let layers = file("trtexec-profile.json");
    assert_eq!(metrics(&layers), [("conv1 + relu1_p50_ms", 0.129_024, 1), ("fc_p50_ms", 0.078_848, 1)]);
    assert_eq!(layers.current.notes, [format!("2 of 2 {NO_SAMPLES}")]);
}

#[test]
fn measurements_of_torch_are_times_per_run() {
    let found = file("torch-benchmark.json");
    let names: Vec<(&str, usize)> =
        metrics(&found).iter().map(|(name, _, samples)| (*name, *samples)).collect();
    let expected = [
        ("add/128x128/ones_p50_ms", 6),
        ("add/64x64/ones/4 threads_p50_ms", 6),
        ("add/64x64/ones_p50_ms", 6),
    ];
    assert_eq!(names, expected);
    assert!(metrics(&found).iter().all(|(_, ms, _)| (0.01..0.04).contains(ms)));
}

#[test]
fn tables_of_triton_carry_their_units() {
    let names = ["triton-testing/bandwidth.csv", "triton-testing/builtins.csv"];
    let table = file(names[1]);
    assert_eq!(table.current.suite, "triton_testing");
    assert_eq!(metrics(&table)[0], ("Sorted/rows=100/columns=100_p50_ms", 0.041_441, 1));
    let both = import(&folder(&names)).unwrap();
    let found = metrics(&both);
    assert_eq!(found[0].0, "triton-testing/bandwidth.items=10000_time_per_gb_p50_ms");
    assert!((found[0].1 - 1e3 / 1.727_153).abs() < 1e-9);
    assert_eq!(found.len(), 8);
}

#[test]
fn tritonbench_has_latencies_and_failures() {
    let found = file("tritonbench.csv");
    let names: Vec<&str> = metrics(&found).iter().map(|(name, ..)| *name).collect();
    assert_eq!(names.len(), 5);
    assert_eq!(names[4], "triton_tutorial_matmul/(512, 512, 512)_p50_ms");
    let oom = &found.current.unmeasured["triton_tutorial_matmul/(384, 384, 384)_p50_ms"];
    assert_eq!(*oom, Unmeasured::Failed("CUDA OOM".to_owned()));
    assert!(found.current.notes[0].contains("aten_matmul-tflops (no time)"), "{:?}", found.current.notes);
}

#[test]
fn a_load_test_of_vllm_has_latencies_and_times_per_item() {
    let plain = file("vllm-serve.json");
    let value = |imported: &Imported, name: &str| imported.current.metrics[name].value_ms;
    assert_eq!(value(&plain, "ttft_p50_ms"), 55.15);
    assert_eq!(value(&plain, "tpot_p99_ms"), 10.6);
    assert_eq!(value(&plain, "time_per_output_token_ms"), 1e3 / 126.976);
    let identity = plain.current.metrics["ttft_p50_ms"].identity.as_ref().unwrap();
    assert_eq!(identity.params["request_rate"], "inf");
    assert_eq!(plain.current.notes, [format!("12 of 12 {NO_SAMPLES}")]);
    let detailed = file("vllm-serve-detailed.json");
    assert_eq!(detailed.samples_ms["ttft_p50_ms"], [0.0512, 0.0634, 0.0488, 0.0591].map(|s| s * 1e3));
    assert_eq!(detailed.samples_ms["itl_p50_ms"].len(), 9);
    let failed = text("vllm-serve.json").replace("\"failed\": 0", "\"failed\": 1");
    let failed = import(&Source::File(failed)).unwrap();
    assert_eq!(failed.current.status.as_deref(), Some("failed"));
    assert_eq!(metrics(&file("vllm-latency.json")), [("latency_p50_ms", 1_200.0, 5)]);
    let rates = file("vllm-throughput.json");
    assert_eq!(metrics(&rates), [("time_per_request_ms", 125.0, 1), ("time_per_token_ms", 1e3 / 4096.0, 1)]);
}

#[test]
fn runs_of_sglang_with_the_same_settings_are_samples() {
    let found = file("sglang-serving.jsonl");
    assert_eq!(found.samples_ms["request_rate=4_0/ttft_p50_ms"], [88.2, 88.2 * 1.02]);
    assert_eq!(found.samples_ms["request_rate=Infinity/e2e_latency_p99_ms"].len(), 2);
    assert!(found.current.notes.is_empty(), "{:?}", found.current.notes);
}

#[test]
fn values_without_samples_are_named_by_their_units() {
    let gha = file("github-action-benchmark.json");
    assert_eq!(metrics(&gha), [("parse_ms", 0.041_25, 1), ("requests_time_per_req_ms", 0.8, 1)]);
    let notes =
        ["left out, as only times and rates are compared: binary (bytes)", &format!("2 of 2 {NO_SAMPLES}")];
    assert_eq!(gha.current.notes, notes);
    let history = file("github-action-benchmark-data.js");
    assert_eq!(metrics(&history), [("parse_ms", 0.042, 1)]);
    assert_eq!(history.current.notes[0], "the newest of 2 runs of the history");
    let bmf = file("bmf.json");
    let expected = [
        ("make release_build_time_ms", 87_500.0, 1),
        ("parse_ms", 0.041_25, 1),
        ("serve_time_per_operation_ms", 0.8, 1),
    ];
    assert_eq!(metrics(&bmf), expected);
    let table = file("samples.csv");
    assert_eq!(metrics(&table)[0], ("parse_p50_ms", 0.041_2, 3));
    let none = import(&Source::from(r#"[{"name": "a", "unit": "MB", "value": 1}]"#)).unwrap_err().to_string();
    assert_eq!(none, "file: nothing in it is a time or a rate: a (MB)");
}

#[test]
fn a_file_of_thousands_of_names_is_known_by_the_first_and_read_to_its_end() {
    let names = |count: usize| -> String {
        let of = |at: usize| format!(r#""b{at}":{{"latency":{{"value":{at}}}}}"#);
        (1..=count).map(of).collect::<Vec<_>>().join(",")
    };
    let all = import(&Source::from(format!("{{{}}}", names(3_000)).as_str())).unwrap();
    assert_eq!(all.current.metrics.len(), 3_000);
    assert_eq!(all.current.metrics["b3000_ms"].value_ms, 0.003);
    for end in ["", ",}", r#","b1":{"latency":{"value":1}}}"#, r#","c":{"latency":{"value":"quick"}}}"#] {
        let text = format!("{{{}{end}", names(3_000));
        let error = import(&Source::from(text.as_str())).unwrap_err().to_string();
        assert!(!error.contains("top-level keys"), "{error}");
    }
}
