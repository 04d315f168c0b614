//! Revisions of the user's repository, each checked out into a worktree of its own and built there.
//!
//! Builds are kept in a cache outside the repository, by revision and build command: tools that look for their settings in
//! the folders above would find those of the work tree there. The work tree of the user, the index and
//! the branches are never touched. Nothing here measures.

mod cache;
mod command;
mod error;
mod git;

pub use cache::KEPT_MAX;
pub use command::resolve_program;
pub(crate) use command::{End, watch};
pub use error::BuildError;
pub use git::Commit;

use cache::{Cache, Entry};
use command::BuildJob;
use git::Git;
use holdpoint_model::suite::BuildSpec;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The builds of one repository.
#[derive(Debug)]
pub struct Builds {
    git: Git,
    cache: Cache,
    /// The folder within the repository that builds and workloads run in.
    folder: PathBuf,
    /// Locked markers of the builds handed out, by folder: none is evicted while this lives.
    held: Mutex<BTreeMap<PathBuf, File>>,
}

/// A revision, ready to be measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The folder of its checkout that workloads run in.
    pub dir: PathBuf,
    /// Whether it was there already.
    pub cached: bool,
    /// How long checking it out and building it took now.
    pub seconds: f64,
}

/// This user's cache: `$HOLDPOINT_CACHE`, else `holdpoint` in `$XDG_CACHE_HOME` or `~/.cache`.
#[must_use]
pub fn cache_dir() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let own = folder("HOLDPOINT_CACHE").or_else(|| Some(caches()?.join("holdpoint")));
    own.unwrap_or_else(|| std::env::temp_dir().join("holdpoint"))
}

impl Builds {
    /// The builds of the repository that a folder is in, a folder for each repository in this user's cache.
    ///
    /// # Errors
    /// When there is no git, or the folder is in no work tree.
    pub fn open(dir: &Path) -> Result<Self, BuildError> {
        let git = Git::open(dir)?;
        let root = cache_dir().join(cache::name_of(git.root.as_os_str().as_encoded_bytes()));
        Ok(Self { git, cache: Cache { root }, folder: PathBuf::new(), held: Mutex::default() })
    }

    /// The same with a cache of one's own.
    ///
    /// # Errors
    /// As for [`Builds::open`].
    pub fn open_with(dir: &Path, cache: &Path) -> Result<Self, BuildError> {
        let git = Git::open(dir)?;
        let cache = Cache { root: cache.to_owned() };
        Ok(Self { git, cache, folder: PathBuf::new(), held: Mutex::default() })
    }

    /// Builds and runs in the folder that a suite lies in; at the root where that is outside of the repository.
    #[must_use]
    pub fn in_folder(self, dir: Option<&Path>) -> Self {
        let folder = dir.and_then(|dir| dir.strip_prefix(&self.git.root).ok()).unwrap_or(Path::new(""));
        Self { folder: folder.to_owned(), ..self }
    }

    /// The root of the repository's work tree.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.git.root
    }

    /// The full hash of the commit that a branch, a tag, an abbreviation or an expression such as `HEAD~3` names.
    ///
    /// # Errors
    /// When it names none, or one that a shallow clone lacks.
    pub fn resolve(&self, revision: &str) -> Result<String, BuildError> {
        self.git.resolve(revision)
    }

    /// Tracked files that differ from `HEAD`, in the work tree or in the index; none when both are clean.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn changes(&self) -> Result<Vec<String>, BuildError> {
        self.git.changes()
    }

    /// Hash over how tracked files differ from `HEAD`: two work trees with the same changes have the same.
    ///
    /// # Errors
    /// When git cannot tell.
    pub fn changes_sha256(&self) -> Result<String, BuildError> {
        self.git.changes_sha256()
    }

    /// The hash, date and subject of a revision.
    ///
    /// # Errors
    /// When there is no such revision.
    pub fn describe(&self, revision: &str) -> Result<Commit, BuildError> {
        self.git.describe(&self.resolve(revision)?)
    }

    /// The commits after `good` up to and including `bad`, oldest first, along first parents: a branch that was
    /// merged is one step. Where `good` is on such a branch, they begin where it left the line that leads to `bad`.
    ///
    /// # Errors
    /// When `good` is no ancestor of `bad`, or is the same commit.
    pub fn between(&self, good: &str, bad: &str) -> Result<Vec<Commit>, BuildError> {
        let (good, bad) = (self.resolve(good)?, self.resolve(bad)?);
        self.git.check_range(&good, &bad)?;
        self.git.between(&good, &bad)
    }

    /// A revision, checked out and built, or taken from the cache. Waits while another process is building.
    ///
    /// # Errors
    /// When it cannot be found, checked out or built. Then nothing of it passes for a build.
    pub fn get(&self, revision: &str, build: Option<&BuildSpec>) -> Result<Built, BuildError> {
        let commit = self.resolve(revision)?;
        let entry = self.cache.entry(&commit, &self.folder, build);
        let _lock = self.cache.lock()?;
        let start = Instant::now();
        self.cache.sweep(|dir| self.git.remove_worktree(dir));
        let cached = entry.is_marked(&commit, build) && self.git.is_checked_out(&entry.dir, &commit)?;
        if !cached {
            self.make(&entry, &commit, build)?;
        }
        let marker = entry.hold()?;
        self.held.lock().unwrap_or_else(PoisonError::into_inner).insert(entry.dir.clone(), marker);
        if !cached {
            self.cache.evict(|dir| self.git.remove_worktree(dir));
        }
        Ok(Built { dir: self.folder_in(&entry.dir), cached, seconds: start.elapsed().as_secs_f64() })
    }

    /// The work tree as it is, with whatever was changed in it, built where it is. Never cached.
    ///
    /// # Errors
    /// When it cannot be built.
    pub fn build_in_place(&self, build: Option<&BuildSpec>) -> Result<Built, BuildError> {
        let _lock = self.cache.lock()?;
        let start = Instant::now();
        let dir = self.folder_in(self.root());
        if let Some(build) = build {
            let log = self.cache.root.join("in-place.log");
            BuildJob { what: "the work tree".to_owned(), dir: &dir, log: &log }.run(build)?;
        }
        Ok(Built { dir, cached: false, seconds: start.elapsed().as_secs_f64() })
    }

    fn folder_in(&self, checkout: &Path) -> PathBuf {
        let mut dir = checkout.to_owned();
        dir.extend(&self.folder);
        dir
    }

    /// Checks out and builds anew, and marks what came of it.
    fn make(&self, entry: &Entry, commit: &str, build: Option<&BuildSpec>) -> Result<(), BuildError> {
        let remove = |dir: &Path| self.git.remove_worktree(dir);
        entry.unmark()?;
        remove(&entry.dir).map_err(|error| BuildError::Worktree {
            commit: commit.to_owned(),
            dir: entry.dir.clone(),
            detail: format!("what is left of a former build cannot be removed: {error}"),
        })?;
        self.git.add_worktree(&entry.dir, commit)?;
        self.git.update_submodules(&entry.dir, commit)?;
        let dir = make_folder(&entry.dir, &self.folder).map_err(|error| BuildError::Worktree {
            commit: commit.to_owned(),
            dir: entry.dir.clone(),
            detail: format!("{}, the folder of the suite: {error}", self.folder.display()),
        })?;
        if let Some(build) = build {
            BuildJob { what: format!("commit {commit}"), dir: &dir, log: &entry.log }.run(build)?;
        }
        entry.mark(commit, build)
    }
}

/// A folder of a checkout, made where a revision has none yet. A link in its place may lead out of the checkout.
fn make_folder(checkout: &Path, folder: &Path) -> io::Result<PathBuf> {
    let mut dir = checkout.to_owned();
    for part in folder {
        dir.push(part);
        match dir.symlink_metadata() {
            Ok(found) if found.is_dir() => {}
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::NotADirectory, "it is no folder at this revision"));
            }
            Err(_) => fs::create_dir(&dir)?,
        }
    }
    Ok(dir)
}
