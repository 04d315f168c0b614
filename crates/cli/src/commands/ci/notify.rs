//! `holdpoint ci notify`: tell people how it came out.

use super::{own_url, variable};
use crate::args::NotifyArgs;
use crate::artifacts::Found;
use crate::error::CliError;
use crate::output::Output;
use holdpoint_ci::notify::{self, Message, NotTold, Outcome, Told, World};
use holdpoint_model::limits::clean_text;
use holdpoint_model::notice::Notice;
use holdpoint_model::notify::NotifyConfig;
use holdpoint_model::{ExitCode, Verdict};
use holdpoint_render::notice;
use serde_json::{Value, json};
use std::path::Path;

/// An exit code takes three digits.
const EXIT_CODE_BYTES_MAX: u64 = 16;

/// Runs the command.
///
/// # Errors
/// When the configuration or the folder cannot be used, or somebody could not be told.
pub fn run(args: &NotifyArgs, output: &Output) -> Result<ExitCode, CliError> {
    let config = NotifyConfig::parse(&holdpoint_store::read_text(&args.config)?)
        .map_err(|error| CliError::File { path: args.config.clone(), what: error.to_string() })?;
    let found = Found::read(&args.artifacts)?;
    // The worst speaks, as it does for the exit code.
    let document = match found.judged().into_iter().max_by_key(|judged| judged.verdict()) {
        Some(judged) if found.problems.is_empty() => notice::notice(judged, own_url().as_deref()),
        _ => match (exit_code(&args.artifacts), found.problems.first()) {
            (Some(code), problem) => of_code(&code, problem),
            (None, Some(problem)) => {
                return Err(CliError::File { path: args.artifacts.clone(), what: problem.clone() });
            }
            (None, None) => {
                let what =
                    "none of comparison.json, ab.json and exit-code is there: run \"holdpoint gate\" first";
                return Err(CliError::File { path: args.artifacts.clone(), what: what.to_owned() });
            }
        },
    };
    let (subject, plain, slack) =
        (notice::subject(&document), notice::plain(&document), notice::slack(&document));
    let message = Message { notice: &document, subject: &subject, plain: &plain, slack: &slack };
    let outcomes = if args.dry_run {
        notify::rehearse(&config, document.verdict)
    } else {
        notify::notify(&config, message, &World { variable: &variable, pause: &std::thread::sleep })
    };
    let words = Words { is_dry: args.dry_run, document: &document, text: &format!("{subject}\n\n{plain}") };
    output.result(&words.json(&outcomes), |_| words.human(&outcomes))?;
    end(&outcomes)
}

/// What the gate ended with, as the workflows keep it: a number, or a word where there was none.
fn exit_code(artifacts: &Path) -> Option<String> {
    let path = artifacts.join("exit-code");
    // Not followed, and short: the folder may be a stranger's.
    let metadata = path.symlink_metadata().ok()?;
    if !metadata.is_file() || metadata.len() > EXIT_CODE_BYTES_MAX {
        return None;
    }
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
        .filter(|code| !code.is_empty() && code.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// A notice of a gate that left nothing but its exit code.
fn of_code(code: &str, problem: Option<&String>) -> Notice {
    let (verdict, what) = match code {
        "0" => (Verdict::Pass, "not slower than allowed"),
        "1" => (Verdict::Regressed, "slower than allowed"),
        "2" => (Verdict::Skipped, "nothing could be measured"),
        "3" => (Verdict::Inconclusive, "the evidence does not suffice"),
        "4" => (Verdict::Broken, "a wrong answer, a crash, or a revision that does not build"),
        _ => (Verdict::Broken, "the gate ended without a verdict, or ran out of time"),
    };
    let why = problem.map_or_else(|| "it left no comparison".to_owned(), |problem| clean_text(problem));
    Notice {
        schema_version: holdpoint_model::SCHEMA_VERSION,
        suite: "gate".to_owned(),
        verdict,
        summary: format!("{what} (exit code {code}; {why})"),
        commit: None,
        machine: None,
        run_url: own_url(),
        rows: Vec::new(),
        rows_left_out: 0,
    }
}

struct Words<'a> {
    is_dry: bool,
    document: &'a Notice,
    text: &'a str,
}

impl Words<'_> {
    fn of(&self, outcome: &Outcome) -> String {
        match &outcome.result {
            Ok(Told::Sent) if self.is_dry => "would be told".to_owned(),
            Ok(Told::Sent) => "told".to_owned(),
            Ok(Told::NotWanted) => format!("is not told of {}", self.document.verdict.as_str()),
            Err(error) => format!("could not be told: {error}"),
        }
    }

    fn human(&self, outcomes: &[Outcome]) -> String {
        let lines = outcomes.iter().map(|outcome| format!("{}: {}\n", outcome.target, self.of(outcome)));
        let lines: String = lines.collect();
        if self.is_dry { format!("{lines}\n{}", self.text) } else { lines }
    }

    fn json(&self, outcomes: &[Outcome]) -> Value {
        let targets =
            outcomes.iter().map(|outcome| json!({"target": outcome.target, "outcome": self.of(outcome)}));
        json!({"dry_run": self.is_dry, "notice": self.document, "targets": targets.collect::<Vec<_>>()})
    }
}

fn end(outcomes: &[Outcome]) -> Result<ExitCode, CliError> {
    let failed: Vec<(&str, &NotTold)> = outcomes
        .iter()
        .filter_map(|outcome| Some((outcome.target.as_str(), outcome.result.as_ref().err()?)))
        .collect();
    if failed.is_empty() {
        return Ok(ExitCode::Ok);
    }
    let said: Vec<String> = failed.iter().map(|(target, error)| format!("{target}: {error}")).collect();
    let said = format!("not everybody was told: {}", said.join("; "));
    let is_input = failed.iter().all(|(_, error)| matches!(error, NotTold::Setting(_)));
    Err(if is_input { CliError::Input(said) } else { CliError::Internal(said) })
}
