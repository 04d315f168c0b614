//! Decisions on GitHub's events.

use super::event::{
    CommentEvent, DispatchEvent, MergeGroupEvent, Permission, PullRequest, PullRequestEvent, PushEvent,
    ScheduleEvent,
};
use super::{EventError, Filter, Mode, Ruling, Settings, Sha, plain, sha};
use serde::de::DeserializeOwned;

/// Permissions that allow `/perf`; the API shows `maintain` and `triage` as `write` and `read`. The author's association in the
/// event is not used: a member who hides the membership appears as a contributor there.
const TRUSTED_PERMISSIONS: [&str; 2] = ["admin", "write"];

/// The bot that workflows of this repository act as. What it opens starts no workflow until a person does something to it.
const OWN_BOT: &str = "github-actions[bot]";

#[derive(Clone, Copy, Debug, Default)]
pub struct GitHub<'a> {
    /// `GITHUB_EVENT_NAME`.
    pub event_name: &'a str,
    /// The content of `GITHUB_EVENT_PATH`.
    pub payload: &'a str,
    /// `GITHUB_SHA`, for events that name no commit.
    pub sha: &'a str,
    /// For a comment: the pull request as the API has it now. A comment's event does not know the head.
    pub pull_request: Option<&'a str>,
    /// For a comment: the author's permission as the API has it now.
    pub permission: Option<&'a str>,
}

/// Decides on an event of GitHub.
pub fn github(event: &GitHub, settings: &Settings) -> Result<Ruling, EventError> {
    match event.event_name {
        "push" => push(&parse(event)?, settings),
        "merge_group" => merge_group(&parse(event)?, settings),
        "pull_request" => pull_request(&parse(event)?, settings),
        "workflow_dispatch" => dispatch(&parse(event)?, event.sha, settings),
        "schedule" => schedule(&parse(event)?, event.sha, settings),
        "issue_comment" => comment(&parse(event)?, event, settings),
        name => {
            Ok(Ruling::refuse(format!("events of the kind {} are not trusted with the GPU", plain(name))))
        }
    }
}

fn parse<T: DeserializeOwned>(event: &GitHub) -> Result<T, EventError> {
    document(&format!("the {} event", plain(event.event_name)), event.payload)
}

fn document<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, EventError> {
    let form =
        |error: serde_json::Error| EventError::Form { what: what.to_owned(), why: plain(&error.to_string()) };
    serde_json::from_str(text).map_err(form)
}

/// Whoever pushes may write to the repository.
fn push(event: &PushEvent, settings: &Settings) -> Result<Ruling, EventError> {
    if event.deleted {
        return Ok(Ruling::skip("a branch was deleted; there is nothing to measure"));
    }
    let (before, after) = (sha("before", &event.before)?, sha("after", &event.after)?);
    let Some(branch) = judged_branch(&event.reference, &event.repository.default_branch, settings) else {
        return Ok(Ruling::skip(format!("{} is no branch that is judged", plain(&event.reference))));
    };
    Ok(Ruling::run_push(before, after, format!("a push to {branch}"), settings))
}

/// Only those who may write can add to the merge queue; the group is compared with the commit below it.
fn merge_group(event: &MergeGroupEvent, settings: &Settings) -> Result<Ruling, EventError> {
    let group = &event.merge_group;
    let (head, base) =
        (sha("merge_group.head_sha", &group.head_sha)?, sha("merge_group.base_sha", &group.base_sha)?);
    let Some(branch) = judged_branch(&group.base_ref, &event.repository.default_branch, settings) else {
        return Ok(Ruling::refuse(format!("{} is no branch that is judged", plain(&group.base_ref))));
    };
    let reason = format!("the merge queue of {branch}");
    Ok(Ruling::run(Mode::Against, head, base, reason).filtered(Filter::SinceBase))
}

/// The branch of a reference, in harmless characters, if changes to it are judged.
fn judged_branch(reference: &str, default_branch: &str, settings: &Settings) -> Option<String> {
    let branch = reference.strip_prefix("refs/heads/")?;
    (branch == default_branch || settings.branches.iter().any(|other| other == branch)).then(|| plain(branch))
}

/// Why a pull request is not judged: a green check belongs to a commit, and would go along if the pull request were
/// pointed at a branch that is judged afterwards.
fn refuse_base(pull: &PullRequest, default_branch: &str, settings: &Settings) -> Option<Ruling> {
    let base = &pull.base.reference;
    if judged_branch(&format!("refs/heads/{base}"), default_branch, settings).is_some() {
        return None;
    }
    let others = settings.branches.iter().map(String::as_str).filter(|other| *other != default_branch);
    let all: Vec<String> = std::iter::once(default_branch).chain(others).map(plain).collect();
    Some(Ruling::refuse(format!(
        "pull request {} goes to {}; only what goes to {} is judged",
        pull.number,
        plain(base),
        all.join(" or ")
    )))
}

/// Refuses a pull request from another repository, except on a hosted runner.
fn refuse_foreign(pull: &PullRequest, repository: u64, head: &Sha) -> Option<Ruling> {
    let Some(repo) = &pull.head.repo else {
        return Some(Ruling::refuse(
            "the repository of the head is gone; a maintainer may comment /perf SHA",
        ));
    };
    let is_here = |id| id == repository;
    if !is_here(repo.id) || !pull.base.repo.as_ref().is_some_and(|repo| is_here(repo.id)) {
        return Some(Ruling::refuse(format!(
            "the head is in the fork {}; a maintainer who has read it may comment /perf {head}",
            plain(&repo.full_name)
        )));
    }
    None
}

/// Refuses a bot's pull request, except on a hosted runner: it brings code that somebody has just published somewhere, and
/// nobody has looked at it.
fn refuse_bot(pull: &PullRequest, head: &Sha) -> Option<String> {
    let who = match &pull.user {
        Some(user) if user.kind != "Bot" || user.login == OWN_BOT => return None,
        Some(user) => plain(&user.login),
        None => "nobody".to_owned(),
    };
    Some(format!(
        "the pull request is by {who}, no person; a maintainer who has read it may comment /perf {head}"
    ))
}

/// Decides by the state of the pull request alone, not by the action: a later event could turn a failed check into a skipped
/// one.
fn pull_request(event: &PullRequestEvent, settings: &Settings) -> Result<Ruling, EventError> {
    let pull = &event.pull_request;
    let (head, base) = ends(pull)?;
    if pull.number != event.number {
        return Err(EventError::Missing("the event and its pull request have different numbers".to_owned()));
    }
    if let Some(refused) = refuse_base(pull, &event.repository.default_branch, settings) {
        return Ok(refused);
    }
    if !settings.hosted
        && let Some(refused) = refuse_foreign(pull, event.repository.id, &head)
    {
        return Ok(refused);
    }
    // A run of it can be started anew once it is open again, and what was measured before may have been slow.
    if pull.state != "open" {
        return Ok(Ruling::refuse(format!(
            "pull request {} is closed, or was when this run began; reopen it or push, which starts a new one",
            pull.number
        )));
    }
    let to = plain(&pull.base.reference);
    if settings.hosted {
        let reason = format!("pull request {} to {to}, on a runner that is GitHub's", pull.number);
        return Ok(Ruling::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase));
    }
    if let Some(label) = &settings.label
        // GitHub's labels are the same in small and in capital letters.
        && !pull.labels.iter().any(|has| has.name.to_lowercase() == label.to_lowercase())
    {
        return Ok(Ruling::skip(format!("the pull request has no label {}", plain(label))));
    }
    if let Some(why) = refuse_bot(pull, &head) {
        return Ok(Ruling::refuse(why).unless_unchanged(head, base));
    }
    let reason = format!("pull request {} to {to} comes from a branch of this repository", pull.number);
    Ok(Ruling::run(Mode::Against, head, base, reason).filtered(Filter::SinceMergeBase))
}

/// Only those who may write can dispatch.
fn dispatch(event: &DispatchEvent, own_sha: &str, settings: &Settings) -> Result<Ruling, EventError> {
    let none = super::event::Inputs::default();
    let inputs = event.inputs.as_ref().or(settings.hosted.then_some(&none));
    let is_asked = |inputs: &&super::event::Inputs| {
        settings.hosted || inputs.run_mode == "self-hosted-gpu" || inputs.run_gpu == "true"
    };
    let Some(inputs) = inputs.filter(is_asked) else {
        return Ok(Ruling::skip("dispatched without asking for the GPU: run_mode is skip"));
    };
    let ruling = Ruling::run_wanted(
        &inputs.sha,
        sha("GITHUB_SHA", own_sha)?,
        ["dispatched", "somebody who may write"],
    );
    Ok(ruling.unwrap_or_else(|| Ruling::refuse("the input sha is no full commit hash of 40 digits")))
}

fn schedule(_: &ScheduleEvent, own_sha: &str, settings: &Settings) -> Result<Ruling, EventError> {
    if !settings.scheduled && !settings.hosted {
        return Ok(Ruling::skip("scheduled runs are not enabled by the repository variable"));
    }
    let head = sha("GITHUB_SHA", own_sha)?;
    Ok(Ruling::run(Mode::Baseline, head.clone(), head, "scheduled and enabled".to_owned()))
}

/// `/perf SHA`, new, by a maintainer, of the current head: the commit that is measured is the one the maintainer has read.
fn comment(event: &CommentEvent, given: &GitHub, settings: &Settings) -> Result<Ruling, EventError> {
    let author = &event.comment.user;
    let refuse = |reason: String| Ok(Ruling::refuse(reason));
    if event.issue.pull_request.is_none() {
        return refuse(format!("issue {} is no pull request", event.issue.number));
    }
    if event.action != "created" {
        return refuse(format!("only new comments count, this one was {}", plain(&event.action)));
    }
    let Some(wanted) = command(&event.comment.body) else {
        return refuse("the comment is not /perf and a full commit hash, alone in its first line".to_owned());
    };
    if author.kind != "User" || event.sender.login != author.login {
        return refuse(format!("{} is a bot, or not the comment's author", plain(&event.sender.login)));
    }
    let Some(permission) = given.permission else {
        return Err(EventError::Missing(
            "a comment's event does not know what its author may do; give it with --permission FILE"
                .to_owned(),
        ));
    };
    let permission: Permission = document("the permission of the author", permission)?;
    if permission.user.login != author.login || !TRUSTED_PERMISSIONS.contains(&permission.permission.as_str())
    {
        return refuse(format!("{} may not write to this repository", plain(&author.login)));
    }
    let Some(pull) = given.pull_request else {
        return Err(EventError::Missing(
            "a comment's event does not know the head of its pull request; give it with --pull-request FILE"
                .to_owned(),
        ));
    };
    let pull: PullRequest = document("the pull request", pull)?;
    let (head, base) = ends(&pull)?;
    let is_here = pull.base.repo.as_ref().is_some_and(|repo| repo.id == event.repository.id);
    if pull.number != event.issue.number || !is_here {
        return Err(EventError::Missing(format!(
            "the pull request given is {} of {}, the comment is on {} of {}",
            pull.number,
            pull.base.repo.as_ref().map_or_else(|| "nothing".to_owned(), |repo| plain(&repo.full_name)),
            event.issue.number,
            plain(&event.repository.full_name)
        )));
    }
    if pull.state != "open" || event.issue.state != "open" {
        return refuse(format!("pull request {} is closed", pull.number));
    }
    if wanted != head {
        return refuse(format!("the head is {head} now, not {wanted}; look at it and comment again"));
    }
    if let Some(refused) = refuse_base(&pull, &event.repository.default_branch, settings) {
        return Ok(refused);
    }
    let (who, to) = (plain(&author.login), plain(&pull.base.reference));
    let reason = format!("{who} asked for {head} of pull request {} to {to}", pull.number);
    Ok(Ruling::run(Mode::Against, head, base, reason))
}

/// The hash of `/perf SHA`: the first line, nothing else in it.
fn command(body: &str) -> Option<Sha> {
    let mut words = body.lines().next()?.split_ascii_whitespace();
    let (command, hash, more) = (words.next()?, words.next()?, words.next());
    if command == "/perf" && more.is_none() { Sha::new(hash) } else { None }
}

fn ends(pull: &PullRequest) -> Result<(Sha, Sha), EventError> {
    Ok((sha("pull_request.head.sha", &pull.head.sha)?, sha("pull_request.base.sha", &pull.base.sha)?))
}
