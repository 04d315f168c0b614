//! Which times may be compared at all.

use super::*;

const ALL: Allow =
    Allow { machine: true, environment: true, shape: true, dtype: true, timer: true, params: true };

fn pair() -> (Current, Baseline) {
    (run(&[("m_ms", 1.0)]), baseline(&[("m_ms", 1.0, 0.4, 0.0)]))
}

fn change(current: &mut Current, change: impl Fn(&mut Identity)) {
    current.metrics.values_mut().filter_map(|metric| metric.identity.as_mut()).for_each(change);
}

#[test]
fn another_machine_is_inconclusive_and_both_are_named() {
    let (mut current, baseline) = pair();
    current.machine = Some(machine("elsewhere"));
    let judged = gate(&current, &baseline);
    assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
    let check = &judged.checks[0];
    for word in ["CPU here", "CPU elsewhere", "--allow machine", "holdpoint baseline record"] {
        assert!(check.reason.contains(word), "{:?} should contain {word:?}", check.reason);
    }
    assert_eq!((check.current_ms, check.regression_ratio), (Some(1.0), None));
}

#[test]
fn another_machine_is_judged_when_allowed_and_noted() {
    let (mut current, baseline) = pair();
    current.machine = Some(machine("elsewhere"));
    let allow = Allow { machine: true, ..Allow::default() };
    let judged = judge(&compare(&current, &baseline, allow), ALLOWED_MAX);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert_eq!(judged.notes, ["compared across machines, as allowed"]);
}

fn lock(entries: &[(&str, &str)]) -> Option<std::collections::BTreeMap<String, String>> {
    Some(entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
}

#[test]
fn another_environment_is_inconclusive_and_every_difference_is_named() {
    let (mut current, mut baseline) = pair();
    baseline.environment_lock = lock(&[("seed", "1"), ("py.tf32", "off"), ("OMP_NUM_THREADS", "4")]);
    current.environment_lock = lock(&[("seed", "1"), ("py.tf32", "on")]);
    let judged = gate(&current, &baseline);
    assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
    let reason = &judged.checks[0].reason;
    for word in
        ["py.tf32 was \"off\", is \"on\"", "OMP_NUM_THREADS was \"4\", is not set", "--allow environment"]
    {
        assert!(reason.contains(word), "{reason:?} should contain {word:?}");
    }
    assert!(!reason.contains("seed"), "{reason}");
    let allow = Allow { environment: true, ..Allow::default() };
    let judged = judge(&compare(&current, &baseline, allow), ALLOWED_MAX);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert_eq!(judged.notes, ["compared across environments, as allowed"]);
}

#[test]
fn a_baseline_is_comparable_under_the_same_power_limit() {
    let (mut current, mut baseline) = pair();
    let mut verdict = |was: &[(&str, &str)], is: &[(&str, &str)]| {
        (baseline.environment_lock, current.environment_lock) = (lock(was), lock(is));
        let judged = gate(&current, &baseline);
        (judged.verdict, judged.checks[0].reason.clone())
    };
    let limit = |watts: &'static str| [("seed", "1"), ("cuda.power_limit_w", watts)];
    assert_eq!(verdict(&limit("700"), &limit("700")).0, Verdict::Pass);
    let (other, reason) = verdict(&limit("700"), &limit("500"));
    assert_eq!(other, Verdict::Inconclusive);
    assert!(reason.contains("cuda.power_limit_w was \"700\", is \"500\""), "{reason}");
    assert_eq!(verdict(&[("seed", "1")], &limit("700")).0, Verdict::Pass, "older baselines name no limit");
}

#[test]
fn what_a_file_does_not_say_of_its_environment_cannot_differ() {
    let (mut current, baseline) = pair();
    current.environment_lock = lock(&[("seed", "1")]);
    assert_one(&gate(&current, &baseline), "pass", CheckStatus::Pass, Verdict::Pass);
}

#[test]
fn a_side_without_a_machine_is_judged_with_a_note() {
    let (current, mut baseline) = pair();
    baseline.machine = None;
    let judged = gate(&current, &baseline);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert!(judged.notes[0].contains("the baseline names no machine"), "{:?}", judged.notes);
    let (mut current, baseline) = pair();
    current.machine = None;
    let judged = gate(&current, &baseline);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert!(judged.notes[0].contains("the run names no machine"), "{:?}", judged.notes);
}

#[test]
fn every_difference_of_the_workload_is_inconclusive_unless_it_is_the_allowed_one() {
    type Case = (&'static str, fn(&mut Identity), Allow);
    let cases: [Case; 4] = [
        (
            "shape differs: baseline [1, 64, 128, 128], now [2]",
            |i| i.shape = vec![2],
            Allow { shape: true, ..Allow::default() },
        ),
        (
            "dtype differs: baseline f32, now f16",
            |i| i.dtype = "f16".to_owned(),
            Allow { dtype: true, ..Allow::default() },
        ),
        (
            "timer differs: baseline host_monotonic, now cuda_event",
            |i| i.timer = "cuda_event".to_owned(),
            Allow { timer: true, ..Allow::default() },
        ),
        ("parameter \"tile\" differs", |i| i.params.clear(), Allow { params: true, ..Allow::default() }),
    ];
    for (index, (reason, difference, allow)) in cases.iter().enumerate() {
        let (mut current, baseline) = pair();
        change(&mut current, difference);
        let judged = gate(&current, &baseline);
        assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
        assert!(judged.checks[0].reason.contains(reason), "{:?}", judged.checks[0].reason);
        let judged = judge(&compare(&current, &baseline, *allow), ALLOWED_MAX);
        assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
        // Allowing one difference allows no other.
        let (mut current, baseline) = pair();
        change(&mut current, cases[(index + 1) % cases.len()].1);
        let judged = judge(&compare(&current, &baseline, *allow), ALLOWED_MAX);
        assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
    }
}

#[test]
fn another_op_is_never_the_same_workload() {
    let (mut current, baseline) = pair();
    change(&mut current, |identity| identity.op = "tile_unpack".to_owned());
    let judged = judge(&compare(&current, &baseline, ALL), ALLOWED_MAX);
    assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
}

#[test]
fn what_a_file_does_not_say_cannot_differ() {
    let (mut current, mut baseline) = pair();
    change(&mut current, |identity| (identity.shape, identity.dtype) = (Vec::new(), String::new()));
    assert_one(&gate(&current, &baseline), "pass", CheckStatus::Pass, Verdict::Pass);
    for metric in baseline.metrics.values_mut() {
        metric.identity = None;
    }
    assert_one(&gate(&current, &baseline), "pass", CheckStatus::Pass, Verdict::Pass);
}

#[test]
fn a_slower_time_that_may_not_be_compared_is_no_regression() {
    let (mut current, baseline) = pair();
    current.machine = Some(machine("elsewhere"));
    for metric in current.metrics.values_mut() {
        metric.value_ms = 1_000.0;
    }
    assert_one(&gate(&current, &baseline), "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
}

#[test]
fn a_baseline_of_another_suite_is_noted() {
    let (mut current, baseline) = pair();
    current.suite = "gpu".to_owned();
    assert_eq!(gate(&current, &baseline).notes, ["the baseline is of suite \"cpu\", the run of \"gpu\""]);
}

#[test]
fn a_number_is_the_same_however_it_is_spelled() {
    let (mut current, baseline) = pair();
    change(&mut current, |identity| {
        identity.params.insert("tile".to_owned(), serde_json::Value::from(16.0));
    });
    assert_one(&gate(&current, &baseline), "pass", CheckStatus::Pass, Verdict::Pass);
    change(&mut current, |identity| {
        identity.params.insert("tile".to_owned(), serde_json::Value::from(17));
    });
    assert_one(&gate(&current, &baseline), "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
}

#[test]
fn an_allowed_difference_is_noted_with_what_it_is() {
    let (mut current, baseline) = pair();
    change(&mut current, |identity| identity.dtype = "f16".to_owned());
    let judged = judge(&compare(&current, &baseline, ALL), ALLOWED_MAX);
    assert_one(&judged, "pass", CheckStatus::Pass, Verdict::Pass);
    assert!(judged.notes[0].contains("dtype differs: baseline f32, now f16; compared as allowed"));
}

#[test]
fn a_wide_or_a_default_tolerance_is_noted() {
    let was = baseline(&[("a_ms", 1.0, 0.9, 0.0), ("b_ms", 1.0, 0.1, 0.0)]);
    let notes = gate(&run(&[("a_ms", 1.0), ("b_ms", 1.0)]), &was).into_stated().notes;
    assert_eq!(notes, ["the tolerance is over 50 % for a_ms"]);
    let was = baseline(&[("a_ms", 1.0, 0.5, 0.0)]);
    let notes = gate(&run(&[("a_ms", 1.0)]), &was).into_stated().notes;
    assert_eq!(notes, ["the tolerance is the default of 50 %: the baseline names none"]);
}

#[test]
fn a_time_whose_answer_is_checked_no_more_is_inconclusive() {
    let (mut current, mut baseline) = pair();
    let mut check = |was: Option<bool>, is: Option<bool>| {
        baseline.metrics.values_mut().for_each(|metric| metric.answer_checked = was);
        current.metrics.values_mut().for_each(|metric| metric.answer_checked = is);
        gate(&current, &baseline)
    };
    let judged = check(Some(true), Some(false));
    assert_one(&judged, "fail", CheckStatus::Inconclusive, Verdict::Inconclusive);
    assert!(judged.checks[0].reason.contains("the answer was checked for the baseline and is not now"));
    for (was, is) in
        [(Some(true), Some(true)), (Some(false), Some(false)), (None, Some(false)), (Some(true), None)]
    {
        assert_one(&check(was, is), "pass", CheckStatus::Pass, Verdict::Pass);
    }
}
