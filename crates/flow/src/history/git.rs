//! A history in a ref of the git repository: a project has one without a server.
//!
//! A run is a file named after its hash, so two histories are joined by taking the files of both, and no merge conflicts. For questions the
//! files are read into a local SQLite file, which can be deleted at any time. Only [`exchange`] uses the network.

use super::add::{Missing, record};
use super::plumbing::{File, Repository};
use crate::error::FlowError;
use holdpoint_history::{Access, HistoryError, Location, Prune, Pruned, RunAt, RunRecord, Store, Values};
use holdpoint_model::{Acceptance, RunHash, Series, SeriesFilter, SeriesSummary, Timestamp};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Folders of the ref's tree.
const RUNS: &str = "runs/";
const ACCEPTED: &str = "accepted/";

/// Tries to move a ref that others move as well: each takes milliseconds, and a remote's a second or so.
const TRIES: usize = 50;

/// Runs that are read from git at a time.
const RUNS_AT_ONCE: usize = 200;

/// The history in a ref, with the file that it is read into.
struct GitStore {
    repository: Repository,
    name: String,
    cache: Box<dyn Store>,
}

/// An accepted change as a file.
#[derive(Serialize, Deserialize)]
struct AcceptedFile {
    series: String,
    #[serde(flatten)]
    acceptance: Acceptance,
}

/// Opens the history in a ref of the repository that `dir` is in.
pub fn open(name: &str, access: Access, dir: &Path) -> Result<Box<dyn Store>, FlowError> {
    let repository = Repository::open(dir, name)?;
    if access == Access::Existing && repository.commit(name)?.is_none() {
        return Err(HistoryError::Missing { place: place(name) }.into());
    }
    let path = repository.folder().join("holdpoint").join(format!("{}.db", name.replace('/', "-")));
    let cache = open_cache(&path)?;
    let mut store = GitStore { repository, name: name.to_owned(), cache };
    store.update()?;
    Ok(Box::new(store))
}

/// The file holds nothing that the ref does not: one of another version is made anew.
fn open_cache(path: &Path) -> Result<Box<dyn Store>, FlowError> {
    let location = Location::File(path.to_owned());
    match holdpoint_history::open(&location, Access::Create) {
        Err(HistoryError::Older { .. } | HistoryError::Newer { .. }) => {
            holdpoint_store::remove(path)?;
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
        if let Some(theirs) = repository.fetch(remote, name)? {
            join(&repository, name, &theirs)?;
        }
        let Some(ours) = repository.commit(name)? else { return Ok(()) };
        match repository.push(remote, &ours, name)? {
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
    change(repository, name, |ours| match ours {
        None => Ok(Some(theirs.to_owned())),
        Some(ours) if repository.contains(ours, theirs)? => Ok(None),
        Some(ours) if repository.contains(theirs, ours)? => Ok(Some(theirs.to_owned())),
        Some(ours) => {
            let tree = repository.tree_with(Some(ours), &repository.files(theirs)?)?;
            repository.commit_tree(&tree, &[ours, theirs], "Join histories").map(Some)
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
        let is_ours = |path: &str| [RUNS, ACCEPTED].iter().any(|folder| path.starts_with(folder));
        if let Some((path, _)) = files.iter().find(|(path, _)| !is_ours(path)) {
            let what = "a branch of something else is no history; name a ref of its own";
            return Err(FlowError::Input(format!("{}: it holds {path}: {what}", place(&self.name))));
        }
        let hash_of = |path: &str| RunHash::parse(path.strip_suffix(".json")?.rsplit('/').next()?);
        let runs: Vec<(RunHash, &File)> = files
            .iter()
            .filter(|(path, _)| path.starts_with(RUNS))
            .filter_map(|file| Some((hash_of(&file.0)?, file)))
            .collect();
        for runs in runs.chunks(RUNS_AT_ONCE) {
            let hashes: Vec<RunHash> = runs.iter().map(|(hash, _)| *hash).collect();
            let known = self.cache.known(&hashes)?;
            let new: Vec<_> =
                runs.iter().zip(known).filter(|(_, known)| !known).map(|(run, _)| run).collect();
            let blobs: Vec<&str> = new.iter().map(|(_, (_, blob))| blob.as_str()).collect();
            let texts = self.repository.read(&blobs)?;
            let records =
                new.iter().zip(texts).map(|((hash, (path, _)), text)| self.record(*hash, path, &text));
            let records = records.collect::<Result<Vec<RunRecord>, _>>()?;
            self.cache.add(&records)?;
        }
        let accepted: Vec<&File> = files.iter().filter(|(path, _)| path.starts_with(ACCEPTED)).collect();
        for files in accepted.chunks(RUNS_AT_ONCE) {
            let blobs: Vec<&str> = files.iter().map(|(_, blob)| blob.as_str()).collect();
            for ((path, _), text) in files.iter().zip(self.repository.read(&blobs)?) {
                self.accept_again(path, &text)?;
            }
        }
        Ok(())
    }

    fn accept_again(&mut self, path: &str, text: &str) -> Result<(), FlowError> {
        let file: AcceptedFile = serde_json::from_str(text)
            .map_err(|error| FlowError::Input(format!("{}: {path}: {error}", place(&self.name))))?;
        match self.cache.accept(&file.series, &file.acceptance) {
            // Of a series that nothing was added to yet.
            Ok(()) | Err(HistoryError::NoSeries { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// A run as it was added. Its name is its hash: whoever changed the file is found out.
    fn record(&self, hash: RunHash, path: &str, text: &str) -> Result<RunRecord, FlowError> {
        let path = PathBuf::from(place(&self.name)).join(path);
        let missing = Missing { revision: None, at: None };
        if holdpoint_evidence::hash::bytes(text.as_bytes()) != hash.to_string() {
            let what = "its content is not that of its name: it was edited".to_owned();
            return Err(FlowError::File { path, what });
        }
        Ok(RunRecord { hash, ..record(text, &path, &missing)? })
    }

    /// Adds files to the ref, in one commit.
    fn commit(&self, files: &[(String, String)], message: &str) -> Result<(), FlowError> {
        let blobs = self.repository.write(files)?;
        change(&self.repository, &self.name, |ours| {
            let tree = self.repository.tree_with(ours, &blobs)?;
            let parents: Vec<&str> = ours.into_iter().collect();
            self.repository.commit_tree(&tree, &parents, message).map(Some)
        })
    }

    fn failed(&self, error: &FlowError) -> HistoryError {
        HistoryError::Failed { place: place(&self.name), what: error.to_string() }
    }
}

impl Store for GitStore {
    fn add(&mut self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
        let hashes: Vec<RunHash> = runs.iter().map(|run| run.hash).collect();
        let known = self.cache.known(&hashes)?;
        let new = runs.iter().zip(known).filter(|(_, known)| !known).map(|(run, _)| run);
        let files: Vec<(String, String)> = new
            .map(|run| (format!("{RUNS}{:.2}/{}.json", run.hash.to_string(), run.hash), run.document.clone()))
            .collect();
        // The ref first: the file is only read from it.
        if !files.is_empty() {
            let message = format!("Add runs: {}", files.len());
            self.commit(&files, &message).map_err(|error| self.failed(&error))?;
        }
        self.cache.add(runs)
    }

    fn known(&mut self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        self.cache.known(hashes)
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

    fn prune(&mut self, _: &Prune) -> Result<Pruned, HistoryError> {
        let what =
            "others would bring pruned runs back; start a new ref, or use a file or PostgreSQL".to_owned();
        Err(HistoryError::Place { place: place(&self.name), what })
    }
}
