//! The inventory of a build: all files of its checkout with their hashes, and all folders, taken when it was finished.
//!
//! A build whose files differ from their inventory is not used: what another revision's build or a measured program wrote into it must not
//! be measured as its own. Programs run as the user who owns the builds, so nothing keeps them from writing: a change is found afterwards.

use super::error::BuildError;
use super::same::{Tree, walk};
use crate::machine::hex;
use holdpoint_model::limits::clean_text;
use holdpoint_model::pattern::takes_path;
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
    records: Arc<Records>,
}

/// By path within the checkout, in ASCII: the same for a path of any bytes.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
struct Records {
    files: BTreeMap<String, FileRecord>,
    folders: BTreeMap<String, FolderRecord>,
}

/// Seconds and nanoseconds.
type Time = (i64, i64);

/// A file as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileRecord {
    mode: u32,
    size_bytes: u64,
    inode: u64,
    /// When the system last saw it change, which no program can set. Absent where it was changed while it was
    /// recorded, or too short before: the clock could not tell a further change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Time>,
    /// Whether it has names outside of the checkout: a tool's cache shares it, and other builds may change how many there are.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_linked: bool,
    /// Of its content, or of a link's target.
    sha256: String,
}

/// A folder as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FolderRecord {
    inode: u64,
    /// Absent as for a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<Time>,
}

/// How the files differ from their inventory, by path.
#[derive(Debug, Default)]
pub(super) struct Differences {
    /// Of other content or mode, or gone.
    pub(super) changed: Vec<String>,
    /// Written, replaced or moved, but as they were: they may have been something else in between.
    rewritten: Vec<String>,
    added: Vec<PathBuf>,
    /// Whether any file had to be read.
    has_read: bool,
}

impl Differences {
    /// The first file that may have been another, but for those that these patterns name.
    fn first_touched(&self, ignored: &[String]) -> Option<String> {
        let mut names = self.changed.iter().chain(&self.rewritten);
        names
            .find(|name| !ignored.iter().any(|glob| takes_path(glob, Path::new(name))))
            .map(|name| clean_text(name))
    }

    fn is_none(&self) -> bool {
        let Self { changed, rewritten, added, has_read } = self;
        changed.is_empty() && rewritten.is_empty() && added.is_empty() && !has_read
    }
}

impl Inventory {
    /// Takes the inventory of a build that is finished, and makes its programs read-only: against accidents only.
    pub(super) fn take(root: &Path, marker: &Path) -> io::Result<Self> {
        Self { root: root.to_owned(), marker: marker.to_owned(), records: Arc::default() }.taken_again()
    }

    /// The same after a program of the build's own has run alone, such as its harness when it lists benchmarks. Files that have not changed
    /// are not read again.
    pub(super) fn taken_again(&self) -> io::Result<Self> {
        let mut tree = listed(&self.root)?;
        set_modes(&self.root, &mut tree, |mode| mode & !WRITABLE)?;
        self.renewed(&tree)
    }

    /// The inventory after all that was added is removed.
    pub(super) fn cleaned(&self, found: &Differences) -> io::Result<Self> {
        if found.is_none() {
            return Ok(self.clone());
        }
        found.added.iter().try_for_each(|path| fs::remove_file(self.root.join(path)))?;
        self.renewed(&listed(&self.root)?)
    }

    fn renewed(&self, tree: &Tree) -> io::Result<Self> {
        let clock = next_tick(&self.root)?;
        let links = Links::of(tree);
        let mut records = Records::default();
        for (path, found) in &tree.files {
            let name = name(path);
            let known = self.records.files.get(&name).filter(|known| known.is_untouched(found));
            let record = match known {
                Some(known) => known.clone(),
                None => FileRecord::of(&self.root.join(path), found, clock, links.are_outside(found))?,
            };
            records.files.insert(name, record);
        }
        let folders = tree.folders.iter();
        records.folders = folders.map(|(path, found)| (name(path), FolderRecord::of(found, clock))).collect();
        Ok(Self { records: Arc::new(records), ..self.clone() })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn write(&self, path: &Path) -> Result<(), BuildError> {
        Ok(holdpoint_store::write_json(path, &*self.records)?)
    }

    /// The inventory in a file, if there is one that can be read.
    pub(super) fn read(path: &Path, root: &Path, marker: &Path) -> Option<Self> {
        let records: Records = serde_json::from_str(&holdpoint_store::read_text(path).ok()?).ok()?;
        Some(Self { root: root.to_owned(), marker: marker.to_owned(), records: Arc::new(records) })
    }

    /// Compares the files with the inventory. Only those that the system has seen change are read.
    pub(super) fn differences(&self) -> io::Result<Differences> {
        let mut found = Differences::default();
        let mut left: BTreeMap<&String, &FileRecord> = self.records.files.iter().collect();
        let tree = listed(&self.root)?;
        for (path, metadata) in tree.files {
            let name = name(&path);
            let Some(record) = left.remove(&name) else {
                found.added.push(path);
                continue;
            };
            if record.is_untouched(&metadata) {
                continue;
            }
            found.has_read = true;
            let is_same_mode = (metadata.mode() ^ record.mode) & !WRITABLE == 0;
            let is_same = is_same_mode
                && hash(&self.root.join(&path), &metadata).is_ok_and(|sha256| sha256 == record.sha256);
            match is_same {
                false => found.changed.push(name),
                true if record.changed.is_none() || record.is_linked => {}
                true => found.rewritten.push(name),
            }
        }
        found.changed.extend(left.into_keys().cloned());
        for (path, metadata) in tree.folders {
            let name = name(&path);
            if self.records.folders.get(&name).is_some_and(|record| record.was_moved(&metadata)) {
                found.rewritten.push(if name.is_empty() { ".".to_owned() } else { name });
            }
        }
        Ok(found)
    }

    /// The first file that is not what it was, but for those that these patterns name; a file that cannot be read is not.
    pub(crate) fn touched(&self, ignored: &[String]) -> Option<String> {
        match self.differences() {
            Ok(found) => found.first_touched(ignored),
            Err(error) => Some(format!("its folder ({error})")),
        }
    }

    /// The first file that is not what it was, or was not there.
    pub(super) fn disturbed(&self) -> Option<String> {
        match self.differences() {
            Ok(found) => {
                let added = || Some(clean_text(&name(found.added.first()?)));
                found.first_touched(&[]).or_else(added)
            }
            Err(error) => Some(format!("its folder ({error})")),
        }
    }

    /// From now on it is no build: nothing will be measured from it again.
    pub(crate) fn discard(&self) {
        // Whoever looks for it next compares its files again.
        let _ = fs::remove_file(&self.marker);
    }
}

impl FileRecord {
    /// A file that was found like this. What changes at or after `clock` may change again unseen.
    fn of(path: &Path, found: &Metadata, clock: Time, is_linked: bool) -> io::Result<Self> {
        let changed = change_time(found);
        Ok(Self {
            mode: found.mode(),
            size_bytes: found.len(),
            inode: found.ino(),
            changed: (changed < clock).then_some(changed),
            is_linked,
            sha256: hash(path, found)?,
        })
    }

    fn is_untouched(&self, found: &Metadata) -> bool {
        let now = (found.mode(), found.len(), found.ino(), Some(change_time(found)));
        (self.mode, self.size_bytes, self.inode, self.changed) == now
    }
}

impl FolderRecord {
    fn of(found: &Metadata, clock: Time) -> Self {
        let changed = change_time(found);
        Self { inode: found.ino(), changed: (changed < clock).then_some(changed) }
    }

    /// Whether this very folder was moved last: away and back again, for example, with another one in its place in between. A file that is
    /// made or removed in it changes both times at once. Another folder in its place has other files in it.
    fn was_moved(&self, found: &Metadata) -> bool {
        found.ino() == self.inode
            && self.changed.is_some_and(|changed| changed != change_time(found))
            && change_time(found) != (found.mtime(), found.mtime_nsec())
    }
}

fn change_time(found: &Metadata) -> Time {
    (found.ctime(), found.ctime_nsec())
}

/// How many names files with several of them have in a checkout.
struct Links(BTreeMap<(u64, u64), u64>);

impl Links {
    fn of(tree: &Tree) -> Self {
        let mut names = BTreeMap::new();
        for found in tree.files.values().filter(|found| found.nlink() > 1) {
            *names.entry((found.dev(), found.ino())).or_default() += 1;
        }
        Self(names)
    }

    /// Whether a file has names outside of the checkout.
    fn are_outside(&self, found: &Metadata) -> bool {
        found.is_file() && found.nlink() > self.0.get(&(found.dev(), found.ino())).copied().unwrap_or(1)
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

fn listed(root: &Path) -> io::Result<Tree> {
    walk(root, &LEFT_OUT)
}

/// The clock by which the file system dates changes, a tick after the last of them: it is coarse.
fn next_tick(root: &Path) -> io::Result<Time> {
    let now = || -> io::Result<Time> {
        let probe = tempfile::tempfile_in(root.parent().unwrap_or(root))?.metadata()?;
        Ok(change_time(&probe))
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

/// Lets the next build in a workshop write to programs.
pub(super) fn unprotect(root: &Path) -> io::Result<()> {
    set_modes(root, &mut listed(root)?, |mode| mode | 0o200)
}

/// Changes the modes of programs, but for those that a tool's cache shares.
fn set_modes(root: &Path, tree: &mut Tree, wanted: impl Fn(u32) -> u32) -> io::Result<()> {
    let links = Links::of(tree);
    let mut has_links = false;
    for (path, found) in &mut tree.files {
        let mode = found.permissions().mode();
        if found.is_file() && mode & PROGRAM != 0 && !links.are_outside(found) && wanted(mode) != mode {
            fs::set_permissions(root.join(path), Permissions::from_mode(wanted(mode)))?;
            has_links |= found.nlink() > 1;
            *found = root.join(path).symlink_metadata()?;
        }
    }
    if has_links {
        // The other names of a file have its new mode too.
        *tree = listed(root)?;
    }
    Ok(())
}
