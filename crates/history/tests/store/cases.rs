//! The demands on a store, whatever holds it.

use crate::server::Server;
use holdpoint_history::{
    Access, HistoryError, Location, Prune, PruneWhat, RunRecord, Store, StoreTracks, VERSION, force_version,
    migrate, open, series_id,
};
use holdpoint_model::{
    AbReport, Acceptance, Kind, Report, Revision, RunFilter, RunHash, SeriesFilter, Stated, TimeRange,
    Timestamp, Track, Tracks, Trend, TrendMetric, Verdict, document,
};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

type Case = fn(&Location);

/// The behaviour of every store.
pub const CASES: &[(&str, Case)] = &[
    ("a series comes back in order of time", a_series_comes_back_in_order_of_time),
    ("adding twice changes nothing", adding_twice_changes_nothing),
    ("points of different identity are never joined", points_of_different_identity_are_never_joined),
    ("a report comes back with verdicts and versions", a_report_comes_back_with_verdicts_and_versions),
    ("a track has what its series has", a_track_has_what_its_series_has),
    ("an accepted change stays with its series", an_accepted_change_stays_with_its_series),
    ("pruned samples leave summaries and points", pruned_samples_leave_summaries_and_points),
    ("runs are listed page by page", runs_are_listed_page_by_page),
    ("a run is listed with what was said of it", a_run_is_listed_with_what_was_said_of_it),
    ("several threads read while one writes", several_threads_read_while_one_writes),
];

/// The behaviour of databases alone: a ref has no version, a run that was removed from it stays removed, and writers take turns by trying again.
pub const DATABASE_CASES: &[(&str, Case)] = &[
    ("pruned runs leave the newest", pruned_runs_leave_the_newest),
    ("writers at once lose nothing", writers_at_once_lose_nothing),
    ("a store is made only where that is wanted", a_store_is_made_only_where_that_is_wanted),
    ("an older store is named and migrated", an_older_store_is_named_and_migrated),
    ("the runs of an older store are listed", the_runs_of_an_older_store_are_listed),
    ("a newer store is refused", a_newer_store_is_refused),
];

/// As every caller does it.
pub fn judge(ab: &AbReport) -> Result<Stated, String> {
    let judgement = holdpoint_gate::judge_recorded(ab).map_err(|error| error.to_string())?;
    Ok(judgement.into_stated())
}

fn store(location: &Location) -> Box<dyn Store> {
    open(location, Access::Create, judge).unwrap()
}

/// A run of a suite with the value `value` for each of these workloads.
fn run(minute: u32, value: f64, workloads: &[&str]) -> RunRecord {
    let metric = |name: &&str| TrendMetric {
        metric: format!("{name}_p50_ms"),
        status: "pass".to_owned(),
        baseline_ms: None,
        allowed_max_ms: None,
        current_ms: Some(value),
        regression_ratio: None,
    };
    let trend = Trend {
        schema_version: 1,
        suite: "cpu".to_owned(),
        timestamp_utc: format!("2026-11-17T08:{:02}:{:02}Z", minute / 60, minute % 60),
        overall_status: "pass".to_owned(),
        total_metrics: workloads.len(),
        failed_metrics: 0,
        metrics: workloads.iter().map(metric).collect(),
        revision: None,
    };
    RunRecord::trend(&trend).unwrap()
}

fn values(store: &dyn Store, workload: &str) -> Vec<f64> {
    let id = only_id(store, workload);
    store.read(&id, TimeRange::default()).unwrap().points.iter().map(|point| point.value).collect()
}

fn only_id(store: &dyn Store, workload: &str) -> String {
    let filter = SeriesFilter { workload: Some(workload.to_owned()), ..SeriesFilter::default() };
    let mut found = store.list(&filter).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0).id
}

fn report() -> Report {
    document::read(include_str!("../../../model/tests/data/report-v1.json")).unwrap()
}

fn a_series_comes_back_in_order_of_time(location: &Location) {
    let store = store(location);
    store.add(&[run(3, 3.0, &["sort", "scan"]), run(1, 1.0, &["sort"])]).unwrap();
    store.add(&[run(2, 2.0, &["sort"])]).unwrap();
    assert_eq!(values(&*store, "sort"), [1.0, 2.0, 3.0]);
    assert_eq!(values(&*store, "scan"), [3.0]);
    let all = store.list(&SeriesFilter::default()).unwrap();
    let names: Vec<&str> = all.iter().map(|series| series.key.workload.as_str()).collect();
    assert_eq!(names, ["scan", "sort"]);
    assert_eq!((all[1].points_count, &all[1].id), (3, &series_id(&all[1].key)));
    let times = [all[1].first_utc, all[1].last_utc].map(|at| at.unwrap().to_string());
    assert_eq!(times, ["2026-11-17T08:00:01.000Z", "2026-11-17T08:00:03.000Z"]);
    let missing = store.read("000000000000", TimeRange::default()).unwrap_err();
    assert!(matches!(missing, HistoryError::NoSeries { .. }) && missing.is_input(), "{missing}");
}

fn adding_twice_changes_nothing(location: &Location) {
    let store = store(location);
    let runs = [run(1, 1.0, &["sort"]), run(2, 2.0, &["sort"])];
    assert_eq!(store.add(&runs).unwrap(), [true, true]);
    assert_eq!(store.add(&runs).unwrap(), [false, false]);
    let mixed = [runs[0].clone(), run(3, 3.0, &["sort"]), runs[1].clone()];
    assert_eq!(store.add(&mixed).unwrap(), [false, true, false]);
    let twice = [run(4, 4.0, &["sort"]), run(4, 4.0, &["sort"])];
    assert_eq!(store.add(&twice).unwrap(), [true, false]);
    assert_eq!(values(&*store, "sort"), [1.0, 2.0, 3.0, 4.0]);
    let hashes = [runs[0].hash, RunHash([7; 32])];
    assert_eq!(store.known(&hashes).unwrap(), [true, false]);
    assert_eq!(store.add(&[]).unwrap(), [false; 0]);
}

fn points_of_different_identity_are_never_joined(location: &Location) {
    let store = store(location);
    let same = report();
    let name = same.benchmarks.keys().next().unwrap().clone();
    let change = |change: &dyn Fn(&mut Report)| {
        let mut report = same.clone();
        change(&mut report);
        report
    };
    let reports = [
        same.clone(),
        change(&|report| report.timestamp_utc = "2026-11-17T10:00:00Z".to_owned()),
        change(&|report| report.benchmarks[&name].identity.shape = vec![7]),
        change(&|report| report.benchmarks[&name].identity.dtype = "f64".to_owned()),
        change(&|report| report.benchmarks[&name].identity.timer = "sundial".to_owned()),
        change(&|report| drop(report.benchmarks[&name].identity.params.insert("k".to_owned(), 1.into()))),
        change(&|report| report.machine.as_mut().unwrap().fingerprint = "another".to_owned()),
        change(&|report| report.machine = None),
        change(&|report| report.suite = "other".to_owned()),
    ];
    let records: Vec<RunRecord> = reports.iter().map(|report| RunRecord::report(report).unwrap()).collect();
    store.add(&records).unwrap();
    let filter =
        SeriesFilter { workload: Some(name), metric: Some("p50_ms".to_owned()), ..SeriesFilter::default() };
    let series = store.list(&filter).unwrap();
    let mut counts: Vec<u64> = series.iter().map(|series| series.points_count).collect();
    counts.sort_unstable();
    assert_eq!(counts, [1, 1, 1, 1, 1, 1, 1, 2], "only time differs between the first two");
    let filter = SeriesFilter { machine: Some("anot".to_owned()), ..filter };
    assert_eq!(store.list(&filter).unwrap().len(), 1);
}

fn a_report_comes_back_with_verdicts_and_versions(location: &Location) {
    let store = store(location);
    let report = report();
    let mut judgement: Stated =
        document::read(include_str!("../../../model/tests/data/comparison-v1.json")).unwrap();
    let (name, measurement) = report.benchmarks.iter().next().unwrap();
    judgement.suite = report.suite.clone();
    judgement.timestamp_utc = Some(report.timestamp_utc.clone());
    judgement.machine = report.machine.clone();
    judgement.checks.truncate(1);
    judgement.checks[0].metric = format!("{name}_p50_ms");
    judgement.checks[0].verdict = Verdict::Waived;
    let records = [RunRecord::comparison(&judgement).unwrap(), RunRecord::report(&report).unwrap()];
    // The comparison comes first: nothing may depend on the order.
    assert_eq!(store.add(&records).unwrap(), [true, true]);
    let filter = SeriesFilter {
        workload: Some(name.clone()),
        metric: Some("p50_ms".to_owned()),
        ..SeriesFilter::default()
    };
    let id = store.list(&filter).unwrap().remove(0).id;
    let series = store.read(&id, TimeRange::default()).unwrap();
    assert_eq!(series.key.identity.as_ref(), Some(&measurement.identity));
    assert_eq!(series.machine, report.machine.as_ref().unwrap().describe());
    let point = &series.points[0];
    assert_eq!((point.verdict, &point.revision), (Some(Verdict::Waived), &report.revision));
    assert_eq!(Some(point.at), Timestamp::parse(&report.timestamp_utc));
    assert!(point.samples_count > 0 && point.run == records[1].hash);
    let versions = series.versions_of(point).unwrap();
    assert_eq!(versions["rustc"], report.toolchain.rustc);
    let text = store.document(&point.run).unwrap().unwrap();
    assert_eq!(document::read::<Report>(&text).unwrap(), report);
    assert_eq!(store.document(&RunHash([1; 32])).unwrap(), None);
}

/// Finding changes reads less than the whole series, and must see the same.
fn a_track_has_what_its_series_has(location: &Location) {
    let store = store(location);
    let commit = |n: u32| Some(Revision { commit: format!("{n:040x}"), dirty: n == 3 });
    let mut runs: Vec<RunRecord> = (0..40).map(|n| run(n, f64::from(n), &["sort", "twin"])).collect();
    for (n, run) in (0..).zip(&mut runs) {
        run.revision = commit(n);
        run.versions = [("kernel".to_owned(), format!("6.{}", n / 20))].into();
    }
    store.add(&runs).unwrap();
    // Two runs of one moment, in one of the series.
    let mut twin = run(7, 100.0, &["twin"]);
    twin.revision = commit(100);
    store.add(&[twin]).unwrap();
    let series = store.list(&SeriesFilter::default()).unwrap();
    let wanted: Vec<Track> =
        series.iter().map(|one| Track::from(&store.read(&one.id, TimeRange::default()).unwrap())).collect();
    let mut tracks = StoreTracks::new(&*store, &series);
    for (index, wanted) in wanted.iter().enumerate() {
        let mut track = tracks.track(index).unwrap();
        assert_eq!(track.values(), wanted.values(), "{}", wanted.name);
        tracks.fill(index, &mut track, &[5..=6, 20..=20]).unwrap();
        for i in [5, 6, 20] {
            let (found, wanted_point) = (&track.points[i], &wanted.points[i]);
            assert_eq!((&found.commit, found.at), (&wanted_point.commit, wanted_point.at));
            let versions =
                |track: &Track, i: usize| track.versions[track.points[i].versions.unwrap() as usize].clone();
            assert_eq!(versions(&track, i), versions(wanted, i));
        }
        tracks.fill(index, &mut track, &[0..=wanted.points.len() - 1]).unwrap();
        assert_eq!(track.as_ref(), wanted);
    }
    let missing = store.values("000000000000").unwrap_err();
    assert!(matches!(missing, HistoryError::NoSeries { .. }), "{missing}");
}

fn time(text: &str) -> Option<Timestamp> {
    Timestamp::parse(text)
}

fn runs_are_listed_page_by_page(location: &Location) {
    let store = store(location);
    // Two of one moment: the page between them ends at a hash.
    let mut runs: Vec<RunRecord> = (0..7).map(|n| run(n, f64::from(n), &["sort"])).collect();
    runs.push(run(3, 30.0, &["sort"]));
    store.add(&runs).unwrap();
    let mut wanted: Vec<(Timestamp, RunHash)> = runs.iter().map(|run| (run.at, run.hash)).collect();
    wanted.sort_unstable_by(|a, b| b.cmp(a));
    let list = |filter: RunFilter| {
        let (mut found, mut filter, mut pages) = (Vec::new(), filter, 0);
        loop {
            let page = store.runs(&filter).unwrap();
            pages += 1;
            found.extend(page.runs.iter().map(|run| (run.at, run.run)));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return (found, pages),
            }
        }
    };
    for (limit, pages) in [(1, 8), (3, 3), (4, 2), (8, 1), (100, 1)] {
        let all = RunFilter { limit, ..RunFilter::default() };
        assert_eq!(list(all), (wanted.clone(), pages), "by {limit}");
    }
    // A run that is added meanwhile moves no page.
    let first = RunFilter { limit: 3, ..RunFilter::default() };
    let after = store.runs(&first).unwrap().next;
    store.add(&[run(50, 1.0, &["sort"])]).unwrap();
    assert_eq!(list(RunFilter { after, ..first.clone() }).0, wanted[3..]);
    let times = TimeRange { since: time("2026-11-17T08:00:02Z"), until: time("2026-11-17T08:00:04Z") };
    let between = list(RunFilter { times, limit: 100, ..RunFilter::default() }).0;
    let is_between = |(at, _): &&(Timestamp, RunHash)| Some(*at) >= times.since && Some(*at) < times.until;
    assert_eq!(between, wanted.iter().filter(is_between).copied().collect::<Vec<_>>());
    assert_eq!(between.len(), 3);
    let id = only_id(&*store, "sort");
    let series = store.read(&id, times).unwrap();
    assert_eq!(series.points.iter().map(|point| point.at).collect::<BTreeSet<_>>().len(), 2);
    assert_eq!(series.points.len(), 3);
}

fn a_run_is_listed_with_what_was_said_of_it(location: &Location) {
    let store = store(location);
    let mut report = report();
    report.branch = Some("perf/sort".to_owned());
    let mut judgement: Stated =
        document::read(include_str!("../../../model/tests/data/comparison-v1.json")).unwrap();
    judgement.suite = report.suite.clone();
    judgement.timestamp_utc = Some(report.timestamp_utc.clone());
    judgement.machine = report.machine.clone();
    judgement.verdict = Verdict::Regressed;
    judgement.checks.truncate(1);
    judgement.checks[0].verdict = Verdict::Pass;
    let judged = RunRecord::report(&report).unwrap();
    store.add(&[RunRecord::comparison(&judgement).unwrap(), judged.clone(), run(1, 1.0, &["sort"])]).unwrap();
    let all = RunFilter { limit: 10, ..RunFilter::default() };
    let found = store.runs(&all).unwrap();
    assert_eq!((found.runs.len(), found.next), (2, None), "a comparison is no run of its own");
    let machine = report.machine.as_ref().unwrap();
    let one = found.runs.iter().find(|run| run.run == judged.hash).unwrap();
    assert_eq!((one.verdict, one.branch.as_deref()), (Some(Verdict::Regressed), Some("perf/sort")));
    assert_eq!((&one.machine, &one.machine_words), (&machine.fingerprint, &machine.describe()));
    assert_eq!((&one.revision, &one.suite, one.kind), (&report.revision, &report.suite, Kind::Report));
    let count = |filter: RunFilter| store.runs(&filter).unwrap().runs.len();
    let named = |text: &str| Some(text.to_owned());
    for (filter, wanted) in [
        (RunFilter { branch: named("perf/sort"), ..all.clone() }, 1),
        (RunFilter { branch: named("perf"), ..all.clone() }, 0),
        (RunFilter { verdict: Some(Verdict::Regressed), ..all.clone() }, 1),
        (RunFilter { verdict: Some(Verdict::Pass), ..all.clone() }, 0),
        (RunFilter { suite: named(&report.suite), ..all.clone() }, 1),
        (RunFilter { suite: named("nosuch"), ..all.clone() }, 0),
        (RunFilter { machine: named(&machine.fingerprint[..6]), ..all.clone() }, 1),
        (RunFilter { machine: named("nosuch"), ..all }, 0),
    ] {
        assert_eq!(count(filter.clone()), wanted, "{filter:?}");
    }
}

/// A reader sees whole batches, never half of one, and waits for nobody.
fn several_threads_read_while_one_writes(location: &Location) {
    const BATCHES: u32 = 10;
    const BATCH: u32 = 5;
    let store = store(location);
    store.add(&[run(0, 0.0, &["sort"])]).unwrap();
    let id = only_id(&*store, "sort");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let read = || {
            let mut before = 0;
            loop {
                let was_done = is_done.load(Ordering::Acquire);
                let count = store.read(&id, TimeRange::default()).unwrap().points.len();
                assert!(count >= before && count % BATCH as usize == 1, "{count} points after {before}");
                before = count;
                let all = RunFilter { limit: 1_000, ..RunFilter::default() };
                assert!(store.runs(&all).unwrap().runs.len() >= count);
                assert_eq!(store.list(&SeriesFilter::default()).unwrap().len(), 1);
                if was_done {
                    return count;
                }
            }
        };
        let readers: Vec<_> = (0..4).map(|_| scope.spawn(read)).collect();
        for batch in 0..BATCHES {
            let runs: Vec<RunRecord> =
                (0..BATCH).map(|n| run(1 + batch * BATCH + n, 1.0, &["sort"])).collect();
            store.add(&runs).unwrap();
        }
        is_done.store(true, Ordering::Release);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 1 + (BATCHES * BATCH) as usize);
        }
    });
}

fn an_accepted_change_stays_with_its_series(location: &Location) {
    let store = store(location);
    let runs = [run(1, 1.0, &["sort"]), run(2, 2.0, &["sort", "scan"])];
    store.add(&runs).unwrap();
    let id = only_id(&*store, "sort");
    let mut acceptance = Acceptance {
        at: runs[1].at,
        run: runs[1].hash,
        by: "Ada".to_owned(),
        why: "exact answers".to_owned(),
        accepted_at_utc: Timestamp::parse("2026-11-18").unwrap(),
    };
    store.accept(&id, &acceptance).unwrap();
    acceptance.why = "exact answers, #12".to_owned();
    store.accept(&id, &acceptance).unwrap();
    assert_eq!(store.read(&id, TimeRange::default()).unwrap().accepted, [acceptance.clone()]);
    assert_eq!(store.values(&id).unwrap().accepted, [acceptance.clone()]);
    let other = only_id(&*store, "scan");
    assert_eq!(store.read(&other, TimeRange::default()).unwrap().accepted, []);
    assert!(matches!(store.accept("nosuchseries", &acceptance), Err(HistoryError::NoSeries { .. })));
}

fn pruned_samples_leave_summaries_and_points(location: &Location) {
    let store = store(location);
    let report = report();
    let record = RunRecord::report(&report).unwrap();
    store.add(std::slice::from_ref(&record)).unwrap();
    let before = store.list(&SeriesFilter::default()).unwrap();
    let prune = Prune { what: PruneWhat::Samples, before: Timestamp::parse("2999-01-01"), keep: None };
    assert_eq!(store.prune(&prune).unwrap().runs_count, 1);
    assert_eq!(store.prune(&prune).unwrap().runs_count, 0, "there is nothing left to prune");
    assert_eq!(store.list(&SeriesFilter::default()).unwrap(), before);
    let text = store.document(&record.hash).unwrap().unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let name = report.benchmarks.keys().next().unwrap();
    let kept = &summary["benchmarks"][name];
    assert!(kept["p50_ms"].is_f64() && kept["samples"]["rounds"] == serde_json::json!([]), "{kept}");
    assert_eq!(store.add(&[record]).unwrap(), [false], "a pruned run is still known");
}

fn pruned_runs_leave_the_newest(location: &Location) {
    let store = store(location);
    let runs: Vec<RunRecord> = (1..=5).map(|n| run(n, f64::from(n), &["sort"])).collect();
    store.add(&runs).unwrap();
    let keep = Prune { what: PruneWhat::Runs, before: None, keep: Some(3) };
    let pruned = store.prune(&keep).unwrap();
    assert_eq!((pruned.runs_count, pruned.points_count), (2, 2));
    assert_eq!(values(&*store, "sort"), [3.0, 4.0, 5.0]);
    let before = Prune { before: Some(runs[4].at), keep: None, ..keep };
    let old: BTreeSet<RunHash> = store.old(&before).unwrap().into_iter().collect();
    assert_eq!(old, BTreeSet::from([runs[2].hash, runs[3].hash]));
    assert_eq!(store.prune(&before).unwrap().runs_count, 2);
    assert_eq!(values(&*store, "sort"), [5.0]);
    assert_eq!(store.add(&runs[..1]).unwrap(), [true]);
    let forgotten = store.forget(&[runs[0].hash, RunHash([7; 32])]).unwrap();
    assert_eq!((forgotten.runs_count, forgotten.points_count), (1, 1));
    assert_eq!(store.add(&runs[..1]).unwrap(), [true], "it is not known any more");
}

/// Twenty here, as a server has few connections; the campaign has two hundred.
fn writers_at_once_lose_nothing(location: &Location) {
    const WRITERS: u32 = 20;
    let add = |writer: u32| {
        let store = store(location);
        for n in 0..5 {
            // Everybody adds the first run, and all are of the same series.
            let runs = [run(0, 0.0, &["sort", "scan"]), run(1 + writer * 5 + n, 1.0, &["scan", "sort"])];
            assert!(store.add(&runs).unwrap()[1]);
        }
    };
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            scope.spawn(move || add(writer));
        }
    });
    let store = store(location);
    assert_eq!(values(&*store, "sort").len(), 1 + 5 * WRITERS as usize);
    let id = only_id(&*store, "scan");
    let times: BTreeSet<Timestamp> =
        store.read(&id, TimeRange::default()).unwrap().points.iter().map(|point| point.at).collect();
    assert_eq!(times.len(), 1 + 5 * WRITERS as usize);
}

fn a_store_is_made_only_where_that_is_wanted(location: &Location) {
    let missing = open(location, Access::Existing, judge).err().unwrap();
    assert!(matches!(missing, HistoryError::Missing { .. }) && missing.is_input(), "{missing}");
    assert!(matches!(migrate(location), Err(HistoryError::Missing { .. })));
    drop(store(location));
    assert!(
        open(location, Access::Existing, judge).unwrap().list(&SeriesFilter::default()).unwrap().is_empty()
    );
    assert_eq!(migrate(location).unwrap(), VERSION, "nothing to do");
}

fn an_older_store_is_named_and_migrated(location: &Location) {
    force_version(location, 1, "").unwrap();
    let older = open(location, Access::Create, judge).err().unwrap();
    assert!(matches!(older, HistoryError::Older { found: 1, .. }), "{older}");
    assert!(older.to_string().ends_with("run \"holdpoint history migrate\" once"), "{older}");
    assert_eq!(migrate(location).unwrap(), 1);
    let store = store(location);
    store.add(&[run(1, 1.0, &["sort"])]).unwrap();
    assert_eq!(values(&*store, "sort"), [1.0]);
}

/// Runs that were added before runs had a machine of their own.
fn the_runs_of_an_older_store_are_listed(location: &Location) {
    let rows = "INSERT INTO series (name, key_json, better) VALUES
             ('0123456789ab', '{\"suite\":\"cpu\",\"workload\":\"sort\",\"metric\":\"p50_ms\",\"machine\":\"f00d\"}', 'lower'),
             ('ba9876543210', '{\"suite\":\"cpu\",\"workload\":\"scan\",\"metric\":\"p50_ms\"}', 'lower');
         INSERT INTO runs (hash, kind, suite, at, revision, dirty, versions) VALUES
             (CAST('00000000000000000000000000000001' AS {bytes}), 'report', 'cpu', 1000, 'abc', FALSE, 1),
             (CAST('00000000000000000000000000000002' AS {bytes}), 'trend', 'cpu', 2000, NULL, FALSE, 1),
             (CAST('00000000000000000000000000000003' AS {bytes}), 'comparison', 'cpu', 1000, NULL, FALSE, 1);
         INSERT INTO points (series, at, run, value, samples) VALUES (1, 1000, 1, 2.5, 3), (2, 2000, 2, 2.5, 3);
         INSERT INTO verdicts VALUES ('cpu', 'sort_p50_ms', 1000, 'f00d', 3, 'waived'),
             ('cpu', 'scan_p50_ms', 1000, 'f00d', 3, 'pass');";
    force_version(location, 2, rows).unwrap();
    assert_eq!(migrate(location).unwrap(), 2);
    let found = store(location).runs(&RunFilter { limit: 10, ..RunFilter::default() }).unwrap().runs;
    let seen: Vec<_> = found.iter().map(|run| (run.kind, run.machine.as_str(), run.verdict)).collect();
    assert_eq!(seen, [(Kind::Trend, "", None), (Kind::Report, "f00d", Some(Verdict::Waived))]);
    assert_eq!(found[1].revision.as_ref().map(|revision| revision.commit.as_str()), Some("abc"));
}

fn a_newer_store_is_refused(location: &Location) {
    drop(store(location));
    force_version(location, VERSION + 1, "").unwrap();
    for error in [open(location, Access::Create, judge).err().unwrap(), migrate(location).unwrap_err()] {
        assert!(matches!(error, HistoryError::Newer { .. }), "{error}");
        assert!(error.to_string().ends_with("update holdpoint") && !error.to_string().contains('\n'));
    }
}

pub fn a_writer_waits_for_its_server(location: &Location, server: &Server) {
    let store = store(location);
    store.add(&[run(1, 1.0, &["sort"])]).unwrap();
    server.stop();
    std::thread::scope(|scope| {
        let adding = scope.spawn(|| {
            let added = store.add(&[run(2, 2.0, &["sort"])]);
            (added, values(&*store, "sort"))
        });
        server.resume();
        let (added, values) = adding.join().unwrap();
        assert_eq!((added.unwrap(), values), (vec![true], vec![1.0, 2.0]));
    });
}
