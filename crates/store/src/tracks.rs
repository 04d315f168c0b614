//! Series of values from a file: a trend, read line by line and kept as numbers, or a small file in JSON or CSV.

use crate::error::StoreError;
use crate::read::read_text;
use crate::trend::Lines;
use holdpoint_model::limits::LINE_BYTES_MAX;
use holdpoint_model::{Timestamp, Track, TrackPoint, Trend, document};
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

/// Reads the series of a file. A trend may be of any size: of its points only the numbers are kept.
pub fn read_tracks(path: &Path) -> Result<Vec<Track>, StoreError> {
    if is_trend(path)? {
        return read_trend_tracks(path);
    }
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let text = read_text(path)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    holdpoint_interop::read_tracks(text, &name)
        .map_err(|source| StoreError::Format { path: path.to_owned(), source })
}

/// Points of a trend that are shown: all of a short one.
#[derive(Clone, Debug)]
pub struct ShownTrend {
    pub points: Vec<Trend>,
    /// Points in the file.
    pub points_count: usize,
    /// Every so many of them is among `points`, beside the newest; 1 where all are.
    pub step: usize,
}

/// Points shown of a long trend: more than any chart draws.
const POINTS_SHOWN: usize = 2_000;
/// The newest of them, of which none is left out.
const NEWEST_SHOWN: usize = 500;

/// Reads the points of a trend that are worth showing, whatever its size. Lines that are left out are not looked at.
pub fn read_shown_trend(path: &Path) -> Result<ShownTrend, StoreError> {
    let mut lines = Lines::open(path, LINE_BYTES_MAX as u64)?;
    let mut points_count = 0_usize;
    while lines.next()?.is_some() {
        points_count += 1;
    }
    let step = points_count.div_ceil(POINTS_SHOWN).max(1);
    let newest = points_count.saturating_sub(NEWEST_SHOWN);
    let (mut lines, mut points) = (Lines::open(path, LINE_BYTES_MAX as u64)?, Vec::new());
    for index in 0..points_count {
        let Some(text) = lines.next()? else { break };
        if index % step == 0 || index >= newest {
            let point = document::read(text);
            points.push(point.map_err(|source| lines.error(source))?);
        }
    }
    Ok(ShownTrend { points, points_count, step })
}

/// Whether the first line that is not empty is a point of a trend.
fn is_trend(path: &Path) -> Result<bool, StoreError> {
    let mut lines = Lines::open(path, LINE_BYTES_MAX as u64)?;
    let line = match lines.next() {
        Ok(Some(line)) => line,
        Ok(None) => return Ok(false),
        // A table of one huge line, or not text at all: the whole file is read, or refused, by its own reader.
        Err(StoreError::NotText { .. } | StoreError::TooLarge { .. }) => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(serde_json::from_str::<Line>(line).is_ok())
}

/// The keys of a point that are kept.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    suite: Cow<'a, str>,
    #[serde(borrow)]
    timestamp_utc: Cow<'a, str>,
    #[serde(borrow)]
    metrics: Vec<Metric<'a>>,
    #[serde(borrow, default)]
    revision: Option<Commit<'a>>,
}

#[derive(Deserialize)]
struct Metric<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    current_ms: Option<f64>,
}

#[derive(Deserialize)]
struct Commit<'a> {
    #[serde(borrow)]
    commit: Cow<'a, str>,
}

fn read_trend_tracks(path: &Path) -> Result<Vec<Track>, StoreError> {
    let mut lines = Lines::open(path, LINE_BYTES_MAX as u64)?;
    let mut found = Found::default();
    while let Some(text) = lines.next()? {
        let Ok(line) = serde_json::from_str::<Line>(text) else {
            // Read in full for the one clear line about it.
            let Some(source) = document::read::<Trend>(text).err() else { continue };
            return Err(lines.error(source));
        };
        let at = Timestamp::parse(&line.timestamp_utc);
        let commit = line.revision.as_ref().map(|revision| &*revision.commit);
        for (column, metric) in line.metrics.iter().enumerate() {
            let value = metric.current_ms.unwrap_or(f64::NAN);
            let point = TrackPoint { value, at, commit: commit.map(Into::into), versions: None };
            found.track(column, &line.suite, &metric.metric).points.push(point);
        }
    }
    Ok(found.tracks)
}

#[derive(Default)]
struct Found {
    tracks: Vec<Track>,
    places: HashMap<(String, String), usize>,
    /// The places of the metrics of the line before, which most lines share: no name is copied then.
    columns: Vec<usize>,
}

impl Found {
    fn track(&mut self, column: usize, suite: &str, name: &str) -> &mut Track {
        let is_it = |place: &&usize| self.tracks[**place].name == name && self.tracks[**place].suite == suite;
        let place = self.columns.get(column).filter(is_it).copied();
        let place = place.unwrap_or_else(|| {
            *self.places.entry((suite.to_owned(), name.to_owned())).or_insert_with(|| {
                self.tracks.push(Track {
                    suite: suite.to_owned(),
                    name: name.to_owned(),
                    ..Track::default()
                });
                self.tracks.len() - 1
            })
        });
        match self.columns.get_mut(column) {
            Some(known) => *known = place,
            None => self.columns.push(place),
        }
        &mut self.tracks[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(suite: &str, second: u32, values: &[(&str, f64)]) -> String {
        let metrics: Vec<String> = values
            .iter()
            .map(|(name, value)| {
                format!(r#"{{"metric":"{name}","status":"pass","baseline_ms":null,"allowed_max_ms":null,"current_ms":{value},"regression_ratio":null}}"#)
            })
            .collect();
        format!(
            r#"{{"schema_version":1,"suite":"{suite}","timestamp_utc":"2026-01-02T03:04:{second:02}Z","overall_status":"pass","total_metrics":1,"failed_metrics":0,"metrics":[{}],"revision":{{"commit":"c{second}","dirty":false}}}}"#,
            metrics.join(",")
        )
    }

    fn read(text: &str) -> Result<Vec<Track>, StoreError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.ndjson");
        std::fs::write(&path, text).unwrap();
        read_tracks(&path)
    }

    #[test]
    fn a_trend_becomes_a_series_for_each_metric() {
        let lines = [point("s", 1, &[("a", 1.0), ("b", 5.0)]), String::new(), point("s", 2, &[("a", 2.0)])];
        let tracks = read(&lines.join("\n")).unwrap();
        let shapes: Vec<(&str, Vec<f64>)> =
            tracks.iter().map(|track| (track.name.as_str(), track.values())).collect();
        assert_eq!(shapes, [("a", vec![1.0, 2.0]), ("b", vec![5.0])]);
        assert_eq!(tracks[0].points[1].commit.as_deref(), Some("c2"));
        assert!(tracks[0].points[1].at > tracks[0].points[0].at);
    }

    #[test]
    fn of_a_long_trend_the_newest_points_and_some_of_the_others_are_shown() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.ndjson");
        let write = |count: usize| {
            let lines: Vec<String> = (0..count).map(|i| point("s", 1, &[("a", i as f64 + 1.0)])).collect();
            std::fs::write(&path, lines.join("\n")).unwrap();
            read_shown_trend(&path).unwrap()
        };
        let short = write(2_000);
        assert_eq!((short.points.len(), short.points_count, short.step), (2_000, 2_000, 1));
        let long = write(5_000);
        assert_eq!((long.points_count, long.step), (5_000, 3));
        let values: Vec<f64> = long.points.iter().filter_map(|point| point.metrics[0].current_ms).collect();
        assert_eq!(values.len(), 1_500 + 500);
        assert_eq!((values[0], values[1], values.last()), (1.0, 4.0, Some(&5_000.0)));
    }

    #[test]
    fn a_broken_line_is_named() {
        let text = format!("{}\n{{\"suite\": 3}}\n", point("s", 1, &[("a", 1.0)]));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains("t.ndjson") && error.contains("line 2"), "{error}");
    }

    #[test]
    fn anything_else_is_read_as_json_or_a_table() {
        assert_eq!(read("[1, 2, 3]").unwrap()[0].values(), [1.0, 2.0, 3.0]);
        assert_eq!(read("value\n4\n").unwrap()[0].name, "t");
        assert!(read("").unwrap_err().to_string().contains("empty"));
    }
}
