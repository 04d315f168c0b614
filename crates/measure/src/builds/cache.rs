//! The folder of a repository's builds: which exist, which are complete, and which are evicted. Knows nothing about git.
//!
//! Each checkout has a marker beside it. The holder of the cache's lock may change anything but a build whose marker is
//! locked: that one is in use, here or in another process.

use super::checkout::remove_folder;
use super::error::BuildError;
use super::inventory::Inventory;
use holdpoint_model::suite::BuildSpec;
use serde::{Deserialize, Serialize};
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

/// Most builds kept: those of a week's comparisons and searches.
pub const KEPT_MAX: usize = 12;
/// Most logs of failed builds kept; they are small beside a build.
const FAILED_LOGS_KEPT_MAX: usize = 100;
/// First half of the name of a workshop; as long as the digits of a commit in the names of other builds.
const WORKSHOP: &str = "workshop";
/// The file that names the repository of a folder of builds.
const REPOSITORY: &str = "repository";

#[derive(Debug)]
pub(super) struct Cache {
    pub(super) root: PathBuf,
}

/// Nobody else changes the cache while this is alive.
pub(super) struct CacheLock(#[expect(dead_code, reason = "held, not read")] File);

/// The files of one build.
pub(super) struct Entry {
    pub(super) dir: PathBuf,
    pub(super) marker: PathBuf,
    /// Hashes of what is in it.
    pub(super) inventory: PathBuf,
    /// Output of the build; a workshop's logs are those of the commits that it built.
    pub(super) log: PathBuf,
}

/// The text of a marker: everything that a build was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Marker {
    /// Absent in a workshop whose last build failed.
    pub(super) commit: Option<String>,
    pub(super) command: Option<Vec<String>>,
    #[serde(default)]
    pub(super) folder: String,
    /// Hash of the files that were taken from another commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) taken: Option<String>,
}

/// An order to build: a commit by a command in a folder of the repository.
#[derive(Clone, Copy)]
pub(super) struct Order<'a> {
    pub(super) commit: &'a str,
    pub(super) folder: &'a Path,
    pub(super) build: Option<&'a BuildSpec>,
    pub(super) taken: Option<&'a Taken>,
}

/// Files that are taken from another commit.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) commit: String,
    pub(super) paths: Vec<String>,
    /// Of paths and contents.
    pub(super) sha256: String,
}

impl Order<'_> {
    pub(super) fn marker(&self) -> Marker {
        let taken = self.taken.map(|taken| taken.sha256.clone());
        Marker { commit: Some(self.commit.to_owned()), taken, ..self.unbuilt() }
    }

    pub(super) fn short_commit(&self) -> &str {
        self.commit.get(..12).unwrap_or(self.commit)
    }

    /// The marker of a workshop for this in which nothing is built.
    pub(super) fn unbuilt(&self) -> Marker {
        let command = self.build.map(|build| build.command.clone());
        Marker { commit: None, command, folder: self.folder.to_string_lossy().into_owned(), taken: None }
    }

    /// Digits for command and folder: builds with the same ones can start from each other.
    fn digits(&self) -> String {
        let command = json!([self.build.map(|build| &build.command), self.folder.to_string_lossy()]);
        short_hash(command.to_string().as_bytes())
    }
}

impl Cache {
    /// Creates the folder if necessary, and waits until nobody else is changing it.
    pub(super) fn lock(&self, repository: &Path) -> Result<CacheLock, BuildError> {
        fs::create_dir_all(&self.root).map_err(at(&self.root))?;
        for (name, text) in [(".gitignore", "*"), (REPOSITORY, &*repository.to_string_lossy())] {
            let path = self.root.join(name);
            if !path.exists() {
                holdpoint_store::write_text(&path, &format!("{text}\n"))?;
            }
        }
        self.lock_existing()
    }

    pub(super) fn lock_existing(&self) -> Result<CacheLock, BuildError> {
        let path = self.root.join("lock");
        let file = File::options().create(true).append(true).open(&path).map_err(at(&path))?;
        file.lock().map_err(at(&path))?;
        Ok(CacheLock(file))
    }

    /// The repository whose builds these are.
    pub(super) fn repository(&self) -> Option<String> {
        fs::read_to_string(self.root.join(REPOSITORY)).ok().map(|text| text.trim_end().to_owned())
    }

    /// The files of a revision built from nothing. All names have the same length: a path's length can move the stack
    /// of what is measured.
    pub(super) fn entry(&self, order: &Order) -> Entry {
        let digits = match order.taken {
            Some(taken) => short_hash(format!("{} {}", order.digits(), taken.sha256).as_bytes()),
            None => order.digits(),
        };
        self.entry_named(&format!("{}-{digits}", order.commit.get(..16).unwrap_or(order.commit)))
    }

    /// The workshops of a command: folders that go from commit to commit, each build starting from the one before.
    /// Those used last come first, then a new one.
    pub(super) fn workshops(&self, order: &Order) -> Vec<Entry> {
        let log = self.entry(order).log;
        let digits = order.digits();
        let workshop = |number: usize| {
            let entry = self.entry_named(&format!("{WORKSHOP}{number:08x}-{digits}"));
            Entry { log: log.clone(), ..entry }
        };
        let mut all: Vec<Entry> = (1..=KEPT_MAX).map(workshop).collect();
        all.sort_by_cached_key(|entry| Reverse(modified(&entry.marker)));
        all
    }

    /// The files of the build in a folder.
    pub(super) fn entry_at(&self, dir: &Path) -> Entry {
        self.entry_named(&dir.file_name().unwrap_or_default().to_string_lossy())
    }

    fn entry_named(&self, name: &str) -> Entry {
        let beside = |extension: &str| self.root.join(format!("{name}.{extension}"));
        Entry {
            dir: self.root.join(name),
            log: beside("log"),
            marker: beside("built"),
            inventory: beside("files"),
        }
    }

    /// Removes leftovers of builds that failed or were killed: nobody else is building while the lock is held.
    pub(super) fn sweep(&self) {
        let left = |entry: &Entry| !entry.marker.exists();
        for entry in self.entries("").filter(left) {
            // Building checks again that its folder is gone.
            let _ = remove_folder(&entry.dir);
        }
        for entry in self.entries(".files").filter(left) {
            let _ = fs::remove_file(&entry.inventory);
        }
        let mut logs: Vec<_> = self.entries(".log").filter(left).map(|entry| entry.log).collect();
        logs.sort_by_cached_key(|log| Reverse(modified(log)));
        for log in logs.iter().skip(FAILED_LOGS_KEPT_MAX) {
            let _ = fs::remove_file(log);
        }
    }

    /// Removes the least recently used builds over [`KEPT_MAX`], except those in use. One that cannot be removed is
    /// left for the next time: the requested build is there.
    pub(super) fn evict(&self) {
        let mut entries: Vec<Entry> = self.complete().collect();
        entries.sort_by_cached_key(|entry| modified(&entry.marker));
        let surplus = entries.len().saturating_sub(KEPT_MAX);
        for entry in entries.iter().filter(|entry| !entry.is_in_use()).take(surplus) {
            let _ = entry.remove();
        }
    }

    /// Builds that are complete, and workshops.
    pub(super) fn complete(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries(".built")
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
    /// Commit and command built in it. Names are truncated hashes, so the marker has the full text.
    pub(super) fn read_marker(&self) -> Option<Marker> {
        serde_json::from_str(&fs::read_to_string(&self.marker).ok()?).ok()
    }

    /// Takes its inventory, then marks it. The marker is written whole or not at all.
    pub(super) fn mark(&self, marker: &Marker) -> Result<Inventory, BuildError> {
        let inventory = Inventory::take(&self.dir, &self.marker).map_err(at(&self.dir))?;
        inventory.write(&self.inventory)?;
        holdpoint_store::write_json(&self.marker, marker)?;
        Ok(inventory)
    }

    pub(super) fn read_inventory(&self) -> Option<Inventory> {
        Inventory::read(&self.inventory, &self.dir, &self.marker)
    }

    /// From now on it is no build.
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

    pub(super) fn is_in_use(&self) -> bool {
        File::open(&self.marker).is_ok_and(|file| file.try_lock().is_err())
    }

    pub(super) fn last_used(&self) -> Option<SystemTime> {
        modified(&self.marker)
    }

    /// Removes its files. The marker goes first: half a checkout must not be taken for a build.
    pub(super) fn remove(&self) -> Result<(), BuildError> {
        self.unmark()?;
        remove_folder(&self.dir).map_err(at(&self.dir))?;
        let _ = fs::remove_file(&self.inventory);
        // A log without its build is small, and swept in time.
        let _ = fs::remove_file(&self.log);
        Ok(())
    }
}

fn is_name(name: &str) -> bool {
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    name.split_once('-').is_some_and(|(place, command)| {
        let digits = place.strip_prefix(WORKSHOP).unwrap_or(place);
        place.len() == 16 && command.len() == 8 && is_hex(digits) && is_hex(command)
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

pub(super) fn at(path: &Path) -> impl FnOnce(io::Error) -> BuildError + '_ {
    |source| BuildError::Io { path: path.to_owned(), source }
}
