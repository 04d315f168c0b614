//! Histories: which one is meant, and adding to it what a command has measured.

use crate::Watch;
use crate::error::FlowError;
use crate::request::{HistoryChoice, OWN_FILE, SuiteChoice, default_suite};
use crate::suites;
use holdpoint_gate::Judgement;
use holdpoint_gate::judge_recorded;
use holdpoint_history::{Access, HistoryError, Location, RunRecord, Store, check_time};
use holdpoint_model::{AbReport, FileError, Report, Stated, Suite, Timestamp};
use std::path::Path;

/// The history of the `history` commands: the one that is named, that of the repository's own suite, or the usual file.
pub fn location(named: Option<&Location>) -> Result<Location, FlowError> {
    if let Some(location) = named {
        return Ok(location.clone());
    }
    let name = default_suite();
    if !name.ends_with(OWN_FILE) {
        return Ok(Location::parse(Location::DEFAULT));
    }
    let suite = suites::load(&SuiteChoice::new(&name, None))?;
    Ok(of_suite(&suite).unwrap_or_else(|| Location::parse(Location::DEFAULT)))
}

/// The history that a command adds to, if it is to.
pub fn wanted(choice: &HistoryChoice, suite: &Suite) -> Option<Location> {
    match choice {
        HistoryChoice::Suite => of_suite(suite),
        HistoryChoice::At(location) => Some(location.clone()),
        HistoryChoice::None => None,
    }
}

fn of_suite(suite: &Suite) -> Option<Location> {
    let location = Location::parse(&suite.history.as_ref()?.store);
    Some(match &suite.dir {
        Some(dir) => location.in_folder(dir),
        None => location,
    })
}

/// Files of a history that are left out and named.
const LEFT_OUT_SHOWN: usize = 5;

/// Opens a history for reading and adding. Files of it that cannot be read are named, and left out.
pub fn open(location: &Location, access: Access, watch: &dyn Watch) -> Result<Box<dyn Store>, FlowError> {
    let store = holdpoint_history::open(location, access, judge)?;
    let left_out = store.left_out();
    let (shown, rest) = left_out.split_at(left_out.len().min(LEFT_OUT_SHOWN));
    shown.iter().for_each(|file| watch.note(&format!("{location}: left out: {file}")));
    if !rest.is_empty() {
        watch.note(&format!("{location}: {} more files are left out", rest.len()));
    }
    Ok(store)
}

/// Judges two sides from a file again: nothing that the file says is believed.
pub fn judge(ab: &AbReport) -> Result<Stated, String> {
    judge_recorded(ab).map(Judgement::into_stated).map_err(|error| error.to_string())
}

/// Refuses a run from the future.
pub(crate) fn refuse_future(at: Timestamp, path: &Path) -> Result<(), FlowError> {
    check_time(at).map_err(|what| FlowError::File { path: path.to_owned(), what })
}

/// The measurements of a command, as runs of a history.
pub enum Measured<'a> {
    Runs { reports: &'a [Report], judgement: Option<&'a Judgement> },
    Sides { ab: &'a AbReport, judgement: &'a Judgement },
}

impl Measured<'_> {
    fn records(&self) -> Result<Vec<RunRecord>, FileError> {
        match self {
            Self::Runs { reports, judgement } => {
                let reports = reports.iter().map(RunRecord::report);
                reports.chain(judgement.map(|judged| RunRecord::comparison(judged))).collect()
            }
            Self::Sides { ab, judgement } => {
                Ok(vec![RunRecord::sides(ab, judgement)?, RunRecord::comparison(judgement)?])
            }
        }
    }
}

/// Adds what was measured. A history that fails costs neither the measurement nor the verdict: it is one line.
pub fn keep(location: Option<&Location>, measured: &Measured<'_>, watch: &dyn Watch) {
    let Some(location) = location else { return };
    let add = || -> Result<(), FlowError> {
        let records = measured.records().map_err(|error| FlowError::Input(error.to_string()))?;
        open(location, Access::Create, watch)?.add(&records)?;
        Ok(())
    };
    match add() {
        Ok(()) => watch.note(&format!("history: {location}")),
        Err(error) => watch.note(&format!("warning: not added to the history: {error}")),
    }
}

impl From<HistoryError> for FlowError {
    fn from(error: HistoryError) -> Self {
        if error.is_input() { Self::Input(error.to_string()) } else { Self::Internal(error.to_string()) }
    }
}
