//! Waivers: what they let pass, and what they never do.

use super::ab::{judged, noisy, workload};
use super::*;
use holdpoint_gate::{Policy, waive};
use holdpoint_model::ab::Ended;

fn day(text: &str) -> Date {
    Date::parse(text).unwrap()
}

/// One waiver per metric, limit and expiry, as they stood a year ago in a file.
fn waivers(of: &[(&str, &str, &str)]) -> Waivers {
    let tables = of.iter().map(|(metric, limit, expires)| {
        format!(
            "[[waiver]]\nowner = \"ada\"\nreason = \"checks\"\nmetric = \"{metric}\"\nlimit = \"{limit}\"\nexpires = {expires}\n"
        )
    });
    let text = format!("schema_version = 1\n{}", tables.collect::<String>());
    Waivers::parse(&text).unwrap()
}

/// A metric that may be 50 % slower, and is slower by `change`.
fn slower(change: f64, waivers: &Waivers, today: &str) -> Judgement {
    let mut judgement = one(10.0, 10.0 * (1.0 + change), 0.5, 0.0, ALLOWED_MAX);
    waive(&mut judgement, waivers, day(today));
    judgement
}

#[test]
fn a_regression_within_its_waiver_is_waived_and_passes_in_the_seeds_word() {
    let waivers = waivers(&[("m_*", "80%", "2026-06-30")]);
    for change in [0.7, 0.799_999] {
        let judgement = slower(change, &waivers, "2026-06-30");
        assert_one(&judgement, "pass", CheckStatus::Pass, Verdict::Waived);
        let check = &judgement.checks[0];
        assert!(
            check.reason.contains("waived up to +80.0 % by ada until 2026-06-30: checks"),
            "{}",
            check.reason
        );
        assert_eq!(check.waiver.as_ref().unwrap().state, WaiverState::Waived);
        assert_eq!(ExitCode::from(judgement.verdict), ExitCode::Ok);
    }
}

#[test]
fn beyond_the_limit_it_fails() {
    let judgement = slower(0.81, &waivers(&[("m_ms", "80%", "2026-06-30")]), "2026-06-30");
    assert_one(&judgement, "fail", CheckStatus::Fail, Verdict::Regressed);
    assert!(judgement.checks[0].reason.contains("beyond the +80.0 % that ada waived"));
    assert_eq!(judgement.checks[0].waiver.as_ref().unwrap().state, WaiverState::BeyondLimit);
}

#[test]
fn an_expired_waiver_is_refused_by_name() {
    let waivers = waivers(&[("m_ms", "80%", "2026-06-30")]);
    let judgement = slower(0.7, &waivers, "2026-07-01");
    assert_one(&judgement, "fail", CheckStatus::Fail, Verdict::Regressed);
    assert!(judgement.checks[0].reason.contains("refused: the waiver of ada expired on 2026-06-30"));
    let note = "the waiver for \"m_ms\" of ada expired on 2026-06-30 and is refused; remove it or renew it";
    assert!(judgement.notes.iter().any(|said| said == note), "{:?}", judgement.notes);
    // It is named even where nothing has become slower.
    let passing = slower(0.0, &waivers, "2026-07-01");
    assert_one(&passing, "pass", CheckStatus::Pass, Verdict::Pass);
    assert!(passing.notes.iter().any(|said| said == note));
}

#[test]
fn the_first_waiver_that_covers_it_counts() {
    let waivers =
        waivers(&[("m_ms", "90%", "2026-02-01"), ("m_ms", "60%", "2026-12-31"), ("w", "75%", "2026-12-31")]);
    let judgement = slower(0.7, &waivers, "2026-06-30");
    assert_eq!(judgement.verdict, Verdict::Waived);
    assert_eq!(judgement.checks[0].waiver.as_ref().unwrap().metric, "w", "by its workload");
    let judgement = slower(0.8, &waivers, "2026-06-30");
    assert_eq!(judgement.checks[0].waiver.as_ref().unwrap().state, WaiverState::Expired);
}

#[test]
fn what_is_broken_missing_undecided_or_not_as_required_is_never_waived() {
    let all = waivers(&[
        ("m*", "1000%", "2026-12-31"),
        ("__*", "1000%", "2026-12-31"),
        ("w*", "1000%", "2026-12-31"),
    ]);
    let base = baseline(&[("m_ms", 10.0, 0.5, 0.0)]);
    let status = |status: &str| Current { status: Some(status.to_owned()), ..run(&[("m_ms", 10.0)]) };
    let failed = Current {
        unmeasured: [("m_ms".to_owned(), Unmeasured::Failed("crashed".to_owned()))].into(),
        ..run(&[])
    };
    let elsewhere = Current { machine: Some(machine("there")), ..run(&[("m_ms", 19.0)]) };
    for (current, verdict) in [
        (run(&[]), Verdict::Regressed),
        (failed, Verdict::Broken),
        (elsewhere, Verdict::Inconclusive),
        (status("odd"), Verdict::Regressed),
        (status("failed"), Verdict::Broken),
        (status("skipped"), Verdict::Skipped),
    ] {
        let mut judgement = gate(&current, &base);
        assert_eq!(judgement.verdict, verdict);
        let before = judgement.clone();
        waive(&mut judgement, &all, day("2026-06-30"));
        // Those that are about nothing here are told.
        let notes = before.notes.clone();
        assert_eq!(Stated { notes, ..judgement.into_stated() }, *before);
    }
}

#[test]
fn a_workload_of_two_sides_is_waived_by_its_name_or_that_of_its_median() {
    let slow = || {
        judged(
            vec![workload(&noisy(1, 40, 0.05, 0.002)), workload(&noisy(2, 40, 0.0, 0.002))],
            Policy::Sequential,
        )
    };
    assert_eq!(slow().verdict, Verdict::Regressed);
    for (metric, limit, today, verdict, state) in [
        ("w0", "6%", "2026-06-30", Verdict::Waived, WaiverState::Waived),
        ("w0_p50_ms", "6%", "2026-06-30", Verdict::Waived, WaiverState::Waived),
        ("w*", "4%", "2026-06-30", Verdict::Regressed, WaiverState::BeyondLimit),
        ("w0", "6%", "2027-01-01", Verdict::Regressed, WaiverState::Expired),
    ] {
        let mut report = slow();
        waive(&mut report, &waivers(&[(metric, limit, "2026-12-31")]), day(today));
        assert_eq!((report.verdict, report.checks[0].verdict), (verdict, verdict), "{metric} {limit}");
        assert_eq!(report.checks[0].waiver.as_ref().unwrap().state, state);
        assert_eq!((report.checks[1].verdict, &report.checks[1].waiver), (Verdict::Pass, &None));
    }
}

#[test]
fn a_broken_or_undecided_side_is_never_waived() {
    let all = waivers(&[("w*", "1000%", "2026-12-31")]);
    let failed = AbWorkload { ended: Ended::Failed, ..workload(&[]) };
    for workloads in [vec![failed], vec![workload(&noisy(3, 2, 0.05, 0.05))]] {
        let mut report = judged(workloads, Policy::Sequential);
        let before = report.clone();
        assert!([Verdict::Broken, Verdict::Inconclusive].contains(&before.verdict));
        waive(&mut report, &all, day("2026-06-30"));
        assert_eq!(report, before);
    }
}

#[test]
fn a_waiver_that_is_about_nothing_gets_a_note() {
    let judgement =
        slower(0.0, &waivers(&[("m_ms", "80%", "2026-06-30"), ("gone_*", "5%", "2026-06-30")]), "2026-06-30");
    let notes: Vec<&String> =
        judgement.notes.iter().filter(|said| said.contains("is about nothing")).collect();
    assert_eq!(notes, ["the waiver for \"gone_*\" of ada is about nothing that was compared"]);
}
