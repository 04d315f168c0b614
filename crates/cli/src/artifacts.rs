//! What `gate`, `ab` and `compare` left in a folder. It may be a stranger's folder: plain files only, of a bounded size, and a
//! file that cannot be used is told of and used for nothing.

use crate::error::CliError;
use holdpoint_model::{AbReport, Calibration, Judgement, Report};
use holdpoint_render::judged::Judged;
use holdpoint_store::StoreError;
use std::path::{Path, PathBuf};

/// Largest file read: a long comparison with every sample takes a few megabytes.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// Reports of one gate: the first, and those that looked again.
const REPORTS_MAX: usize = 101;

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    judgement: Option<Judgement>,
    ab: Option<AbReport>,
    reports: Vec<Report>,
    /// A suite against itself.
    pub calibration: Option<Calibration>,
    /// Files that could not be used, and why.
    pub problems: Vec<String>,
}

impl Found {
    /// Reads the folder.
    ///
    /// # Errors
    /// When there is no such folder.
    pub fn read(dir: &Path) -> Result<Self, CliError> {
        if !dir.is_dir() {
            return Err(CliError::File {
                path: dir.to_owned(),
                what: "no such folder; name one with --artifacts".to_owned(),
            });
        }
        let mut found = Self::default();
        let problems = &mut found.problems;
        found.judgement = read(&dir.join("comparison.json"), holdpoint_store::read_judgement, problems);
        found.ab = read(&dir.join("ab.json"), holdpoint_store::read_ab, problems);
        found.calibration = read(&dir.join("calibration.json"), holdpoint_store::read_calibration, problems);
        for number in 1..=REPORTS_MAX {
            let name = if number == 1 { "report.json".to_owned() } else { format!("report-{number}.json") };
            let path = dir.join(name);
            if number > 1 && path.symlink_metadata().is_err() {
                break;
            }
            found.reports.extend(read(&path, holdpoint_store::read_report, problems));
        }
        Ok(found)
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
fn read<T>(
    path: &Path,
    parse: impl FnOnce(&Path) -> Result<T, StoreError>,
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
