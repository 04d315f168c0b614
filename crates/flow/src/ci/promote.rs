//! `holdpoint ci promote`: proposes the run of a merged change as the new baseline.
//!
//! The evidence is judged again, and the baseline is made of it by `baseline promote`. One branch, whatever happens: the newest proposal
//! takes the place of the one before.

use super::event::variable;
use super::gate::DECISION;
use super::history::History;
use super::{CiResult, own_url};
use crate::baseline::FOLDER_DEFAULT as BASELINES;
use crate::done::{Done, Message};
use crate::error::FlowError;
use crate::promote::PromoteRequest;
use crate::support::artifacts::{Found, REPORT};
use crate::{Watch, promote};
use holdpoint_ci::github::Client;
use holdpoint_ci::guard::Sha;
use holdpoint_model::{ExitCode, Verdict};
use holdpoint_process::git;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of old and new values in a proposal: a comment of GitHub's takes 65 536 characters.
const SHOWN_BYTES_MAX: usize = 40_000;
/// The variables with the token that pushes.
const GITHUB_TOKEN: &str = "GITHUB_TOKEN";
const GITLAB_TOKEN: &str = "HOLDPOINT_PUSH_TOKEN";

/// A run to be proposed as the new baseline.
#[derive(Clone, Debug)]
pub struct ProposalRequest {
    /// The folder with the gate's evidence.
    pub artifacts: PathBuf,
    /// The branch of the proposal.
    pub branch: String,
}

pub fn run(args: &ProposalRequest, watch: &dyn Watch) -> Result<Done<CiResult>, FlowError> {
    let said = match worth(args)? {
        Err(why) => format!("not proposed: {why}"),
        Ok(head) => propose(args, &head, watch)?,
    };
    let message = Message { json: json!({ "said": said }), text: said };
    Ok(Done::new(CiResult::Message(message), ExitCode::Ok))
}

/// Whether the run is one to become the baseline: the commit, or why not.
fn worth(args: &ProposalRequest) -> Result<Result<Sha, String>, FlowError> {
    let found = Found::read(&args.artifacts);
    if let Some(problem) = found.problems.first() {
        return Err(FlowError::File { path: args.artifacts.clone(), what: problem.clone() });
    }
    let Some(judged) = found.judged() else {
        return Ok(Err(found.ended.map_or_else(
            || "nothing was measured".to_owned(),
            |ended| format!("exit code {}", ended.code()),
        )));
    };
    // A waived run ends with 0 as well, and what is waived must not become what is normal.
    if !matches!(judged.judgement.verdict, Verdict::Pass | Verdict::Improved) {
        return Ok(Err(format!("the verdict is {}", judged.judgement.verdict.as_str())));
    }
    let history = History { repository: Path::new(".") };
    let head = history.resolve("HEAD")?.ok_or_else(|| FlowError::Input("there is no HEAD".to_owned()))?;
    // What a proposal changes is no reason for another. Where the commit before is gone, there is no telling.
    if let Some(base) = base(&args.artifacts)
        && history.has(&base)?
        && !history.has_changes_beside(&base, &head, BASELINES)?
    {
        return Ok(Err("only baselines have changed".to_owned()));
    }
    Ok(Ok(head))
}

/// The commit that the change was judged by.
fn base(artifacts: &Path) -> Option<Sha> {
    let text = holdpoint_store::read_text(&artifacts.join(DECISION)).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    Sha::new(value["base_sha"].as_str()?)
}

fn propose(args: &ProposalRequest, head: &Sha, watch: &dyn Watch) -> Result<String, FlowError> {
    promote::run(
        &PromoteRequest {
            reports: vec![args.artifacts.join(REPORT)],
            rev: head.to_string(),
            by: None,
            baseline: None,
            baseline_dir: PathBuf::from(BASELINES),
            new_machine: false,
        },
        watch,
    )?;
    if git_line(&["status", "--porcelain", "--", BASELINES])?.is_empty() {
        return Ok("the baseline is as it was".to_owned());
    }
    let short = &head.as_str()[..12];
    let seen =
        History { repository: Path::new(".") }.resolve(&format!("refs/remotes/origin/{}", args.branch))?;
    git_line(&["switch", "--quiet", "--force-create", &args.branch])?;
    git_line(&["add", "--", BASELINES])?;
    let changed =
        git_line(&["diff", "--cached", "--unified=0", "--no-color", "--no-ext-diff", "--", BASELINES])?;
    let body = proposal(&changed);
    let title = format!("Performance baseline of {short}");
    commit(&format!("Promote the performance baseline of {short}\n\n{body}"))?;
    let lease =
        format!("--force-with-lease={}:{}", args.branch, seen.map(|sha| sha.to_string()).unwrap_or_default());
    let target = format!("HEAD:refs/heads/{}", args.branch);
    if variable("GITLAB_CI") == "true" {
        let options = [
            "--push-option=merge_request.create".to_owned(),
            format!("--push-option=merge_request.target={}", variable("CI_DEFAULT_BRANCH")),
            format!("--push-option=merge_request.title={title}"),
        ];
        let url = variable("CI_PROJECT_URL");
        let url = url.split_once("://").map(|(scheme, rest)| format!("{scheme}://holdpoint@{rest}.git"));
        let url = url.ok_or_else(|| FlowError::Input("CI_PROJECT_URL is not set".to_owned()))?;
        push(GITLAB_TOKEN, &url, &[&[lease, target][..], &options].concat())?;
        return Ok(format!("proposed: {title}"));
    }
    let [server, repository] = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY"].map(variable);
    push(GITHUB_TOKEN, &format!("{server}/{repository}.git"), &[lease, target])?;
    let number = client(&repository)?.propose(&args.branch, &title, &body).map_err(super::report::of_api)?;
    Ok(format!("proposed as pull request {number}: {title}"))
}

/// The text of a proposal: old and new values.
fn proposal(changed: &str) -> String {
    let lines = changed.lines().filter(|line| line.starts_with(['-', '+']));
    let mut shown = lines.collect::<Vec<_>>().join("\n");
    if shown.len() > SHOWN_BYTES_MAX {
        shown.truncate((0..=SHOWN_BYTES_MAX).rev().find(|at| shown.is_char_boundary(*at)).unwrap_or(0));
    }
    let run = own_url().map_or_else(String::new, |url| format!(" ({url})"));
    format!(
        "Measured after the merge, not slower than allowed. The report is an artifact of the run{run}. Old and new:\n\n\
         ~~~~~~diff\n{shown}\n~~~~~~\n"
    )
}

fn client(repository: &str) -> Result<Client, FlowError> {
    let api_url = Some(variable("GITHUB_API_URL")).filter(|url| !url.is_empty());
    let api_url = api_url.unwrap_or_else(|| "https://api.github.com".to_owned());
    Client::new(&api_url, repository, &variable(GITHUB_TOKEN), std::thread::sleep)
        .map_err(super::report::of_api)
}

fn commit(message: &str) -> Result<(), FlowError> {
    let (name, mail) = match variable("GITLAB_CI").as_str() {
        "true" => ("holdpoint", format!("holdpoint@{}", variable("CI_SERVER_HOST"))),
        _ => ("github-actions[bot]", "41898282+github-actions[bot]@users.noreply.github.com".to_owned()),
    };
    let mut git = git::checkout_command(Path::new("."));
    git.args(["-c", &format!("user.name={name}"), "-c", &format!("user.email={mail}")]);
    git.args(["commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--message", message]);
    ran(git).map(|_| ())
}

/// Pushes with a token that stands in no command and in no file. If somebody has pushed to the branch since the checkout, this fails.
fn push(token: &str, url: &str, arguments: &[String]) -> Result<(), FlowError> {
    let secret = variable(token);
    if secret.is_empty() {
        return Err(FlowError::Input(format!("the environment variable {token} is not set")));
    }
    let mut git = git::checkout_command_with_token(Path::new("."), &secret);
    git.args(["push", "--quiet"]);
    let options = arguments.iter().filter(|argument| argument.starts_with("--"));
    let targets = arguments.iter().filter(|argument| !argument.starts_with("--"));
    git.args(options).arg(url).args(targets);
    ran(git).map(|_| ())
}

fn git_line(arguments: &[&str]) -> Result<String, FlowError> {
    let mut git = git::checkout_command(Path::new("."));
    git.args(arguments);
    ran(git)
}

fn ran(mut git: Command) -> Result<String, FlowError> {
    let done = git.output().map_err(|error| FlowError::Internal(format!("cannot run git: {error}")))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    Err(FlowError::Internal(format!("the baseline cannot be proposed: {}", git::complaint(&done))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proposal_of_any_length_is_shown_in_part() {
        let changed: String = (0..60_000).map(|n| format!("+{n} größer\n")).collect();
        let text = proposal(&format!("diff --git a b\n@@ -1 +1 @@\n-old\n{changed}"));
        assert!(text.contains("diff\n-old\n+0 größer\n") && text.ends_with("\n~~~~~~\n"));
        assert!((SHOWN_BYTES_MAX..SHOWN_BYTES_MAX + 400).contains(&text.len()));
    }
}
