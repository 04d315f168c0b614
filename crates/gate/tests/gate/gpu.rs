//! GPU suites against the originals' GPU baseline and template, with a run on an H200.

use super::*;
use holdpoint_gate::record::{RecordError, template};
use holdpoint_interop::apex::ApexGpuReport;
use holdpoint_model::{Report, document, json};

/// The committed baseline of Apex-X's GPU suite: what a template of it has, and the largest value that passes.
const TABLE: [(&str, f64); 12] = [
    ("benchmarks.end_to_end_infer.torch_eager.p50_ms", 5.5),
    ("benchmarks.end_to_end_infer.torch_eager.p95_ms", 12.8),
    ("benchmarks.end_to_end_infer.torch_triton_fastpath.p50_ms", 4.75),
    ("benchmarks.end_to_end_infer.torch_triton_fastpath.p95_ms", 11.0),
    ("benchmarks.tile_ops.fusion_gate.dispatch.p50_ms", 0.81),
    ("benchmarks.tile_ops.fusion_gate.dispatch.p95_ms", 1.67),
    ("benchmarks.tile_ops.tilepack.dispatch.p50_ms", 0.73),
    ("benchmarks.tile_ops.tilepack.dispatch.p95_ms", 1.58),
    ("benchmarks.tile_ops.tileunpack.dispatch.p50_ms", 0.89),
    ("benchmarks.tile_ops.tileunpack.dispatch.p95_ms", 1.94),
    ("benchmarks.tilessm.triton_dispatch.p50_ms", 1.05),
    ("benchmarks.tilessm.triton_dispatch.p95_ms", 2.3),
];

fn data(name: &str) -> String {
    let path = format!("{}/../model/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn h200() -> Report {
    document::read::<Report>(&data("report-gpu-h200.json")).unwrap()
}

/// The same suite where there is no device.
fn without_device() -> Report {
    let mut report = h200();
    report.status = RunStatus::Skipped;
    report.reason = Some("cuda_unavailable".to_owned());
    for measurement in report.benchmarks.values_mut() {
        measurement.outcome = Outcome::Skipped { reason: "cuda_unavailable".to_owned() };
    }
    report
}

/// The report in Apex-X's form, read back.
fn through_apex(report: &Report) -> Current {
    let text = json::to_pretty(&ApexGpuReport::try_from(report).unwrap()).unwrap();
    holdpoint_interop::read_current(&text.as_str().into()).unwrap()
}

fn apex_baseline() -> Baseline {
    holdpoint_interop::read_baseline(&data("apex-gpu-baseline.json").as_str().into()).unwrap()
}

#[test]
fn the_seeds_gpu_table_is_met() {
    let baseline = apex_baseline();
    assert_eq!(baseline.required_status(), "ok");
    assert!(baseline.metrics.keys().map(String::as_str).eq(TABLE.map(|(name, _)| name)));
    for (name, allowed_max_ms) in TABLE {
        assert!((baseline.metrics[name].allowed_max_ms() - allowed_max_ms).abs() < 1e-12, "{name}");
    }
}

#[test]
fn without_a_device_the_status_fails_and_all_twelve_metrics_are_missing() {
    for current in [Current::from(&without_device()), through_apex(&without_device())] {
        let judged = gate(&current, &apex_baseline());
        assert_eq!((judged.status.as_str(), judged.verdict), ("fail", Verdict::Skipped));
        assert_eq!(ExitCode::from(judged.verdict), ExitCode::Skipped);
        let (status, metrics) = judged.checks.split_first().unwrap();
        assert_eq!((status.metric.as_str(), status.status), ("__status__", CheckStatus::Fail));
        assert_eq!((status.expected.as_deref(), status.current.as_deref()), (Some("ok"), Some("skipped")));
        assert!(metrics.iter().map(|check| check.metric.as_str()).eq(TABLE.map(|(name, _)| name)));
        for check in metrics {
            assert_eq!((check.status, check.current_ms), (CheckStatus::Missing, None), "{}", check.metric);
        }
        let trend = Trend::new(&judged, "2026-11-15T09:00:25.121Z");
        assert_eq!((trend.overall_status.as_str(), trend.failed_metrics), ("fail", 13));
    }
}

#[test]
fn an_h200_is_judged_alike_by_our_report_and_by_apex_x_form_of_it() {
    let [own, apex] = [Current::from(&h200()), through_apex(&h200())].map(|run| gate(&run, &apex_baseline()));
    let facts = |judged: &Judgement| -> Vec<(String, CheckStatus, Option<f64>, Verdict)> {
        let checks = judged.checks.iter();
        checks.map(|c| (c.metric.clone(), c.status, c.current_ms, c.verdict)).collect()
    };
    assert_eq!(facts(&own), facts(&apex));
    // It has no end-to-end workloads: what the baseline has and the run has not is missing, not a pass.
    for check in &own.checks {
        let is_there = !check.metric.contains("end_to_end_infer");
        let status = if is_there { CheckStatus::Pass } else { CheckStatus::Missing };
        assert_eq!(check.status, status, "{}", check.metric);
    }
    assert_eq!((own.status.as_str(), own.verdict), ("fail", Verdict::Regressed));
}

#[test]
fn a_run_in_part_is_judged_alike_with_its_reasons() {
    let mut report = h200();
    (report.status, report.reason) = (RunStatus::Failed, Some("tilessm.triton_dispatch: crashed".to_owned()));
    report.benchmarks["tile_ops.tilepack.dispatch"].outcome =
        Outcome::Skipped { reason: "nvrtc_not_found".to_owned() };
    report.benchmarks["tilessm.triton_dispatch"].outcome = Outcome::Failed(Failure {
        cause: FailureCause::Crashed,
        detail: "signal 11".to_owned(),
        stderr_tail: Vec::new(),
        samples: None,
    });
    let [own, apex] = [Current::from(&report), through_apex(&report)].map(|run| gate(&run, &apex_baseline()));
    let facts = |judged: &Judgement| -> Vec<(String, CheckStatus, Verdict, String)> {
        let checks = judged.checks.iter();
        checks.map(|c| (c.metric.clone(), c.status, c.verdict, c.reason.clone())).collect()
    };
    assert_eq!(facts(&own), facts(&apex));
    assert_eq!((own.status.as_str(), own.verdict), ("fail", Verdict::Broken));
    let reasons: Vec<&str> = own.checks.iter().map(|check| check.reason.as_str()).collect();
    assert!(reasons.contains(&"nvrtc_not_found") && reasons.contains(&"crashed: signal 11"), "{reasons:?}");
}

#[test]
fn a_template_has_the_seeds_twelve_metrics_and_their_tolerances() {
    let names = TABLE.map(|(name, _)| (name, 1.5));
    let others = [
        ("benchmarks.tile_ops.tilepack.reference.p50_ms", 1.0),
        ("benchmarks.attention.dispatch.p50_ms", 1.0),
    ];
    let baseline = template(&[run(&[&names[..], &others].concat())]).unwrap();
    assert!(baseline.metrics.keys().map(String::as_str).eq(TABLE.map(|(name, _)| name)));
    for (name, metric) in &baseline.metrics {
        let expected = match (name.contains("end_to_end_infer"), name.ends_with("p95_ms")) {
            (true, false) => (0.5, 1.0),
            (true, true) => (0.5, 2.0),
            (false, false) => (0.6, 0.25),
            (false, true) => (0.8, 0.5),
        };
        assert_eq!((metric.max_regression_ratio, metric.max_regression_abs_ms), expected, "{name}");
    }
    assert_eq!(baseline.required_status.as_deref(), Some("ok"));
    assert_eq!(
        baseline.baseline_notes,
        "GPU baseline template; regenerate on the target self-hosted GPU runner and adjust tolerances for stable CI."
    );
}

#[test]
fn a_template_leaves_out_what_the_run_does_not_have() {
    for current in [Current::from(&h200()), through_apex(&h200())] {
        let baseline = template(std::slice::from_ref(&current)).unwrap();
        let expected = TABLE.iter().map(|(name, _)| *name).filter(|name| !name.contains("end_to_end_infer"));
        assert!(baseline.metrics.keys().map(String::as_str).eq(expected));
        let metric = &baseline.metrics["benchmarks.tile_ops.tilepack.dispatch.p50_ms"];
        assert_eq!(metric.value_ms, 0.0025093529411764704);
        assert_eq!(gate(&current, &baseline).status, "pass");
    }
}

#[test]
fn a_template_of_other_places_alone_is_refused() {
    let error = template(&[run(&[("benchmarks.attention.dispatch.p50_ms", 1.0)])]).unwrap_err();
    assert_eq!(error, RecordError::NoTemplateMetrics);
    assert!(error.to_string().contains("holdpoint baseline record"), "{error}");
}

#[test]
fn a_run_without_a_device_makes_no_template() {
    let error = template(&[Current::from(&without_device())]).unwrap_err();
    assert_eq!(error, RecordError::NotOk("skipped".to_owned()));
}
