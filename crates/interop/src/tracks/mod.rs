//! Series of values in plain JSON and CSV, for `holdpoint changes`: arrays of numbers, objects of them, a row for each point, a column
//! for each series, and what `holdpoint history export` writes.

mod csv;
mod json;
#[cfg(test)]
mod tests;

use holdpoint_model::{FileError, Timestamp, Track, TrackPoint};

/// Reads the series of a file's text; one that has no name gets that of the file.
pub fn read_tracks(text: &str, file_name: &str) -> Result<Vec<Track>, FileError> {
    if text.trim_start().starts_with(['{', '[']) {
        json::read(text, file_name)
    } else {
        csv::read(text, file_name)
    }
}

/// Tables and logs often leave out the sign of UTC.
fn timestamp(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    Timestamp::parse(text).or_else(|| Timestamp::parse(&format!("{}Z", text.replacen(' ', "T", 1))))
}

fn point(value: f64, at: Option<Timestamp>, commit: Option<&str>) -> TrackPoint {
    let commit = commit.map(str::trim).filter(|commit| !commit.is_empty());
    TrackPoint { value, at, commit: commit.map(Into::into), versions: None }
}
