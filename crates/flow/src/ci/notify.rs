//! `holdpoint ci notify`: tell people how it came out.

use super::CiResult;
use super::{own_url, variable};
use crate::done::{Done, Message};
use crate::error::FlowError;
use crate::options::NotifyArgs;
use crate::support::artifacts::Found;
use holdpoint_ci::notify::{self, Delivery, Environment, Message as Notification, NotifyError, Outcome};
use holdpoint_model::ExitCode;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use holdpoint_render::notice;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn run(args: &NotifyArgs) -> Result<Done<CiResult>, FlowError> {
    let config = NotifyConfig::parse(&holdpoint_store::read_text(&args.config)?)
        .map_err(|error| FlowError::File { path: args.config.clone(), what: error.to_string() })?;
    let found = Found::read(&args.artifacts);
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
            return Err(FlowError::File { path: args.artifacts.clone(), what });
        }
    };
    let document = notice::with_problems(document, problems, found.verdict());
    let (subject, plain, slack) =
        (notice::subject(&document), notice::plain(&document), notice::slack(&document));
    let notification = Notification { notice: &document, subject: &subject, plain: &plain, slack: &slack };
    let world =
        Environment { variable: &variable, pause: Arc::new(std::thread::sleep), limit: notify::LIMIT };
    let tell = if args.dry_run { notify::rehearse } else { notify::notify };
    let outcomes = tell(&config, notification, &world);
    let words = Words { is_dry: args.dry_run, document: &document, text: &format!("{subject}\n\n{plain}") };
    let message = Message { json: words.json(&outcomes), text: words.human(&outcomes) };
    // Without an exit code, what cannot be read may have been the worst.
    let end = end(&outcomes).and_then(|ended| match problems.first().filter(|_| found.ended.is_none()) {
        Some(problem) => Err(FlowError::File { path: args.artifacts.clone(), what: problem.clone() }),
        None => Ok(ended),
    });
    Ok(Done { document: CiResult::Message(message), notes: Vec::new(), end })
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
