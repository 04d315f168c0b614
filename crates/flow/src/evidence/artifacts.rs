//! The files that `gate`, `ab` and `compare` leave in a folder. It may be a stranger's folder: plain files only, of a bounded size, and a
//! file that cannot be used is reported and used for nothing.

use crate::Watch;
use crate::error::FlowError;
use crate::waivers;
use holdpoint_evidence::rejudge::{Rejudged, rejudge_beside};
use holdpoint_gate::judge_recorded;
use holdpoint_gate::{Ended, HasExitCode, Judgement, overall};
use holdpoint_model::{AbReport, Calibration, Date, ExitCode, Report, Source, Stated, Verdict};
use holdpoint_render::Judged;
use holdpoint_store::{FolderLock, REPORTS_MAX, StoreError, report_name};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A run against its baseline.
pub(crate) const COMPARISON: &str = "comparison.json";
/// Two sides.
pub const AB: &str = "ab.json";
/// Two sides, for people.
pub(crate) const AB_PAGE: &str = "ab.md";
/// A run.
pub const REPORT: &str = "report.json";
/// A run, for people.
pub(crate) const REPORT_PAGE: &str = "report.md";
/// A point of the history.
pub const TREND: &str = "trend.json";
/// The seal over a run and what it was judged by.
const REPORT_SEAL: &str = "report.seal.json";
/// The seal over two sides.
const AB_SEAL: &str = "ab.seal.json";
/// Profiles of regressed workloads: head, base, and their comparison.
pub(crate) const PROFILES: [&str; 3] = ["profile.json", "profile-base.json", "profile-comparison.json"];
/// The gate's exit code, as workflows keep it.
pub(crate) const EXIT_CODE: &str = "exit-code";

/// Largest file read: a long comparison with every sample takes a few megabytes.
const FILE_BYTES_MAX: u64 = 128 << 20;

/// How long a command waits for another one that writes to its folder: most gates end sooner.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(600);

/// The command that is about to write to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
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
        // Seals first: one that outlives any of its files would call them tampered with. Both seal a comparison.
        let first = [REPORT_SEAL, AB_SEAL, COMPARISON, TREND, REPORT_PAGE];
        let rest: &[&[&str]] = match self {
            Self::Run => &[&[AB, AB_PAGE]],
            Self::Gate => &[&[EXIT_CODE, AB, AB_PAGE], &PROFILES],
            Self::Sides { resume: false } => &[&[EXIT_CODE, REPORT, AB, AB_PAGE], &PROFILES],
            Self::Sides { resume: true } => &[&[EXIT_CODE, REPORT], &PROFILES],
        };
        [&first[..], &rest.concat()].concat()
    }
}

/// Waits until nobody else writes to the folder, and keeps others waiting while the lock lives.
pub fn lock(dir: &Path, watch: &dyn Watch) -> Result<FolderLock, FlowError> {
    let tell = || {
        watch.note(&format!(
            "{}: another holdpoint is writing to this folder; waiting for at most {} s",
            dir.display(),
            LOCK_WAIT_MAX.as_secs()
        ));
    };
    Ok(FolderLock::acquire(dir, LOCK_WAIT_MAX, tell)?)
}

/// Removes what earlier runs left, once all input was found to be good and before anything is measured: what lies there
/// together then belongs together, and a typing error costs no evidence.
pub fn clear(dir: &Path, writer: Writer) -> Result<(), FlowError> {
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
pub(crate) fn clear_unless_input<T>(
    prepared: Result<T, FlowError>,
    dir: &Path,
    writer: Writer,
) -> Result<T, FlowError> {
    match &prepared {
        Err(error) if error.exit_code() != ExitCode::Usage => clear(dir, writer)?,
        _ => {}
    }
    prepared
}

/// The evidence of a folder. Its judgement is judged again: where it does not hold, the worse of both is here, and a problem says so.
#[derive(Debug, Default)]
pub(crate) struct EvidenceFolder {
    judgement: Option<Judgement>,
    sides: Option<AbReport>,
    reports: Vec<Report>,
    /// The outcome of comparing the suite with itself.
    pub calibration: Option<Calibration>,
    /// The gate's exit code.
    pub ended: Option<Ended>,
    /// Files that could not be used, and why; and contradictions between them.
    pub problems: Vec<String>,
}

impl EvidenceFolder {
    /// Reads the folder. A folder that does not exist is an empty one.
    pub fn read(dir: &Path) -> Self {
        let mut found = Self::default();
        let problems = &mut found.problems;
        let day = waivers::today().ok();
        let stated = read(&dir.join(COMPARISON), holdpoint_store::read_document::<Stated>, problems);
        found.sides = read(&dir.join(AB), holdpoint_store::read_document::<AbReport>, problems);
        found.judgement = match stated {
            Some(stated) => {
                let commit = stated.revision.as_ref().map(|revision| revision.commit.as_str());
                let (rejudged, _) = rejudge_beside(&stated, dir, commit, day);
                problems.extend(rejudged.problem().map(|what| format!("{COMPARISON}: {what}")));
                Some(rejudged.judgement)
            }
            // A comparison that was cut short has left samples alone.
            None => found.sides.as_ref().and_then(|sides| match judge_recorded(sides) {
                Ok(judgement) => Some(judgement),
                Err(error) => {
                    problems.push(format!("{AB}: {error}"));
                    None
                }
            }),
        };
        let is_doubted = !problems.is_empty();
        found.ended = read(&dir.join(EXIT_CODE), exit_code_of_file, problems);
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

    /// A judgement that does not fit the gate's exit code.
    fn contradiction(&self) -> Option<String> {
        let (judgement, ended) = (self.judgement.as_ref()?, self.ended.as_ref()?);
        // One that a signal ended says so in both.
        let is_cut_short = ended.is_signal() && judgement.sides.as_ref().is_some_and(|sides| !sides.finished);
        if is_cut_short || ended.is(judgement.exit_code()) {
            return None;
        }
        let (file, verdict) = (judgement.verdict.as_str(), ended.verdict().as_str());
        Some(format!("the files say {file}, exit code {} means {verdict}", ended.code()))
    }

    /// The judgement with its samples.
    pub fn judged(&self) -> Option<Judged<'_>> {
        let judgement = self.judgement.as_ref()?;
        let source = match (&judgement.sides, &self.sides) {
            (Some(_), Some(sides)) => Some(Source::Sides(sides)),
            (Some(_), None) => None,
            (None, _) => self.report().map(Source::Run),
        };
        Some(Judged::new(judgement, source))
    }

    /// The verdict over all of it.
    pub fn verdict(&self) -> Verdict {
        overall(self.judgement.as_ref(), self.ended.as_ref(), !self.problems.is_empty())
    }

    /// The first run.
    pub fn report(&self) -> Option<&Report> {
        self.reports.first()
    }

    /// Machine time of all that was measured.
    pub fn machine_s(&self) -> Option<f64> {
        let runs = self.reports.iter().map(|report| report.config.elapsed_s);
        let seconds: f64 =
            runs.chain(self.sides.as_ref().map(|sides| sides.elapsed_s)).filter(|s| s.is_finite()).sum();
        (seconds > 0.0).then_some(seconds)
    }
}

/// A judgement from a file or its samples, judged again by the samples beside it.
pub(crate) fn rejudge_file(stated: &Stated, path: &Path) -> Rejudged {
    let dir = path.parent().unwrap_or(Path::new("."));
    let commit = stated.revision.as_ref().map(|revision| revision.commit.as_str());
    rejudge_beside(stated, dir, commit, day_of(stated.timestamp_utc.as_deref())).0
}

/// The day on which something was judged, where it says so: a waiver that has expired since did count.
pub(crate) fn day_of(began: Option<&str>) -> Option<Date> {
    let day = began.and_then(|began| Date::parse(began.get(..10)?));
    day.or_else(|| waivers::today().ok())
}

/// A report of ours. One of the originals' was judged, and has nothing more to show.
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

fn exit_code_of_file(path: &Path) -> Result<Ended, String> {
    let text = holdpoint_store::read_text(path).map_err(|error| error.to_string())?;
    Ended::parse(&text).ok_or_else(|| "it is no exit code".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_seal_outlives_a_file_that_it_covers() {
        for writer in
            [Writer::Run, Writer::Gate, Writer::Sides { resume: false }, Writer::Sides { resume: true }]
        {
            assert_eq!(writer.stale()[..2], [REPORT_SEAL, AB_SEAL], "{writer:?}");
        }
    }
}
