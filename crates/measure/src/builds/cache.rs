//! The folder of builds: which there are, which are whole, which one goes when there are too many. Knows nothing
//! of git.
//!
//! Beside each worktree lie its marker and its log. Whoever holds the cache's lock may change anything but a build
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

/// Eight digits for something longer.
pub(super) fn name_of(text: &[u8]) -> String {
    Sha256::digest(text).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

/// Most builds kept: the two sides of a comparison and the ten steps of a search among a thousand commits.
pub const KEPT_MAX: usize = 12;
/// Most logs kept of builds that failed; they are small beside a build.
const FAILED_LOGS_KEPT_MAX: usize = 100;
/// What stands after a name: the build is whole.
const MARKER: &str = "built";
/// What stands after a name: what the build printed.
const LOG: &str = "log";

/// The folder.
#[derive(Debug)]
pub(super) struct Cache {
    pub(super) root: PathBuf,
}

/// Nobody else changes the cache while this lives.
pub(super) struct CacheLock(#[expect(dead_code, reason = "held, not read")] File);

/// One build's place in the cache.
pub(super) struct Entry {
    pub(super) dir: PathBuf,
    pub(super) log: PathBuf,
    pub(super) marker: PathBuf,
}

impl Cache {
    /// Makes the folder where there is none, and waits until nobody else is changing it.
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

    /// The place of a revision built by a command. All names are of one length: a path's length can move the stack
    /// of what is measured.
    pub(super) fn entry(&self, commit: &str, folder: &Path, build: Option<&BuildSpec>) -> Entry {
        let command = json!([build.map(|build| &build.command), folder.to_string_lossy()]).to_string();
        let digits = name_of(command.as_bytes());
        self.named(&format!("{}-{digits}", commit.get(..16).unwrap_or(commit)))
    }

    fn named(&self, name: &str) -> Entry {
        let beside = |extension: &str| self.root.join(format!("{name}.{extension}"));
        Entry { dir: self.root.join(name), log: beside(LOG), marker: beside(MARKER) }
    }

    /// Removes what builds that failed or were killed have left: nobody else is building while the lock is held.
    pub(super) fn sweep(&self, remove: impl Fn(&Path) -> io::Result<()>) {
        let left = |entry: &Entry| !entry.marker.exists();
        for entry in self.entries("").filter(left) {
            // The one that is to be built next is looked at again.
            let _ = remove(&entry.dir);
        }
        let mut logs: Vec<_> = self.entries(".log").filter(left).map(|entry| entry.log).collect();
        logs.sort_by_cached_key(|log| Reverse(modified(log)));
        for log in logs.iter().skip(FAILED_LOGS_KEPT_MAX) {
            let _ = fs::remove_file(log);
        }
    }

    /// Removes the least recently used builds over [`KEPT_MAX`], save those in use. What cannot be removed is left
    /// for the next time: the build that was asked for is there.
    pub(super) fn evict(&self, remove: impl Fn(&Path) -> io::Result<()>) {
        let mut entries: Vec<Entry> = self.entries(".built").collect();
        entries.sort_by_cached_key(|entry| modified(&entry.marker));
        let surplus = entries.len().saturating_sub(KEPT_MAX);
        for entry in entries.iter().filter(|entry| !entry.is_in_use()).take(surplus) {
            // The marker goes first: half a worktree must not pass for a build.
            if fs::remove_file(&entry.marker).is_ok() {
                let _ = fs::remove_file(&entry.log);
                let _ = remove(&entry.dir);
            }
        }
    }

    /// The builds of which there is a file with that suffix, or, with none, a folder.
    fn entries<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = Entry> + 'a {
        let files = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = files.filter_map(move |file| {
            file.file_name().to_str()?.strip_suffix(suffix).filter(|name| is_name(name)).map(str::to_owned)
        });
        names.map(|name| self.named(&name))
    }
}

impl Entry {
    /// Whether it was built to the end, from just this. Names are cut hashes, so the marker has it in full.
    pub(super) fn is_marked(&self, commit: &str, build: Option<&BuildSpec>) -> bool {
        fs::read_to_string(&self.marker).is_ok_and(|text| text == label(commit, build))
    }

    /// Says that it is whole: the marker is there with all its text, or not at all.
    pub(super) fn mark(&self, commit: &str, build: Option<&BuildSpec>) -> Result<(), BuildError> {
        Ok(holdpoint_store::write_text(&self.marker, &label(commit, build))?)
    }

    /// Says that it is not whole.
    pub(super) fn unmark(&self) -> Result<(), BuildError> {
        match fs::remove_file(&self.marker) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(at(&self.marker)(error)),
            _ => Ok(()),
        }
    }

    /// Notes that it is used now. It is not evicted, here or by another process, while the file lives.
    pub(super) fn hold(&self) -> Result<File, BuildError> {
        let hold = || {
            let file = File::options().append(true).open(&self.marker)?;
            file.lock_shared()?;
            file.set_modified(SystemTime::now())?;
            Ok(file)
        };
        hold().map_err(at(&self.marker))
    }

    /// One whose marker cannot be locked is left alone.
    fn is_in_use(&self) -> bool {
        File::open(&self.marker).is_ok_and(|file| file.try_lock().is_err())
    }
}

/// What a marker says: all that the build was made from.
fn label(commit: &str, build: Option<&BuildSpec>) -> String {
    format!("{}\n", json!({ "commit": commit, "command": build.map(|build| &build.command) }))
}

/// Whether a file of the cache is named as a build is: sixteen digits, a dash, eight digits.
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
