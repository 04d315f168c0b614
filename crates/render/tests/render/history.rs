//! The tables of a history.

use holdpoint_model::metric::Better;
use holdpoint_model::{
    Acceptance, Kind, Point, Revision, RunCursor, RunHash, RunPage, RunSummary, Series, SeriesKey,
    SeriesSummary, Taken, Timestamp, Verdict,
};
use holdpoint_render::{Style, terminal};

const WIDE: Style = Style { color: false, width: Some(120), ascii: false };

fn some_series() -> Series {
    let at = |text: &str| Timestamp::parse(text).expect("a time");
    let point = |hour: u8, value, verdict| Point {
        at: at(&format!("2026-11-17T{hour:02}:30:00Z")),
        revision: Some(Revision { commit: format!("{hour:02}").repeat(20), dirty: hour == 9 }),
        value,
        interval: (hour > 8).then_some([value * 0.99, value * 1.01]),
        samples_count: u32::from(hour) * 10,
        run: RunHash([hour; 32]),
        versions: 0,
        verdict,
    };
    let points = vec![
        point(7, 1.0, None),
        point(8, 1.5, Some(Verdict::Regressed)),
        point(9, 1.6, Some(Verdict::Pass)),
    ];
    let accepted = Acceptance {
        at: at("2026-11-17T08:30:00Z"),
        run: RunHash([8; 32]),
        by: "Ada".to_owned(),
        why: "exact answers".to_owned(),
        accepted_at_utc: at("2026-11-18"),
    };
    Series {
        id: "0123456789ab".to_owned(),
        key: SeriesKey {
            suite: "mine".to_owned(),
            workload: "sort".to_owned(),
            metric: "p50_ms".to_owned(),
            identity: None,
            machine: None,
            taken: Taken::SideBySide,
        },
        machine: "a machine, 2 CPUs".to_owned(),
        better: Better::Lower,
        points,
        versions: Vec::new(),
        accepted: vec![accepted],
    }
}

#[test]
fn the_newest_points_are_shown_with_who_accepted_them() {
    insta::assert_snapshot!(terminal::series(&[some_series()], 2, WIDE));
}

#[test]
fn a_list_has_a_line_for_each_series() {
    let Series { id, key, machine, better, .. } = some_series();
    let last_utc = Timestamp::parse("2026-11-17");
    let summary = SeriesSummary {
        id,
        key,
        machine,
        better,
        points_count: 12_345,
        first_utc: last_utc,
        last_utc,
        accepted_count: 1,
    };
    insta::assert_snapshot!(terminal::history(&[summary], WIDE));
    assert!(terminal::history(&[], WIDE).contains("no series yet"));
}

#[test]
fn a_page_of_runs_names_the_next_one() {
    let series = some_series();
    let summary = |point: &Point| RunSummary {
        run: point.run,
        kind: Kind::Report,
        suite: series.key.suite.clone(),
        at: point.at,
        revision: point.revision.clone(),
        branch: point.verdict.map(|_| "perf/sort".to_owned()),
        machine: "f00d".to_owned(),
        machine_words: series.machine.clone(),
        verdict: point.verdict,
    };
    let runs: Vec<RunSummary> = series.points.iter().rev().map(summary).collect();
    let next = runs.last().map(|run| RunCursor { at: run.at, run: run.run });
    insta::assert_snapshot!(terminal::runs(&RunPage { runs, next }, WIDE));
    assert!(terminal::runs(&RunPage::default(), WIDE).contains("no run matches"));
}
