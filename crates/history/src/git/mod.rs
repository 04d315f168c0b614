//! A history in a ref of the git repository: a project has one without a server.
//!
//! A run is a file named after its hash, so two histories are joined by taking the files of both, and no merge conflicts ([`tree`]). For
//! questions the files are read into a local SQLite file, which can be deleted at any time; a store knows what the ref had when it was
//! opened, and what was added through it.

mod exchange;
mod plumbing;
mod tree;

use crate::backend::{Backend, Exchange};
use crate::error::HistoryError;
use crate::future::check_time;
use crate::record::{Judge, RunRecord};
use crate::sqlite::Sqlite;
use crate::store::{Access, Prune, PruneWhat, Pruned, RunAt, Store, Values};
use exchange::change;
use holdpoint_model::limits::clean_text;
use holdpoint_model::person::is_person;
use holdpoint_model::{
    Acceptance, RunFilter, RunHash, RunPage, Series, SeriesFilter, SeriesSummary, TimeRange, Timestamp,
};
use holdpoint_process::git::{BlobLimits, TreeFile};
use plumbing::{LIMITS, Repository};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tree::{ACCEPTED, FOLDERS, REMOVED, RUNS, SUMMARIES};

/// Runs that are read from git at a time.
const RUNS_AT_ONCE: usize = 200;

/// The history in a ref, with the file that it is read into.
struct GitStore {
    repository: Repository,
    name: String,
    cache: Sqlite,
    /// Runs that somebody removed for good.
    removed: Mutex<HashSet<RunHash>>,
    limits: BlobLimits,
    judge: Judge,
    /// Files that could not be read, and why.
    left_out: Vec<String>,
}

/// An accepted change as a file.
#[derive(Serialize, Deserialize)]
struct AcceptedFile {
    series: String,
    #[serde(flatten)]
    acceptance: Acceptance,
}

/// Refs of the repository here: `git:refs/holdpoint/history`.
pub struct Git;

const SCHEME: &str = "git:";

impl Backend for Git {
    fn schemes(&self) -> &'static [&'static str] {
        &[SCHEME]
    }

    fn open(&self, place: &Path, access: Access, judge: Judge) -> Result<Box<dyn Store>, HistoryError> {
        let store = GitStore::open(&ref_name(place), access, Path::new("."), LIMITS, judge)?;
        Ok(Box::new(store))
    }

    fn migrate(&self, place: &Path) -> Result<u32, HistoryError> {
        let what = "files in git have no version of their own; there is nothing to migrate".to_owned();
        Err(HistoryError::Place { place: place.display().to_string(), what })
    }

    fn exchange(&self) -> Option<Exchange> {
        Some(|place, remote| exchange::exchange(&ref_name(place), remote, Path::new(".")))
    }
}

fn ref_name(place: &Path) -> String {
    place.to_string_lossy().trim_start_matches(SCHEME).to_owned()
}

/// The file holds nothing that the ref does not: one of another version is made anew.
fn open_cache(path: &Path) -> Result<Sqlite, HistoryError> {
    match Sqlite::open(path, Access::Create) {
        Err(HistoryError::Older { .. } | HistoryError::Newer { .. }) => {
            for end in ["", "-wal", "-shm"] {
                let mut file = path.as_os_str().to_owned();
                file.push(end);
                holdpoint_store::remove(Path::new(&file)).map_err(|error| HistoryError::Failed {
                    place: path.display().to_string(),
                    what: error.to_string(),
                })?;
            }
            Sqlite::open(path, Access::Create)
        }
        opened => opened,
    }
}

fn place(name: &str) -> String {
    format!("{SCHEME}{name}")
}

impl GitStore {
    fn open(
        name: &str,
        access: Access,
        dir: &Path,
        limits: BlobLimits,
        judge: Judge,
    ) -> Result<Self, HistoryError> {
        let repository = Repository::open(dir, name)?;
        if access == Access::Existing && repository.commit(name)?.is_none() {
            return Err(HistoryError::Missing { place: place(name) });
        }
        let path = repository
            .ask(|git| git.common_dir())?
            .join("holdpoint")
            .join(format!("{}.db", name.replace('/', "-")));
        let cache = open_cache(&path)?;
        let (name, removed, left_out) = (name.to_owned(), Mutex::default(), Vec::new());
        let mut store = Self { repository, name, cache, removed, limits, left_out, judge };
        store.update()?;
        Ok(store)
    }

    /// A panic elsewhere leaves the set as it is.
    fn removed(&self) -> MutexGuard<'_, HashSet<RunHash>> {
        self.removed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what the ref has and the file has not.
    fn update(&mut self) -> Result<(), HistoryError> {
        let Some(commit) = self.repository.commit(&self.name)? else { return Ok(()) };
        let files = self.repository.files(&commit)?;
        let is_ours = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
        let (ours, others): (Vec<TreeFile>, Vec<TreeFile>) =
            files.into_iter().partition(|(path, _)| is_ours(path));
        if let (Some((path, _)), true) = (others.first(), ours.is_empty()) {
            let what = "a branch of something else is no history; name a ref of its own";
            let what = format!("it holds {path}: {what}");
            return Err(HistoryError::Place { place: place(&self.name), what });
        }
        others.iter().for_each(|(path, _)| self.leave_out(path, "it is no file of a history"));
        let files = ours;
        let removed: Vec<RunHash> =
            files.iter().filter_map(|(path, _)| tree::run_of(path, REMOVED)).collect();
        self.removed().extend(&removed);
        if self.cache.known(&removed)?.contains(&true) {
            self.cache.forget(&removed)?;
        }
        self.read_runs(&files, RUNS)?;
        self.read_runs(&files, SUMMARIES)?;
        let accepted: Vec<&TreeFile> = files.iter().filter(|(path, _)| path.starts_with(ACCEPTED)).collect();
        for files in accepted.chunks(RUNS_AT_ONCE) {
            let Self { repository, cache, limits, left_out, .. } = self;
            let blobs: Vec<&str> = files.iter().map(|(_, blob)| blob.as_str()).collect();
            repository.read(&blobs, limits, |texts| {
                for (at, text) in texts {
                    let path = &files[at].0;
                    if let Err(why) = text.and_then(|text| accept_again(cache, &text)) {
                        left_out.push(format!("{}: {why}", clean_text(path)));
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &str, why: &str) {
        self.left_out.push(format!("{}: {why}", clean_text(path)));
    }

    /// Reads the runs of a folder that are not in the file yet.
    fn read_runs(&mut self, files: &[TreeFile], folder: &str) -> Result<(), HistoryError> {
        let mut runs: Vec<(RunHash, &TreeFile)> = Vec::new();
        for file in files.iter().filter(|(path, _)| path.starts_with(folder)) {
            match tree::run_of(&file.0, folder) {
                Some(run) => runs.push((run, file)),
                None => self.leave_out(&file.0, "its name has no hash of a run"),
            }
        }
        for runs in runs.chunks(RUNS_AT_ONCE) {
            let hashes: Vec<RunHash> = runs.iter().map(|(hash, _)| *hash).collect();
            let known = self.cache.known(&hashes)?;
            let new: Vec<_> =
                runs.iter().zip(known).filter(|(_, known)| !known).map(|(run, _)| run).collect();
            let blobs: Vec<&str> = new.iter().map(|(_, (_, blob))| blob.as_str()).collect();
            let Self { repository, cache, limits, left_out, judge, .. } = self;
            repository.read(&blobs, limits, |texts| {
                let (mut records, mut paths) = (Vec::new(), Vec::new());
                let mut leave_out = |path: &str, why| left_out.push(format!("{}: {why}", clean_text(path)));
                for (at, text) in texts {
                    let (hash, (path, _)) = new[at];
                    match text.and_then(|text| read_record(*hash, path, &text, *judge)) {
                        Ok(record) => {
                            records.push(record);
                            paths.push(path);
                        }
                        Err(why) => leave_out(path, why),
                    }
                }
                for (at, error) in add_possible(&records, |records| cache.add(records).map(drop))? {
                    leave_out(paths[at], error.to_string());
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Adds files to the ref, in one commit. One that takes the place of others has no parent: what was pruned is nobody's any more, and git
    /// forgets it in time.
    fn commit(&self, files: &[(String, String)], message: &str) -> Result<(), HistoryError> {
        let blobs = self.repository.ask(|git| git.write_blobs(files))?;
        change(&self.repository, &self.name, |ours| {
            let held = ours.map(|ours| self.repository.files(ours)).transpose()?.unwrap_or_default();
            let joined = tree::join(&held, &blobs);
            if joined.add.is_empty() && joined.remove.is_empty() {
                return Ok(None);
            }
            let tree = self.repository.ask(|git| git.tree_with(ours, &joined.add, &joined.remove))?;
            let parents: Vec<&str> = ours.into_iter().filter(|_| joined.remove.is_empty()).collect();
            self.repository.ask(|git| git.commit_tree(&tree, &parents, message)).map(Some)
        })
    }

    /// The summaries of those runs that still have their samples.
    fn summaries(&self, runs: &[RunHash]) -> Result<Vec<(String, String)>, HistoryError> {
        let Some(commit) = self.repository.commit(&self.name)? else { return Ok(Vec::new()) };
        let runs: HashSet<&RunHash> = runs.iter().collect();
        let files = self.repository.files(&commit)?;
        let files: Vec<(RunHash, &TreeFile)> = files
            .iter()
            .filter_map(|file| Some((tree::run_of(&file.0, RUNS)?, file)))
            .filter(|(hash, _)| runs.contains(hash))
            .collect();
        let mut summaries = Vec::new();
        for files in files.chunks(RUNS_AT_ONCE) {
            let blobs: Vec<&str> = files.iter().map(|(_, (_, blob))| blob.as_str()).collect();
            self.repository.read(&blobs, &mut LIMITS.clone(), |texts| {
                for (at, text) in texts {
                    let (hash, (path, _)) = &files[at];
                    // What cannot be read was left out when the history was opened.
                    let record = text.and_then(|text| read_record(*hash, path, &text, self.judge)).ok();
                    let Some(summary) = record.and_then(|record| record.without_samples()) else { continue };
                    let text = serde_json::to_string(&summary).map_err(|error| self.unwritable(&error))?;
                    let own_hash = hash_of(&text).to_string();
                    summaries.push((tree::summary_path(hash, &own_hash), text));
                }
                Ok(())
            })?;
        }
        Ok(summaries)
    }

    fn prune_files(&self, prune: &Prune) -> Result<Pruned, HistoryError> {
        let old = self.cache.old(prune)?;
        if prune.what == PruneWhat::Runs {
            return self.forget(&old);
        }
        let summaries = self.summaries(&old)?;
        if !summaries.is_empty() {
            self.commit(&summaries, &format!("Prune samples of runs: {}", summaries.len()))?;
        }
        self.cache.prune(prune)?;
        Ok(Pruned { runs_count: summaries.len() as u64, points_count: 0 })
    }

    fn unwritable(&self, error: &serde_json::Error) -> HistoryError {
        HistoryError::Failed { place: place(&self.name), what: error.to_string() }
    }
}

/// Adds records together or, if that fails, each by itself: the positions of those that cannot be added, and why. Where that is none of
/// several, the reason is not in the records.
fn add_possible<T>(
    records: &[T],
    mut add: impl FnMut(&[T]) -> Result<(), HistoryError>,
) -> Result<Vec<(usize, HistoryError)>, HistoryError> {
    let Err(error) = add(records) else { return Ok(Vec::new()) };
    let mut refused = Vec::new();
    for (at, record) in records.iter().enumerate() {
        refused.extend(add(std::slice::from_ref(record)).err().map(|error| (at, error)));
    }
    if refused.len() == records.len() && records.len() > 1 { Err(error) } else { Ok(refused) }
}

/// Git's refusal to change something is not the user's doing.
fn failed(error: HistoryError) -> HistoryError {
    match error {
        HistoryError::Place { place, what } => HistoryError::Failed { place, what },
        error => error,
    }
}

fn hash_of(text: &str) -> RunHash {
    RunHash(Sha256::digest(text).into())
}

fn accept_again(cache: &Sqlite, text: &str) -> Result<(), String> {
    let file: AcceptedFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if !is_person(&file.acceptance.by) {
        return Err(format!("{:?} does not name a person", file.acceptance.by));
    }
    match cache.accept(&file.series, &file.acceptance) {
        // Of a series that nothing was added to yet.
        Ok(()) | Err(HistoryError::NoSeries { .. }) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// A run as it was added, or its summary. A file's name ends with its hash: whoever changed the file is found out.
fn read_record(hash: RunHash, path: &str, text: &str, judge: Judge) -> Result<RunRecord, String> {
    let is_summary = path.starts_with(SUMMARIES);
    let own_hash = hash_of(text);
    let is_named_so = match is_summary {
        true => path == tree::summary_path(&hash, &own_hash.to_string()),
        false => own_hash == hash,
    };
    if !is_named_so {
        return Err("its content is not that of its name: it was edited".to_owned());
    }
    let record: RunRecord = match is_summary {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => RunRecord::read(text, None, judge).map_err(|error| error.to_string())?,
    };
    check_time(record.at)?;
    Ok(RunRecord { hash, ..record })
}

impl Store for GitStore {
    fn add(&self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
        let hashes: Vec<RunHash> = runs.iter().map(|run| run.hash).collect();
        let known = self.known(&hashes)?;
        let new: Vec<&RunRecord> =
            runs.iter().zip(&known).filter(|(_, known)| !**known).map(|(run, _)| run).collect();
        if let Some(run) = new.iter().find(|run| run.document.len() as u64 > self.limits.file_bytes) {
            let (bytes, limit) = (run.document.len(), self.limits.file_bytes);
            let what = format!(
                "the run of {} has {bytes} bytes, over the limit of {limit} for a file in git",
                run.at
            );
            return Err(HistoryError::Failed { place: place(&self.name), what });
        }
        let files: Vec<(String, String)> =
            new.iter().map(|run| (tree::run_path(&run.hash), run.document.clone())).collect();
        // The ref first: the file is only read from it.
        if !files.is_empty() {
            let message = format!("Add runs: {}", files.len());
            self.commit(&files, &message).map_err(failed)?;
        }
        let removed = self.removed().clone();
        let is_removed = |run: &RunRecord| removed.contains(&run.hash);
        let kept: Vec<RunRecord> = runs.iter().filter(|run| !is_removed(run)).cloned().collect();
        let mut added = self.cache.add(&kept)?.into_iter();
        Ok(runs.iter().map(|run| !is_removed(run) && added.next().unwrap_or(false)).collect())
    }

    /// A run that was removed is known as well: adding it again would not bring it back.
    fn known(&self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        let (known, removed) = (self.cache.known(hashes)?, self.removed());
        Ok(hashes.iter().zip(known).map(|(hash, known)| known || removed.contains(hash)).collect())
    }

    fn list(&self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError> {
        self.cache.list(filter)
    }

    fn runs(&self, filter: &RunFilter) -> Result<RunPage, HistoryError> {
        self.cache.runs(filter)
    }

    fn read(&self, id: &str, times: TimeRange) -> Result<Series, HistoryError> {
        self.cache.read(id, times)
    }

    fn runs_at(&self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError> {
        self.cache.runs_at(id, times)
    }

    fn values(&self, id: &str) -> Result<Values, HistoryError> {
        self.cache.values(id)
    }

    fn accept(&self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError> {
        self.cache.accept(id, acceptance)?;
        let file = AcceptedFile { series: id.to_owned(), acceptance: acceptance.clone() };
        let text = serde_json::to_string(&file).map_err(|error| self.unwritable(&error))?;
        let path = format!("{ACCEPTED}{}.json", hash_of(&text));
        self.commit(&[(path, text)], "Accept a change").map_err(failed)
    }

    fn document(&self, run: &RunHash) -> Result<Option<String>, HistoryError> {
        self.cache.document(run)
    }

    fn old(&self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError> {
        self.cache.old(prune)
    }

    fn forget(&self, runs: &[RunHash]) -> Result<Pruned, HistoryError> {
        if runs.is_empty() {
            return Ok(Pruned::default());
        }
        let files: Vec<(String, String)> =
            runs.iter().map(|run| (tree::removed_path(run), String::new())).collect();
        self.commit(&files, &format!("Prune runs: {}", files.len())).map_err(failed)?;
        self.removed().extend(runs);
        self.cache.forget(runs)
    }

    fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn prune(&self, prune: &Prune) -> Result<Pruned, HistoryError> {
        self.prune_files(prune).map_err(failed)
    }
}

#[cfg(test)]
mod tests;
