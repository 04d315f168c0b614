//! Series in JSON: `[1.0, …]`, `{"name": [1.0, …]}`, or objects with `values` and beside them `timestamps`, `revisions`,
//! `lower_is_better`; and the series of `holdpoint history export --as json`.

use super::{point, timestamp};
use holdpoint_model::document::value_error;
use holdpoint_model::json::JsonError;
use holdpoint_model::metric::Better;
use holdpoint_model::{FileError, Series, Timestamp, Track};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Values(Vec<Option<f64>>),
    Exported(Vec<Series>),
    One(Values),
    Named(BTreeMap<String, Named>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Named {
    Values(Vec<Option<f64>>),
    Described(Values),
}

/// Null is a run without a value.
#[derive(Deserialize)]
struct Values {
    values: Vec<Option<f64>>,
    #[serde(default)]
    timestamps: Vec<Time>,
    #[serde(default)]
    revisions: Vec<Option<String>>,
    #[serde(default = "lower")]
    lower_is_better: bool,
}

fn lower() -> bool {
    true
}

/// A time in words, or seconds since 1970.
#[derive(Deserialize)]
#[serde(untagged)]
enum Time {
    Words(String),
    Seconds(f64),
}

pub(super) fn read(text: &str, file_name: &str) -> Result<Vec<Track>, FileError> {
    // Said first, with its line: a file that is no JSON has no shape.
    let file: File = match serde_json::from_str(text) {
        Ok(file) => file,
        Err(error) if error.is_data() => {
            let what =
                "is no series: an array of numbers is wanted, an object of them, or objects with \"values\"";
            return value_error("the file".to_owned(), what);
        }
        Err(error) => return Err(FileError::Json(JsonError::from(error))),
    };
    match file {
        File::Exported(series) => Ok(series.iter().map(Track::from).collect()),
        File::Values(values) => Ok(vec![plain(file_name, &values)]),
        File::One(values) => Ok(vec![described(file_name, &values)?]),
        File::Named(all) => all
            .iter()
            .map(|(name, one)| match one {
                Named::Values(values) => Ok(plain(name, values)),
                Named::Described(values) => described(name, values),
            })
            .collect(),
    }
}

fn plain(name: &str, values: &[Option<f64>]) -> Track {
    let points = values.iter().map(|value| point(value.unwrap_or(f64::NAN), None, None)).collect();
    Track { name: name.to_owned(), points, ..Track::default() }
}

fn described(name: &str, values: &Values) -> Result<Track, FileError> {
    for (key, count) in [("timestamps", values.timestamps.len()), ("revisions", values.revisions.len())] {
        if count != 0 && count != values.values.len() {
            let what = format!("has {count} entries, \"values\" has {}", values.values.len());
            return value_error(format!("{name}.{key}"), &what);
        }
    }
    let mut track = plain(name, &values.values);
    track.better = if values.lower_is_better { Better::Lower } else { Better::Higher };
    for (point, time) in track.points.iter_mut().zip(&values.timestamps) {
        point.at = match time {
            Time::Words(words) => timestamp(words),
            Time::Seconds(seconds) => Timestamp::from_millis((seconds * 1_000.0) as i64),
        };
    }
    for (point, revision) in track.points.iter_mut().zip(&values.revisions) {
        point.commit = revision.as_deref().map(Into::into);
    }
    Ok(track)
}
