//! `holdpoint ci notify`: tell people how it came out.

use super::CiResult;
use crate::ci_job::{own_url, variable};
use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use crate::evidence::artifacts::{AB, COMPARISON, EXIT_CODE, EvidenceFolder};
use holdpoint_ci::guard::plain;
use holdpoint_ci::notify::{self, Delivery, Environment, Message as Notification, NotifyError, Outcome};
use holdpoint_gate::Ended;
use holdpoint_model::ExitCode;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use holdpoint_render::notice;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders of one run's gates at most.
const GATES_MAX: usize = 16;

/// A gate's evidence, and who is to be notified of it.
#[derive(Clone, Debug)]
pub struct NotifyRequest {
    pub artifacts: PathBuf,
    /// The conclusion of the run that wrote the folder, or a folder per gate.
    pub conclusion: Option<String>,
    /// The file with the recipients.
    pub config: PathBuf,
    /// Prints what would be sent.
    pub dry_run: bool,
}

pub fn run(request: &NotifyRequest) -> Result<CommandResult<CiResult>, FlowError> {
    let config = NotifyConfig::parse(&holdpoint_store::read_text(&request.config)?)
        .map_err(|error| FlowError::File { path: request.config.clone(), what: error.to_string() })?;
    let notices = match &request.conclusion {
        None => vec![notice_of(&request.artifacts, &EvidenceFolder::read(&request.artifacts))?],
        Some(conclusion) => of_run(request, conclusion)?,
    };
    let world =
        Environment { variable: &variable, pause: Arc::new(std::thread::sleep), limit: notify::LIMIT };
    let tell = if request.dry_run { notify::rehearse } else { notify::notify };
    let (mut texts, mut documents, mut ended) = (String::new(), Vec::new(), Ok(ExitCode::Ok));
    for CheckedNotice { notice: document, problem } in &notices {
        let (subject, plain, slack) =
            (notice::subject(document), notice::plain(document), notice::slack(document));
        let notification = Notification { notice: document, subject: &subject, plain: &plain, slack: &slack };
        let outcomes = tell(&config, notification, &world);
        let words = Words { is_dry: request.dry_run, document, text: &format!("{subject}\n\n{plain}") };
        texts += &words.human(&outcomes);
        documents.push(words.json(&outcomes));
        ended = ended.and(end(&outcomes)).and_then(|ended| match problem {
            Some(problem) => Err(FlowError::File { path: request.artifacts.clone(), what: problem.clone() }),
            None => Ok(ended),
        });
    }
    let json = if request.conclusion.is_none() { documents.remove(0) } else { json!(documents) };
    let message = Message { json, text: texts };
    Ok(CommandResult { document: CiResult::Message(message), notes: Vec::new(), end: ended })
}

/// A notice, and why the evidence behind it may hide something worse.
struct CheckedNotice {
    notice: Notice,
    problem: Option<String>,
}

/// Notices of a run's gates: those that passed are left out, and a run that left nothing has one.
fn of_run(request: &NotifyRequest, conclusion: &str) -> Result<Vec<CheckedNotice>, FlowError> {
    let has_evidence =
        |dir: &Path| [EXIT_CODE, COMPARISON, AB].iter().any(|name| dir.join(name).symlink_metadata().is_ok());
    let folders: Vec<PathBuf> = if has_evidence(&request.artifacts) {
        vec![request.artifacts.clone()]
    } else {
        let names = holdpoint_store::list_names(&request.artifacts)?;
        let folders = names.iter().take(GATES_MAX).map(|name| request.artifacts.join(name));
        folders.filter(|folder| has_evidence(folder)).collect()
    };
    let mut told = Vec::new();
    for folder in &folders {
        let found = EvidenceFolder::read(folder);
        if ExitCode::from(found.verdict()) != ExitCode::Ok {
            told.push(notice_of(folder, &found)?);
        }
    }
    if told.is_empty()
        && let Some(none) = Ended::parse("none")
    {
        let what = format!("no verdict: the run ended with {} and left no evidence of it", plain(conclusion));
        let notice = notice::without_judgement(none.verdict(), what, own_url().as_deref());
        told.push(CheckedNotice { notice, problem: None });
    }
    Ok(told)
}

fn notice_of(artifacts: &Path, found: &EvidenceFolder) -> Result<CheckedNotice, FlowError> {
    let run_url = own_url();
    let problems = &found.problems;
    let document = match (found.judged(), &found.ended) {
        (Some(judged), ended)
            if ended.as_ref().is_none_or(|ended| !ended.is_worse_than(judged.judgement.verdict)) =>
        {
            notice::notice(judged, run_url.as_deref())
        }
        (Some(_), Some(ended)) => {
            notice::without_judgement(found.verdict(), ended.sentence(true), run_url.as_deref())
        }
        (None, Some(ended)) => {
            let summary = format!("{}; it left no comparison", ended.sentence(false));
            notice::without_judgement(found.verdict(), summary, run_url.as_deref())
        }
        (_, None) => {
            let what =
                "none of comparison.json, ab.json and exit-code is there: run \"holdpoint gate\" first";
            let what = problems.first().map_or(what, String::as_str).to_owned();
            return Err(FlowError::File { path: artifacts.to_owned(), what });
        }
    };
    // Without an exit code, what cannot be read may have been the worst.
    let problem = problems.first().filter(|_| found.ended.is_none()).cloned();
    Ok(CheckedNotice { notice: notice::with_problems(document, problems, found.verdict()), problem })
}

struct Words<'a> {
    is_dry: bool,
    document: &'a Notice,
    text: &'a str,
}

impl Words<'_> {
    fn describe(&self, outcome: &Outcome) -> String {
        match &outcome.result {
            Ok(Delivery::Sent) if self.is_dry => "would be notified".to_owned(),
            Ok(Delivery::Sent) => "notified".to_owned(),
            Ok(Delivery::NotWanted) => format!("is not notified of {}", self.document.verdict.as_str()),
            Err(error) => format!("could not be notified: {error}"),
        }
    }

    fn human(&self, outcomes: &[Outcome]) -> String {
        let lines =
            outcomes.iter().map(|outcome| format!("{}: {}\n", outcome.target, self.describe(outcome)));
        let lines: String = lines.collect();
        if self.is_dry { format!("{lines}\n{}", self.text) } else { lines }
    }

    fn json(&self, outcomes: &[Outcome]) -> Value {
        let targets = outcomes
            .iter()
            .map(|outcome| json!({"target": outcome.target, "outcome": self.describe(outcome)}));
        json!({"dry_run": self.is_dry, "notice": self.document, "targets": targets.collect::<Vec<_>>()})
    }
}

fn end(outcomes: &[Outcome]) -> Result<ExitCode, FlowError> {
    let failed: Vec<(&str, &NotifyError)> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.target.as_str(), outcome.result.as_ref().err()?)))
        .collect();
    if failed.is_empty() {
        return Ok(ExitCode::Ok);
    }
    let failures: Vec<String> = failed.iter().map(|(target, error)| format!("{target}: {error}")).collect();
    let failures = format!("not everybody was notified: {}", failures.join("; "));
    let is_input = failed.iter().all(|(_, error)| matches!(error, NotifyError::Setting(_)));
    Err(if is_input { FlowError::Input(failures) } else { FlowError::Internal(failures) })
}
