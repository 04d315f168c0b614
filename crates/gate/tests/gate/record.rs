//! Baselines from runs.

use super::*;
use holdpoint_gate::record::{RATIO_MIN, RecordError, SPREAD_FACTOR, fit_tolerances, record, template};

fn runs(values_ms: &[f64]) -> Vec<Current> {
    values_ms.iter().map(|value_ms| run(&[("m_ms", *value_ms)])).collect()
}

#[test]
fn the_value_is_the_median_and_the_tolerance_comes_from_the_spread() {
    let baseline = record(&runs(&[1.1, 0.9, 1.0, 1.05, 0.95])).unwrap();
    let metric = &baseline.metrics["m_ms"];
    assert_eq!((metric.value_ms, metric.runs_ms.as_slice()), (1.0, [1.1, 0.9, 1.0, 1.05, 0.95].as_slice()));
    assert!((metric.spread.unwrap() - 0.2).abs() < 1e-12);
    assert_eq!(metric.max_regression_ratio, SPREAD_FACTOR * metric.spread.unwrap());
    assert_eq!(metric.max_regression_abs_ms, 0.0);
    assert_eq!((metric.workload.as_deref(), &metric.identity), (Some("w"), &Some(identity())));
    assert_eq!((baseline.machine.unwrap(), baseline.runs.len()), (machine("here"), 5));
}

#[test]
fn a_steady_metric_still_gets_the_least_tolerance() {
    assert_eq!(record(&runs(&[1.0; 5])).unwrap().metrics["m_ms"].max_regression_ratio, RATIO_MIN);
}

#[test]
fn too_few_runs_get_the_seeds_default() {
    for count in [1, 2] {
        let metric = &record(&runs(&[1.0, 1.5][..count])).unwrap().metrics["m_ms"];
        assert_eq!((metric.max_regression_ratio, metric.spread.is_some()), (0.5, count == 2));
    }
}

#[test]
fn a_run_passes_against_its_own_baseline() {
    let runs = runs(&[1.0, 1.2, 0.9]);
    let baseline = record(&runs).unwrap();
    assert!(runs.iter().all(|run| gate(run, &baseline).status == "pass"));
}

#[test]
fn runs_that_failed_or_were_skipped_make_no_baseline() {
    let with_status = |status: &str| Current { status: Some(status.to_owned()), ..run(&[("m_ms", 1.0)]) };
    for status in ["skipped", "failed"] {
        let bad = with_status(status);
        assert_eq!(record(&[run(&[("m_ms", 1.0)]), bad.clone()]), Err(RecordError::NotOk(status.to_owned())));
        assert_eq!(template(&[bad]), Err(RecordError::NotOk(status.to_owned())));
    }
    // What was measured in part makes a baseline of that part, and is required to be as much again.
    let partial = with_status("partial");
    assert_eq!(record(std::slice::from_ref(&partial)).unwrap().required_status(), "partial");
    assert_eq!(record(&[partial, with_status("ok")]), Err(RecordError::Mixed("status")));
    assert_eq!(record(&[]), Err(RecordError::NoRuns));
    assert_eq!(record(&[run(&[])]), Err(RecordError::NoMetrics));
}

#[test]
fn runs_that_do_not_belong_together_make_no_baseline() {
    let first = run(&[("m_ms", 1.0)]);
    let (mut suite, mut elsewhere, mut workload) = (first.clone(), first.clone(), first.clone());
    suite.suite = "gpu".to_owned();
    elsewhere.machine = Some(machine("elsewhere"));
    workload.metrics.get_mut("m_ms").unwrap().identity.as_mut().unwrap().shape = vec![1];
    let metrics = run(&[("m_ms", 1.0), ("n_ms", 1.0)]);
    for (second, what) in [
        (suite, "suites"),
        (elsewhere, "machines"),
        (metrics, "metrics"),
        (workload, "workloads under the same names"),
    ] {
        assert_eq!(record(&[first.clone(), second]), Err(RecordError::Mixed(what)));
    }
}

#[test]
fn fitting_takes_three_runs() {
    let mut baseline = template(&runs(&[1.0, 1.1])).unwrap();
    let before = baseline.clone();
    let error = fit_tolerances(&mut baseline).unwrap_err();
    assert_eq!(error, RecordError::TooFewRuns { metric: "m_ms".to_owned(), runs_count: 2 });
    assert!(error.to_string().contains("at least 3") && baseline == before);
    let mut baseline = template(&runs(&[1.0, 1.1, 1.05])).unwrap();
    fit_tolerances(&mut baseline).unwrap();
    assert_eq!(baseline, record(&runs(&[1.0, 1.1, 1.05])).unwrap());
}

#[test]
fn a_baseline_that_cannot_be_fitted_is_left_as_it_was() {
    let mut baseline = template(&[run(&[("a_ms", 1.0), ("b_ms", 1.0)])]).unwrap();
    baseline.metrics.get_mut("a_ms").unwrap().runs_ms = vec![1.0; 3];
    let before = baseline.clone();
    assert!(fit_tolerances(&mut baseline).is_err());
    assert_eq!(baseline, before);
}

#[test]
fn templates_have_the_seeds_tolerances() {
    let expected = [
        // CPU
        ("infer_p50_ms", 0.75, 2.0),
        ("infer_p95_ms", 1.0, 5.0),
        ("tile_pack_p50_ms", 0.75, 2.0),
        ("tile_unpack_p50_ms", 0.75, 2.0),
        ("fusion_gate_p50_ms", 0.75, 2.0),
        // GPU
        ("benchmarks.end_to_end_infer.torch_eager.p50_ms", 0.5, 1.0),
        ("benchmarks.end_to_end_infer.torch_eager.p95_ms", 0.5, 2.0),
        ("benchmarks.end_to_end_infer.torch_triton_fastpath.p50_ms", 0.5, 1.0),
        ("benchmarks.end_to_end_infer.torch_triton_fastpath.p95_ms", 0.5, 2.0),
        ("benchmarks.tile_ops.fusion_gate.dispatch.p50_ms", 0.6, 0.25),
        ("benchmarks.tile_ops.fusion_gate.dispatch.p95_ms", 0.8, 0.5),
        ("benchmarks.tilessm.triton_dispatch.p50_ms", 0.6, 0.25),
        ("benchmarks.tilessm.triton_dispatch.p95_ms", 0.8, 0.5),
        // TensorRT
        ("summary.p50_ms_min", 0.5, 1.0),
        ("summary.p50_ms_median", 0.5, 1.0),
        ("summary.p50_ms_max", 0.5, 1.0),
        ("case.default.p50_ms", 0.6, 0.25),
        ("case.default.p95_ms", 0.8, 0.5),
    ];
    let baseline = template(&[run(&expected.map(|(name, ..)| (name, 1.5)))]).unwrap();
    for (name, ratio, abs_ms) in expected {
        let metric = &baseline.metrics[name];
        let found = (metric.value_ms, metric.max_regression_ratio, metric.max_regression_abs_ms);
        assert_eq!(found, (1.5, ratio, abs_ms), "{name}");
    }
    assert_eq!(baseline.required_status(), "ok");
}
