//! `holdpoint history add`: files and folders as runs of a history.

use super::AddRequest;
use crate::Watch;
use crate::error::FlowError;
use crate::evidence::artifacts;
use crate::histories::{self, refuse_future};
use crate::interchange::imports;
use holdpoint_history::{Access, RunRecord, Store};
use holdpoint_model::{FileError, Kind, Revision, Stated, Timestamp, document};
use holdpoint_store::StoreError;
use std::path::{Path, PathBuf};

/// Points and runs that are added at a time: enough for a transaction to cost little beside them, in 100 MB or so.
const BATCH_POINTS: usize = 100_000;
const BATCH_RUNS: usize = 10_000;

/// Facts about a run that its file leaves out.
struct Missing {
    revision: Option<Revision>,
    at: Option<Timestamp>,
}

/// How much was added.
#[derive(Clone, Copy, Debug, Default)]
pub struct Added {
    pub runs_count: u64,
    pub points_count: u64,
    /// Runs that were there already.
    pub known_count: u64,
}

pub fn add(args: &AddRequest, watch: &dyn Watch) -> Result<(String, Added), FlowError> {
    let location = histories::location(args.store.as_ref())?;
    let commit = args.revision.clone();
    let revision = commit.map(|commit| Revision { commit, dirty: false });
    let missing = Missing { revision, at: args.at };
    super::check_push(args.push.as_deref(), &location)?;
    // Everything is looked for before anything is changed.
    let files = args.files.iter().map(|path| find(path)).collect::<Result<Vec<_>, _>>()?;
    let mut batch = Batch {
        store: histories::open(&location, Access::Create, watch)?,
        runs: Vec::new(),
        points: 0,
        added: Added::default(),
    };
    for file in files.concat() {
        batch.add_file(&file, &missing, watch)?;
    }
    batch.flush()?;
    super::push(args.push.as_deref(), &location)?;
    Ok((location.to_string(), batch.added))
}

/// A file to be added, or a folder of another tool.
#[derive(Clone, Debug)]
enum Found {
    Document(PathBuf),
    Lines(PathBuf),
    Foreign(PathBuf),
}

/// The files to be added of a path. A folder without documents of ours may be one of another tool's, such as Criterion's, or hold folders of
/// evidence.
fn find(path: &Path) -> Result<Vec<Found>, FlowError> {
    if !path.is_dir() {
        return Ok(vec![find_file(path)?]);
    }
    let names = holdpoint_store::list_names(path)?;
    let below = names.iter().map(|name| path.join(name)).filter(|below| below.is_dir());
    let mut evidence = Vec::new();
    for folder in std::iter::once(path.to_owned()).chain(below) {
        evidence.extend(find_evidence(&folder)?);
    }
    Ok(if evidence.is_empty() { vec![Found::Foreign(path.to_owned())] } else { evidence.concat() })
}

/// The documents in a folder of evidence; `None` where it is none. A gate that measured nothing leaves an exit code alone.
fn find_evidence(folder: &Path) -> Result<Option<Vec<Found>>, FlowError> {
    let mut found = Vec::new();
    for name in holdpoint_store::list_names(folder)? {
        let file = folder.join(name);
        let is_document = file.extension().is_some_and(|end| end == "json" || end == "ndjson");
        if is_document && file.is_file() && is_measured(&file)? {
            found.push(find_file(&file)?);
        }
    }
    let is_evidence = !found.is_empty() || folder.join(artifacts::EXIT_CODE).exists();
    Ok(is_evidence.then_some(found))
}

/// Whether a file of a folder holds measurements or verdicts. A trend point beside its report says the same with less.
fn is_measured(path: &Path) -> Result<bool, FlowError> {
    if path.extension().is_some_and(|end| end == "ndjson") {
        return Ok(true);
    }
    let kind = document::kind(&holdpoint_store::read_text(path)?).ok().flatten();
    Ok(matches!(kind, Some(Kind::Report | Kind::Ab | Kind::Comparison)))
}

fn find_file(path: &Path) -> Result<Found, FlowError> {
    if path.extension().is_some_and(|end| end == "ndjson") {
        return Ok(Found::Lines(path.to_owned()));
    }
    let text = holdpoint_store::read_text(path)?;
    Ok(match document::kind(&text) {
        Ok(Some(_)) => Found::Document(path.to_owned()),
        _ => Found::Foreign(path.to_owned()),
    })
}

/// Runs that wait to be added together.
struct Batch {
    store: Box<dyn Store>,
    runs: Vec<RunRecord>,
    points: usize,
    added: Added,
}

impl Batch {
    fn add_file(&mut self, file: &Found, missing: &Missing, watch: &dyn Watch) -> Result<(), FlowError> {
        match file {
            Found::Lines(path) => holdpoint_store::for_each_trend(path, |mut trend| {
                fill(&mut trend.revision, missing);
                self.push(path, RunRecord::trend(&trend).map_err(|error| at(path, &error))?)
            }),
            Found::Document(path) => match read_document(path, missing, watch)? {
                Some(run) => self.push(path, run),
                None => Ok(()),
            },
            Found::Foreign(path) => {
                let (mut report, notes) = imports::read_report_at(path, missing.at)?;
                fill(&mut report.revision, missing);
                notes.iter().for_each(|note| watch.note(&format!("{}: {note}", path.display())));
                self.push(path, RunRecord::report(&report).map_err(|error| at(path, &error))?)
            }
        }
    }

    fn push(&mut self, path: &Path, run: RunRecord) -> Result<(), FlowError> {
        refuse_future(run.at, path)?;
        self.points += run.points.len();
        self.runs.push(run);
        if self.points >= BATCH_POINTS || self.runs.len() >= BATCH_RUNS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FlowError> {
        let runs = std::mem::take(&mut self.runs);
        self.points = 0;
        for (run, is_new) in runs.iter().zip(self.store.add(&runs)?) {
            if is_new {
                self.added.runs_count += 1;
                self.added.points_count += run.points.len() as u64;
            } else {
                self.added.known_count += 1;
            }
        }
        Ok(())
    }
}

/// A document of ours. A comparison is all verdicts, and none of them is believed if judging again leaves a doubt.
fn read_document(path: &Path, missing: &Missing, watch: &dyn Watch) -> Result<Option<RunRecord>, FlowError> {
    let text = holdpoint_store::read_text(path)?;
    let format = |source| StoreError::Format { path: path.to_owned(), source };
    if document::kind(&text).map_err(format)? == Some(Kind::Comparison) {
        let stated: Stated = document::read(&text).map_err(format)?;
        if let Some(problem) = artifacts::rejudge_file(&stated, path).problem() {
            watch.note(&format!("{}: its verdicts are left out: {problem}", path.display()));
            return Ok(None);
        }
    }
    Ok(Some(RunRecord::read(&text, missing.revision.as_ref(), histories::judge).map_err(format)?))
}

fn fill(revision: &mut Option<Revision>, missing: &Missing) {
    if revision.is_none() {
        *revision = missing.revision.clone();
    }
}

fn at(path: &Path, error: &FileError) -> FlowError {
    FlowError::File { path: path.to_owned(), what: error.to_string() }
}
