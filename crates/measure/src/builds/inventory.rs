//! The inventory of a build: all files of its checkout with their hashes, taken when it was finished.
//!
//! A build whose files differ from their inventory is not used: what another revision's build or a measured program wrote into it must not
//! be measured as its own. Programs run as the user who owns the builds, so nothing keeps them from writing: a change is found afterwards.

use super::error::BuildError;
use super::same::list;
use crate::machine::hex;
use holdpoint_model::limits::clean_text;
use holdpoint_model::pattern::matches;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Folders that git and test runners rewrite on their own; no program runs from them.
const LEFT_OUT: [&str; 2] = [".git", ".pytest_cache"];
/// Bits of a file's mode that let anybody write.
const WRITABLE: u32 = 0o222;
/// The longest tick of a kernel's clock is 10 ms; files that a coarser one dates are read again each time.
const TICK_MS_MAX: u32 = 20;
/// Bits that make it a program.
const PROGRAM: u32 = 0o111;

/// The files of a finished build.
#[derive(Clone, Debug, PartialEq)]
pub struct Inventory {
    root: PathBuf,
    /// Without it the folder is no build.
    marker: PathBuf,
    /// By path within the checkout, in ASCII: the same for a path of any bytes.
    files: Arc<BTreeMap<String, FileRecord>>,
}

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileRecord {
    mode: u32,
    size_bytes: u64,
    inode: u64,
    /// When the system last saw it change, which no program can set: seconds and nanoseconds. Absent where it was changed while it was
    /// recorded, or too short before: the clock could not tell a further change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<(i64, i64)>,
    /// Whether it has other names: a tool's cache shares it, and other builds may change how many there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_linked: bool,
    /// Of its content, or of a link's target.
    sha256: String,
}

/// How the files differ from their inventory, by path.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Of other content or mode, or gone.
    pub(super) changed: Vec<String>,
    /// Written or replaced, but as they were: they may have been something else in between.
    pub(super) rewritten: Vec<String>,
    pub(super) added: Vec<PathBuf>,
}

impl Inventory {
    /// Takes the inventory of a build that is finished, and makes its programs read-only: against accidents only.
    pub(super) fn take(root: &Path, marker: &Path) -> io::Result<Self> {
        protect(root)?;
        let none = Self { root: root.to_owned(), marker: marker.to_owned(), files: Arc::default() };
        none.renewed()
    }

    /// The inventory as it is now. Files that have not changed are not read again.
    pub(super) fn renewed(&self) -> io::Result<Self> {
        let clock = next_tick(&self.root)?;
        let mut files = BTreeMap::new();
        for (path, found) in listed(&self.root)? {
            let name = name(&path);
            let known = self.files.get(&name).filter(|known| known.is_untouched(&found));
            let record = match known {
                Some(known) => known.clone(),
                None => FileRecord::of(&self.root.join(&path), &found, clock)?,
            };
            files.insert(name, record);
        }
        Ok(Self { files: Arc::new(files), ..self.clone() })
    }

    /// The same after a program of the build's own has run alone, such as its harness when it lists benchmarks.
    pub(super) fn taken_again(&self) -> io::Result<Self> {
        protect(&self.root)?;
        self.renewed()
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), BuildError> {
        Ok(holdpoint_store::write_json(path, &*self.files)?)
    }

    /// The inventory in a file, if there is one that can be read.
    pub(super) fn read(path: &Path, root: &Path, marker: &Path) -> Option<Self> {
        let files: BTreeMap<String, FileRecord> =
            serde_json::from_str(&holdpoint_store::read_text(path).ok()?).ok()?;
        Some(Self { root: root.to_owned(), marker: marker.to_owned(), files: Arc::new(files) })
    }

    /// Compares the files with the inventory. Only those that the system has seen change are read.
    pub(super) fn differences(&self) -> io::Result<Differences> {
        let mut found = Differences::default();
        let mut left: BTreeMap<&String, &FileRecord> = self.files.iter().collect();
        for (path, metadata) in listed(&self.root)? {
            let name = name(&path);
            let Some(record) = left.remove(&name) else {
                found.added.push(path);
                continue;
            };
            if record.is_untouched(&metadata) {
                continue;
            }
            let is_same = FileRecord::of(&self.root.join(&path), &metadata, (i64::MAX, 0))
                .is_ok_and(|now| now.sha256 == record.sha256 && (now.mode ^ record.mode) & !WRITABLE == 0);
            match is_same {
                false => found.changed.push(name),
                true if record.changed.is_none() || record.is_linked => {}
                true => found.rewritten.push(name),
            }
        }
        found.changed.extend(left.into_keys().cloned());
        Ok(found)
    }

    /// The first file that is not what it was, but for those that these patterns name; a file that cannot be read is not.
    pub(crate) fn touched(&self, ignored: &[String]) -> Option<String> {
        let found = match self.differences() {
            Ok(found) => found,
            Err(error) => return Some(format!("its folder ({error})")),
        };
        let mut names = found.changed.into_iter().chain(found.rewritten);
        names.find(|name| !ignored.iter().any(|pattern| matches(pattern, name))).map(|name| clean_text(&name))
    }

    /// The first file that is not what it was, or was not there.
    pub(super) fn disturbed(&self) -> Option<String> {
        self.touched(&[]).or_else(|| {
            let added = self.differences().ok()?.added.into_iter().next()?;
            Some(clean_text(&name(&added)))
        })
    }

    /// From now on it is no build: nothing will be measured from it again.
    pub(crate) fn discard(&self) {
        // Whoever looks for it next compares its files again.
        let _ = fs::remove_file(&self.marker);
    }
}

impl FileRecord {
    /// A file that was found like this. What changes at or after `clock` may change again unseen.
    fn of(path: &Path, found: &Metadata, clock: (i64, i64)) -> io::Result<Self> {
        let changed = (found.ctime(), found.ctime_nsec());
        Ok(Self {
            mode: found.mode(),
            size_bytes: found.len(),
            inode: found.ino(),
            changed: (changed < clock).then_some(changed),
            is_linked: found.is_file() && found.nlink() > 1,
            sha256: hash(path, found)?,
        })
    }

    fn is_untouched(&self, found: &Metadata) -> bool {
        let now = (found.mode(), found.len(), found.ino(), Some((found.ctime(), found.ctime_nsec())));
        (self.mode, self.size_bytes, self.inode, self.changed) == now
    }
}

fn hash(path: &Path, found: &Metadata) -> io::Result<String> {
    let mut hash = Sha256::new();
    if found.is_symlink() {
        hash.update(fs::read_link(path)?.as_os_str().as_bytes());
    } else if found.is_file() {
        let mut file = File::open(path)?;
        let mut bytes = vec![0; 1 << 16];
        loop {
            match file.read(&mut bytes)? {
                0 => break,
                count => hash.update(&bytes[..count]),
            }
        }
    }
    Ok(hex(&hash.finalize()))
}

fn name(path: &Path) -> String {
    path.as_os_str().as_bytes().escape_ascii().to_string()
}

fn listed(root: &Path) -> io::Result<impl Iterator<Item = (PathBuf, Metadata)>> {
    let is_left_out = |path: &Path| path.iter().any(|part| LEFT_OUT.iter().any(|name| part == *name));
    Ok(list(root)?.into_iter().filter(move |(path, _)| !is_left_out(path)))
}

/// The clock by which the file system dates changes, a tick after the last of them: it is coarse.
fn next_tick(root: &Path) -> io::Result<(i64, i64)> {
    let now = || -> io::Result<(i64, i64)> {
        let probe = tempfile::tempfile_in(root.parent().unwrap_or(root))?.metadata()?;
        Ok((probe.ctime(), probe.ctime_nsec()))
    };
    let (before, mut clock) = (now()?, now()?);
    for _ in 0..TICK_MS_MAX {
        if clock > before {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
        clock = now()?;
    }
    Ok(clock)
}

/// Makes programs read-only, but those that a tool's cache shares.
fn protect(root: &Path) -> io::Result<()> {
    set_modes(root, |mode| mode & !WRITABLE)
}

/// Lets the next build in a workshop write to them.
pub(super) fn unprotect(root: &Path) -> io::Result<()> {
    set_modes(root, |mode| mode | 0o200)
}

fn set_modes(root: &Path, wanted: impl Fn(u32) -> u32) -> io::Result<()> {
    for (path, found) in listed(root)? {
        let mode = found.permissions().mode();
        if found.is_file() && mode & PROGRAM != 0 && found.nlink() == 1 && wanted(mode) != mode {
            fs::set_permissions(root.join(path), Permissions::from_mode(wanted(mode)))?;
        }
    }
    Ok(())
}
