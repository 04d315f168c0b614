//! The folder of builds: which exist, which are complete, and which are evicted. Knows nothing about git.
//!
//! Each worktree has a marker and a log beside it. The holder of the cache's lock may change anything but a build
//! whose marker is locked: that one is in use, here or in another process.

use super::error::BuildError;
use holdpoint_model::suite::BuildSpec;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A short name for longer text: eight hexadecimal digits.
pub(super) fn short_hash(text: &[u8]) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Most builds kept: the two sides of a comparison and the ten steps of a search among a thousand commits.
pub const KEPT_MAX: usize = 12;
/// Most logs of failed builds kept; they are small beside a build.
const FAILED_LOGS_KEPT_MAX: usize = 100;
/// File extension of the marker that a build is complete.
const MARKER: &str = "built";
const LOG: &str = "log";

#[derive(Debug)]
pub(super) struct Cache {
    pub(super) root: PathBuf,
}

/// Nobody else changes the cache while this is alive.
pub(super) struct CacheLock(#[expect(dead_code, reason = "held, not read")] File);

/// The files of one build.
pub(super) struct Entry {
    pub(super) dir: PathBuf,
    pub(super) log: PathBuf,
    pub(super) marker: PathBuf,
}

impl Cache {
    /// Creates the folder if necessary, and waits until nobody else is changing it.
    pub(super) fn lock(&self) -> Result<CacheLock, BuildError> {
        fs::create_dir_all(&self.root).map_err(at(&self.root))?;
        let ignore = self.root.join(".gitignore");
        if !ignore.exists() {
            holdpoint_store::write_text(&ignore, "*\n")?;
        }
        let path = self.root.join("lock");
        let file = File::options().create(true).append(true).open(&path).map_err(at(&path))?;
        file.lock().map_err(at(&path))?;
        Ok(CacheLock(file))
    }

    /// The files of a revision built by a command. All names have the same length: a path's length can move the stack
    /// of what is measured.
    pub(super) fn entry(&self, commit: &str, folder: &Path, build: Option<&BuildSpec>) -> Entry {
        let command = json!([build.map(|build| &build.command), folder.to_string_lossy()]).to_string();
        let digits = short_hash(command.as_bytes());
        self.entry_named(&format!("{}-{digits}", commit.get(..16).unwrap_or(commit)))
    }

    fn entry_named(&self, name: &str) -> Entry {
        let beside = |extension: &str| self.root.join(format!("{name}.{extension}"));
        Entry { dir: self.root.join(name), log: beside(LOG), marker: beside(MARKER) }
    }

    /// Removes leftovers of builds that failed or were killed: nobody else is building while the lock is held.
    pub(super) fn sweep(&self, remove: impl Fn(&Path) -> io::Result<()>) {
        let left = |entry: &Entry| !entry.marker.exists();
        for entry in self.entries("").filter(left) {
            // Building checks again that its folder is gone.
            let _ = remove(&entry.dir);
        }
        let mut logs: Vec<_> = self.entries(".log").filter(left).map(|entry| entry.log).collect();
        logs.sort_by_cached_key(|log| Reverse(modified(log)));
        for log in logs.iter().skip(FAILED_LOGS_KEPT_MAX) {
            let _ = fs::remove_file(log);
        }
    }

    /// Removes the least recently used builds over [`KEPT_MAX`], except those in use. One that cannot be removed is
    /// left for the next time: the requested build is there.
    pub(super) fn evict(&self, remove: impl Fn(&Path) -> io::Result<()>) {
        let mut entries: Vec<Entry> = self.entries(".built").collect();
        entries.sort_by_cached_key(|entry| modified(&entry.marker));
        let surplus = entries.len().saturating_sub(KEPT_MAX);
        for entry in entries.iter().filter(|entry| !entry.is_in_use()).take(surplus) {
            // The marker goes first: half a worktree must not be taken for a build.
            if fs::remove_file(&entry.marker).is_ok() {
                let _ = fs::remove_file(&entry.log);
                let _ = remove(&entry.dir);
            }
        }
    }

    /// Builds that have a file with this suffix or, if it is empty, a folder.
    fn entries<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = Entry> + 'a {
        let files = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = files.filter_map(move |file| {
            file.file_name().to_str()?.strip_suffix(suffix).filter(|name| is_name(name)).map(str::to_owned)
        });
        names.map(|name| self.entry_named(&name))
    }
}

impl Entry {
    /// Whether it was built completely, from exactly this. Names are truncated hashes, so the marker has the full text.
    pub(super) fn is_marked(&self, commit: &str, build: Option<&BuildSpec>) -> bool {
        fs::read_to_string(&self.marker).is_ok_and(|text| text == label(commit, build))
    }

    /// Marks it as complete. The marker is written whole or not at all.
    pub(super) fn mark(&self, commit: &str, build: Option<&BuildSpec>) -> Result<(), BuildError> {
        Ok(holdpoint_store::write_text(&self.marker, &label(commit, build))?)
    }

    pub(super) fn unmark(&self) -> Result<(), BuildError> {
        match fs::remove_file(&self.marker) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(at(&self.marker)(error)),
            _ => Ok(()),
        }
    }

    /// Marks it as used now. Nobody evicts it while the returned file is open.
    pub(super) fn mark_in_use(&self) -> Result<File, BuildError> {
        let lock = || {
            let file = File::options().append(true).open(&self.marker)?;
            file.lock_shared()?;
            file.set_modified(SystemTime::now())?;
            Ok(file)
        };
        lock().map_err(at(&self.marker))
    }

    fn is_in_use(&self) -> bool {
        File::open(&self.marker).is_ok_and(|file| file.try_lock().is_err())
    }
}

/// The marker's text: everything that the build was made from.
fn label(commit: &str, build: Option<&BuildSpec>) -> String {
    format!("{}\n", json!({ "commit": commit, "command": build.map(|build| &build.command) }))
}

fn is_name(name: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(commit, command)| {
        commit.len() == 16 && command.len() == 8 && is_hex(commit) && is_hex(command)
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> BuildError + '_ {
    |source| BuildError::Io { path: path.to_owned(), source }
}
