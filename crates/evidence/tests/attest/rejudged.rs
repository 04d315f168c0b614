//! Documents judged again: what is shown where the file cannot be believed.

use super::edited::Sides;
use super::edited::side_by_side;
use super::gated;
use holdpoint_evidence::rejudge::{Doubt, Rejudged, rejudge_beside};
use holdpoint_model::{Date, Stated, Verdict, document};
use serde_json::{Value, json};

/// A run of 1.8 ms where 1.5 ms are allowed, edited, and judged again.
fn run(edit: impl FnOnce(&mut Value)) -> Rejudged {
    let dir = tempfile::tempdir().unwrap();
    let mut value = gated(dir.path(), 1.8);
    edit(&mut value);
    let said = document::read::<Stated>(&value.to_string()).unwrap();
    let (rejudged, names) = rejudge_beside(&said, dir.path(), None, Date::parse("2026-01-02"));
    assert_eq!(names, ["report.json"]);
    rejudged
}

fn sides(ratio: f64, edit: impl FnOnce(&mut Sides)) -> Rejudged {
    let dir = tempfile::tempdir().unwrap();
    let mut sides = side_by_side(ratio);
    edit(&mut sides);
    sides.write(dir.path());
    let said = document::read::<Stated>(&sides.judgement.to_string()).unwrap();
    rejudge_beside(&said, dir.path(), None, Date::parse("2026-01-02")).0
}

fn pass(value: &mut Value) {
    (value["verdict"], value["status"]) = (json!("pass"), json!("pass"));
    (value["checks"][0]["verdict"], value["checks"][0]["status"]) = (json!("pass"), json!("pass"));
}

#[test]
fn a_run_that_holds_is_shown_as_it_was() {
    let rejudged = run(|_| {});
    assert_eq!((&rejudged.doubt, rejudged.judgement.verdict), (&None, Verdict::Regressed));
    assert_eq!(rejudged.problem(), None);
}

#[test]
fn a_typed_pass_is_shown_as_what_judging_again_gives() {
    let rejudged = run(pass);
    let (judgement, problem) = (&rejudged.judgement, rejudged.problem().unwrap());
    assert_eq!((judgement.verdict, judgement.checks[0].verdict), (Verdict::Regressed, Verdict::Regressed));
    assert_eq!(judgement.status, "fail");
    assert!(problem.starts_with("it says pass, judged again it is regressed: infer_p50_ms"), "{problem}");
}

#[test]
fn a_metric_that_was_taken_out_of_the_file_is_shown_again() {
    let rejudged = run(|value| {
        pass(value);
        value["checks"] = json!([]);
        value["verdict"] = json!("inconclusive");
    });
    assert_eq!(rejudged.judgement.verdict, Verdict::Regressed);
    assert_eq!(rejudged.judgement.checks[0].metric, "infer_p50_ms");
}

#[test]
fn what_the_file_says_that_is_worse_stands() {
    let rejudged = run(|value| {
        value["verdict"] = json!("broken");
        value["checks"][0]["verdict"] = json!("broken");
    });
    assert!(matches!(rejudged.doubt, Some(Doubt::Edited(_))));
    assert_eq!(
        (rejudged.judgement.verdict, rejudged.judgement.checks[0].verdict),
        (Verdict::Broken, Verdict::Broken)
    );
}

#[test]
fn what_cannot_be_judged_again_is_no_pass() {
    for (edit, why) in [
        ((|value| drop(value.as_object_mut().unwrap().remove("basis"))) as fn(&mut Value), "judged by"),
        (|_| {}, "not beside it"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut value = gated(dir.path(), 1.2);
        edit(&mut value);
        if why == "not beside it" {
            std::fs::remove_file(dir.path().join("report.json")).unwrap();
        }
        let said = document::read::<Stated>(&value.to_string()).unwrap();
        let rejudged = rejudge_beside(&said, dir.path(), None, None).0;
        assert_eq!((said.verdict, rejudged.judgement.verdict), (Verdict::Pass, Verdict::Inconclusive));
        let problem = rejudged.problem().unwrap();
        assert!(problem.starts_with("it says pass, which cannot be judged again: ") && problem.contains(why));
    }
}

#[test]
fn a_waiver_that_holds_still_waives_what_is_judged_again() {
    let waive = |expires: &'static str| {
        run(move |value| {
            pass(value);
            (value["verdict"], value["checks"][0]["verdict"]) = (json!("waived"), json!("waived"));
            value["checks"][0]["current_ms"] = json!(1.7);
            value["checks"][0]["waiver"] = json!({
                "state": "waived", "owner": "ada", "reason": "bounds", "metric": "infer_*", "limit": 0.9, "expires": expires
            });
        })
    };
    let held = waive("2026-02-01");
    assert_eq!(held.judgement.checks[0].verdict, Verdict::Waived);
    assert_eq!(held.judgement.verdict, Verdict::Inconclusive, "a number in it was edited");
    assert_eq!(waive("2026-01-01").judgement.verdict, Verdict::Regressed);
}

#[test]
fn sides_of_which_the_rounds_say_otherwise_are_shown_by_their_rounds() {
    assert_eq!(sides(1.0, |_| {}).doubt, None);
    let rejudged = sides(1.2, |sides| pass(&mut sides.judgement));
    let infer = &rejudged.judgement.checks[0];
    assert_eq!((rejudged.judgement.verdict, infer.verdict), (Verdict::Regressed, Verdict::Regressed));
    assert!(infer.reason.contains("slower than the tolerance"), "{}", infer.reason);
    assert!(rejudged.problem().unwrap().starts_with("it says pass, judged again it is regressed: "));
    // A plan that cannot be replayed.
    let rejudged = sides(1.0, |sides| sides.judgement["basis"]["plan"]["alarm_rate"] = json!(7));
    assert_eq!(rejudged.judgement.verdict, Verdict::Inconclusive);
    assert!(matches!(rejudged.doubt, Some(Doubt::Edited(_))));
}

#[test]
fn a_comparison_under_way_is_judged_by_what_it_has_and_never_passes() {
    let under_way = |ratio: f64, edit: fn(&mut Sides)| {
        sides(ratio, |sides| {
            sides.samples["finished"] = json!(false);
            sides.judge();
            edit(sides);
        })
    };
    let slower = under_way(1.2, |_| {});
    assert_eq!((slower.doubt, slower.judgement.verdict), (None, Verdict::Regressed));
    assert_eq!(under_way(1.0, |_| {}).judgement.verdict, Verdict::Inconclusive);
    let typed = under_way(1.0, |sides| sides.judgement["sides"]["finished"] = json!(true));
    assert!(matches!(typed.doubt, Some(Doubt::Edited(_))));
    assert_eq!(typed.judgement.verdict, Verdict::Inconclusive);
}
