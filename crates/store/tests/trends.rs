//! Histories: every point once, every line whole.

#![allow(clippy::unwrap_used)]

use holdpoint_model::{Trend, TrendMetric};
use holdpoint_store::*;
use std::fs;
use std::path::Path;

fn point(second: usize) -> Trend {
    Trend {
        schema_version: 1,
        suite: "cpu".to_owned(),
        timestamp_utc: format!("2026-02-14T10:00:{second:02}Z"),
        overall_status: "pass".to_owned(),
        total_metrics: 200,
        failed_metrics: 0,
        // Larger than a pipe's atomic write, so that interleaving would show.
        metrics: (0..200)
            .map(|i| TrendMetric {
                metric: format!("wörkload_{i}_p50_ms"),
                status: "pass".to_owned(),
                baseline_ms: Some(0.1 + i as f64),
                allowed_max_ms: Some(0.15),
                current_ms: Some(1.0 / 3.0),
                regression_ratio: None,
            })
            .collect(),
        revision: None,
    }
}

fn read_trends(path: &Path) -> Result<Vec<Trend>, StoreError> {
    let mut points = Vec::new();
    for_each_trend::<StoreError>(path, |point| {
        points.push(point);
        Ok(())
    })?;
    Ok(points)
}

#[test]
fn points_are_read_back_in_the_order_they_came() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("not/yet/there");
    let points = [point(2), point(1), point(3)];
    for point in &points {
        let (path, appended) = append_trend(&dir, point).unwrap();
        assert_eq!((path, appended), (dir.join("cpu.ndjson"), Appended::Added));
    }
    assert_eq!(read_trends(&dir.join("cpu.ndjson")).unwrap(), points);
}

#[test]
fn the_same_point_is_not_added_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = append_trend(folder.path(), &point(1)).unwrap();
    let before = fs::read(&path).unwrap();
    assert_eq!(append_trend(folder.path(), &point(1)).unwrap().1, Appended::Already);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn eight_writers_keep_every_line_whole() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let dir = folder.path();
            // Neighbours share points, so the same one is also offered twice at once.
            scope
                .spawn(move || (0..8).for_each(|i| drop(append_trend(dir, &point(thread * 4 + i)).unwrap())));
        }
    });
    let mut seen: Vec<String> = read_trends(&folder.path().join("cpu.ndjson"))
        .unwrap()
        .into_iter()
        .map(|t| t.timestamp_utc)
        .collect();
    seen.sort();
    let expected: Vec<String> = (0..36).map(|second| point(second).timestamp_utc).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_cut_off_line_is_set_aside_wherever_it_was_cut() {
    let line = serde_json::to_string(&point(2)).unwrap();
    // The second cut goes through the middle of the two bytes of "ö".
    let in_character = line.find('ö').unwrap() + 1;
    for cut in [1, in_character, line.len() - 1] {
        let folder = tempfile::tempdir().unwrap();
        let (path, _) = append_trend(folder.path(), &point(1)).unwrap();
        let half = &line.as_bytes()[..cut];
        fs::write(&path, [fs::read(&path).unwrap().as_slice(), half].concat()).unwrap();
        assert!(read_trends(&path).is_err());
        assert_eq!(append_trend(folder.path(), &point(2)).unwrap().1, Appended::AddedAfterRepair);
        assert_eq!(read_trends(&path).unwrap(), [point(1), point(2)]);
        assert_eq!(fs::read(folder.path().join("cpu.ndjson.partial")).unwrap(), [half, b"\n"].concat());
    }
}

#[test]
fn a_whole_last_line_without_its_end_is_a_point() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cpu.ndjson");
    fs::write(&path, serde_json::to_string(&point(1)).unwrap()).unwrap();
    assert_eq!(append_trend(folder.path(), &point(1)).unwrap().1, Appended::Already);
    assert_eq!(append_trend(folder.path(), &point(2)).unwrap().1, Appended::Added);
    assert_eq!(read_trends(&path).unwrap(), [point(1), point(2)]);
}

#[test]
fn a_bad_line_is_named_by_its_number_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = append_trend(folder.path(), &point(1)).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\n{{\"schema_version\": 1}}\n")).unwrap();
    let error = read_trends(&path).unwrap_err();
    assert!(
        error.is_input() && error.to_string().contains("cpu.ndjson: line 3: not a trend point"),
        "{error}"
    );
    append_trend(folder.path(), &point(2)).unwrap();
    let kept = fs::read_to_string(&path).unwrap();
    assert!(kept.starts_with(&format!("{text}\n{{\"schema_version\": 1}}\n")) && kept.lines().count() == 4);
}

#[test]
fn a_history_below_a_file_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "old").unwrap();
    let error = append_trend(&folder.path().join("file"), &point(1)).unwrap_err();
    assert!(error.to_string().contains("not a folder"), "{error}");
}
