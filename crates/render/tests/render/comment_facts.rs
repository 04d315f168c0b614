//! What the comment claims: counts, commands, waivers, calibrations, verdicts.

use crate::comment::{mixed, of, waiver};
use crate::sides::{self, ab, calibrated, calibration};
use crate::values::{self, judgement};
use holdpoint_model::{Calibration, Check, Stated, Verdict, WaiverState};
use holdpoint_render::judged::Judged;
use holdpoint_render::markdown::comment::{BYTES_MAX, Comment, comment};

fn of_run(j: &Stated) -> String {
    comment(&of(Some(Judged::new(j, None))))
}

#[test]
fn a_gate_without_a_comparison_says_how_it_ended() {
    let page = Comment { ended: Some("no verdict: exit code 64"), verdict: Verdict::Broken, ..of(None) };
    let text = comment(&page);
    assert!(
        text.contains("### holdpoint: broken\n\nno verdict: exit code 64; the gate left no comparison"),
        "{text}"
    );
}

#[test]
fn passes_are_counted_whole_and_as_many_are_shown_as_fit() {
    let checks: Vec<Check> = (0..5_000).map(|i| values::pass(&format!("m{i}_p50_ms"), 1.0, 1.01)).collect();
    let text = of_run(&judgement(Verdict::Pass, checks));
    assert!(text.len() <= BYTES_MAX && text.len() > BYTES_MAX - 200, "{}", text.len());
    let shown = text.lines().filter(|line| line.starts_with("| pass |")).count();
    let (shown, left) = (format!("{shown}"), format!("{}", 5_000 - shown));
    assert!(text.contains(&format!("<summary>5 000 passed, {shown} shown</summary>")), "{shown}");
    let left = format!("{} {}", &left[..1], &left[1..]);
    assert!(text.contains(&format!("{left} rows are left out")), "{left}");
}

#[test]
fn a_waiver_that_was_refused_does_not_stand_under_waived() {
    let text = comment(&of(Some(mixed().judged())));
    let (waived, refused) = (text.find("**Waived**").unwrap(), text.find("**Waiver refused**").unwrap());
    assert!(text[waived..refused].contains("sort_split") && !text[waived..refused].contains("gather"));
    assert!(text[refused..].contains("- `gather` **regressed**"), "{text}");
    let mut alone = sides::regressed(1.0, 1.2);
    alone.waiver = Some(waiver("bob", "later", WaiverState::BeyondLimit));
    let text = comment(&of(Some(ab(vec![("a", alone)]).judged())));
    assert!(!text.contains("**Waived**") && text.contains("**Waiver refused**"), "{text}");
}

#[test]
fn a_calibration_speaks_for_its_own_suite_and_machine() {
    let r = ab(vec![("ff_path", sides::pass(1.0, 1.0))]);
    let own = calibration(0.0, 200, vec![("ff_path", calibrated(0.0, 200, 0, 2, 0.004))]);
    let said = |seen: &Calibration| {
        comment(&Comment { calibration: Some(seen), ..of(Some(r.judged())) })
            .contains("0 of 200 unchanged suites")
    };
    assert!(said(&own));
    let mut other = own.clone();
    other.suite = "another".to_owned();
    assert!(!said(&other));
    let mut other = own;
    other.machine.fingerprint = "another".to_owned();
    assert!(!said(&other));
}

#[test]
fn the_command_decides_by_the_same_rule() {
    let mut r = ab(vec![("a", sides::regressed(1.0, 1.2))]);
    for side in [&mut r.base, &mut r.head] {
        if let Some(revision) = &mut side.revision {
            revision.dirty = false;
        }
    }
    let flags = |r: &sides::Sides| {
        let text = comment(&of(Some(r.judged())));
        let block = text.split("--head-rev ").nth(1).unwrap_or_default();
        block.lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    (r.plan.seed, r.plan.tolerance) = (7, 0.01);
    (r.plan.alarm_rate, r.plan.miss_rate) = (0.001, 0.01);
    assert_eq!(flags(&r), "--tolerance 1.0% --seed 7");
    (r.plan.alarm_rate, r.plan.miss_rate) = (0.05, 0.1);
    assert_eq!(flags(&r), "--tolerance 1.0% --alarm-rate 0.05 --miss-rate 0.1 --seed 7");
    (r.policy, r.plan.units_max) = ("disjoint-ci".to_owned(), 30);
    assert_eq!(flags(&r), "--policy disjoint-ci --units-max 30 --seed 7");
}

#[test]
fn a_run_is_done_again_by_its_own_rule_or_not_at_all() {
    let mut j = judgement(Verdict::Regressed, vec![values::regressed("infer_p50_ms", 1.0, 2.0)]);
    j.policy = "allowed-max".to_owned();
    let again = |j: &Stated| {
        let text = of_run(j);
        let line = text.lines().find(|line| line.contains("holdpoint gate")).map(str::to_owned);
        line.map(|line| line.split(" --suite ").nth(1).unwrap().to_owned())
    };
    let suite = j.suite.clone();
    assert_eq!(again(&j), Some(format!("{suite} --policy allowed-max")));
    let mut by_threshold = j.clone();
    by_threshold.policy = "threshold".to_owned();
    by_threshold.threshold = Some(holdpoint_model::judgement::ThresholdKeys {
        speedup: 0.5,
        improvement_pct: -100.0,
        is_regression: true,
        baseline_time_ms: 1.0,
        current_time_ms: 2.0,
        threshold: -50.0,
        label: "REGRESSION DETECTED".to_owned(),
    });
    assert_eq!(again(&by_threshold), Some(format!("{suite} --threshold -50")));
    let mut of_samples = j.clone();
    of_samples.policy = "disjoint-ci".to_owned();
    assert_eq!(again(&of_samples), None, "gate has no such rule");
    j.machine = None;
    assert_eq!(again(&j), None, "what others measured has no suite here");
}

#[test]
fn the_picture_says_what_it_leaves_out_and_names_what_it_shows() {
    let checks: Vec<Check> = (0..33).map(|i| values::regressed(&format!("m{i}_p50_ms"), 1.0, 2.0)).collect();
    let text = of_run(&judgement(Verdict::Regressed, checks));
    assert!(text.contains("· and 13 more, not drawn\n"), "{text}");
    let mut slow = values::regressed("a_p50_ms", 1.0, 9.0);
    slow.allowed_max_ms = Some(1.0);
    let text = of_run(&judgement(Verdict::Regressed, vec![slow]));
    assert!(text.contains("│ no change, ● measured\n"), "what is covered is not named: {text}");
}

#[test]
fn the_status_of_a_run_has_a_name_and_is_not_missing() {
    let text = of_run(&judgement(Verdict::Regressed, vec![values::status("odd", Verdict::Regressed)]));
    assert!(!text.contains("__status__") && !text.contains("\\_status"), "{text}");
    assert!(text.contains("**Status of the run**\n\n- `status of the run` **regressed**: "), "{text}");
    assert!(!text.contains("**Missing**"), "{text}");
}
