//! Refs of a remote.

use super::{GitError, Repository, complaint, output, text};
use std::process::{Command, Output};

/// Answers git's question for a password; the token stands in no command and in no file.
const HELPER: &str =
    "credential.helper=!echo username=x-access-token; echo \"password=$HOLDPOINT_PUSH_SECRET\"; :";
/// Variables with the token of a CI job.
const TOKENS: [&str; 2] = ["HOLDPOINT_PUSH_TOKEN", "GITHUB_TOKEN"];

impl Repository {
    /// Git that shows a token to whoever asks for a password.
    pub fn command_with_token(&self, token: &str, arguments: &[&str]) -> Command {
        let mut git = self.command(&["-c", "credential.helper=", "-c", HELPER]);
        git.args(arguments).env("HOLDPOINT_PUSH_SECRET", token);
        git
    }

    /// The commit of a remote's ref, fetched; `None` where it has none.
    pub fn fetch_ref(&self, remote: &str, name: &str) -> Result<Option<String>, GitError> {
        let listed = output(&mut self.of_job(&["ls-remote", remote, name]))?;
        let listed = text(&self.reached("ls-remote", listed)?.stdout);
        let Some(commit) = listed.split_whitespace().next() else { return Ok(None) };
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, name];
        self.reached("fetch", output(&mut self.of_job(&fetch))?)?;
        Ok(Some(commit.to_owned()))
    }

    /// Pushes a commit to a remote's ref if that still is `from`; why not, if somebody else was first. `from` may be no ancestor of the
    /// commit, so this may not be a fast-forward.
    pub fn push_ref(
        &self,
        remote: &str,
        commit: &str,
        name: &str,
        from: Option<&str>,
    ) -> Result<Option<String>, GitError> {
        let lease = format!("--force-with-lease={name}:{}", from.unwrap_or_default());
        let target = format!("{commit}:{name}");
        let done = output(&mut self.of_job(&["push", "--quiet", &lease, remote, &target]))?;
        let words = String::from_utf8_lossy(&done.stderr);
        let is_late = ["stale info", "cannot lock ref", "incorrect old value"];
        if !done.status.success() && is_late.iter().any(|reason| words.contains(reason)) {
            return Ok(Some(complaint(&done)));
        }
        self.reached("push", done).map(|_| None)
    }

    /// Git for a remote, with the token of a CI job where there is one.
    fn of_job(&self, arguments: &[&str]) -> Command {
        let token = |name: &&str| std::env::var(name).ok().filter(|token| !token.is_empty());
        match TOKENS.iter().find_map(token) {
            Some(token) => self.command_with_token(&token, arguments),
            None => self.command(arguments),
        }
    }

    fn reached(&self, action: &str, output: Output) -> Result<Output, GitError> {
        if output.status.success() {
            return Ok(output);
        }
        Err(GitError::Remote {
            dir: self.place_named(),
            action: action.to_owned(),
            detail: complaint(&output),
        })
    }
}
