//! What `gate`, `ab` and `compare` left in a folder. It may be a stranger's folder: plain files only, of a bounded size, and a
//! file that cannot be used is told of and used for nothing.

use crate::error::CliError;
use crate::output::Output;
use holdpoint_gate::ab::exit_code_of;
use holdpoint_model::{AbReport, Calibration, Judgement, Report};
use holdpoint_render::Ended;
use holdpoint_render::judged::Judged;
use holdpoint_store::{FolderLock, REPORTS_MAX, report_name};
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
        let (run, sides) = ([COMPARISON, TREND, REPORT_PAGE], [AB, AB_PAGE]);
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

/// Locks the folder and removes what earlier runs left, before anything of this one can fail: what lies there together then
/// belongs together.
///
/// # Errors
/// When it cannot be locked, or something cannot be removed.
pub fn begin(dir: &Path, writer: Writer, output: &Output) -> Result<FolderLock, CliError> {
    let lock = lock(dir, output)?;
    for name in writer.stale() {
        holdpoint_store::remove(&dir.join(name))?;
    }
    // All of them: one after a gap would be taken for a later gate's.
    for number in 2..=REPORTS_MAX {
        holdpoint_store::remove(&dir.join(report_name(number)))?;
    }
    Ok(lock)
}

/// What was found.
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
        found.judgement = read(&dir.join(COMPARISON), holdpoint_store::read_judgement, problems);
        found.ab = read(&dir.join(AB), holdpoint_store::read_ab, problems);
        found.ended = read(&dir.join(EXIT_CODE), exit_code, problems);
        found.calibration = read(&dir.join("calibration.json"), holdpoint_store::read_calibration, problems);
        for number in 1..=REPORTS_MAX {
            let path = dir.join(report_name(number));
            if number > 1 && path.symlink_metadata().is_err() {
                break;
            }
            found.reports.extend(read(&path, holdpoint_store::read_report, problems));
        }
        let contradictions = found.contradictions();
        found.problems.extend(contradictions);
        found
    }

    /// What a file says against itself, and the files against what the gate ended with.
    fn contradictions(&self) -> Vec<String> {
        let judged = self.judged();
        let of_file = |judged: &Judged<'_>| {
            let name = if matches!(judged, Judged::Run(..)) { COMPARISON } else { AB };
            Some(format!("{name}: {}", judged.contradiction()?))
        };
        let mut said: Vec<String> = judged.iter().filter_map(of_file).collect();
        let worst = judged.iter().max_by_key(|judged| judged.verdict());
        if let (Some(worst), Some(ended)) = (worst, &self.ended)
            && !ended.is(exit_code_of(worst.policy(), worst.verdict()))
            // One that a signal ended says so in both.
            && !(ended.is_signal() && self.ab.as_ref().is_some_and(|ab| !ab.finished))
        {
            let (file, verdict) = (worst.verdict().as_str(), ended.verdict().as_str());
            said.push(format!("the files say {file}, exit code {} means {verdict}", ended.code()));
        }
        said
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
