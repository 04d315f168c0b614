//! Baselines from runs.

use super::*;
use holdpoint_gate::record::{RecordError, append, fit_tolerances, template};
use holdpoint_gate::{set_tolerances, tolerance};
use holdpoint_model::suite::{GateSettings, OP_INFERENCE};

const ALARM_RATE: f64 = 0.001;

fn record(runs: &[Current]) -> Result<Baseline, RecordError> {
    holdpoint_gate::record::record(runs, ALARM_RATE)
}

fn runs(values_ms: &[f64]) -> Vec<Current> {
    values_ms.iter().map(|value_ms| run(&[("m_ms", *value_ms)])).collect()
}

#[test]
fn the_value_is_the_median_and_the_tolerance_comes_from_the_runs() {
    let values = [1.1, 0.9, 1.0, 1.05, 0.95];
    let baseline = record(&runs(&values)).unwrap();
    let metric = &baseline.metrics["m_ms"];
    assert_eq!((metric.value_ms, metric.runs_ms.as_slice()), (1.0, values.as_slice()));
    assert!((metric.spread.unwrap() - 0.2).abs() < 1e-12);
    assert_eq!((metric.max_regression_ratio, metric.max_regression_abs_ms), (tolerance::TOLERANCE, 0.0));
    let visible = metric.smallest_visible_slowdown.unwrap();
    // t with four degrees at 0.001 is 7.173; the logarithms have a standard deviation of 0.0791.
    let expected = (7.173_182
        * 0.079_317
        * (0.449 + tolerance::SESSION_DRIFT.powi(2) + std::f64::consts::FRAC_PI_2 / 5.0_f64).sqrt())
    .exp_m1();
    assert!((visible / expected - 1.0).abs() < 1e-3, "{visible} {expected}");
    assert_eq!((metric.workload.as_deref(), &metric.identity), (Some("w"), &Some(identity())));
    assert_eq!((baseline.machine.unwrap(), baseline.runs.len()), (machine("here"), 5));
    assert_eq!(baseline.alarm_rate, Some(ALARM_RATE));
}

#[test]
fn the_rate_is_that_of_the_suite_whatever_the_number_of_metrics() {
    let values = [1.1, 0.9, 1.0, 1.05, 0.95];
    let two: Vec<Current> = values.iter().map(|v| run(&[("a_ms", *v), ("b_ms", *v)])).collect();
    let sees = |baseline: &Baseline, name: &str| baseline.metrics[name].smallest_visible_slowdown.unwrap();
    let of_two = sees(&record(&two).unwrap(), "a_ms");
    let half = holdpoint_gate::record::record(&runs(&values), ALARM_RATE / 2.0).unwrap();
    assert_eq!(of_two, sees(&half, "m_ms"));
    assert!(of_two > sees(&record(&runs(&values)).unwrap(), "m_ms"));
}

#[test]
fn a_steady_metric_gets_the_tolerance_that_is_asked_for() {
    let steady = record(&runs(&[1.0, 1.0001, 1.0, 1.0002, 1.0])).unwrap();
    let ratio = |baseline: &Baseline| baseline.metrics["m_ms"].max_regression_ratio;
    assert_eq!(ratio(&steady), tolerance::TOLERANCE);
    let noisy = record(&runs(&[1.0, 2.0, 1.5])).unwrap();
    assert_eq!(ratio(&noisy), tolerance::TOLERANCE, "it is not widened to what can be seen");
    for asked in [0.05, 0.01, 0.0] {
        for baseline in [&steady, &noisy] {
            let set = set_tolerances(baseline.clone(), Some(asked), &GateSettings::default(), Policy::Stored);
            assert_eq!(ratio(&set), asked);
        }
    }
    let visible = steady.metrics["m_ms"].smallest_visible_slowdown.unwrap();
    assert!(visible > 0.0 && visible < 0.01);
}

#[test]
fn sessions_that_differ_make_less_visible() {
    let visible = |runs: &[Current]| record(runs).unwrap().metrics["m_ms"].smallest_visible_slowdown.unwrap();
    let (first, later) = (runs(&[1.0, 1.001, 0.999]), runs(&[1.1, 1.101, 1.099]));
    assert!(visible(&[first.clone(), later].concat()) > 0.2);
    // More runs that agree narrow it.
    assert!(visible(&[first.clone(), first.clone()].concat()) < visible(&first));
}

#[test]
fn what_a_tenth_of_a_run_showed_is_not_called_a_slowdown() {
    let with = |slow_stretches| {
        let mut run = run(&[("m_ms", 1.0)]);
        run.metrics.get_mut("m_ms").unwrap().slow_stretches = slow_stretches;
        run
    };
    let recorded = record(&[with(Some(0.01)), with(Some(0.3)), with(None)]).unwrap();
    let metric = &recorded.metrics["m_ms"];
    assert_eq!(
        (metric.slow_stretches.as_slice(), metric.smallest_visible_slowdown),
        ([0.01, 0.3].as_slice(), Some(0.3))
    );
}

#[test]
fn runs_of_the_same_code_are_appended() {
    let (first, later) = (runs(&[1.0, 1.1, 0.9]), runs(&[1.2, 1.0]));
    let together = record(&[first.clone(), later.clone()].concat()).unwrap();
    assert_eq!(append(record(&first).unwrap(), &later, ALARM_RATE), Ok(together.clone()));
    let mut promoted = together.clone();
    promoted.promoted = Some(holdpoint_model::Promotion {
        commit: String::new(),
        by: String::new(),
        timestamp_utc: String::new(),
        report_sha256: Vec::new(),
    });
    assert_eq!(append(promoted, &later, ALARM_RATE), Err(RecordError::Promoted));
    let other = |change: fn(&mut Current)| {
        let mut run = later[0].clone();
        change(&mut run);
        append(together.clone(), &[run], ALARM_RATE)
    };
    assert_eq!(other(|run| run.suite = "gpu".to_owned()), Err(RecordError::Mixed("suites")));
    assert_eq!(other(|run| run.machine = Some(machine("elsewhere"))), Err(RecordError::Mixed("machines")));
    assert_eq!(other(|run| run.metrics.clear()), Err(RecordError::NoMetrics));
    let revision = |run: &mut Current| run.revision = Some(Revision { commit: "b".to_owned(), dirty: false });
    assert_eq!(other(revision), Err(RecordError::Mixed("revisions")));
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
    let runs = runs(&[1.0, 1.001, 1.0, 0.999, 1.0]);
    let baseline = record(&runs).unwrap();
    for policy in [Policy::Stored, ALLOWED_MAX] {
        let verdict = |run| judge(&compare(run, &baseline, Allow::default()), policy).verdict;
        assert!(runs.iter().all(|run| verdict(run) == Verdict::Pass), "{policy:?}");
    }
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
    let error = fit_tolerances(&mut baseline, ALARM_RATE).unwrap_err();
    assert_eq!(error, RecordError::TooFewRuns { metric: "m_ms".to_owned(), runs_count: 2 });
    assert!(error.to_string().contains("at least 3") && baseline == before);
    let mut baseline = template(&runs(&[1.0, 1.1, 1.05])).unwrap();
    fit_tolerances(&mut baseline, ALARM_RATE).unwrap();
    assert_eq!(baseline, record(&runs(&[1.0, 1.1, 1.05])).unwrap());
}

#[test]
fn a_baseline_that_cannot_be_fitted_is_left_as_it_was() {
    let mut baseline = template(&[run(&[("a_ms", 1.0), ("b_ms", 1.0)])]).unwrap();
    baseline.metrics.get_mut("a_ms").unwrap().runs_ms = vec![1.0; 3];
    let before = baseline.clone();
    assert!(fit_tolerances(&mut baseline, ALARM_RATE).is_err());
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

#[test]
fn the_template_of_a_models_report_has_the_tolerances_of_a_sweep() {
    let mut current = run(&[("image_1x3x8x8_p50_ms", 1.5), ("image_1x3x8x8_p95_ms", 1.5)]);
    for metric in current.metrics.values_mut() {
        metric.identity = Some(Identity { op: OP_INFERENCE.to_owned(), ..identity() });
    }
    let baseline = template(&[current]).unwrap();
    let tolerance = |name: &str| {
        let metric = &baseline.metrics[name];
        (metric.max_regression_ratio, metric.max_regression_abs_ms)
    };
    assert_eq!(tolerance("image_1x3x8x8_p50_ms"), (0.6, 0.25));
    assert_eq!(tolerance("image_1x3x8x8_p95_ms"), (0.8, 0.5));
    let sweep = template(&[run(&[("case.default.p50_ms", 1.0), ("summary.p50_ms_min", 1.0)])]).unwrap();
    assert!(sweep.baseline_notes.starts_with("TensorRT shape-sweep baseline template"));
}
