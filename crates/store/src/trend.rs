//! A suite's history: one file per suite, one trend point a line, added to and never rewritten.
//!
//! Writers take turns by a lock on the file, so two of them can neither interleave nor both add the same
//! point. Old lines are kept whatever they hold. A last line without its end is what a crash or a power cut
//! in the middle of an append leaves: it is moved to `<file>.partial`, so the history stays readable and
//! nothing is thrown away.

use crate::error::StoreError;
use crate::read::read_bytes;
use crate::{file_stem, write};
use holdpoint_model::json::JsonError;
use holdpoint_model::limits::FILE_BYTES_MAX;
use holdpoint_model::{FileError, Trend, document};
use serde::Deserialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Appended {
    /// The point is the history's last line now.
    Added,
    /// The same, after a cut-off line was moved to `<file>.partial`.
    AddedAfterRepair,
    /// The history has a point of this suite and time; nothing was written.
    Already,
}

/// The path of a suite's history: `<dir>/<suite>.ndjson`.
pub fn trend_path(dir: &Path, suite: &str) -> PathBuf {
    dir.join(format!("{}.ndjson", file_stem(suite)))
}

/// Adds a point to its suite's history, unless that has a point of the same time already. Old lines stay as they are, even after
/// an error.
pub fn append_trend(dir: &Path, trend: &Trend) -> Result<(PathBuf, Appended), StoreError> {
    let path = trend_path(dir, &trend.suite);
    let line = serde_json::to_string(trend)
        .map_err(|error| StoreError::Unwritable { path: path.clone(), source: JsonError::from(error) })?;
    std::fs::create_dir_all(dir)
        .map_err(|error| StoreError::write(&path)(write::folder_error(dir, error)))?;
    let file = OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .open(&path)
        .map_err(StoreError::write(&path))?;
    lock(file.lock()).map_err(StoreError::write(&path))?;
    let appended = append(&file, &path, trend, &line)?;
    Ok((path, appended))
}

/// Reads a history line by line and hands on each point, in the order they were written. An empty line is no point.
pub fn for_each_trend<E: From<StoreError>>(
    path: &Path,
    mut on_point: impl FnMut(Trend) -> Result<(), E>,
) -> Result<(), E> {
    let mut lines = Lines::open(path, FILE_BYTES_MAX)?;
    while let Some(text) = lines.next()? {
        let point = document::read(text);
        on_point(point.map_err(|source| lines.error(source))?)?;
    }
    Ok(())
}

/// The lines of a file that are not empty, one at a time: it may be larger than any file that is read whole.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    bytes: Vec<u8>,
    limit_bytes: u64,
    /// Of the line that was read last.
    number: usize,
}

impl<'a> Lines<'a> {
    /// No line may be longer than the limit.
    pub(crate) fn open(path: &'a Path, limit_bytes: u64) -> Result<Self, StoreError> {
        let file = File::open(path).map_err(StoreError::read(path))?;
        lock(file.lock_shared()).map_err(StoreError::read(path))?;
        let reader = BufReader::with_capacity(1 << 18, file);
        Ok(Self { path, reader, bytes: Vec::new(), limit_bytes, number: 0 })
    }

    pub(crate) fn next(&mut self) -> Result<Option<&str>, StoreError> {
        let limit_bytes = self.limit_bytes;
        loop {
            self.bytes.clear();
            let read = (&mut self.reader).take(limit_bytes + 1).read_until(b'\n', &mut self.bytes);
            if read.map_err(StoreError::read(self.path))? == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.bytes.len() as u64 > limit_bytes {
                let path = self.path.to_owned();
                return Err(StoreError::TooLarge { path, size_bytes: None, limit_bytes });
            }
            if !self.bytes.trim_ascii().is_empty() {
                break;
            }
        }
        std::str::from_utf8(&self.bytes).map(Some).map_err(|error| StoreError::NotText {
            path: self.path.to_owned(),
            offset_bytes: error.valid_up_to(),
        })
    }

    /// An error of the line that was read last.
    pub(crate) fn error(&self, source: FileError) -> StoreError {
        StoreError::Line { path: self.path.to_owned(), line: self.number, source }
    }
}

/// Some network file systems have no locks; there a single appending write is still one piece.
fn lock(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|error| if error.kind() == ErrorKind::Unsupported { Ok(()) } else { Err(error) })
}

fn append(file: &File, path: &Path, trend: &Trend, line: &str) -> Result<Appended, StoreError> {
    // Bytes, not text: a crash may have cut a character in two.
    let history = read_bytes(file, path)?;
    if history.split(|byte| *byte == b'\n').any(|old| is_same_point(old, trend)) {
        return Ok(Appended::Already);
    }
    let whole_bytes = history.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let (whole, cut_off) = history.split_at(whole_bytes);
    if cut_off.is_empty() {
        add(file, path, &format!("{line}\n"), history.len() as u64)?;
        return Ok(Appended::Added);
    }
    if is_point(cut_off) {
        // Whole but for its end, as editors leave it.
        add(file, path, &format!("\n{line}\n"), history.len() as u64)?;
        return Ok(Appended::Added);
    }
    set_aside(path, cut_off)?;
    file.set_len(whole.len() as u64).map_err(StoreError::write(path))?;
    add(file, path, &format!("{line}\n"), whole.len() as u64)?;
    Ok(Appended::AddedAfterRepair)
}

fn is_point(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| document::read::<Trend>(line).is_ok())
}

/// The keys that identify a point.
#[derive(Deserialize)]
struct Point<'a> {
    #[serde(borrow)]
    suite: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    timestamp_utc: std::borrow::Cow<'a, str>,
}

fn is_same_point(line: &[u8], trend: &Trend) -> bool {
    serde_json::from_slice::<Point>(line)
        .is_ok_and(|old| old.suite == trend.suite && old.timestamp_utc == trend.timestamp_utc)
}

/// Adds text in one write; the rest of a failed one is cut off again.
fn add(mut file: &File, path: &Path, text: &str, bytes_before: u64) -> Result<(), StoreError> {
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_data());
    written.map_err(|error| {
        let _ = file.set_len(bytes_before);
        StoreError::write(path)(error)
    })
}

/// Keeps a cut-off line beside the history, where a person can look at it.
fn set_aside(path: &Path, cut_off: &[u8]) -> Result<(), StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".partial");
    let aside = PathBuf::from(name);
    let kept = || -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).create(true).open(&aside)?;
        file.write_all(&[cut_off, b"\n"].concat())?;
        file.sync_all()
    };
    kept().map_err(StoreError::write(&aside))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_io_failure_that_names_the_history() {
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let error = add(&full, Path::new("cpu.ndjson"), "line\n", 0).unwrap_err();
        assert!(!error.is_input());
        assert!(error.to_string().starts_with("cpu.ndjson: cannot be written: no space left"), "{error}");
    }
}
