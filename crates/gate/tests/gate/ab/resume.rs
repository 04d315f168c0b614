//! What an interrupted comparison must have in common with the one that goes on from it.

use super::workload;
use holdpoint_gate::ab::differences;
use holdpoint_model::{AbReport, Revision};

fn report() -> AbReport {
    let mut report = super::report(vec![workload(&[0.0, 0.1])]);
    report.conditions.insert("--policy".to_owned(), "sequential".to_owned());
    report
}

#[track_caller]
fn differs(change: impl FnOnce(&mut AbReport), words: &str) {
    let mut new = report();
    change(&mut new);
    let [one] = &differences(&report(), &new, true)[..] else { panic!("not one difference: {words}") };
    assert!(one.contains(words), "{one}");
}

#[test]
fn the_same_may_go_on_with_more_time_and_more_units() {
    let mut new = report();
    new.plan.units_max += 100;
    new.plan.budget_s *= 2.0;
    new.elapsed_s = 0.0;
    new.timestamp_utc = "later".to_owned();
    assert_eq!(differences(&report(), &new, true), [""; 0]);
}

#[test]
fn a_seed_that_was_drawn_goes_on_and_one_that_was_given_must_be_the_same() {
    let mut new = report();
    new.plan.seed += 1;
    assert_eq!(differences(&report(), &new, false), [""; 0]);
    differs(|new| new.plan.seed = 99, "is 99");
}

#[test]
fn everything_that_the_units_depend_on_is_named_with_both_values() {
    differs(|new| new.suite = "gpu".to_owned(), "the suite was cpu, is gpu");
    differs(|new| new.base.label = "v1".to_owned(), "base was main, is v1");
    let revision = |dirty| Some(Revision { commit: "abc".to_owned(), dirty });
    differs(|new| new.head.revision = revision(false), "head was change, is change at abc");
    differs(|new| new.head.revision = revision(true), "is change at abc with changes");
    differs(|new| new.plan.tolerance = 0.5, "is 0.5");
    differs(|new| new.plan.alarm_rate = 0.5, "--alarm-rate was ");
    differs(|new| new.plan.miss_rate = 0.5, "--miss-rate was ");
    differs(|new| new.plan.clock = Some(holdpoint_model::ab::Clock::Cpu), "is Some(Cpu)");
    differs(|new| new.plan.units_at_once = 77, "is 77");
    differs(|new| new.toolchain.holdpoint = "9.9".to_owned(), "9.9");
    differs(|new| new.workloads[0].identity.dtype = "f16".to_owned(), "workload w0 was ");
    let policy =
        |new: &mut AbReport| drop(new.conditions.insert("--policy".to_owned(), "disjoint-ci".to_owned()));
    differs(policy, "--policy was sequential, is disjoint-ci");
    differs(|new| new.conditions.clear(), "--policy was sequential, is not recorded");
}
