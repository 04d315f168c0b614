//! Temporary files and folders. Each is locked by the process that made it for as long as it is used, and the kernel drops the
//! lock when that process dies: whatever has our name and no lock was left behind by a crash, and is swept.
//!
//! A process number in the name would not do: it says nothing in another container that shares the folder.

use crate::error::StoreError;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tempfile::{Builder, NamedTempFile, TempDir};

/// Prefix of everything temporary.
const PREFIX: &str = ".holdpoint-";
/// Its suffix.
const SUFFIX: &str = ".tmp";
/// Most names of a folder that are looked at: a tenth of a second on a slow disk.
const NAMES_MAX: usize = 50_000;
/// Attempts at a name that no sweep takes away between its making and its lock; a second one hardly ever happens.
const ATTEMPTS_MAX: usize = 8;

#[derive(Debug)]
pub struct Scratch {
    dir: TempDir,
    // Dropped last: until the folder is gone, nobody else removes it.
    _lock: File,
}

impl Scratch {
    /// A new folder among the system's temporary files.
    pub fn new() -> Result<Self, StoreError> {
        Self::new_in(&std::env::temp_dir())
    }

    /// A new folder in this one.
    pub fn new_in(folder: &Path) -> Result<Self, StoreError> {
        sweep_once(folder);
        let made = hold_new(|| {
            let dir = builder().tempdir_in(folder)?;
            let file = match File::open(dir.path()) {
                // Swept before it could be opened, let alone locked.
                Err(error) if error.kind() == ErrorKind::NotFound && folder.exists() => return Ok(None),
                opened => opened?,
            };
            Ok(is_held(&file, dir.path()).then_some(Self { dir, _lock: file }))
        });
        made.map_err(StoreError::write(folder))
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// An empty file in a folder, which is swept first.
pub(crate) fn new_file(folder: &Path, mode: Option<Permissions>) -> io::Result<NamedTempFile> {
    sweep_once(folder);
    sweep_once(&std::env::temp_dir());
    hold_new(|| {
        let mut builder = builder();
        if let Some(mode) = &mode {
            builder.permissions(mode.clone());
        }
        let file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
        Ok(is_held(file.as_file(), file.path()).then_some(file))
    })
}

fn builder() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    builder
}

/// Makes something until nobody swept it before it was locked.
fn hold_new<T>(make: impl Fn() -> io::Result<Option<T>>) -> io::Result<T> {
    for _ in 0..ATTEMPTS_MAX {
        if let Some(made) = make()? {
            return Ok(made);
        }
    }
    Err(io::Error::other(
        "temporary files are removed as soon as they are made; what else cleans this folder?",
    ))
}

/// Locks a new file, and returns whether it is still there.
fn is_held(file: &File, path: &Path) -> bool {
    // Without locks, as on some network file systems, nothing is ever swept either.
    file.lock().is_err() || is_at(file, path)
}

/// Whether an open file or folder is the one that has this path now.
pub(crate) fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().is_ok_and(|open| fs::symlink_metadata(path).is_ok_and(|there| same(open, there)))
}

/// Sweeps a folder the first time that this process uses it.
fn sweep_once(folder: &Path) {
    static SWEPT: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let is_new = SWEPT.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.to_owned());
    if is_new {
        sweep(folder);
    }
}

/// Removes the temporary files that dead processes of this user left in a folder. Failures are left for the next time.
pub fn sweep(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_MAX);
    for entry in entries.filter(|entry| is_our_name(&entry.file_name())) {
        let _ = remove_abandoned(&entry.path());
    }
}

fn is_our_name(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX))
}

fn remove_abandoned(path: &Path) -> io::Result<()> {
    let metadata = path.symlink_metadata()?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if !is_ours || !(metadata.is_file() || metadata.is_dir()) {
        return Ok(());
    }
    let file = File::open(path)?;
    // Locked while it is removed: a process that has just made it waits, and sees that it is gone.
    file.try_lock().map_err(|_| io::Error::from(ErrorKind::WouldBlock))?;
    match is_at(&file, path) {
        false => Ok(()),
        true if metadata.is_dir() => fs::remove_dir_all(path),
        true => fs::remove_file(path),
    }
}
