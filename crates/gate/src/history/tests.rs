use super::find::find_alerts;
use super::rule::{HistoryRule, OnWorse};
use super::*;
use crate::{Evidence, judge_again};
use holdpoint_model::metric::Better;
use holdpoint_model::{
    Acceptance, Cause, Current, MetricValue, Point, Revision, RunHash, Series, SeriesKey, Taken, Timestamp,
    Track, TrackPoint, Verdict, Versions,
};
use holdpoint_stats::random::Random;
use std::collections::BTreeMap;

/// Noise of 1 % around a level.
fn noise(random: &mut Random, level: f64, count: usize) -> Vec<f64> {
    (0..count).map(|_| level * (0.01 * random.normal()).exp()).collect()
}

fn push(rule: &mut HistoryRule, values: &[f64]) -> Vec<Option<Standing>> {
    values.iter().map(|value| rule.push(*value, OnWorse::Keep)).collect()
}

fn track(machine: &str, name: &str, values: &[f64]) -> Track {
    let point = |(i, value): (usize, &f64)| TrackPoint {
        value: *value,
        at: Timestamp::from_millis(1_000 * i as i64),
        commit: Some(format!("c{i}").into()),
        versions: Some(0),
    };
    Track {
        suite: "cpu".to_owned(),
        name: name.to_owned(),
        machine: Some(machine.to_owned()),
        points: values.iter().enumerate().map(point).collect(),
        versions: vec![Versions::from([("kernel".to_owned(), "6.1".to_owned())])],
        ..Track::default()
    }
}

#[test]
fn a_short_history_has_no_level() {
    let mut rule = HistoryRule::new(Better::Lower);
    let standings = push(&mut rule, &noise(&mut Random::new(1), 10.0, 14));
    assert!(standings.iter().all(Option::is_none) && rule.level().is_some(), "{standings:?}");
    assert_eq!(rule.push(10.0, OnWorse::Keep), Some(Standing::Inside));
    assert_eq!(rule.push(0.0, OnWorse::Keep), None, "only positive values can be judged");
    assert_eq!(rule.push(f64::NAN, OnWorse::Keep), None);
}

#[test]
fn one_bad_run_is_a_doubt_and_four_are_a_worse_level_until_it_is_accepted() {
    let mut random = Random::new(2);
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, &noise(&mut random, 10.0, 60));
    assert_eq!(rule.push(30.0, OnWorse::Keep), Some(Standing::Beyond { count: 1 }));
    assert_eq!(rule.push(10.0, OnWorse::Keep), Some(Standing::Inside));
    let worse = push(&mut rule, &noise(&mut random, 12.0, 60));
    let beyond = |count| Some(Standing::Beyond { count });
    // The bad run above is among the last five until the third of these.
    assert_eq!(worse[..3], [beyond(2), beyond(3), Some(Standing::Worse)]);
    assert!(
        worse[3..].iter().all(|standing| *standing == Some(Standing::Worse)),
        "it does not wear off: {worse:?}"
    );
    rule.accept();
    let accepted = push(&mut rule, &noise(&mut random, 12.0, 20));
    assert!(accepted.iter().flatten().all(|standing| *standing == Standing::Inside), "{accepted:?}");
    assert_eq!(
        accepted.iter().filter(|standing| standing.is_none()).count(),
        1,
        "only the accepted run itself"
    );
}

#[test]
fn an_accepted_change_does_not_quiet_the_next_one() {
    let mut random = Random::new(22);
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, &noise(&mut random, 10.0, 60));
    rule.accept();
    let accepted = push(&mut rule, &noise(&mut random, 12.0, 1));
    assert_eq!(accepted, [None]);
    let worse = push(&mut rule, &noise(&mut random, 15.0, 30));
    let beyond = |count| Some(Standing::Beyond { count });
    assert_eq!(worse[..4], [beyond(1), beyond(2), beyond(3), Some(Standing::Worse)]);
    assert!(worse[4..].iter().all(|standing| *standing == Some(Standing::Worse)), "{worse:?}");
    // Again and again does not help either.
    rule.accept();
    push(&mut rule, &noise(&mut random, 15.0, 1));
    rule.accept();
    push(&mut rule, &noise(&mut random, 15.0, 1));
    assert_eq!(rule.push(19.0, OnWorse::Keep), beyond(1));
}

#[test]
fn a_worse_level_that_is_gone_is_forgotten() {
    let mut random = Random::new(3);
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, &noise(&mut random, 10.0, 60));
    push(&mut rule, &noise(&mut random, 13.0, 30));
    let back = push(&mut rule, &noise(&mut random, 10.0, 60));
    // The third run back is most of the last five.
    let is_calm = |standing: &Option<Standing>| *standing == Some(Standing::Inside);
    assert!(back[2..].iter().all(is_calm), "{back:?}");
    assert!((rule.level().unwrap().level - 10.0).abs() < 0.1);
}

#[test]
fn a_better_level_becomes_the_level_by_itself() {
    let mut random = Random::new(4);
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, &noise(&mut random, 10.0, 60));
    let better = push(&mut rule, &noise(&mut random, 8.0, 30));
    assert_eq!(better[3], Some(Standing::Improved));
    assert!((rule.level().unwrap().level - 8.0).abs() < 0.1);
    let back = push(&mut rule, &noise(&mut random, 10.0, 5));
    assert_eq!(back[3], Some(Standing::Worse), "the old level is worse now");
}

#[test]
fn a_drift_of_small_steps_is_found() {
    let mut random = Random::new(5);
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, &noise(&mut random, 10.0, 60));
    // 0.1 % a run: no five runs stand out.
    let drift: Vec<f64> =
        (0..100).map(|i| 10.0 * 1.001_f64.powi(i) * (0.01 * random.normal()).exp()).collect();
    let standings = push(&mut rule, &drift);
    let found = standings.iter().position(|standing| *standing == Some(Standing::Drifted));
    assert!(found.is_some_and(|run| (40..90).contains(&run)), "{found:?}");
    assert!(!standings.contains(&Some(Standing::Worse)), "{standings:?}");
}

#[test]
fn more_is_better_is_the_same_upside_down() {
    let mut random = Random::new(6);
    let values: Vec<f64> =
        [10.0, 11.0, 9.0, 10.5].iter().flat_map(|level| noise(&mut random, *level, 50)).collect();
    let lower = track("m", "a", &values);
    let inverse: Vec<f64> = values.iter().map(|value| 1.0 / value).collect();
    let higher = Track { better: Better::Higher, ..track("m", "a", &inverse) };
    assert_eq!(find_alerts(&lower), find_alerts(&higher));
    assert_eq!(find_alerts(&lower).len(), 2, "the two steps up");
    let effects = |track: Track| -> Vec<_> {
        let found = find_changes(&[track]);
        found.series[0].changes.iter().map(|change| (change.index, change.effect)).collect()
    };
    assert_eq!(effects(lower), effects(higher));
}

#[test]
fn unchanged_noise_seldom_raises_an_alert() {
    let alerts = |draw: &dyn Fn(&mut Random) -> f64| -> usize {
        (0..40)
            .map(|seed| {
                let mut random = Random::new(seed);
                let values: Vec<f64> = (0..1_000).map(|_| (0.03 * draw(&mut random)).exp()).collect();
                find_alerts(&track("m", "a", &values)).len()
            })
            .sum()
    };
    // In 40 000 runs.
    let (normal, skewed) = (alerts(&Random::normal), alerts(&|random| -random.uniform().ln()));
    assert!(normal <= 4, "normal: {normal}");
    assert!(skewed <= 30, "skewed: {skewed}");
}

fn run(values: &[(&str, f64)]) -> Current {
    let metric = |(name, value_ms): &(&str, f64)| {
        let workload = Some("w".to_owned());
        let value = MetricValue {
            value_ms: *value_ms,
            workload,
            identity: None,
            answer_checked: None,
            slow_stretches: None,
        };
        ((*name).to_owned(), value)
    };
    Current { suite: "cpu".to_owned(), metrics: values.iter().map(metric).collect(), ..Current::default() }
}

fn levels(values: &[f64]) -> BTreeMap<String, holdpoint_model::HistoryLevel> {
    let mut rule = HistoryRule::new(Better::Lower);
    push(&mut rule, values);
    rule.level().map(|level| ("w_p50_ms".to_owned(), level)).into_iter().collect()
}

#[test]
fn no_history_is_inconclusive_and_never_a_pass() {
    let judgement = judge_history(&run(&[("w_p50_ms", 10.0)]), &levels(&[10.0; 5]));
    assert_eq!((judgement.verdict, judgement.checks.len()), (Verdict::Inconclusive, 1));
    assert!(judgement.checks[0].reason.contains("too short"), "{}", judgement.checks[0].reason);
    assert!(!needs_second_look(&judgement), "a second look needs a level to doubt");
    assert_eq!(judge_history(&run(&[]), &BTreeMap::new()).verdict, Verdict::Inconclusive);
}

#[test]
fn a_run_is_judged_by_its_level_and_can_be_judged_again() {
    let calm = levels(&noise(&mut Random::new(7), 10.0, 60));
    let judge = |value| judge_history(&run(&[("w_p50_ms", value)]), &calm);
    assert_eq!(judge(10.0).verdict, Verdict::Pass);
    let doubt = judge(12.0);
    assert_eq!(doubt.verdict, Verdict::Inconclusive);
    assert!(needs_second_look(&doubt));
    let worse = [noise(&mut Random::new(7), 10.0, 60), vec![12.0; 3]].concat();
    let judgement = judge_history(&run(&[("w_p50_ms", 12.0)]), &levels(&worse));
    assert_eq!(judgement.verdict, Verdict::Regressed);
    let again = judge_again(&judgement, &Evidence::Runs(vec![run(&[("w_p50_ms", 12.0)])])).unwrap();
    assert_eq!(again, judgement);
    let missing = judge_history(&run(&[]), &calm);
    assert_eq!(missing.verdict, Verdict::Regressed, "a workload that is gone does not pass");
}

#[test]
fn a_history_whose_noise_hides_slowdowns_passes_nothing() {
    let mut random = Random::new(8);
    let noisy: Vec<f64> = (0..60).map(|_| 10.0 * (0.3 * random.normal()).exp()).collect();
    for value in [10.0, 13.0, 6.0] {
        let judgement = judge_history(&run(&[("w_p50_ms", value)]), &levels(&noisy));
        assert_eq!(judgement.verdict, Verdict::Inconclusive, "{value}");
        assert!(judgement.checks[0].reason.contains("a slowdown below that would look the same"));
        assert!(needs_second_look(&judgement));
    }
}

#[test]
fn a_run_within_the_noise_passes_only_where_that_serves_the_tolerance() {
    let calm = levels(&noise(&mut Random::new(7), 10.0, 60));
    let asked = |tolerance, value| {
        let mut levels = calm.clone();
        levels.values_mut().for_each(|level| level.tolerance = tolerance);
        let judgement = judge_history(&run(&[("w_p50_ms", value)]), &levels);
        (judgement.verdict, judgement.checks[0].reason.clone())
    };
    let wide = calm["w_p50_ms"].fence / calm["w_p50_ms"].level - 1.0;
    assert!((0.03..0.04).contains(&wide), "{wide}");
    let (verdict, reason) = asked(Some(0.01), 10.0);
    assert_eq!(verdict, Verdict::Inconclusive);
    assert!(reason.contains("more than twice the tolerance of 1.0 %"), "{reason}");
    let (verdict, reason) = asked(None, 10.0);
    let both = format!("(+{:.1} %); the tolerance is 2.0 %", wide * 100.0);
    assert!(
        verdict == Verdict::Pass && reason.contains("within the noise") && reason.ends_with(&both),
        "{reason}"
    );
    let (verdict, reason) = asked(None, 7.7);
    assert!(verdict == Verdict::Pass && reason.contains("better than the noise"), "{reason}");
    assert!(reason.contains("not confirmed by others yet"), "{reason}");
}

#[test]
fn a_drift_is_settled_by_the_revision_where_the_level_began_and_no_newer_one() {
    let mut random = Random::new(5);
    // Each commit 0.4 % slower than the one before: none of them is slower by more than its noise.
    let values: Vec<f64> =
        (0..70).map(|i| 10.0 * 1.004_f64.powi((i - 30).max(0)) * (0.01 * random.normal()).exp()).collect();
    let names: Vec<String> =
        (0..70).map(|i| if i == 0 { "c0*".to_owned() } else { format!("c{i}") }).collect();
    let points: Vec<(i64, &str, Option<Verdict>)> =
        names.iter().enumerate().map(|(i, name)| (i as i64, name.as_str(), Some(Verdict::Pass))).collect();
    let mut series = series_taken(Taken::Alone, &points);
    series.points.iter_mut().zip(&values).for_each(|(point, value)| point.value = *value);
    let levels = BTreeMap::from([("w_p50_ms".to_owned(), level_of(&Track::from(&series)).unwrap())]);
    let drift = judge_history(&run(&[("w_p50_ms", levels["w_p50_ms"].level)]), &levels);
    assert_eq!(
        (drift.verdict, drifted(&drift)),
        (Verdict::Regressed, vec!["w_p50_ms"]),
        "{:?}",
        drift.checks[0].reason
    );
    assert_eq!(last_good_of([&series].into_iter(), None).as_deref(), Some("c69"), "it has drifted as far");
    assert_eq!(
        accepted_revision_of([&series].into_iter()).as_deref(),
        Some("c1"),
        "the first that can be built again"
    );
    let Point { at, run: hash, .. } = series.points[40];
    let (by, why) = ("ada".to_owned(), "a larger cache".to_owned());
    series.accepted.push(Acceptance { at, run: hash, by, why, accepted_at_utc: at });
    assert_eq!(accepted_revision_of([&series].into_iter()).as_deref(), Some("c40"));
    let doubt = judge_history(&run(&[("w_p50_ms", 30.0)]), &levels);
    assert!(needs_second_look(&doubt) && drifted(&doubt).is_empty());
}

#[test]
fn workloads_that_move_at_one_revision_are_one_event() {
    let mut random = Random::new(8);
    let mut step = |at: usize, size: f64| {
        let (before, after) = (noise(&mut random, 10.0, at), noise(&mut random, 10.0 * size, 100 - at));
        [before, after].concat()
    };
    let tracks = [
        track("m", "a", &step(50, 1.3)),
        track("m", "b", &step(50, 0.8)),
        track("m", "c", &step(70, 1.2)),
        track("m", "d", &step(0, 1.0)),
    ];
    let found = find_changes(&tracks);
    let members: Vec<Vec<usize>> =
        found.events.iter().map(|event| event.members.iter().map(|member| member.series).collect()).collect();
    assert_eq!(members, [vec![0, 1], vec![2]]);
    assert!(found.events.iter().all(|event| event.cause == Cause::Code));
    assert_eq!(found.series[0].changes[0].after.commit.as_deref(), Some("c50"));
}

#[test]
fn a_change_on_one_machine_is_the_machines_and_a_new_kernel_is_named() {
    let mut random = Random::new(9);
    let steady = noise(&mut random, 10.0, 100);
    let moved = [noise(&mut random, 10.0, 50), noise(&mut random, 13.0, 50)].concat();
    let tracks = [track("first", "a", &moved), track("second", "a", &steady)];
    let found = find_changes(&tracks);
    assert_eq!(found.events.len(), 1);
    assert_eq!(found.events[0].cause, Cause::Machine { machine: "first".to_owned() });
    // On both it is the code.
    let tracks = [track("first", "a", &moved), track("second", "a", &moved)];
    assert_eq!(find_changes(&tracks).events[0].cause, Cause::Code);
    let mut named = track("first", "a", &moved);
    named.versions.push(Versions::from([("kernel".to_owned(), "6.2".to_owned())]));
    named.points[50..].iter_mut().for_each(|point| point.versions = Some(1));
    let found = find_changes(&[named]);
    let Cause::Versions { changed } = &found.events[0].cause else { panic!("{:?}", found.events) };
    assert_eq!(
        (changed.len(), changed[0].name.as_str(), changed[0].after.as_deref()),
        (1, "kernel", Some("6.2"))
    );
}

fn series_taken(taken: Taken, points: &[(i64, &str, Option<Verdict>)]) -> Series {
    let point = |(at, commit, verdict): &(i64, &str, Option<Verdict>)| Point {
        at: Timestamp::from_millis(*at).unwrap(),
        revision: Some(Revision { commit: commit.replace('*', ""), dirty: commit.contains('*') }),
        value: 1.0,
        interval: None,
        samples_count: 0,
        run: RunHash([0; 32]),
        versions: 0,
        verdict: *verdict,
    };
    let key = SeriesKey {
        suite: "s".to_owned(),
        workload: "w".to_owned(),
        metric: "p50_ms".to_owned(),
        identity: None,
        machine: None,
        taken,
    };
    Series {
        id: String::new(),
        key,
        machine: String::new(),
        better: Better::Lower,
        points: points.iter().map(point).collect(),
        versions: Vec::new(),
        accepted: Vec::new(),
    }
}

#[test]
fn the_last_good_revision_is_the_newest_clean_one_that_passed() {
    let points = [
        (1, "old", Some(Verdict::Pass)),
        (2, "good", Some(Verdict::Improved)),
        (3, "edited*", Some(Verdict::Pass)),
        (4, "slow", Some(Verdict::Regressed)),
        (5, "unjudged", None),
        (6, "here", Some(Verdict::Pass)),
    ];
    let series = series_taken(Taken::Alone, &points);
    let status: Vec<&str> = series.points.iter().map(trend_status).collect();
    assert_eq!(status, ["pass", "pass", "pass", "fail", "unjudged", "pass"]);
    assert_eq!(last_good_of([&series].into_iter(), Some("here")).as_deref(), Some("good"));
    assert_eq!(last_good_of([&series].into_iter(), None).as_deref(), Some("here"));
    assert_eq!(last_good_of(std::iter::empty(), None), None);
    // What another metric left open at that revision is not good.
    let mut other = series_taken(Taken::Alone, &[(2, "good", Some(Verdict::Inconclusive))]);
    other.key.metric = "p95_ms".to_owned();
    assert_eq!(last_good_of([&series, &other].into_iter(), Some("here")).as_deref(), Some("old"));
}

#[test]
fn a_history_too_noisy_to_pass_a_run_begins_with_its_oldest_revision() {
    let open = Some(Verdict::Inconclusive);
    let points =
        [(1, "slow", Some(Verdict::Regressed)), (2, "first", None), (3, "second", open), (4, "here", open)];
    let alone = series_taken(Taken::Alone, &points);
    assert_eq!(last_good_of([&alone].into_iter(), Some("here")).as_deref(), Some("first"));
    // What a run alone left open, the comparison side by side decided.
    let beside = series_taken(Taken::SideBySide, &[(3, "second", Some(Verdict::Pass))]);
    assert_eq!(last_good_of([&beside, &alone].into_iter(), Some("here")).as_deref(), Some("second"));
    let beside = series_taken(Taken::SideBySide, &[(3, "second", Some(Verdict::Regressed))]);
    assert_eq!(last_good_of([&alone, &beside].into_iter(), Some("here")).as_deref(), Some("first"));
    let edited = series_taken(Taken::Alone, &[(1, "edited*", None)]);
    assert_eq!(last_good_of([&edited].into_iter(), None), None, "it cannot be built again");
}
