//! Whether a judgement that came from a file holds: it is judged again from the samples it was made of, and the numbers, statuses and
//! verdicts that come out must be those in the file. Where they are not, the worse of both counts.

mod same;

pub use same::edited;

use crate::again::{AgainError, Evidence, judge_again};
use crate::checks::{blank, overall_status, overall_verdict};
use crate::{Judgement, contradiction};
use holdpoint_model::judgement::EVIDENCE_METRIC;
use holdpoint_model::limits::clean_text;
use holdpoint_model::{CheckStatus, Date, Stated, Verdict};
use same::{before_waiver, complete_evidence, names_of, same_judgement, same_worst};

/// Why a judgement from a file is not believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It contradicts itself, or the samples it was made of.
    Edited(String),
    /// It cannot be judged again.
    Unknown(&'static str),
}

/// A judgement from a file, judged again.
#[derive(Clone, Debug)]
pub struct Rejudged {
    /// The judgement as it was where there is no doubt. Else the worse of what it states and what judging again gives, and no pass.
    pub judgement: Judgement,
    pub doubt: Option<Doubt>,
    stated: Verdict,
    again: Option<Verdict>,
}

impl Rejudged {
    /// The doubt as a sentence.
    pub fn problem(&self) -> Option<String> {
        let stated = self.stated.as_str();
        Some(match (self.doubt.as_ref()?, self.again) {
            (Doubt::Unknown(what), _) => format!("it says {stated}, which cannot be judged again: {what}"),
            (Doubt::Edited(what), Some(again)) if again != self.stated => {
                format!("it says {stated}, judged again it is {}: {what}", again.as_str())
            }
            (Doubt::Edited(what), _) => what.clone(),
        })
    }

    /// The judgement, with the doubt as its first check.
    pub fn with_problem(mut self) -> Judgement {
        if let Some(problem) = self.problem() {
            let check = blank(EVIDENCE_METRIC, CheckStatus::Inconclusive, Verdict::Inconclusive, problem);
            self.judgement.edit().checks.insert(0, check);
        }
        self.judgement
    }
}

/// Judges a judgement again by its samples: `Ok(None)` where they are not there, an error where they cannot be believed. Waivers must
/// hold on `day`.
pub fn rejudge(stated: &Stated, evidence: Result<Option<Evidence>, String>, day: Option<Date>) -> Rejudged {
    let again = match &evidence {
        Ok(Some(evidence)) => Some(judge_again(stated, evidence)),
        Ok(None) | Err(_) => None,
    };
    let mut stated = stated.clone();
    if let Some(Ok(again)) = &again {
        complete_evidence(&mut stated, again);
    }
    let stated = &stated;
    let doubt = doubt(stated, evidence.err(), again.as_ref(), day);
    let again = again.and_then(Result::ok).map(|again| with_waivers(stated, again, day));
    let verdict = again.as_ref().map(|again| again.verdict);
    let judgement = match doubt {
        Some(_) => worse(stated, again.map_or_else(|| stated.clone(), Judgement::into_stated)),
        None => stated.clone(),
    };
    Rejudged { judgement: Judgement::new(judgement), doubt, stated: stated.verdict, again: verdict }
}

fn doubt(
    stated: &Stated,
    unreadable: Option<String>,
    again: Option<&Result<Judgement, AgainError>>,
    day: Option<Date>,
) -> Option<Doubt> {
    let is_cut_short = stated.sides.as_ref().is_some_and(|sides| !sides.finished);
    if !is_cut_short && let Err(what) = same_worst(stated) {
        return Some(Doubt::Edited(what));
    }
    if let Some(what) = unreadable {
        return Some(Doubt::Edited(what));
    }
    match again {
        _ if stated.basis.is_none() => Some(Doubt::Unknown("it does not hold what it was judged by")),
        None => Some(Doubt::Unknown("the samples that it was made of are not beside it")),
        Some(Err(AgainError::Sides(error))) => Some(Doubt::Edited(clean_text(&error.to_string()))),
        Some(Err(error)) => Some(Doubt::Edited(edited(&error.to_string()))),
        Some(Ok(again)) => same_judgement(stated, again, day).err().map(Doubt::Edited),
    }
}

/// Waivers that hold are applied to a fresh judgement, which knows none.
fn with_waivers(stated: &Stated, mut judgement: Judgement, day: Option<Date>) -> Judgement {
    let again = judgement.edit();
    for check in &mut again.checks {
        let is_waived = |told: &&holdpoint_model::Check| {
            told.metric == check.metric
                && told.verdict == Verdict::Waived
                && check.verdict == Verdict::Regressed
        };
        let Some(told) = stated.checks.iter().find(is_waived) else { continue };
        if before_waiver(&names_of(check), Verdict::Waived, told.waiver.as_ref(), check.regression_ratio, day)
            .is_ok()
        {
            (check.verdict, check.status) = (Verdict::Waived, CheckStatus::Pass);
            (check.waiver, check.reason) = (told.waiver.clone(), told.reason.clone());
        }
    }
    if again.sides.as_ref().is_none_or(|sides| sides.finished) {
        again.verdict = overall_verdict(&again.checks);
        overall_status(&again.checks).clone_into(&mut again.status);
    }
    judgement
}

/// Of each check the worse; of the whole the worst, and no pass.
fn worse(stated: &Stated, again: Stated) -> Stated {
    let mut worse = Stated { notes: stated.notes.clone(), ..again };
    for told in &stated.checks {
        match worse.checks.iter_mut().find(|check| check.metric == told.metric) {
            Some(check) if check.verdict < told.verdict => *check = told.clone(),
            Some(_) => {}
            None => worse.checks.push(told.clone()),
        }
    }
    worse.verdict = overall_verdict(&worse.checks).max(stated.verdict).max(Verdict::Inconclusive);
    "fail".clone_into(&mut worse.status);
    worse
}

/// A report that contradicts itself, as a sentence.
pub fn edited_report(report: &holdpoint_model::Report) -> Option<String> {
    contradiction(report).map(|what| edited(&what))
}
