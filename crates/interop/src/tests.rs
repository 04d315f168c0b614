use super::*;
use holdpoint_model::{SCHEMA_VERSION, Stated, Trend};
use std::collections::BTreeMap;

fn current(text: &str) -> Result<Current, FileError> {
    read_current(&text.into())
}

fn baseline(text: &str) -> Result<Baseline, FileError> {
    read_baseline(&text.into())
}

fn data(name: &str) -> String {
    let path = format!("{}/../model/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn every_schema_version_ever_written_stays_readable() {
    for version in 1..=SCHEMA_VERSION {
        let report = document::read::<Report>(&data(&format!("report-v{version}.json"))).unwrap();
        assert!(!report.benchmarks.is_empty());
        let baseline = baseline(&data(&format!("baseline-v{version}.json"))).unwrap();
        assert!(baseline.machine.is_some() && !baseline.metrics.is_empty());
        let comparison = document::read::<Stated>(&data(&format!("comparison-v{version}.json"))).unwrap();
        assert!(!comparison.checks.is_empty());
        let trend = document::read::<Trend>(&data(&format!("trend-v{version}.json"))).unwrap();
        assert_eq!(trend.total_metrics, trend.metrics.len());
    }
}

#[test]
fn apex_x_files_are_read_as_they_are() {
    let cpu = current(&data("apex-cpu-report.json")).unwrap();
    assert_eq!(cpu.suite, "apex_x_cpu_perf_regression");
    assert_eq!(cpu.metrics["infer_p95_ms"].value_ms, 0.736_208_981_834_352);
    assert_eq!(cpu.status, None);
    let cpu_baseline = baseline(&data("apex-cpu-baseline.json")).unwrap();
    assert_eq!(cpu_baseline.metrics["infer_p50_ms"].allowed_max_ms(), 2.437_426_526_332_274);
    let gpu = current(&data("apex-gpu-report.json")).unwrap();
    assert_eq!(gpu.status.as_deref(), Some("ok"));
    assert_eq!(gpu.metrics["benchmarks.tile_ops.tilepack.dispatch.p50_ms"].value_ms, 0.31);
    assert!(!gpu.metrics.keys().any(|name| name.contains("tiles_per_s")));
    let trt = current(&data("apex-trt-report.json")).unwrap();
    assert_eq!(
        trt.metrics.keys().collect::<Vec<_>>(),
        [
            "case.default.p50_ms",
            "case.default.p95_ms",
            "summary.p50_ms_max",
            "summary.p50_ms_median",
            "summary.p50_ms_min"
        ]
    );
    assert!(baseline(&data("apex-trt-baseline.json")).unwrap().metrics.is_empty());
}

#[test]
fn cudadent42_files_are_read_under_both_keys() {
    let new = current(&data("dent-result.json")).unwrap();
    let old = current(&data("dent-legacy-result.json")).unwrap();
    let (new, old) = (&new.metrics["mean_time_ms"], &old.metrics["mean_time_ms"]);
    assert_eq!((new.value_ms, old.value_ms), (0.0524, 0.0518));
    let (new, old) = (new.identity.as_ref().unwrap(), old.identity.as_ref().unwrap());
    assert_eq!((&new.shape, &new.op), (&old.shape, &old.op));
    assert_eq!(new.shape, [8, 4, 64, 64]);
    let summary = current(&data("dent-summary.json")).unwrap();
    assert_eq!(summary.metrics["B32_H8_S512_D64_p50_ms"].value_ms, 0.321_024);
    let imported = import(&data("dent-summary.json").as_str().into()).unwrap();
    assert_eq!(imported.samples_ms["B32_H8_S512_D64_p50_ms"], [0.321_024, 0.319_488, 0.337_92, 0.321_024]);
    let ratchet = baseline(&data("dent-ratchet-baseline.json")).unwrap();
    assert_eq!(ratchet.metrics["B32_H8_S512_D64_p50_ms"].value_ms, 0.32);
}

#[test]
fn bad_files_are_named_by_place_and_cause() {
    for (text, expected) in [
        ("", "EOF while parsing"),
        ("[1, 2]", "expected a map"),
        ("{\"a\": 1}", "top-level keys are a"),
        ("{\"schema_version\": 7, \"metrics\": {}}", "written by a newer one"),
        ("{\"schema_version\": 0, \"metrics\": {}}", "schema_version is 0"),
        ("{\"metrics\": {\"a_ms\": 1, \"a_ms\": 2}}", "duplicate key \"a_ms\""),
        ("{\"metrics\": {\"a_ms\": -1.0}}", "a_ms: -1.0 is not a time"),
        ("{\"metrics\": {\"a_ms\": 0}}", "a_ms: 0.0 is not a time"),
        ("{\"metrics\": {\"a_ms\": 1e300}}", "a_ms: 1e300 is beyond reason"),
        ("{\"metrics\": {\"a_ms\": 1e-300}}", "a_ms: 1e-300 is beyond reason"),
        ("{\"metrics\": {\"a_ms\": NaN}}", "metrics.a_ms: must be a number"),
        ("{\"metrics\": {\"a_ms\": true}}", "metrics.a_ms: must be a number"),
        ("{\"metrics\": {\"a_ms\": 1e999}}", "number out of range"),
        ("{\"performance\": {}}", "performance.mean_time_ms: missing"),
        ("{\"results\": [{}]}", "results[0].statistics.median_ms"),
    ] {
        let error = current(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error:?} should contain {expected:?}");
    }
    let spec = |metric: &str| {
        format!("{{\"schema_version\": 1, \"suite\": \"s\", \"metrics\": {{\"a\": {metric}}}}}")
    };
    for (metric, expected) in [
        ("{}", "missing field `value_ms`"),
        ("{\"value_ms\": 0}", "metrics.a.value_ms: 0.0 is not a time"),
        ("{\"value_ms\": 1, \"max_regression_ratio\": -0.1}", "a tolerance must not be negative"),
    ] {
        let error = baseline(&spec(metric)).unwrap_err().to_string();
        assert!(error.contains(expected), "{metric}: {error:?} should contain {expected:?}");
    }
}

#[test]
fn a_folder_is_read_file_by_file_and_metrics_are_named_after_their_file() {
    let files = [
        ("a.json", data("dent-result.json")),
        ("deep/b.json", data("dent-summary.json")),
        ("notes.txt", "no JSON".to_owned()),
        ("other.json", "{\"x\": 1}".to_owned()),
        ("own.json", data("baseline-v1.json")),
    ];
    let folder = Source::Folder(files.map(|(path, text)| (path.to_owned(), text)).into());
    let imported = import(&folder).unwrap();
    let names: Vec<&String> = imported.current.metrics.keys().collect();
    assert_eq!(names, ["a.mean_time_ms", "deep/b.B32_H8_S512_D64_p50_ms"]);
    assert_eq!(imported.samples_ms.keys().collect::<Vec<_>>(), ["deep/b.B32_H8_S512_D64_p50_ms"]);
    let bad = Source::Folder([("c.json".to_owned(), "{\"performance\": {}}".to_owned())].into());
    let error = import(&bad).unwrap_err().to_string();
    assert_eq!(error, "c.json: performance.mean_time_ms: missing or not a number");
    let error = import(&Source::Folder(BTreeMap::new())).unwrap_err().to_string();
    assert_eq!(error, "not a report or baseline: no file of the folder is of a known format");
}

#[test]
fn a_file_of_another_kind_is_named_and_so_is_who_writes_the_right_one() {
    let error = current(&data("baseline-v1.json")).unwrap_err().to_string();
    assert_eq!(error, "it is a baseline, not a report; holdpoint run writes one");
    let error = current("{\"kind\": \"ab\", \"schema_version\": 1}").unwrap_err().to_string();
    assert_eq!(error, "it is a side-by-side comparison, not a report; holdpoint run writes one");
    let error = current("{\"kind\": \"novel\", \"schema_version\": 1}").unwrap_err().to_string();
    assert_eq!(error, "not a report or baseline: its kind is \"novel\", which is not known here");
}
