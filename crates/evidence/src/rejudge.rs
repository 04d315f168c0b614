//! Reads the samples beside a judgement, so that `gate` can judge it again.

use crate::folder::find_file;
use holdpoint_gate::Evidence;
pub use holdpoint_gate::rejudge::{Doubt, Rejudged, edited, edited_report, rejudge};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{AbReport, Basis, Current, Date, Judgement, Report, document};
use holdpoint_store::{REPORTS_MAX, report_name};
use std::path::Path;

/// The samples of two sides.
const AB: &str = "ab.json";

/// Judges a judgement again by the samples in `dir`, all of `commit` where one is given; and the names of their files.
#[must_use]
pub fn rejudge_beside(
    stated: &Judgement,
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

/// The samples of two sides beside a judgement.
fn read_sides(dir: &Path, commit: Option<&str>) -> Result<Option<AbReport>, String> {
    if dir.join(AB).symlink_metadata().is_err() {
        return Ok(None);
    }
    let problem = |what: String| clean_text(&format!("{AB} beside it: {what}"));
    let report =
        document::read::<AbReport>(&read_beside(dir, AB)?).map_err(|error| problem(error.to_string()))?;
    let is_other = |commit| report.head.revision.as_ref().is_some_and(|at| at.commit != commit);
    if commit.is_some_and(is_other) {
        return Err(problem("it is of another commit".to_owned()));
    }
    Ok(Some(report))
}

/// The text of a plain file of the folder.
fn read_beside(dir: &Path, name: &str) -> Result<String, String> {
    let problem = |what: String| clean_text(&format!("{name} beside it: {what}"));
    match find_file(dir, name) {
        Ok(Some(_)) => {}
        Ok(None) => return Err(problem("it is not a plain file".to_owned())),
        Err(error) => return Err(problem(error.to_string())),
    }
    holdpoint_store::read_text(&dir.join(name)).map_err(|error| problem(error.to_string()))
}

/// The runs beside a judgement, by the names of their files.
fn read_runs(dir: &Path, commit: Option<&str>) -> Result<Vec<(String, Current)>, String> {
    let mut runs: Vec<(String, Current)> = Vec::new();
    for number in 1..=REPORTS_MAX {
        let name = report_name(number);
        let file = dir.join(&name);
        if file.symlink_metadata().is_err() {
            break;
        }
        let problem = |what: String| clean_text(&format!("{name} beside it: {what}"));
        let text = read_beside(dir, &name)?;
        let current = holdpoint_interop::read_current(&text.as_str().into())
            .map_err(|error| problem(error.to_string()))?;
        if let Ok(report) = document::read::<Report>(&text) {
            if let Some(what) = edited_report(&report) {
                return Err(problem(what));
            }
            let is_other = |commit| report.revision.as_ref().is_some_and(|at| at.commit != commit);
            if commit.is_some_and(is_other) {
                return Err(problem("it is of another commit".to_owned()));
            }
        }
        runs.push((name, current));
    }
    Ok(runs)
}
