//! Verdicts over times, judged again from what they were made of: reports beside a comparison, the rounds of two sides. The numbers, statuses
//! and verdicts that come out must be those in the file; where they are not, the worse of both counts.

mod same;

pub(crate) use same::edited;

use crate::folder::find_file;
use holdpoint_gate::{ab, contradiction, judge_again};
use holdpoint_model::limits::clean_text;
use holdpoint_model::{AbReport, CheckStatus, Current, Date, Judgement, Report, Verdict, document};
use holdpoint_store::{REPORTS_MAX, report_name};
use same::{before_waiver, names_of, same_judgement, same_workload, same_worst};
use std::path::Path;

/// Why a file's verdict is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It contradicts itself, or what it was made of.
    Edited(String),
    /// It cannot be judged again.
    Unknown(&'static str),
}

/// A document, judged again.
#[derive(Clone, Debug)]
pub struct Rejudged<T> {
    /// The document as it was where there is no doubt. Else the worse of what it says and what judging again gives, and no pass.
    pub document: T,
    /// Why it is not believed as it was.
    pub doubt: Option<Doubt>,
    /// Names of the files beside it that it was judged by.
    pub rests_on: Vec<String>,
    said: Verdict,
    again: Option<Verdict>,
}

impl<T> Rejudged<T> {
    /// The doubt as a sentence.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        Some(match (self.doubt.as_ref()?, self.again) {
            (Doubt::Unknown(what), _) => {
                format!("it says {}, which cannot be judged again: {what}", self.said.as_str())
            }
            (Doubt::Edited(what), Some(again)) if again != self.said => {
                format!("it says {}, judged again it is {}: {what}", self.said.as_str(), again.as_str())
            }
            (Doubt::Edited(what), _) => what.clone(),
        })
    }
}

/// Judges a comparison again by the runs beside it: `report.json`, `report-2.json` and so on in `dir`, all of `commit` where one is given.
#[must_use]
pub fn rejudge_run(
    said: &Judgement,
    dir: &Path,
    commit: Option<&str>,
    day: Option<Date>,
) -> Rejudged<Judgement> {
    let runs = read_runs(dir, commit);
    let (rests_on, runs): (Vec<String>, Result<Vec<Current>, String>) = match runs {
        Ok(runs) => {
            let (names, runs) = runs.into_iter().unzip();
            (names, Ok(runs))
        }
        Err(what) => (Vec::new(), Err(what)),
    };
    Rejudged { rests_on, ..rejudge_by(said, runs, day) }
}

/// Judges a comparison again by runs that were read already.
#[must_use]
pub fn rejudge_by(
    said: &Judgement,
    runs: Result<Vec<Current>, String>,
    day: Option<Date>,
) -> Rejudged<Judgement> {
    let runs_known = runs.as_deref().ok().filter(|runs| !runs.is_empty());
    let again =
        runs_known.and_then(|runs| judge_again(said, runs)).map(|again| with_waivers(said, again, day));
    let doubt = doubt_run(said, runs, day);
    let mut document = said.clone();
    if doubt.is_some() {
        document = worse_run(said, again.clone().unwrap_or(document));
    }
    Rejudged {
        document,
        doubt,
        rests_on: Vec::new(),
        said: said.verdict,
        again: again.map(|again| again.verdict),
    }
}

fn doubt_run(j: &Judgement, runs: Result<Vec<Current>, String>, day: Option<Date>) -> Option<Doubt> {
    if let Err(what) = same_worst(j.verdict, j.checks.iter().map(|check| check.verdict), "checks") {
        return Some(Doubt::Edited(what));
    }
    match runs {
        Err(what) => Some(Doubt::Edited(what)),
        Ok(_) if j.basis.is_none() => Some(Doubt::Unknown("it does not hold what it was judged by")),
        Ok(runs) if runs.is_empty() => Some(Doubt::Unknown("the report that it judged is not beside it")),
        Ok(runs) => same_judgement(j, &runs, day).err().map(Doubt::Edited),
    }
}

/// Judges two sides again by their rounds.
#[must_use]
pub fn rejudge_sides(said: &AbReport, day: Option<Date>) -> Rejudged<AbReport> {
    let again = ab::judge_again(said).map(|again| sides_with_waivers(said, again, day));
    let doubt = match () {
        () if said.finished => doubt_sides(said, day).err().map(Doubt::Edited),
        // What was kept on the way has not been judged yet.
        () if said.verdict < Verdict::Inconclusive => Some(Doubt::Unknown("it is not finished")),
        () => None,
    };
    let mut document = said.clone();
    if doubt.is_some() || !said.finished {
        document = worse_sides(said, again.clone().unwrap_or(document));
    }
    let again = again.map(|again| again.verdict);
    Rejudged { document, doubt, rests_on: Vec::new(), said: said.verdict, again }
}

fn doubt_sides(report: &AbReport, day: Option<Date>) -> Result<(), String> {
    same_worst(report.verdict, report.workloads.values().map(|workload| workload.verdict), "workloads")?;
    let again = ab::judge_again(report)
        .ok_or("its plan, its policy or a unit of it makes no sense: it was edited")?;
    for ((name, said), again) in report.workloads.iter().zip(again.workloads.values()) {
        same_workload(name, said, again, day)?;
    }
    Ok(())
}

/// Waivers that hold are put to what was judged again, which knows none.
fn with_waivers(said: &Judgement, mut again: Judgement, day: Option<Date>) -> Judgement {
    for check in &mut again.checks {
        let told =
            said.checks.iter().find(|told| told.metric == check.metric && told.verdict == Verdict::Waived);
        let Some(told) = told.filter(|_| check.verdict == Verdict::Regressed) else { continue };
        if before_waiver(&names_of(check), Verdict::Waived, told.waiver.as_ref(), check.regression_ratio, day)
            .is_ok()
        {
            (check.verdict, check.status) = (Verdict::Waived, CheckStatus::Pass);
            (check.waiver, check.reason) = (told.waiver.clone(), told.reason.clone());
        }
    }
    again.verdict = again.checks.iter().map(|check| check.verdict).max().unwrap_or(Verdict::Inconclusive);
    again
}

fn sides_with_waivers(said: &AbReport, mut again: AbReport, day: Option<Date>) -> AbReport {
    for (name, workload) in &mut again.workloads {
        let told = said.workloads.get(name).filter(|told| told.verdict == Verdict::Waived);
        let Some(told) = told.filter(|_| workload.verdict == Verdict::Regressed) else { continue };
        let metric = format!("{name}_p50_ms");
        let names = [name.as_str(), &metric];
        if before_waiver(&names, Verdict::Waived, told.waiver.as_ref(), workload.change(), day).is_ok() {
            (workload.verdict, workload.reason) = (Verdict::Waived, told.reason.clone());
        }
    }
    let worst = again.workloads.values().map(|workload| workload.verdict).max();
    again.verdict = worst.unwrap_or(Verdict::Inconclusive);
    again
}

/// Of each check the worse; of the whole the worst, and no pass.
fn worse_run(said: &Judgement, again: Judgement) -> Judgement {
    let mut worse = Judgement { notes: said.notes.clone(), ..again };
    for told in &said.checks {
        match worse.checks.iter_mut().find(|check| check.metric == told.metric) {
            Some(check) if check.verdict < told.verdict => *check = told.clone(),
            Some(_) => {}
            None => worse.checks.push(told.clone()),
        }
    }
    let worst = worse.checks.iter().map(|check| check.verdict).max();
    worse.verdict = worst.into_iter().fold(said.verdict.max(Verdict::Inconclusive), Verdict::max);
    "fail".clone_into(&mut worse.status);
    worse
}

fn worse_sides(said: &AbReport, again: AbReport) -> AbReport {
    let mut worse = again;
    for (name, workload) in &mut worse.workloads {
        let told = said.workloads.get(name).filter(|told| told.verdict > workload.verdict);
        if let Some(told) = told {
            (workload.verdict, workload.reason) = (told.verdict, told.reason.clone());
        }
    }
    let worst = worse.workloads.values().map(|workload| workload.verdict).max();
    worse.verdict = worst.into_iter().fold(said.verdict.max(Verdict::Inconclusive), Verdict::max);
    worse
}

/// The runs that lie beside a comparison, by the names of their files.
fn read_runs(dir: &Path, commit: Option<&str>) -> Result<Vec<(String, Current)>, String> {
    let mut runs: Vec<(String, Current)> = Vec::new();
    for number in 1..=REPORTS_MAX {
        let name = report_name(number);
        let file = dir.join(&name);
        if file.symlink_metadata().is_err() {
            break;
        }
        let problem = |what: String| clean_text(&format!("{name} beside it: {what}"));
        match find_file(dir, &name) {
            Ok(Some(_)) => {}
            Ok(None) => return Err(problem("it is no plain file".to_owned())),
            Err(error) => return Err(problem(error.to_string())),
        }
        let text = holdpoint_store::read_text(&file).map_err(|error| problem(error.to_string()))?;
        let current = holdpoint_interop::read_current(&text.as_str().into())
            .map_err(|error| problem(error.to_string()))?;
        if let Ok(report) = document::read::<Report>(&text) {
            if let Some(what) = contradiction(&report) {
                return Err(problem(edited(&what)));
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
