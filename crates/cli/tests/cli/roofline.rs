//! Workloads under the ceilings of their device: which ceilings are taken, and when they are refused.

use crate::common::{Here, data};
use serde_json::Value;
use std::path::PathBuf;

/// Reports of one H200.
fn docs(name: &str) -> String {
    format!("{}/../../docs/results/h200/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Puts ceilings where those of the H200 are kept, measured at this time.
fn keep(here: &Here, timestamp_utc: &str) -> PathBuf {
    let text = std::fs::read_to_string(docs("ceilings-gpu.json")).unwrap();
    let mut report: Value = serde_json::from_str(&text).unwrap();
    report["timestamp_utc"] = timestamp_utc.into();
    let fingerprint = report["machine"]["fingerprint"].as_str().unwrap();
    let driver = report["toolchain"]["cuda"]["driver"].as_str().unwrap();
    let path = here.cache().join("ceilings").join(format!("{fingerprint}_{driver}.json"));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, report.to_string()).unwrap();
    path
}

/// Now, as a report has it.
fn now(here: &Here) -> String {
    here.run(&["run", "--suite", "suite.toml", "--output", "r.json"]).ends(0);
    here.json("r.json")["timestamp_utc"].as_str().unwrap().to_owned()
}

#[test]
fn named_ceilings_give_a_table_a_picture_and_a_document() {
    let here = Here::new();
    let (report, ceilings) = (docs("gpu.json"), docs("ceilings-gpu.json"));
    let ran = here.run(&["roofline", &report, "--ceilings", &ceilings, "-o", "roofline.svg"]);
    ran.ends(0).prints(&["NVIDIA H200", "4.800 TB/s", "bound by", "attention.dispatch", "compute"]);
    ran.notes(&["picture: roofline.svg"]);
    assert!(here.read("roofline.svg").starts_with("<svg"));
    let ran = here.run(&["roofline", &report, "--ceilings", &ceilings, "--format", "json"]);
    let document: Value = serde_json::from_str(&ran.ends(0).stdout).unwrap();
    for (name, placed) in document["workloads"].as_object().unwrap() {
        assert_eq!(placed["status"], "placed", "{name}");
        assert!(placed["efficiency_pct"].as_f64().is_some_and(|pct| pct <= 100.0), "{name}: {placed}");
        assert!(!placed["recommendations"].as_array().unwrap().is_empty(), "{name}");
    }
}

#[test]
fn kept_ceilings_are_those_of_the_same_machine_and_not_too_old() {
    let here = Here::new();
    let report = docs("gpu.json");
    let remedy = "holdpoint roofline --measure";
    here.run(&["roofline", &report]).refuses(3, &["no ceilings are kept", "NVIDIA H200", "580", remedy]);
    keep(&here, "2020-02-03T04:05:06.789Z");
    here.run(&["roofline", &report]).refuses(3, &["2020-02-03", "7 days", remedy]);
    let path = keep(&here, &now(&here));
    here.run(&["roofline", &report]).ends(0).prints(&["attention.dispatch"]);
    std::fs::write(&path, "{").unwrap();
    here.run(&["roofline", &report]).refuses(64, &[path.to_str().unwrap()]);
}

#[test]
fn ceilings_of_another_device_are_refused() {
    let here = Here::new();
    here.run(&["run", "--suite", "suite.toml", "--output", "cpu.json"]).ends(0);
    let ceilings = docs("ceilings-gpu.json");
    let ran = here.run(&["roofline", "cpu.json", "--ceilings", &ceilings, "-o", "x.svg"]);
    ran.refuses(3, &["the ceilings are of NVIDIA H200, the report is of", "holdpoint roofline --measure"]);
    assert!(!here.files().contains(&"x.svg".to_owned()));
    // A report that measures no ceilings, and one that names no machine.
    here.run(&["roofline", "cpu.json", "--ceilings", "cpu.json"]).refuses(64, &["no `copy`", "cpu.json"]);
    let old = data("report-v1.json");
    here.write("nowhere.json", &std::fs::read_to_string(old).unwrap());
    here.edit("nowhere.json", |report| report["machine"] = Value::Null);
    here.run(&["roofline", "nowhere.json"]).refuses(3, &["names no machine"]);
}

#[test]
fn what_is_quicker_than_it_can_be_is_inconclusive() {
    let here = Here::new();
    here.write("ceilings.json", &std::fs::read_to_string(docs("ceilings-gpu.json")).unwrap());
    // Arithmetic a tenth of what it was: attention is far above it.
    here.edit("ceilings.json", |report| {
        let rate = &mut report["benchmarks"]["mma_f16"]["throughput"]["gflops"];
        *rate = (rate.as_f64().unwrap() / 10.0).into();
    });
    let ran = here.run(&["roofline", &docs("gpu.json"), "--ceilings", "ceilings.json"]);
    ran.ends(3).prints(&["attention.dispatch: ", "which cannot be", "above"]);
}

#[test]
fn a_page_has_the_roofline_where_ceilings_are_known() {
    let here = Here::new();
    let report = docs("gpu.json");
    here.run(&["report", &report, "--markdown", "bare.md"]).ends(0);
    assert!(!here.read("bare.md").contains("Roofline"));
    let ceilings = docs("ceilings-gpu.json");
    here.run(&["report", &report, "--markdown", "page.md", "--ceilings", &ceilings]).ends(0);
    let page = here.read("page.md");
    assert!(page.contains("## Roofline") && page.contains("](page.roofline.svg)"), "{page}");
    assert!(here.read("page.roofline.svg").starts_with("<svg"));
    keep(&here, &now(&here));
    here.run(&["report", &report, "--markdown", "kept.md"]).ends(0).notes(&["kept.roofline.svg"]);
    assert!(here.read("kept.md").contains("## Roofline"));
}

#[test]
fn a_picture_without_a_report_is_refused_before_anything_is_measured() {
    let here = Here::new();
    here.run(&["roofline", "--measure", "-o", "x.svg"]).refuses(64, &["--output", "report"]);
    here.run(&["roofline", "-o", "out/x.svg"]).refuses(64, &["artifacts/report.json"]);
    assert!(!here.path("out").exists(), "a folder was made before the report was read");
}

#[test]
fn a_page_of_html_needs_no_other_file_and_has_the_picture_in_it() {
    let here = Here::new();
    let ran = here.run(&[
        "report",
        &docs("gpu.json"),
        "--ceilings",
        &docs("ceilings-gpu.json"),
        "--html",
        "page.html",
    ]);
    ran.ends(0).notes(&["html: page.html"]);
    let page = here.read("page.html");
    assert!(page.starts_with("<!doctype html>") && page.contains("<title>holdpoint: gpu</title>"));
    let pictures = [r#"<svg xmlns="http://www.w3.org/2000/svg" class="hp-roofline""#, "<img"];
    assert_eq!(pictures.map(|picture| page.matches(picture).count()), [1, 0]);
    assert!(page.contains("<code>attention.dispatch</code>") && page.contains("bound by"));
    assert!(!["src=", "href=", "<script", "@import"].iter().any(|other| page.contains(other)));
    assert!(!here.files().iter().any(|name| name.ends_with(".svg")));
    let ran = here.run(&["report", &docs("gpu.json"), "--ceilings", &docs("ceilings-gpu.json")]);
    ran.ends(64);
    assert!(ran.stderr.contains("--html"), "{ran:#?}");
}
