//! Writing: beside the old file first, then renamed over it. A reader sees the old content or the new, never a part.
//!
//! Folders above a file are created. After an error the old content is still there.

use crate::error::StoreError;
use crate::temporary;
use holdpoint_model::json;
use serde::Serialize;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of new files, before the user's mask.
const USUAL_MODE: u32 = 0o666;

/// Writes a value as JSON.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), StoreError> {
    let text =
        json::to_pretty(value).map_err(|source| StoreError::Unwritable { path: path.to_owned(), source })?;
    write_text(path, &text)
}

pub fn write_text(path: &Path, text: &str) -> Result<(), StoreError> {
    write_bytes(path, text.as_bytes()).map_err(StoreError::write(path))
}

pub fn write_binary(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_bytes(path, bytes).map_err(StoreError::write(path))
}

/// Writes a text to a new file with this mode: a key is at no moment readable by others, never there in part, and never
/// overwritten.
pub fn write_new(path: &Path, text: &str, mode: u32) -> Result<(), StoreError> {
    let folder = folder_of(path);
    let write = || {
        fs::create_dir_all(&folder).map_err(|error| folder_error(&folder, error))?;
        let file = temporary::new_file(&folder, Some(Permissions::from_mode(mode)))?;
        fill(file.as_file(), text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist_noclobber(path).map(drop).map_err(|error| error.error)
    };
    write().map_err(StoreError::write(path))
}

/// Whether a file could be written there, tried before the work that would fill it. Folders above it are
/// created; the file itself is neither created nor changed.
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
    let file = temporary::new_file(folder, Some(Permissions::from_mode(USUAL_MODE)))?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    Ok(file)
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
