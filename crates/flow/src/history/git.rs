//! A history in a ref of the git repository: a project has one without a server.
//!
//! A run is a file named after its hash, so two histories are joined by taking the files of both, and no merge conflicts ([`tree`]). For
//! questions the files are read into a local SQLite file, which can be deleted at any time. Only [`exchange`] uses the network.

use super::add::{Missing, record};
use super::plumbing::{File, Limits, Repository};
use super::tree::{self, ACCEPTED, FOLDERS, REMOVED, RUNS, SUMMARIES};
use crate::Watch;
use crate::error::FlowError;
use crate::support::{is_person, refuse_future};
use holdpoint_history::{
    Access, HistoryError, Location, Prune, PruneWhat, Pruned, RunAt, RunRecord, Store, Values,
};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{Acceptance, RunHash, Series, SeriesFilter, SeriesSummary, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::Path;

/// Tries to move a ref that others move as well: each takes milliseconds, and a remote's a second or so.
const TRIES: usize = 50;

/// Runs that are read from git at a time.
const RUNS_AT_ONCE: usize = 200;

/// Files that are left out and named.
const LEFT_OUT_SHOWN: usize = 5;

/// The history in a ref, with the file that it is read into.
struct GitStore {
    repository: Repository,
    name: String,
    cache: Box<dyn Store>,
    /// Runs that somebody removed for good.
    removed: HashSet<RunHash>,
    limits: Limits,
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

/// Opens the history in a ref of the repository that `dir` is in. Files that cannot be read are named, and left out.
pub fn open(name: &str, access: Access, dir: &Path, watch: &dyn Watch) -> Result<Box<dyn Store>, FlowError> {
    let store = open_with(name, access, dir, Limits::default())?;
    let (shown, rest) = store.left_out.split_at(store.left_out.len().min(LEFT_OUT_SHOWN));
    shown.iter().for_each(|file| watch.note(&format!("{}: left out: {file}", place(name))));
    if !rest.is_empty() {
        watch.note(&format!("{}: {} more files are left out", place(name), rest.len()));
    }
    Ok(Box::new(store))
}

fn open_with(name: &str, access: Access, dir: &Path, limits: Limits) -> Result<GitStore, FlowError> {
    let repository = Repository::open(dir, name)?;
    if access == Access::Existing && repository.commit(name)?.is_none() {
        return Err(HistoryError::Missing { place: place(name) }.into());
    }
    let path = repository.folder().join("holdpoint").join(format!("{}.db", name.replace('/', "-")));
    let cache = open_cache(&path)?;
    let (name, removed, left_out) = (name.to_owned(), HashSet::new(), Vec::new());
    let mut store = GitStore { repository, name, cache, removed, limits, left_out };
    store.update()?;
    Ok(store)
}

/// The file holds nothing that the ref does not: one of another version is made anew.
fn open_cache(path: &Path) -> Result<Box<dyn Store>, FlowError> {
    let location = Location::File(path.to_owned());
    match holdpoint_history::open(&location, Access::Create) {
        Err(HistoryError::Older { .. } | HistoryError::Newer { .. }) => {
            for end in ["", "-wal", "-shm"] {
                let mut file = path.as_os_str().to_owned();
                file.push(end);
                holdpoint_store::remove(Path::new(&file))?;
            }
            Ok(holdpoint_history::open(&location, Access::Create)?)
        }
        opened => Ok(opened?),
    }
}

/// Joins the ref with the remote's of the same name, and pushes the outcome; again if somebody else was first.
pub fn exchange(name: &str, remote: &str, dir: &Path) -> Result<(), FlowError> {
    let repository = Repository::open(dir, name)?;
    let mut refused = String::new();
    for _ in 0..TRIES {
        let theirs = repository.fetch(remote, name)?;
        if let Some(theirs) = &theirs {
            join(&repository, name, theirs)?;
        }
        let Some(ours) = repository.commit(name)? else { return Ok(()) };
        match repository.push(remote, &ours, name, theirs.as_deref())? {
            None => return Ok(()),
            Some(why) => refused = why,
        }
    }
    Err(FlowError::Internal(format!("{}: {remote} did not take it: {refused}", place(name))))
}

/// Joins the ref with the remote's of the same name, so that what is added comes after it.
pub fn fetch(name: &str, remote: &str, dir: &Path) -> Result<(), FlowError> {
    let repository = Repository::open(dir, name)?;
    repository.fetch(remote, name)?.map_or(Ok(()), |theirs| join(&repository, name, &theirs))
}

/// Makes the ref hold the files of another commit as well.
fn join(repository: &Repository, name: &str, theirs: &str) -> Result<(), FlowError> {
    // Before the ref is moved to it: what it lists may be too much to be read again.
    let their_files = repository.files(theirs)?;
    change(repository, name, |ours| match ours {
        None => Ok(Some(theirs.to_owned())),
        Some(ours) if repository.contains(ours, theirs)? => Ok(None),
        Some(ours) if repository.contains(theirs, ours)? => Ok(Some(theirs.to_owned())),
        Some(ours) => {
            let joined = tree::join(&repository.files(ours)?, &their_files);
            // A commit whose files were pruned is not kept as a parent, or it would keep them.
            let parents: &[&str] = match (joined.remove.is_empty(), joined.keeps_theirs) {
                _ if joined.is_theirs => return Ok(Some(theirs.to_owned())),
                (true, false) if joined.add.is_empty() => return Ok(None),
                (true, true) => &[ours, theirs],
                (true, false) => &[ours],
                (false, true) => &[theirs],
                (false, false) => &[],
            };
            let tree = repository.tree_with(Some(ours), &joined.add, &joined.remove)?;
            repository.commit_tree(&tree, parents, "Join histories").map(Some)
        }
    })
}

/// Moves the ref to the commit that `next` makes of its commit, unless that is `None`; again if another process moved it meanwhile.
fn change(
    repository: &Repository,
    name: &str,
    mut next: impl FnMut(Option<&str>) -> Result<Option<String>, FlowError>,
) -> Result<(), FlowError> {
    for _ in 0..TRIES {
        let ours = repository.commit(name)?;
        let Some(commit) = next(ours.as_deref())? else { return Ok(()) };
        if repository.move_ref(name, &commit, ours.as_deref())? {
            return Ok(());
        }
    }
    Err(FlowError::Internal(format!("{}: other processes move it all the time; try again", place(name))))
}

fn place(name: &str) -> String {
    format!("git:{name}")
}

impl GitStore {
    /// Reads what the ref has and the file has not.
    fn update(&mut self) -> Result<(), FlowError> {
        let Some(commit) = self.repository.commit(&self.name)? else { return Ok(()) };
        let files = self.repository.files(&commit)?;
        let is_ours = |path: &str| FOLDERS.iter().any(|folder| path.starts_with(folder));
        let (ours, others): (Vec<File>, Vec<File>) = files.into_iter().partition(|(path, _)| is_ours(path));
        if let (Some((path, _)), true) = (others.first(), ours.is_empty()) {
            let what = "a branch of something else is no history; name a ref of its own";
            return Err(FlowError::Input(format!("{}: it holds {path}: {what}", place(&self.name))));
        }
        others.iter().for_each(|(path, _)| self.leave_out(path, "it is no file of a history"));
        let files = ours;
        self.removed = files.iter().filter_map(|(path, _)| tree::run_of(path, REMOVED)).collect();
        let removed: Vec<RunHash> = self.removed.iter().copied().collect();
        if self.cache.known(&removed)?.contains(&true) {
            self.cache.forget(&removed)?;
        }
        self.read_runs(&files, RUNS)?;
        self.read_runs(&files, SUMMARIES)?;
        let accepted: Vec<&File> = files.iter().filter(|(path, _)| path.starts_with(ACCEPTED)).collect();
        for files in accepted.chunks(RUNS_AT_ONCE) {
            let Self { repository, cache, limits, left_out, .. } = self;
            let blobs: Vec<&str> = files.iter().map(|(_, blob)| blob.as_str()).collect();
            repository.read(&blobs, limits, |texts| {
                for (at, text) in texts {
                    let path = &files[at].0;
                    if let Err(why) = text.and_then(|text| accept_again(cache.as_mut(), &text)) {
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
    fn read_runs(&mut self, files: &[File], folder: &str) -> Result<(), FlowError> {
        let mut runs: Vec<(RunHash, &File)> = Vec::new();
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
            let Self { repository, cache, limits, left_out, .. } = self;
            repository.read(&blobs, limits, |texts| {
                let (mut records, mut paths) = (Vec::new(), Vec::new());
                let mut leave_out = |path: &str, why| left_out.push(format!("{}: {why}", clean_text(path)));
                for (at, text) in texts {
                    let (hash, (path, _)) = new[at];
                    match text.and_then(|text| read_record(*hash, path, &text)) {
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
    fn commit(&self, files: &[(String, String)], message: &str) -> Result<(), FlowError> {
        let blobs = self.repository.write(files)?;
        change(&self.repository, &self.name, |ours| {
            let held = ours.map(|ours| self.repository.files(ours)).transpose()?.unwrap_or_default();
            let joined = tree::join(&held, &blobs);
            if joined.add.is_empty() && joined.remove.is_empty() {
                return Ok(None);
            }
            let tree = self.repository.tree_with(ours, &joined.add, &joined.remove)?;
            let parents: Vec<&str> = ours.into_iter().filter(|_| joined.remove.is_empty()).collect();
            self.repository.commit_tree(&tree, &parents, message).map(Some)
        })
    }

    /// The summaries of those runs that still have their samples.
    fn summaries(&self, runs: &[RunHash]) -> Result<Vec<(String, String)>, FlowError> {
        let Some(commit) = self.repository.commit(&self.name)? else { return Ok(Vec::new()) };
        let runs: HashSet<&RunHash> = runs.iter().collect();
        let files = self.repository.files(&commit)?;
        let files: Vec<(RunHash, &File)> = files
            .iter()
            .filter_map(|file| Some((tree::run_of(&file.0, RUNS)?, file)))
            .filter(|(hash, _)| runs.contains(hash))
            .collect();
        let mut summaries = Vec::new();
        for files in files.chunks(RUNS_AT_ONCE) {
            let blobs: Vec<&str> = files.iter().map(|(_, (_, blob))| blob.as_str()).collect();
            self.repository.read(&blobs, &mut Limits::default(), |texts| {
                for (at, text) in texts {
                    let (hash, (path, _)) = &files[at];
                    // What cannot be read was left out when the history was opened.
                    let record = text.and_then(|text| read_record(*hash, path, &text)).ok();
                    let Some(summary) = record.and_then(|record| record.without_samples()) else { continue };
                    let text = serde_json::to_string(&summary)
                        .map_err(|error| FlowError::Internal(error.to_string()))?;
                    let own_hash = holdpoint_evidence::hash::bytes(text.as_bytes());
                    summaries.push((tree::summary_path(hash, &own_hash), text));
                }
                Ok(())
            })?;
        }
        Ok(summaries)
    }

    fn prune_files(&mut self, prune: &Prune) -> Result<Pruned, FlowError> {
        let old = self.cache.old(prune)?;
        if prune.what == PruneWhat::Runs {
            return Ok(self.forget(&old)?);
        }
        let summaries = self.summaries(&old)?;
        if !summaries.is_empty() {
            self.commit(&summaries, &format!("Prune samples of runs: {}", summaries.len()))?;
        }
        self.cache.prune(prune)?;
        Ok(Pruned { runs_count: summaries.len() as u64, points_count: 0 })
    }

    fn failed(&self, error: &FlowError) -> HistoryError {
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

fn accept_again(cache: &mut dyn Store, text: &str) -> Result<(), String> {
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
fn read_record(hash: RunHash, path: &str, text: &str) -> Result<RunRecord, String> {
    let is_summary = path.starts_with(SUMMARIES);
    let own_hash = holdpoint_evidence::hash::bytes(text.as_bytes());
    let is_named_so = match is_summary {
        true => path == tree::summary_path(&hash, &own_hash),
        false => own_hash == hash.to_string(),
    };
    if !is_named_so {
        return Err("its content is not that of its name: it was edited".to_owned());
    }
    let why = |error| match error {
        FlowError::File { what, .. } => what,
        error => error.to_string(),
    };
    let record = match is_summary {
        true => serde_json::from_str(text).map_err(|error| error.to_string())?,
        false => record(text, Path::new(path), &Missing { revision: None, at: None }).map_err(why)?,
    };
    refuse_future(record.at, Path::new(path)).map_err(why)?;
    Ok(RunRecord { hash, ..record })
}

impl Store for GitStore {
    fn add(&mut self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
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
            self.commit(&files, &message).map_err(|error| self.failed(&error))?;
        }
        let is_removed = |run: &RunRecord| self.removed.contains(&run.hash);
        let kept: Vec<RunRecord> = runs.iter().filter(|run| !is_removed(run)).cloned().collect();
        let mut added = self.cache.add(&kept)?.into_iter();
        Ok(runs.iter().map(|run| !is_removed(run) && added.next().unwrap_or(false)).collect())
    }

    /// A run that was removed is known as well: adding it again would not bring it back.
    fn known(&mut self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        let known = self.cache.known(hashes)?;
        Ok(hashes.iter().zip(known).map(|(hash, known)| known || self.removed.contains(hash)).collect())
    }

    fn list(&mut self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError> {
        self.cache.list(filter)
    }

    fn read(&mut self, id: &str) -> Result<Series, HistoryError> {
        self.cache.read(id)
    }

    fn runs_at(&mut self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError> {
        self.cache.runs_at(id, times)
    }

    fn values(&mut self, id: &str) -> Result<Values, HistoryError> {
        self.cache.values(id)
    }

    fn accept(&mut self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError> {
        self.cache.accept(id, acceptance)?;
        let file = AcceptedFile { series: id.to_owned(), acceptance: acceptance.clone() };
        let text = serde_json::to_string(&file)
            .map_err(|error| self.failed(&FlowError::Internal(error.to_string())))?;
        let path = format!("{ACCEPTED}{}.json", holdpoint_evidence::hash::bytes(text.as_bytes()));
        self.commit(&[(path, text)], "Accept a change").map_err(|error| self.failed(&error))
    }

    fn document(&mut self, run: &RunHash) -> Result<Option<String>, HistoryError> {
        self.cache.document(run)
    }

    fn old(&mut self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError> {
        self.cache.old(prune)
    }

    fn forget(&mut self, runs: &[RunHash]) -> Result<Pruned, HistoryError> {
        if runs.is_empty() {
            return Ok(Pruned::default());
        }
        let files: Vec<(String, String)> =
            runs.iter().map(|run| (tree::removed_path(run), String::new())).collect();
        self.commit(&files, &format!("Prune runs: {}", files.len())).map_err(|error| self.failed(&error))?;
        self.removed.extend(runs.iter().copied());
        self.cache.forget(runs)
    }

    fn prune(&mut self, prune: &Prune) -> Result<Pruned, HistoryError> {
        self.prune_files(prune).map_err(|error| self.failed(&error))
    }
}

#[cfg(test)]
mod tests;
