//! Reads the samples beside a judgement, so that `gate` can judge it again.

use crate::folder::find_file;
use holdpoint_gate::Evidence;
pub use holdpoint_gate::rejudge::{Doubt, Rejudged, edited, edited_report, rejudge};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{AbReport, Basis, Current, Date, Report, Revision, Stated, document};
use holdpoint_store::{REPORTS_MAX, report_name};
use std::path::Path;

/// The samples of two sides.
const AB: &str = "ab.json";

/// Judges a judgement again by the samples in `dir`, all of `commit` where one is given; and the names of their files.
pub fn rejudge_beside(
    stated: &Stated,
    dir: &Path,
    commit: Option<&str>,
    day: Option<Date>,
) -> (Rejudged, Vec<String>) {
    let read = match &stated.basis {
        Some(Basis::Sides { .. }) => read_sides(dir, commit)
            .map(|sides| sides.map(|sides| (vec![AB.to_owned()], Evidence::Sides(Box::new(sides))))),
        _ => read_runs(dir, commit).map(|runs| {
            let (names, runs): (Vec<String>, Vec<Current>) = runs.into_iter().unzip();
            (!runs.is_empty()).then_some((names, Evidence::Runs(runs)))
        }),
    };
    let (names, evidence) = match read {
        Ok(Some((names, evidence))) => (names, Ok(Some(evidence))),
        Ok(None) => (Vec::new(), Ok(None)),
        Err(what) => (Vec::new(), Err(what)),
    };
    (rejudge(stated, evidence, day), names)
}

/// A problem with a file beside the judgement.
fn problem(name: &str, what: impl std::fmt::Display) -> String {
    clean_text(&format!("{name} beside it: {what}"))
}

fn read_sides(dir: &Path, commit: Option<&str>) -> Result<Option<AbReport>, String> {
    if dir.join(AB).symlink_metadata().is_err() {
        return Ok(None);
    }
    let report = document::read::<AbReport>(&read_beside(dir, AB)?).map_err(|error| problem(AB, error))?;
    check_commit(AB, report.head.revision.as_ref(), commit)?;
    Ok(Some(report))
}

fn check_commit(name: &str, revision: Option<&Revision>, commit: Option<&str>) -> Result<(), String> {
    match revision.zip(commit) {
        Some((at, commit)) if at.commit != commit => Err(problem(name, "it is of another commit")),
        _ => Ok(()),
    }
}

/// The text of a plain file of the folder.
fn read_beside(dir: &Path, name: &str) -> Result<String, String> {
    let file = find_file(dir, name).map_err(|error| problem(name, error))?;
    let file = file.ok_or_else(|| problem(name, "it is not a plain file"))?;
    holdpoint_store::read_text(&file).map_err(|error| problem(name, error))
}

/// The runs beside a judgement, by the names of their files.
fn read_runs(dir: &Path, commit: Option<&str>) -> Result<Vec<(String, Current)>, String> {
    let mut runs: Vec<(String, Current)> = Vec::new();
    for number in 1..=REPORTS_MAX {
        let name = report_name(number);
        if dir.join(&name).symlink_metadata().is_err() {
            break;
        }
        let text = read_beside(dir, &name)?;
        let current =
            holdpoint_interop::read_current(&text.as_str().into()).map_err(|error| problem(&name, error))?;
        if let Ok(report) = document::read::<Report>(&text) {
            if let Some(what) = edited_report(&report) {
                return Err(problem(&name, what));
            }
            check_commit(&name, report.revision.as_ref(), commit)?;
        }
        runs.push((name, current));
    }
    Ok(runs)
}
