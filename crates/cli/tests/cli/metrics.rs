//! Metrics beside the median time, and builds that need no measuring.

use crate::common::Here;
use crate::repository::FAST;
use serde_json::Value;

/// A suite whose command prints this number and is a file of this many bytes; its times are not what it is about.
fn printing(here: &Here, name: &str, tokens: u32, padding: usize) {
    let script = format!("#!/bin/sh\necho 'tokens/s: {tokens}'\n# {}\n", "x".repeat(padding));
    crate::program::write_program(&here.path(&format!("{name}.sh")), &script);
    here.write(
        &format!("{name}.toml"),
        &format!(
            "schema_version = 1\nname = \"model\"\n[gate]\ntolerance = \"900%\"\nunits_max = 40\n\
             [[workload]]\nname = \"model\"\ncommand = [\"./{name}.sh\"]\n\
             metrics.file_bytes = \"1%\"\nmetrics.cpu_p50_ms = \"900%\"\n\
             [workload.metrics.tokens]\nvalue = \"tokens/s: ([0-9.]+)\"\nbetter = \"higher\"\ntolerance = \"3%\"\n"
        ),
    );
}

fn verdicts(comparison: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let checks = comparison["checks"].as_array().unwrap().iter();
    checks.map(|check| (text(&check["metric"]), text(&check["verdict"]))).collect()
}

fn named(verdicts: &[(String, String)]) -> Vec<(&str, &str)> {
    verdicts.iter().map(|(metric, verdict)| (metric.as_str(), verdict.as_str())).collect()
}

#[test]
fn a_number_that_is_printed_and_the_size_of_a_file_are_gated() {
    let here = Here::new();
    printing(&here, "base", 100, 1_000);
    printing(&here, "head", 90, 1_100);
    let ran = here.run(&["ab", "--base-suite", "base.toml", "--head-suite", "head.toml"]);
    ran.ends(1).prints(&[
        "model_tokens",
        "-10.0 %",
        "worse than the tolerance of 3.0 %",
        "worse than allowed",
    ]);
    let expected = [
        ("model_p50_ms", "pass"),
        ("model_cpu_p50_ms", "pass"),
        ("model_tokens", "regressed"),
        ("model_file_bytes", "regressed"),
    ];
    let decided = verdicts(&here.json("artifacts/comparison.json"));
    assert_eq!(named(&decided), expected);
    // Judged again from the samples, and by what came out of that.
    let again = here.run(&["compare", "artifacts/ab.json", "--format", "json"]);
    let again = verdicts(&serde_json::from_str(&again.ends(1).stdout).unwrap());
    assert_eq!(again, decided);
    here.run(&["report", "artifacts/comparison.json"]).prints(&["model_tokens", "regressed"]);
    // The other way round nothing is worse.
    let ran = here.run(&["ab", "--base-suite", "head.toml", "--head-suite", "base.toml"]);
    ran.ends(0).prints(&["improved"]);
}

#[test]
fn a_metric_that_is_not_known_is_refused_with_the_list() {
    let here = Here::new();
    here.write(
        "suite.toml",
        "schema_version = 1\nname = \"s\"\n[[workload]]\nname = \"w\"\ncommand = [\"true\"]\nmetrics = { p98 = \"1%\" }\n",
    );
    let ran = here.run(&["ab", "--base-suite", "suite.toml", "--head-suite", "suite.toml"]);
    ran.refuses(64, &["workload 1 (\"w\")", "metric \"p98\" is not known", "peak_memory_mb"]);
}

#[test]
fn a_small_program_has_a_peak_of_its_own() {
    let here = Here::new();
    let ran = here.run(&["peak-memory", "true"]);
    assert!(ran.ends(0).stdout.trim().parse::<u64>().unwrap() > 0);
    here.run(&["peak-memory", "false"]).ends(70);
}

#[test]
fn revisions_that_differ_in_documents_alone_are_not_measured() {
    let here = Here::repository();
    here.commit("first", Some(FAST));
    here.write("README.md", "read me\n");
    here.git(&["add", "README.md"]);
    here.commit("second", Some(FAST));
    let ran = here.revisions(&["gate", "--against", "HEAD~1"]);
    ran.ends(0).prints(&["pass", "the same build", "all files alike but README.md", "not measured"]);
    let workload = &here.ab()["workloads"]["program"];
    assert_eq!((&workload["ended"], workload["units"].as_array().unwrap().len()), (&"same_code".into(), 0));
    here.run(&["compare", "artifacts/ab.json"]).ends(0);
    // Hashes that differ are no proof.
    here.edit("artifacts/ab.json", |report| {
        report["workloads"]["program"]["same_build"]["base_sha256"] = "0".into();
    });
    here.run(&["compare", "artifacts/ab.json"]).refuses(64, &["its builds differ"]);
    here.revisions(&["ab", "--base-rev", "HEAD~1", "--measure-same-code"]).ends(0);
    assert_eq!(here.ab()["workloads"]["program"]["ended"], "decided");
}
