//! `holdpoint ci report`: a gate's evidence on the pull request: one comment, updated in place, and a check. The evidence is a
//! stranger's: it is judged again, and nothing of it chooses where the report goes.

use super::CiResult;
use super::stated_ruling::StatedRuling;
use crate::Watch;
use crate::ci_job::{own_url, variable};
use crate::command_result::{CommandResult, Message};
use crate::error::FlowError;
use crate::evidence::artifacts::EvidenceFolder;
use holdpoint_ci::github::{ApiError, Author, Check, Client, Event, Posted, Resolved, Unposted};
use holdpoint_ci::outcome::{Conclusion, Outcome};
use holdpoint_model::ExitCode;
use holdpoint_model::limits::clean_text;
use holdpoint_render::Judged;
use holdpoint_render::judged::Rate;
use holdpoint_render::markdown::comment::{self, Comment, Trust};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The event whose files come from another run, and that chooses the pull request by itself.
const WORKFLOW_RUN: &str = "workflow_run";
/// Events whose files come from a job that ran a stranger's code.
const FOREIGN: [&str; 2] = [WORKFLOW_RUN, ISSUE_COMMENT];
/// The event of a pull request, a fork's too.
const PULL_REQUEST: &str = "pull_request";
/// The event of `/perf SHA`, which knows no commit.
const ISSUE_COMMENT: &str = "issue_comment";

/// A gate's evidence to be reported.
#[derive(Clone, Debug)]
pub struct ReportRequest {
    pub artifacts: PathBuf,
    /// The name of this gate's comment.
    pub key: String,
    /// Prints the comment and posts nothing.
    pub dry_run: bool,
    /// Also appends it to the job's summary.
    pub summary: bool,
    /// The check to be set on the commit.
    pub check: Option<String>,
    /// The result of the job that measured.
    pub gate_result: Option<String>,
    /// The decision of `ci guard`, and its reason.
    pub decision: Option<String>,
    pub reason: String,
    /// The cost of an hour of machine time.
    pub rate: Option<Rate>,
    /// The pull request, and the commit that was measured; the event's, if absent.
    pub pr: Option<u64>,
    pub sha: Option<String>,
    /// The login that posts the comment.
    pub author: Option<String>,
}

impl ReportRequest {
    /// The commit that was measured, where it is given: a workflow may hand on nothing.
    pub fn sha(&self) -> Option<&String> {
        self.sha.as_ref().filter(|sha| !sha.is_empty())
    }
}

pub fn run(request: &ReportRequest, watch: &dyn Watch) -> Result<CommandResult<CiResult>, FlowError> {
    let mut found = EvidenceFolder::read(&request.artifacts);
    if !request.artifacts.is_dir() {
        watch.note(&format!("{}: no such folder: there is no verdict", request.artifacts.display()));
    }
    let started = JobEvent::read(request)?;
    let strays = strays(&found, request, started.as_ref());
    found.problems.extend(strays);
    let decision = StatedRuling::read(request);
    let outcome = request.gate_result.as_ref().map(|result| decision.outcome(result, &found));
    let is_foreign = is_foreign_pipeline() || started.as_ref().is_some_and(JobEvent::is_foreign);
    let run_url = started.as_ref().and_then(|started| started.run_url.clone());
    let trust = if is_foreign { Trust::Foreign } else { Trust::Own };
    let body = page(&found, &Page { key: &request.key, rate: request.rate.as_ref(), run_url, trust });
    if request.summary {
        append_summary(&body)?;
    }
    let document = if request.dry_run {
        CiResult::Page(body)
    } else {
        let report = Report { request, started: started.as_ref(), body: &body, outcome: outcome.as_ref() };
        let mut said = report.publish(decision.is_silent(&found), watch)?;
        said["verdict"] = found.verdict().as_str().into();
        let text = lines(&said, outcome.as_ref());
        CiResult::Message(Message { json: said, text })
    };
    let end = match found.problems.first() {
        Some(problem) => Err(FlowError::File { path: request.artifacts.clone(), what: problem.clone() }),
        None => Ok(match &outcome {
            Some(outcome) if request.decision.is_some() && outcome.conclusion == Conclusion::Failure => {
                ExitCode::Failed
            }
            _ => ExitCode::Ok,
        }),
    };
    Ok(CommandResult { document, notes: Vec::new(), end })
}

/// A report and where it goes.
struct Report<'a> {
    request: &'a ReportRequest,
    started: Option<&'a JobEvent>,
    body: &'a str,
    outcome: Option<&'a Outcome>,
}

impl Report<'_> {
    /// Writes the comment and sets the check. A job that decides does so whatever the forge says.
    fn publish(&self, is_silent: bool, watch: &dyn Watch) -> Result<Value, FlowError> {
        let unposted = |why: &str| json!({"posted": null, "said": format!("nothing was posted: {why}")});
        let or_note = |error: FlowError| match &self.request.decision {
            Some(_) => Ok(unposted(&error.to_string())),
            None => Err(error),
        };
        let mut said = self.comment(is_silent, watch).or_else(or_note)?;
        said["check"] = match set_check(self.request, self.started, self.outcome) {
            Err(error) => or_note(error)?["said"].clone(),
            Ok(check) => json!(check),
        };
        Ok(said)
    }

    fn comment(&self, is_silent: bool, watch: &dyn Watch) -> Result<Value, FlowError> {
        let has_pull_request = self.started.is_some_and(JobEvent::has_pull_request);
        let why = match self.started.and_then(JobEvent::unposted) {
            _ if is_silent => "nothing was measured, so there is nothing to tell".to_owned(),
            _ if self.request.decision.is_some() && !has_pull_request => {
                "nothing was posted: this run belongs to no pull request".to_owned()
            }
            Some(why) => format!("nothing was posted: {why}"),
            None if is_gitlab() => return super::note::post(self.request, self.body),
            None => return post(self.request, self.started, self.body, watch),
        };
        Ok(json!({"posted": null, "said": why}))
    }
}

fn lines(said: &Value, outcome: Option<&Outcome>) -> String {
    let outcome = outcome.map(|outcome| outcome.text.as_str());
    let texts = [said["said"].as_str(), said["check"].as_str(), outcome];
    texts.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// A comment's settings.
struct Page<'a> {
    key: &'a str,
    rate: Option<&'a Rate>,
    run_url: Option<String>,
    trust: Trust,
}

/// The text of the comment.
fn page(found: &EvidenceFolder, page: &Page) -> String {
    let run_url = page.run_url.clone().or_else(own_url);
    let ended = found.ended.as_ref().map(|ended| ended.sentence(found.judged().is_some()));
    comment::comment(&Comment {
        key: page.key,
        verdict: found.verdict(),
        judged: found.judged(),
        report: found.report(),
        calibration: found.calibration.as_ref(),
        machine_s: found.machine_s(),
        rate: page.rate,
        ended: ended.as_deref(),
        problems: &found.problems,
        run_url: run_url.as_deref(),
        trust: page.trust,
    })
}

/// The same text for the summary of the job that measured.
pub(super) fn summary(found: &EvidenceFolder, key: &str) -> String {
    page(found, &Page { key, rate: None, run_url: None, trust: Trust::Own })
}

fn is_gitlab() -> bool {
    variable("GITLAB_CI").is_some_and(|value| value == "true")
}

/// Sets the check of the commit.
fn set_check(
    request: &ReportRequest,
    started: Option<&JobEvent>,
    outcome: Option<&Outcome>,
) -> Result<Option<String>, FlowError> {
    let (Some(name), Some(outcome), Some(started)) = (&request.check, outcome, started) else {
        return Ok(None);
    };
    // What is refused here may have been allowed, and judged, by a maintainer: that stands.
    if !started.has_pull_request()
        || started.unposted().is_some()
        || request.decision.as_deref() == Some("refuse")
    {
        return Ok(None);
    }
    let Some(sha) = request.sha().cloned().or_else(|| started.head_sha(request.pr)) else { return Ok(None) };
    let run_url = started.run_url.clone().or_else(own_url);
    let check = Check {
        name,
        head_sha: &sha,
        conclusion: outcome.conclusion,
        summary: &outcome.text,
        details_url: run_url.as_deref(),
    };
    client()?.set_check(&check).map_err(of_api)?;
    Ok(Some(format!("check {name} on {sha}: {}", outcome.text)))
}

/// Whether this is a pipeline of GitLab that measures a fork's code, or was started by hand, which is for what somebody else wrote.
fn is_foreign_pipeline() -> bool {
    let [source, target] =
        ["CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "CI_MERGE_REQUEST_PROJECT_ID"].map(variable);
    source != target
        || variable("CI_PIPELINE_SOURCE").is_some_and(|source| ["web", "api"].contains(&&*source))
}

/// Evidence that is not of the commit that was to be measured, or does not say so.
fn strays(found: &EvidenceFolder, request: &ReportRequest, started: Option<&JobEvent>) -> Vec<String> {
    let of_event = started.and_then(|started| started.head_sha(request.pr));
    let Some(wanted) = request.sha().cloned().or(of_event) else { return Vec::new() };
    // A pull request's job checks out, unless told otherwise, what GitHub would merge.
    let merged = started.filter(|started| started.name == PULL_REQUEST).and_then(|_| variable("GITHUB_SHA"));
    let is_meant = |commit: &str| {
        commit.eq_ignore_ascii_case(&wanted)
            || merged.as_ref().is_some_and(|merged| commit.eq_ignore_ascii_case(merged))
    };
    let stray = |judged: Judged<'_>| match judged.revision() {
        None => Some(format!("the evidence does not say that it is of the commit {wanted}")),
        Some(at) if !is_meant(&at.commit) => {
            Some(format!("the evidence is of the commit {}, not of {wanted}", clean_text(&at.commit)))
        }
        Some(at) if at.dirty => Some(format!("the evidence is of changed files, not of the commit {wanted}")),
        Some(_) => None,
    };
    found.judged().and_then(stray).into_iter().collect()
}

/// The event that started this job, as the runner describes it.
struct JobEvent {
    name: String,
    path: PathBuf,
    payload: String,
    run_url: Option<String>,
    is_fork: bool,
}

impl JobEvent {
    /// Absent outside of a job.
    fn read(request: &ReportRequest) -> Result<Option<Self>, FlowError> {
        let (Some(name), Some(path)) = (variable("GITHUB_EVENT_NAME"), variable("GITHUB_EVENT_PATH")) else {
            return Ok(None);
        };
        if name == WORKFLOW_RUN && (request.pr.is_some() || request.sha().is_some()) {
            return Err(FlowError::Input(
                "--pr and --sha are refused in a workflow_run: the pull request is looked up by the run's commit, so that \
                 nothing a pull request wrote can choose another; leave them out"
                    .to_owned(),
            ));
        }
        if name == ISSUE_COMMENT && request.sha().is_none() && !request.dry_run {
            return Err(FlowError::Input(
                "a comment's event does not know which commit was measured; give it with --sha".to_owned(),
            ));
        }
        let path = PathBuf::from(path);
        let payload = holdpoint_store::read_text(&path)?;
        let value: Option<Value> = serde_json::from_str(&payload).ok();
        let measured_by = value.as_ref().and_then(|value| value.pointer("/workflow_run/html_url")?.as_str());
        let run_url = measured_by.map(str::to_owned);
        let id = |place: &str| value.as_ref().and_then(|value| value.pointer(place)?.as_u64());
        let head = id("/pull_request/head/repo/id");
        // A fork that is gone has no number.
        let is_fork = name == PULL_REQUEST && (head.is_none() || head != id("/repository/id"));
        Ok(Some(Self { name, path, payload, run_url, is_fork }))
    }

    /// Whether the event is about a pull request.
    fn has_pull_request(&self) -> bool {
        [PULL_REQUEST, ISSUE_COMMENT, WORKFLOW_RUN].contains(&self.name.as_str())
    }

    /// Why nothing can be posted on this event.
    fn unposted(&self) -> Option<&'static str> {
        match self.name.as_str() {
            _ if self.is_fork => {
                Some("a fork's pull request has a token that may only read; the job's summary has the result")
            }
            PULL_REQUEST if variable("GITHUB_ACTOR").is_some_and(|actor| actor == "dependabot[bot]") => Some(
                "Dependabot's pull request has a token that may only read; the job's summary has the result",
            ),
            _ => None,
        }
    }

    /// Whether the files come from a job that ran a stranger's code.
    fn is_foreign(&self) -> bool {
        self.is_fork || FOREIGN.contains(&self.name.as_str())
    }

    /// The head that the event is about, if it is about this pull request.
    fn head_sha(&self, number: Option<u64>) -> Option<String> {
        match self.event().ok()? {
            Event::PullRequest { number: own, head_sha } => {
                number.is_none_or(|number| number == own).then_some(head_sha)
            }
            Event::WorkflowRun { head_sha, .. } => Some(head_sha),
            Event::Comment { .. } => None,
        }
    }

    fn event(&self) -> Result<Event, FlowError> {
        Event::parse(&self.name, &self.payload)
            .map_err(|error| FlowError::File { path: self.path.clone(), what: error.to_string() })
    }
}

/// Posts it, and says what became of it.
fn post(
    request: &ReportRequest,
    started: Option<&JobEvent>,
    body: &str,
    watch: &dyn Watch,
) -> Result<Value, FlowError> {
    let client = client()?;
    let resolved = match (request.pr, started) {
        (Some(number), started) => {
            let of_event = started.and_then(|started| started.head_sha(Some(number)));
            client.pull(number, request.sha().map(String::as_str).or(of_event.as_deref()))
        }
        (None, Some(started)) => client.resolve(&started.event()?, request.sha().map(String::as_str)),
        (None, None) => {
            return Err(FlowError::Input(
                "which pull request? Give --pr N, or run it in a job that has GITHUB_EVENT_NAME and GITHUB_EVENT_PATH; \
                 --dry-run only prints"
                    .to_owned(),
            ));
        }
    };
    let Resolved { number, head_sha } = match resolved.map_err(of_api)? {
        Ok(resolved) => resolved,
        Err(unposted) => return Ok(unsaid(&unposted)),
    };
    let author = match &request.author {
        Some(login) => Author::Login(login.clone()),
        None => client.author().map_err(of_api)?,
    };
    let (posted, forged_count) =
        client.post(number, &comment::marker(&request.key), &author, body).map_err(of_api)?;
    if forged_count > 0 {
        watch.note(&format!(
            "comments of others that carry the marker of this one, left alone: {forged_count}"
        ));
    }
    let word = match posted {
        Posted::Created => "created",
        Posted::Updated => "updated",
        Posted::Unchanged => "unchanged",
    };
    let said = format!("comment {word} on pull request {number} of {}", client.repository());
    Ok(json!({"posted": word, "pull_request": number, "head_sha": head_sha, "said": said}))
}

fn unsaid(unposted: &Unposted) -> Value {
    json!({"posted": null, "said": format!("nothing was posted: {unposted}")})
}

fn client() -> Result<Client, FlowError> {
    let wanted = |name: &str| {
        variable(name).ok_or_else(|| {
            FlowError::Input(format!("the environment variable {name} is not set; --dry-run only prints"))
        })
    };
    let api_url = variable("GITHUB_API_URL").unwrap_or_else(|| "https://api.github.com".to_owned());
    Client::new(&api_url, &wanted("GITHUB_REPOSITORY")?, &wanted("GITHUB_TOKEN")?, std::thread::sleep)
        .map_err(of_api)
}

pub(super) fn of_api(error: ApiError) -> FlowError {
    if error.is_input() {
        FlowError::Input(error.to_string())
    } else {
        FlowError::Internal(error.to_string())
    }
}

/// Appended, because other steps write there too.
pub(super) fn append_summary(body: &str) -> Result<(), FlowError> {
    let Some(path) = variable("GITHUB_STEP_SUMMARY") else {
        return Err(FlowError::Input(
            "--summary needs the environment variable GITHUB_STEP_SUMMARY".to_owned(),
        ));
    };
    let path = Path::new(&path);
    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| writeln!(file, "{body}"));
    written.map_err(|error| FlowError::Internal(format!("{}: cannot be written: {error}", path.display())))
}
