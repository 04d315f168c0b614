//! A second look at a run that was slower than allowed.

use crate::{baseline, gate, run};
use holdpoint_gate::confirm::{Confirmed, median_run, worth_repeating};
use holdpoint_model::{Unmeasured, Verdict};

#[test]
fn only_a_slow_run_is_worth_repeating() {
    let was = baseline(&[("a", 1.0, 0.1, 0.0), ("b", 1.0, 0.1, 0.0)]);
    assert!(worth_repeating(&gate(&run(&[("a", 1.2), ("b", 1.0)]), &was)));
    assert!(!worth_repeating(&gate(&run(&[("a", 1.0), ("b", 1.0)]), &was)));
    // What is missing stays missing, and what is broken is broken whatever the times.
    assert!(!worth_repeating(&gate(&run(&[("a", 1.0)]), &was)));
    let mut broken = run(&[("a", 1.2)]);
    broken.status = Some("failed".to_owned());
    broken.unmeasured.insert("b".to_owned(), Unmeasured::Failed("wrong_answer".to_owned()));
    assert!(!worth_repeating(&gate(&broken, &was)));
}

#[test]
fn one_slow_run_of_three_passes_and_two_regress() {
    let was = baseline(&[("a", 1.0, 0.1, 0.0)]);
    let verdict = |times: [f64; 3]| {
        let runs = times.map(|time| run(&[("a", time)]));
        gate(&median_run(&runs).unwrap().current, &was).verdict
    };
    assert_eq!(verdict([1.5, 1.0, 1.05]), Verdict::Pass);
    assert_eq!(verdict([1.5, 1.0, 1.2]), Verdict::Regressed);
}

#[test]
fn a_run_that_broke_speaks_for_all() {
    let mut broken = run(&[]);
    broken.status = Some("failed".to_owned());
    let runs = [run(&[("a", 1.5)]), broken.clone(), run(&[("a", 1.0)])];
    assert_eq!(median_run(&runs), Some(Confirmed { current: broken, odd: Some(1) }));
    assert_eq!(median_run(&[]), None);
}
