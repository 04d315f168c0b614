//! The policy `stored`: three answers against a baseline, and what it says with them.

use super::*;
use holdpoint_gate::record::record;
use holdpoint_gate::{blind_spots, set_tolerances};
use holdpoint_model::suite::GateSettings;
use proptest::prelude::*;

const STORED: Policy = Policy::Stored;

/// A baseline of ten runs around 100 ms whose logarithms have this standard deviation.
fn recorded(sd: f64) -> Baseline {
    // Plus and minus one: their standard deviation is sqrt(10/9).
    let half = sd / (10.0_f64 / 9.0).sqrt();
    let runs = [1.0, -1.0].repeat(5).into_iter().map(|sign| run(&[("m_ms", 100.0 * (sign * half).exp())]));
    record(&runs.collect::<Vec<_>>(), 0.001).unwrap()
}

fn judged(baseline: &Baseline, current_ms: f64) -> Check {
    let judgement = judge(&compare(&run(&[("m_ms", current_ms)]), baseline, Allow::default()), STORED);
    judgement.checks[0].clone()
}

fn verdict(baseline: &Baseline, current_ms: f64) -> Verdict {
    judged(baseline, current_ms).verdict
}

#[test]
fn a_blind_baseline_passes_nothing_that_it_cannot_see() {
    let blind = recorded(0.5);
    for current_ms in [100.0, 102.5, 200.0, 634.0] {
        let check = judged(&blind, current_ms);
        assert_eq!(check.verdict, Verdict::Inconclusive, "{current_ms}: {}", check.reason);
        for part in ["undecided at a tolerance of 2.0 %", "a slowdown is seen from", "gate --against REV"] {
            assert!(check.reason.contains(part), "{}", check.reason);
        }
        assert!(!check.reason.contains('\n'));
    }
    assert_eq!(blind.metrics["m_ms"].max_regression_ratio, 0.02, "what is asked for is never widened");
}

#[test]
fn a_quiet_baseline_gives_each_answer_where_it_is_sure() {
    let quiet = recorded(0.001);
    for (current_ms, expected, words) in [
        (100.1, Verdict::Pass, "+0.1 %, surely less than the tolerance of 2.0 %"),
        (101.9, Verdict::Pass, "surely less than 4.0 % (twice the tolerance of 2.0 %)"),
        (102.1, Verdict::Inconclusive, "undecided at a tolerance of 2.0 %"),
        (104.0, Verdict::Regressed, "+4.0 %, surely more than the tolerance of 2.0 %: at least"),
        (98.5, Verdict::Pass, "surely less than the tolerance"),
        (96.0, Verdict::Improved, "surely faster by more than the tolerance"),
    ] {
        let check = judged(&quiet, current_ms);
        assert_eq!(check.verdict, expected, "{current_ms}: {}", check.reason);
        assert!(check.reason.contains(words), "{}", check.reason);
    }
    let keys = judged(&quiet, 100.0).stored.unwrap();
    assert!((keys.tolerance, keys.limit) == (0.02, 0.02) && keys.change_max > 0.0 && keys.sees > 0.02);
    let check = judged(&quiet, 100.0);
    let allowed = check.allowed_max_ms.unwrap() / check.baseline_ms.unwrap();
    assert!((allowed - 1.02).abs() < 1e-12, "what was asked for");
}

#[test]
fn the_tolerance_is_that_of_the_flag_the_suite_the_file_or_the_usual_one() {
    let settings = |tolerance: &str| -> GateSettings {
        serde_json::from_value(serde_json::json!({ "tolerance": tolerance })).unwrap()
    };
    let none = GateSettings::default();
    let ratio = |baseline: &Baseline, flag, gate: &GateSettings| {
        set_tolerances(baseline.clone(), flag, gate, STORED).metrics["m_ms"].max_regression_ratio
    };
    let mut file = recorded(0.01);
    file.metrics.get_mut("m_ms").unwrap().max_regression_ratio = 0.07;
    assert_eq!(ratio(&file, Some(0.05), &settings("3%")), 0.05);
    assert_eq!(ratio(&file, None, &settings("3%")), 0.03);
    assert_eq!(ratio(&file, None, &none), 0.07);
    // Widened by an earlier version to what the runs let be seen: nobody asked for that.
    let metric = file.metrics.get_mut("m_ms").unwrap();
    metric.max_regression_ratio = metric.smallest_visible_slowdown.unwrap();
    assert_eq!(ratio(&file, None, &none), 0.02);
    // A default is not asked for either, and Apex-X's tolerances are.
    for (default, expected) in [(0.5, 0.02), (0.1, 0.02), (0.75, 0.75)] {
        assert_eq!(ratio(&baseline(&[("m_ms", 100.0, default, 0.0)]), None, &none), expected);
    }
}

#[test]
fn a_baseline_of_one_run_decides_only_what_no_neighbour_does() {
    let one = set_tolerances(baseline(&[("m_ms", 100.0, 0.5, 0.0)]), None, &GateSettings::default(), STORED);
    for (current_ms, expected) in [
        (100.0, Verdict::Inconclusive),
        (290.0, Verdict::Inconclusive),
        (310.0, Verdict::Regressed),
        (40.0, Verdict::Inconclusive),
        (32.0, Verdict::Improved),
    ] {
        assert_eq!(verdict(&one, current_ms), expected, "{current_ms}");
    }
    let check = judged(&one, 101.0);
    assert!(check.reason.contains("the baseline is one run"), "{}", check.reason);
    assert!(check.reason.contains("--policy allowed-max"), "{}", check.reason);
    // Apex-X's tolerances are wide enough for any noise, and the line says how wide.
    let apex = baseline(&[("m_ms", 0.25, 0.75, 2.0)]);
    let check = judged(&apex, 0.26);
    assert_eq!(check.verdict, Verdict::Pass);
    assert!(check.reason.contains("surely less than the tolerance of 875.0 %"), "{}", check.reason);
}

#[test]
fn what_is_fast_on_a_quieter_machine_is_no_verdict() {
    let at = |value_ms, others_cpu| Current { others_cpu, ..run(&[("m_ms", value_ms)]) };
    let loaded = record(&[at(100.0, Some(0.8)), at(100.0, Some(0.9)), at(100.0, Some(0.85))], 0.001).unwrap();
    let judged = |baseline: &Baseline, value_ms, others_cpu| {
        judge(&compare(&at(value_ms, others_cpu), baseline, Allow::default()), STORED)
    };
    for (value_ms, others_cpu, expected) in [
        (100.0, Some(0.1), Verdict::Inconclusive),
        (80.0, Some(0.1), Verdict::Inconclusive),
        // A call of 31 ms, recorded while others had most of the CPUs, that became 40 % slower.
        (31.0 * 1.4, Some(0.1), Verdict::Inconclusive),
        (30.0, Some(0.1), Verdict::Inconclusive),
        (110.0, Some(0.1), Verdict::Regressed),
        (100.0, Some(0.75), Verdict::Pass),
        (100.0, None, Verdict::Inconclusive),
    ] {
        assert_eq!(judged(&loaded, value_ms, others_cpu).verdict, expected, "{value_ms} {others_cpu:?}");
    }
    let reason = &judged(&loaded, 100.0, None).checks[0].reason;
    assert!(reason.contains("used an unknown share of this machine's CPUs, at least 80 %"), "{reason}");
    // A baseline that nothing is known of is taken for a quiet one, and a run as the baseline for what it says.
    let of = |others_cpu| {
        let runs = [at(100.0, others_cpu), at(100.0, others_cpu), at(100.0, others_cpu)];
        judged(&record(&runs, 0.001).unwrap(), 100.0, Some(0.05)).verdict
    };
    assert_eq!(
        [of(None), of(Some(0.1)), of(Some(0.9))],
        [Verdict::Pass, Verdict::Pass, Verdict::Inconclusive]
    );
    let one = |others_cpu| {
        let run = Current { timestamp_utc: Some("2025-06-30T12:00:00Z".to_owned()), ..at(100.0, others_cpu) };
        judged(&set_tolerances(run.into(), None, &GateSettings::default(), STORED), 31.0, Some(0.05)).verdict
    };
    assert_eq!([one(Some(0.05)), one(Some(0.9))], [Verdict::Improved, Verdict::Inconclusive]);
    let reason = &judged(&loaded, 100.0, Some(0.1)).checks[0].reason;
    assert!(reason.contains("used 10 % of this machine's CPUs, at least 80 %"), "{reason}");
}

#[test]
fn a_baseline_that_cannot_serve_its_tolerance_says_so() {
    assert_eq!(blind_spots(&recorded(0.001)), None);
    let blind = recorded(0.1);
    let said = blind_spots(&blind).unwrap();
    assert!(
        said.contains("cannot serve 1 of 1 metrics") && said.contains("m_ms sees 76 %, asked is 2.0 %"),
        "{said}"
    );
    let wide = set_tolerances(blind, Some(1.0), &GateSettings::default(), STORED);
    assert_eq!(blind_spots(&wide), None);
    let few = record(&[run(&[("m_ms", 1.0)])], 0.001).unwrap();
    assert!(blind_spots(&few).unwrap().contains("inconclusive: m_ms; compare side by side"));
}

proptest! {
    #[test]
    // What is ten times faster than the baseline is to be checked.
    fn a_slower_run_is_never_judged_better(sd in 0.0_f64..0.5, a in 11.0_f64..400.0, b in 11.0_f64..400.0) {
        let baseline = recorded(sd);
        prop_assert!(verdict(&baseline, a.min(b)) <= verdict(&baseline, a.max(b)));
    }

    #[test]
    fn more_noise_only_takes_certainty_away(sd in 0.0_f64..0.3, more in 1.0_f64..3.0, current_ms in 1.0_f64..400.0) {
        let [quiet, noisy] = [sd, sd * more].map(|sd| verdict(&recorded(sd), current_ms));
        let weaker = matches!((quiet, noisy), (Verdict::Improved, Verdict::Pass));
        prop_assert!(quiet == noisy || noisy == Verdict::Inconclusive || weaker);
    }
}

#[test]
fn ten_times_faster_than_the_baseline_is_to_be_checked() {
    let quiet = recorded(0.001);
    assert_eq!(verdict(&quiet, 10.5), Verdict::Improved);
    let check = judged(&quiet, 9.0);
    assert_eq!(check.verdict, Verdict::Inconclusive, "{}", check.reason);
    assert!(check.reason.starts_with("check this: 11 times faster"), "{}", check.reason);
}
