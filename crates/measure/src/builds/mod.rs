//! Revisions of the user's repository, each checked out into a folder of its own and built there. Nothing here measures.
//!
//! Builds are kept in a cache outside the repository, by revision and build command: inside it, tools would find the
//! settings of the work tree in the folders above. The user's work tree, index and branches are never touched.
//!
//! A revision is built from nothing, or in a workshop: a folder that goes from commit to commit, so that a build tool does
//! only what a commit changed. A workshop keeps its path, because build tools write paths into what they build: a build copied
//! elsewhere may compile the sources or load the libraries of the place that it came from.

mod cache;
mod checkout;
mod command;
mod error;
mod inventory;
mod listing;
mod same;
mod settings;
mod wall;

pub use cache::KEPT_MAX;
pub(crate) use command::{End, SEPARATORS, watch};
pub use error::BuildError;
pub use inventory::Inventory;
pub use listing::{clean, list};
pub use same::Inputs;

use crate::machine::hex;
use cache::{Cache, CacheLock, Entry, Marker, Order, Taken};
use checkout::Source;
use command::BuildJob;
use holdpoint_model::Suite;
use holdpoint_model::ab::SameBuild;
use holdpoint_model::limits::clean_text;
use holdpoint_model::suite::BuildSpec;
use holdpoint_process::git::{Commit, Repository};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use wall::Wall;

#[derive(Debug)]
pub struct Builds {
    source: Source,
    cache: Cache,
    /// The folder within the repository that builds and workloads run in.
    folder: PathBuf,
    /// A commit, and which of its files every revision gets.
    given: Option<(String, Vec<String>)>,
    /// Builds in use, by folder: none is evicted or built over while it is here.
    in_use: Mutex<BTreeMap<PathBuf, InUse>>,
}

#[derive(Debug)]
struct InUse {
    #[expect(dead_code, reason = "held, not read")]
    marker: File,
    inventory: Inventory,
}

/// Whether a build is in the cache.
enum Look {
    Sound(Inventory),
    Missing,
    /// This file is not as the build left it.
    Changed(String),
}

/// A revision or the work tree, built.
#[derive(Clone, Debug, PartialEq)]
pub struct Built {
    /// The folder of the checkout that workloads run in.
    pub dir: PathBuf,
    pub cached: bool,
    /// Time that checkout and build took just now.
    pub seconds: f64,
    /// Its files when it was finished; absent for the work tree, which is the user's.
    pub inventory: Option<Inventory>,
    /// Why a build in the cache was not used.
    pub note: Option<String>,
}

/// The commits of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The commit that the others are compared with: `good`, or else the newest ancestor that it shares with `bad`.
    pub base: Commit,
    /// The commits after it, up to and including `bad`, oldest first.
    pub commits: Vec<Commit>,
}

/// The user's cache: `$HOLDPOINT_CACHE`, else `holdpoint` in `$XDG_CACHE_HOME` or `~/.cache`.
pub fn cache_dir() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let own = folder("HOLDPOINT_CACHE").or_else(|| Some(caches()?.join("holdpoint")));
    own.unwrap_or_else(|| std::env::temp_dir().join("holdpoint"))
}

impl Builds {
    /// The builds of the repository that a folder is in; each repository has a folder in the user's cache.
    pub fn open(dir: &Path) -> Result<Self, BuildError> {
        let source = Source::open(dir)?;
        let root =
            cache_dir().join(cache::short_hash(source.repository.dir().as_os_str().as_encoded_bytes()));
        Ok(Self {
            source,
            cache: Cache { root },
            folder: PathBuf::new(),
            given: None,
            in_use: Mutex::default(),
        })
    }

    /// Uses another cache folder.
    pub fn open_with(dir: &Path, cache: &Path) -> Result<Self, BuildError> {
        let source = Source::open(dir)?;
        let cache = Cache { root: cache.to_owned() };
        Ok(Self { source, cache, folder: PathBuf::new(), given: None, in_use: Mutex::default() })
    }

    /// Builds and runs in the folder of a suite; at the root if that is outside of the repository.
    pub fn in_folder(self, dir: Option<&Path>) -> Self {
        let folder = dir.and_then(|dir| dir.strip_prefix(self.root()).ok()).unwrap_or(Path::new(""));
        Self { folder: folder.to_owned(), ..self }
    }

    /// From now on every revision gets these files of a commit, in place of its own: patterns below the folder of the suite.
    pub fn with_files_of(self, commit: &str, files: &[String]) -> Self {
        let pattern = |file: &String| {
            // Git wants `/` between folders, and none at the end of nothing.
            let parts = self.folder.iter().map(|part| part.to_string_lossy());
            let path = parts.chain([file.into()]).collect::<Vec<_>>().join("/");
            format!(":(top,glob){path}")
        };
        let given = (!files.is_empty()).then(|| (commit.to_owned(), files.iter().map(pattern).collect()));
        Self { given, ..self }
    }

    /// The root of the repository's work tree.
    pub fn root(&self) -> &Path {
        self.source.repository.dir()
    }

    /// The repository, for questions about its revisions.
    pub fn repository(&self) -> &Repository {
        &self.source.repository
    }

    /// The newest commit that both revisions come from.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<String, BuildError> {
        let repository = self.repository();
        let (good, bad) = (repository.resolve(one)?, repository.resolve(other)?);
        repository.merge_base(&good, &bad)?.ok_or(BuildError::Unrelated { good, bad })
    }

    /// Whether git tracks any of these files or folders, given as in the folder of the suite.
    pub fn tracks_any<'a>(&self, words: impl Iterator<Item = &'a str>) -> Result<bool, BuildError> {
        let dir = self.folder_in(self.root());
        let real =
            words.filter(|word| !word.is_empty()).filter_map(|word| dir.join(word).canonicalize().ok());
        let inside = real.filter_map(|path| Some(path.strip_prefix(self.root()).ok()?.to_owned()));
        Ok(self.repository().tracks_any(&inside.collect::<Vec<_>>())?)
    }

    /// Tracked files that differ from `HEAD`, in the work tree or in the index.
    pub fn changes(&self) -> Result<Vec<String>, BuildError> {
        Ok(self.changed_paths()?.iter().map(|path| clean_text(path)).collect())
    }

    /// Hash of these files: work trees with the same changes have the same hash.
    pub fn changes_sha256(&self) -> Result<String, BuildError> {
        let mut hash = Sha256::new();
        for path in self.changed_paths()? {
            // A removed file has no content.
            let content = fs::read(self.root().join(&path)).unwrap_or_default();
            hash.update(format!("{path}\0{}\0", content.len()));
            hash.update(content);
        }
        Ok(hex(&hash.finalize()))
    }

    fn changed_paths(&self) -> Result<Vec<String>, BuildError> {
        Ok(self.repository().head()?.map(|head| head.changes).unwrap_or_default())
    }

    /// The commits from `good` to `bad` along first parents: a merged branch is one step. If `good` is on such a branch,
    /// they begin where it left the line that leads to `bad`.
    pub fn range(&self, good: &str, bad: &str) -> Result<Range, BuildError> {
        let repository = self.repository();
        let (good, bad) = (repository.resolve(good)?, repository.resolve(bad)?);
        if good == bad {
            return Err(BuildError::SameCommit { commit: good });
        }
        let base = self.merge_base(&good, &bad)?;
        if base == bad {
            return Err(BuildError::Swapped { good, bad });
        }
        Ok(Range { commits: repository.between(&base, &bad)?, base: repository.describe(&base)? })
    }

    /// Checks out and builds a revision from nothing, or takes it from the cache. Waits while another process is building.
    /// A build that fails leaves nothing that could be taken for one.
    pub fn get(&self, revision: &str, build: Option<&BuildSpec>) -> Result<Built, BuildError> {
        let commit = self.repository().resolve(revision)?;
        let taken = self.taken(&commit)?;
        let order = Order { commit: &commit, folder: &self.folder, build, taken: taken.as_ref() };
        let _lock = self.lock()?;
        let start = Instant::now();
        let entry = self.cache.entry(&order);
        let (inventory, note, cached) = match self.look(&entry, &order)? {
            Look::Sound(inventory) => (inventory, None, true),
            Look::Missing => (self.make(&entry, &order)?, None, false),
            Look::Changed(file) => (self.make(&entry, &order)?, Some(changed_note(&order, &file)), false),
        };
        Ok(Built { cached, note, ..self.hand_out(&entry, inventory, start)? })
    }

    /// The same, but a revision that is in no cache is built in a workshop that nobody uses, starting from what was
    /// built there last. If that fails, it is built there from nothing.
    pub fn get_in_workshop(&self, revision: &str, build: Option<&BuildSpec>) -> Result<Built, BuildError> {
        let commit = self.repository().resolve(revision)?;
        let taken = self.taken(&commit)?;
        let order = Order { commit: &commit, folder: &self.folder, build, taken: taken.as_ref() };
        let _lock = self.lock()?;
        let start = Instant::now();
        let workshops = self.cache.workshops(&order);
        let mut note = None;
        for entry in [self.cache.entry(&order)].iter().chain(&workshops) {
            match self.look(entry, &order)? {
                Look::Sound(inventory) => {
                    return Ok(Built { cached: true, note, ..self.hand_out(entry, inventory, start)? });
                }
                Look::Missing => {}
                Look::Changed(file) => {
                    entry.unmark()?;
                    note = Some(changed_note(&order, &file));
                }
            }
        }
        let Some(workshop) = workshops.iter().find(|entry| !entry.is_in_use()) else {
            return Err(BuildError::NoWorkshop { root: self.cache.root.clone() });
        };
        let inventory = self.make_in_workshop(workshop, &order)?;
        Ok(Built { note, ..self.hand_out(workshop, inventory, start)? })
    }

    /// Fails if any file of a build has changed, or is new, while only others ran. Then the build is none any more.
    pub fn check(&self, built: &Built, meanwhile: &str) -> Result<(), BuildError> {
        refuse_changed(built, Inventory::disturbed, meanwhile)
    }

    /// The same after its own programs ran as well: new files may be theirs, and those that these patterns name may have changed.
    pub fn check_measured(
        &self,
        built: &Built,
        ignored: &[String],
        meanwhile: &str,
    ) -> Result<(), BuildError> {
        refuse_changed(built, |inventory| inventory.touched(ignored), meanwhile)
    }

    /// Takes a build's inventory again, after a program of its own has run alone: a harness builds its benchmarks when it lists them.
    pub fn take_inventory(&self, built: &mut Built) -> Result<(), BuildError> {
        let Some(inventory) = &mut built.inventory else { return Ok(()) };
        let entry = self.cache.entry_at(inventory.root());
        *inventory = inventory.taken_again().map_err(cache::at(&entry.dir))?;
        inventory.write(&entry.inventory)?;
        if let Some(held) = self.in_use().get_mut(&entry.dir) {
            held.inventory = inventory.clone();
        }
        Ok(())
    }

    /// The caller has done with a build: others may remove it or build in its place.
    pub fn release(&self, built: &Built) {
        self.in_use().retain(|dir, _| !built.dir.starts_with(dir));
    }

    /// Builds the work tree where it is, with its changes. Never cached.
    pub fn build_in_place(&self, build: Option<&BuildSpec>) -> Result<Built, BuildError> {
        let _lock = self.lock()?;
        let start = Instant::now();
        let dir = self.folder_in(self.root());
        if let Some(build) = build {
            let log = self.cache.root.join("in-place.log");
            let wall = Wall { cache: &self.cache.root, own: None, git: None };
            BuildJob { what: "the work tree".to_owned(), dir: &dir, log: &log, wall }.run(build)?;
        }
        let seconds = start.elapsed().as_secs_f64();
        Ok(Built { dir, cached: false, seconds, inventory: None, note: None })
    }

    /// The proof that two builds are the same in all that a workload of the suite runs or can read; absent where they are not.
    pub fn same(&self, base: &Built, head: &Built, suite: &Suite) -> Option<SameBuild> {
        let depth = self.folder.iter().count();
        let [base, head] = [base, head].map(|built| built.dir.ancestors().nth(depth));
        let (base, head) = (base?.canonicalize().ok()?, head?.canonicalize().ok()?);
        let dir = self.folder_in(&base);
        let words = command_words(suite);
        let named =
            words.filter(|word| !word.is_empty()).filter_map(|word| dir.join(word).canonicalize().ok());
        let named = named.filter_map(|path| Some(path.strip_prefix(&base).ok()?.to_owned())).collect();
        same::same_build(&base, &head, &Inputs { ignored: &suite.gate.ignore_files, named })
    }

    /// Locks the cache and removes what killed builds and earlier versions left.
    fn lock(&self) -> Result<CacheLock, BuildError> {
        let lock = self.cache.lock(self.root())?;
        for dir in self.source.known_worktrees(&self.cache.root)? {
            let entry = self.cache.entry_at(&dir);
            if !entry.is_in_use() {
                entry.unmark()?;
                self.source.remove_worktree(&dir);
            }
        }
        self.cache.sweep();
        Ok(lock)
    }

    /// The files that a commit takes from another one: those that it lacks, or has with other content.
    fn taken(&self, commit: &str) -> Result<Option<Taken>, BuildError> {
        match &self.given {
            Some((from, patterns)) => self.source.differing(commit, from, patterns),
            None => Ok(None),
        }
    }

    fn in_use(&self) -> MutexGuard<'_, BTreeMap<PathBuf, InUse>> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, entry: &Entry, order: &Order) -> Result<Look, BuildError> {
        let is_marked = entry.read_marker() == Some(order.marker());
        if !(is_marked && self.source.is_checked_out(&entry.dir, order.commit)?) {
            return Ok(Look::Missing);
        }
        self.verify(entry)
    }

    /// Compares a build with its inventory, and removes what was added to it: caches and outputs of what was measured there.
    fn verify(&self, entry: &Entry) -> Result<Look, BuildError> {
        let held = self.in_use().get(&entry.dir).map(|held| held.inventory.clone());
        let Some(inventory) = held.or_else(|| entry.read_inventory()) else { return Ok(Look::Missing) };
        let found = inventory.differences().map_err(cache::at(&entry.dir))?;
        let is_in_use = entry.is_in_use();
        match found.changed.first().cloned() {
            Some(file) if is_in_use => Err(BuildError::Changed {
                dir: entry.dir.clone(),
                file,
                meanwhile: "a comparison was using it".to_owned(),
            }),
            Some(file) => Ok(Look::Changed(file)),
            None if is_in_use => Ok(Look::Sound(inventory)),
            None => Ok(Look::Sound(inventory.cleaned(&found).map_err(cache::at(&entry.dir))?)),
        }
    }

    fn hand_out(&self, entry: &Entry, inventory: Inventory, start: Instant) -> Result<Built, BuildError> {
        let marker = entry.mark_in_use()?;
        self.in_use().insert(entry.dir.clone(), InUse { marker, inventory: inventory.clone() });
        self.cache.evict();
        Ok(Built {
            dir: self.folder_in(&entry.dir),
            cached: false,
            seconds: start.elapsed().as_secs_f64(),
            inventory: Some(inventory),
            note: None,
        })
    }

    fn folder_in(&self, checkout: &Path) -> PathBuf {
        let mut dir = checkout.to_owned();
        dir.extend(&self.folder);
        dir
    }

    /// Builds from nothing.
    fn make(&self, entry: &Entry, order: &Order) -> Result<Inventory, BuildError> {
        entry.remove()?;
        self.source.add_checkout(&entry.dir, order.commit)?;
        self.build(entry, order)
    }

    /// What others wrote there since the last build is not built on.
    fn make_in_workshop(&self, entry: &Entry, order: &Order) -> Result<Inventory, BuildError> {
        let former = entry.read_marker().map(|marker| Marker { commit: None, taken: None, ..marker });
        let is_usable = former == Some(order.unbuilt()) && matches!(self.verify(entry)?, Look::Sound(_));
        entry.unmark()?;
        let move_on = || {
            inventory::unprotect(&entry.dir).is_ok()
                && self.source.move_checkout(&entry.dir, order.commit).is_ok()
        };
        if !(is_usable && move_on()) {
            return self.make_first(entry, order);
        }
        match self.build(entry, order) {
            // What was left of the former build may be the reason.
            Err(error) if error.is_of_command() => self.make_first(entry, order),
            done => done,
        }
    }

    /// Builds from nothing in a workshop. If the build fails by itself, the next one starts from what it left.
    fn make_first(&self, entry: &Entry, order: &Order) -> Result<Inventory, BuildError> {
        let made = self.make(entry, order);
        if made.as_ref().is_err_and(BuildError::is_of_command) {
            entry.mark(&order.unbuilt())?;
        }
        made
    }

    fn build(&self, entry: &Entry, order: &Order) -> Result<Inventory, BuildError> {
        let commit = order.commit;
        self.source.update_submodules(&entry.dir, commit)?;
        if let Some(taken) = order.taken {
            self.source.take(&entry.dir, taken)?;
        }
        let dir = make_folder(&entry.dir, &self.folder).map_err(|error| BuildError::Checkout {
            commit: commit.to_owned(),
            dir: entry.dir.clone(),
            detail: format!("{}, the folder of the suite: {error}", self.folder.display()),
        })?;
        if let Some(build) = order.build {
            let git = self.repository().common_dir()?;
            let wall = Wall { cache: &self.cache.root, own: Some(&entry.dir), git: Some(&git) };
            BuildJob { what: format!("commit {commit}"), dir: &dir, log: &entry.log, wall }.run(build)?;
        }
        entry.mark(&order.marker())
    }
}

fn refuse_changed(
    built: &Built,
    find_file: impl FnOnce(&Inventory) -> Option<String>,
    meanwhile: &str,
) -> Result<(), BuildError> {
    let Some(inventory) = &built.inventory else { return Ok(()) };
    let Some(file) = find_file(inventory) else { return Ok(()) };
    inventory.discard();
    Err(BuildError::Changed { dir: built.dir.clone(), file, meanwhile: meanwhile.to_owned() })
}

/// The words of all commands of a suite, each of which may name a file.
pub fn command_words(suite: &Suite) -> impl Iterator<Item = &str> {
    let workers = suite.workers.values().map(|worker| &worker.command);
    let commands = suite
        .workloads
        .iter()
        .filter_map(|workload| workload.task.call())
        .flat_map(|call| [&call.command, &call.setup, &call.prepare, &call.server]);
    workers.chain(commands).flatten().flat_map(|word| word.split(SEPARATORS))
}

fn changed_note(order: &Order, file: &str) -> String {
    format!(
        "the build of {} in the cache is thrown away and made anew: {file} had changed",
        order.short_commit()
    )
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
