//! Writing: beside the old file first, over it last. A reader sees the old content or the new, never a part.

use crate::error::StoreError;
use holdpoint_model::json;
use serde::Serialize;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes a value as JSON, creating the folders above it.
///
/// # Errors
/// When the value has no JSON form or the file cannot be written; what was there before still is.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    let text =
        json::to_pretty(value).map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    write_text(path, &text)
}

/// Writes a text, creating the folders above it.
///
/// # Errors
/// When the file cannot be written; what was there before still is.
pub fn write_text(path: &Path, text: &str) -> Result<(), StoreError> {
    write_bytes(path, text.as_bytes()).map_err(StoreError::write(path))
}

/// Writes any bytes, creating the folders above them.
///
/// # Errors
/// When the file cannot be written; what was there before still is.
pub fn write_binary(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_bytes(path, bytes).map_err(StoreError::write(path))
}

/// Writes a text to a file that must not be there yet, which only `mode` lets others read: no moment exists in which a key could be
/// read by somebody else, and none is ever overwritten.
///
/// # Errors
/// When the file is there already, or cannot be written; then it is not left behind in part.
#[cfg(unix)]
pub fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), StoreError> {
    use std::os::unix::fs::OpenOptionsExt;
    let folder = folder_of(path);
    fs::create_dir_all(&folder)
        .map_err(|error| folder_error(&folder, error))
        .map_err(StoreError::write(path))?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let file = file.map_err(StoreError::write(path))?;
    fill(&file, text.as_bytes()).and_then(|()| file.sync_all()).map_err(|error| {
        let _ = fs::remove_file(path);
        StoreError::write(path)(error)
    })
}

/// Whether a file could be written there, tried before the work that would fill it. Folders above it are
/// created; the file itself is neither created nor changed.
///
/// # Errors
/// When it could not.
pub fn check_writable(path: &Path) -> Result<(), StoreError> {
    try_writable(path).map_err(StoreError::write(path))
}

fn try_writable(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(old) if old.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        Ok(old) if !old.is_file() => Ok(()),
        _ => {
            let folder = folder_of(path);
            fs::create_dir_all(&folder).map_err(|error| folder_error(&folder, error))?;
            new_file(&folder, None).map(drop)
        }
    }
}

/// Removes a file; one that is not there is removed already.
///
/// # Errors
/// When it is there and stays.
pub fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(StoreError::write(path)(error)),
        _ => Ok(()),
    }
}

fn write_bytes(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link stays a link: the file behind it is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(old) if old.is_dir() => Err(io::Error::from(ErrorKind::IsADirectory)),
        // /dev/stdout, /dev/null, a pipe: nothing to keep whole, and renaming over one would destroy it.
        Ok(old) if !old.is_file() => fill(&OpenOptions::new().write(true).open(&target)?, bytes),
        Ok(old) => replace(&target, bytes, Some(&old)),
        Err(_) => replace(&target, bytes, None),
    }
}

fn replace(target: &Path, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let folder = folder_of(target);
    fs::create_dir_all(&folder).map_err(|error| folder_error(&folder, error))?;
    // Dropped on every way out but the last, which removes it.
    let temporary = new_file(&folder, old)?;
    fill(temporary.as_file(), bytes)?;
    temporary.as_file().sync_all()?;
    temporary.persist(target).map_err(|error| error.error)?;
    // The new content is in place whether or not the folder's entry has reached the disk yet; to report
    // a failure now would claim that the old file is still there.
    let _ = File::open(&folder).and_then(|folder| folder.sync_all());
    Ok(())
}

/// Writes all bytes to an open file.
fn fill(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.flush()
}

pub(crate) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// A folder that cannot be made because a file has its name or that of one above it.
pub(crate) fn folder_error(folder: &Path, error: io::Error) -> io::Error {
    let is_blocked = folder.ancestors().any(Path::is_file);
    if is_blocked { io::Error::from(ErrorKind::NotADirectory) } else { error }
}

/// An empty file beside the target, with the old file's mode or the usual one: a temporary file's own
/// would hide a report from everyone but its owner.
fn new_file(folder: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".holdpoint-").suffix(".tmp");
    if let Some(mode) = usual_mode() {
        builder.permissions(mode);
    }
    let file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(file)
}

/// What any new file gets, before the user's mask.
#[cfg(unix)]
fn usual_mode() -> Option<Permissions> {
    Some(std::os::unix::fs::PermissionsExt::from_mode(0o666))
}

/// Elsewhere the folder decides.
#[cfg(not(unix))]
fn usual_mode() -> Option<Permissions> {
    None
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_of_the_low_level_writer() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        assert_eq!(fill(&full, b"text").unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
