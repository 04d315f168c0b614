//! What `gate`, `ab` and `compare` left in a folder. It may be a stranger's folder: plain files only, of a bounded size, and a
//! file that cannot be used is told of and used for nothing.

use crate::error::CliError;
use crate::output::Output;
use crate::waivers;
use holdpoint_evidence::rejudge::{Doubt, Rejudged, rejudge_run, rejudge_sides};
use holdpoint_gate::ab::exit_code_of;
use holdpoint_model::document::AnyDocument;
use holdpoint_model::{AbReport, Calibration, Date, ExitCode, Judgement, Report, Revision};
use holdpoint_render::Ended;
use holdpoint_render::judged::Judged;
use holdpoint_store::{FolderLock, REPORTS_MAX, StoreError, report_name};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run against its baseline.
pub const COMPARISON: &str = "comparison.json";
/// Two sides.
pub const AB: &str = "ab.json";
/// Two sides, for people.
pub const AB_PAGE: &str = "ab.md";
/// A run.
pub const REPORT: &str = "report.json";
/// A run, for people.
pub const REPORT_PAGE: &str = "report.md";
/// A point of the history.
pub const TREND: &str = "trend.json";
/// The seal over a run and what it was judged by.
const REPORT_SEAL: &str = "report.seal.json";
/// The seal over two sides.
const AB_SEAL: &str = "ab.seal.json";
/// What the gate ended with, as the workflows keep it.
const EXIT_CODE: &str = "exit-code";

/// Largest file read: a long comparison with every sample takes a few megabytes.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// How long a command waits for another one that writes to its folder: most gates end sooner.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(600);

/// Who is about to write to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// `run`, which leaves a report. What the gate before it ended with is the workflow's file, not ours.
    Run,
    /// `gate`, which leaves a report and a comparison. The old report stays until there is another.
    Gate,
    /// `ab` or `gate --against`.
    Sides {
        /// Whether it goes on from the `ab.json` there.
        resume: bool,
    },
}

impl Writer {
    /// Files of earlier runs that would be taken for this one's.
    fn stale(self) -> Vec<&'static str> {
        let (run, sides) = ([REPORT_SEAL, COMPARISON, TREND, REPORT_PAGE], [AB, AB_PAGE, AB_SEAL]);
        match self {
            Self::Run => [&run[..], &sides].concat(),
            Self::Gate => [&run[..], &[EXIT_CODE], &sides].concat(),
            Self::Sides { resume: false } => [&run[..], &[EXIT_CODE], &sides, &[REPORT]].concat(),
            Self::Sides { resume: true } => [&run[..], &[EXIT_CODE], &[REPORT]].concat(),
        }
    }
}

/// Waits until nobody else writes to the folder, and keeps others waiting while the lock lives.
///
/// # Errors
/// When the folder cannot be made, or another process does not let go of it.
pub fn lock(dir: &Path, output: &Output) -> Result<FolderLock, CliError> {
    let tell = || {
        output.note(&format!(
            "{}: another holdpoint is writing to this folder; waiting for at most {} s",
            dir.display(),
            LOCK_WAIT_MAX.as_secs()
        ));
    };
    Ok(FolderLock::acquire(dir, LOCK_WAIT_MAX, tell)?)
}

/// Removes what earlier runs left, once all input was found to be good and before anything is measured: what lies there
/// together then belongs together, and a typing error costs no evidence.
///
/// # Errors
/// When something cannot be removed.
pub fn clear(dir: &Path, writer: Writer) -> Result<(), CliError> {
    for name in writer.stale() {
        holdpoint_store::remove(&dir.join(name))?;
    }
    // All of them: one after a gap would be taken for a later gate's.
    for number in 2..=REPORTS_MAX {
        holdpoint_store::remove(&dir.join(report_name(number)))?;
    }
    Ok(())
}

/// The same after preparing: bad input leaves all as it was, and what fails otherwise is how this gate came out.
///
/// # Errors
/// The one it was given, or when something cannot be removed.
pub fn clear_unless_input<T>(
    prepared: Result<T, CliError>,
    dir: &Path,
    writer: Writer,
) -> Result<T, CliError> {
    match &prepared {
        Err(error) if error.exit_code() != ExitCode::Usage => clear(dir, writer)?,
        _ => {}
    }
    prepared
}

/// What was found. Verdicts are judged again: where a file does not hold, the worse of both is here, and a problem says so.
#[derive(Debug, Default)]
pub struct Found {
    judgement: Option<Judgement>,
    ab: Option<AbReport>,
    reports: Vec<Report>,
    /// A suite against itself.
    pub calibration: Option<Calibration>,
    /// What the gate ended with.
    pub ended: Option<Ended>,
    /// Files that could not be used, and why; and what contradicts itself.
    pub problems: Vec<String>,
}

impl Found {
    /// Reads the folder. One that is not there is one that nothing was left in.
    #[must_use]
    pub fn read(dir: &Path) -> Self {
        let mut found = Self::default();
        let problems = &mut found.problems;
        let day = waivers::today().ok();
        found.judgement = read(&dir.join(COMPARISON), holdpoint_store::read_document::<Judgement>, problems)
            .map(|said| {
                kept(COMPARISON, rejudge_run(&said, dir, commit_of(said.revision.as_ref()), day), problems)
            });
        found.ab = read(&dir.join(AB), holdpoint_store::read_document::<AbReport>, problems)
            .map(|said| kept(AB, rejudge_sides(&said, day), problems));
        let is_doubted = !problems.is_empty();
        found.ended = read(&dir.join(EXIT_CODE), exit_code, problems);
        found.calibration =
            read(&dir.join("calibration.json"), holdpoint_store::read_document::<Calibration>, problems);
        for number in 1..=REPORTS_MAX {
            let path = dir.join(report_name(number));
            if number > 1 && path.symlink_metadata().is_err() {
                break;
            }
            found.reports.extend(read(&path, own_report, problems).flatten());
        }
        if !is_doubted {
            let contradiction = found.contradiction();
            found.problems.extend(contradiction);
        }
        found
    }

    /// What the files say against what the gate ended with.
    fn contradiction(&self) -> Option<String> {
        let worst = self.judged().into_iter().max_by_key(|judged| judged.verdict())?;
        let ended = self.ended.as_ref()?;
        // One that a signal ended says so in both.
        let is_cut_short = ended.is_signal() && self.ab.as_ref().is_some_and(|ab| !ab.finished);
        if is_cut_short || ended.is(exit_code_of(worst.policy(), worst.verdict())) {
            return None;
        }
        let (file, verdict) = (worst.verdict().as_str(), ended.verdict().as_str());
        Some(format!("the files say {file}, exit code {} means {verdict}", ended.code()))
    }

    /// The comparisons.
    #[must_use]
    pub fn judged(&self) -> Vec<Judged<'_>> {
        let sides = self.ab.as_ref().map(Judged::Sides);
        let run = self.judgement.as_ref().map(|judgement| Judged::Run(judgement, self.report()));
        sides.into_iter().chain(run).collect()
    }

    /// The first run.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.reports.first()
    }

    /// Machine time of all that was measured.
    #[must_use]
    pub fn machine_s(&self) -> Option<f64> {
        let runs = self.reports.iter().map(|report| report.config.elapsed_s);
        let seconds: f64 =
            runs.chain(self.ab.as_ref().map(|ab| ab.elapsed_s)).filter(|s| s.is_finite()).sum();
        (seconds > 0.0).then_some(seconds)
    }
}

/// Why a document does not hold.
#[derive(Debug)]
pub struct Problem {
    /// In a sentence.
    pub what: String,
    /// Whether it contradicts what it was made of; else that is not there.
    pub is_edited: bool,
}

impl Problem {
    /// What is wrong with a document that was judged again.
    #[must_use]
    pub fn of<T>(rejudged: &Rejudged<T>) -> Option<Self> {
        let is_edited = matches!(rejudged.doubt, Some(Doubt::Edited(_)));
        rejudged.problem().map(|what| Self { what, is_edited })
    }
}

/// A comparison as it is to be shown: judged again, by what lies beside the file.
#[must_use]
pub fn rejudge_document(document: AnyDocument, path: &Path) -> (AnyDocument, Option<Problem>) {
    match document {
        AnyDocument::Judgement(said) => {
            let dir = path.parent().unwrap_or(Path::new("."));
            let day = day_of(said.timestamp_utc.as_deref());
            let rejudged = rejudge_run(&said, dir, commit_of(said.revision.as_ref()), day);
            let problem = Problem::of(&rejudged);
            (AnyDocument::Judgement(Box::new(rejudged.document)), problem)
        }
        AnyDocument::Ab(said) => {
            let rejudged = rejudge_sides(&said, day_of(Some(&said.timestamp_utc)));
            let problem = Problem::of(&rejudged);
            (AnyDocument::Ab(Box::new(rejudged.document)), problem)
        }
        other => (other, None),
    }
}

/// The day on which something was judged, where it says so: a waiver that has expired since did count.
#[must_use]
pub fn day_of(began: Option<&str>) -> Option<Date> {
    let day = began.and_then(|began| Date::parse(began.get(..10)?));
    day.or_else(|| waivers::today().ok())
}

fn kept<T>(name: &str, rejudged: Rejudged<T>, problems: &mut Vec<String>) -> T {
    problems.extend(rejudged.problem().map(|what| format!("{name}: {what}")));
    rejudged.document
}

fn commit_of(revision: Option<&Revision>) -> Option<&str> {
    revision.map(|revision| revision.commit.as_str())
}

/// A report of ours. One of the seeds' was judged, and has nothing more to show.
fn own_report(path: &Path) -> Result<Option<Report>, StoreError> {
    match holdpoint_store::read_document::<Report>(path) {
        Err(_) if holdpoint_store::read_current(path).is_ok() => Ok(None),
        report => report.map(Some),
    }
}

/// A file if it is there; where it cannot be used, why.
fn read<T, E: Display>(
    path: &Path,
    parse: impl FnOnce(&Path) -> Result<T, E>,
    problems: &mut Vec<String>,
) -> Option<T> {
    // Not followed: a link could lead to a file of this machine.
    let metadata = path.symlink_metadata().ok()?;
    let name = || path.file_name().map(PathBuf::from).unwrap_or_default();
    let outcome = match () {
        () if !metadata.is_file() => Err("it is not a plain file".to_owned()),
        () if metadata.len() > FILE_BYTES_MAX => Err(format!("over {FILE_BYTES_MAX} bytes")),
        // The folder is the reader's business, not that of whoever reads the comment.
        () => parse(path).map_err(|error| error.to_string().replace(&format!("{}: ", path.display()), "")),
    };
    outcome.map_err(|what| problems.push(format!("{}: {what}", name().display()))).ok()
}

fn exit_code(path: &Path) -> Result<Ended, String> {
    let text = holdpoint_store::read_text(path).map_err(|error| error.to_string())?;
    Ended::parse(&text).ok_or_else(|| "it is no exit code".to_owned())
}
