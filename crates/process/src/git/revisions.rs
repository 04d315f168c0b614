//! Revisions, and what their commits hold. Asks git's plumbing and machine-readable formats only, so that no user setting changes an
//! answer.

use super::{GitError, Repository, paths, text};
use holdpoint_model::limits::clean_text;
use std::path::PathBuf;

/// One line per commit: hash, author's date, subject.
const RECORD: &str = "--format=%H%x00%aI%x00%s";
const REMOTE: &str = "origin/";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub hash: String,
    /// Author's date in ISO 8601.
    pub date: String,
    /// First line of the message, without control characters.
    pub subject: String,
}

impl Repository {
    /// The full hash of the commit that a branch, a tag, an abbreviation or an expression such as `HEAD~3` names, if there is one.
    pub fn find(&self, revision: &str) -> Result<Option<String>, GitError> {
        if revision.is_empty() || revision.contains('\0') {
            return Ok(None);
        }
        let name = format!("{revision}^{{commit}}");
        let output = self.ask(&["rev-parse", "--verify", "--end-of-options", &name])?;
        let hash = text(&output.stdout);
        // For "^main" git prints a hash with a sign before it.
        let is_hash = !hash.is_empty() && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok((output.status.success() && is_hash).then_some(hash))
    }

    /// The same, which must be there.
    pub fn resolve(&self, revision: &str) -> Result<String, GitError> {
        match self.find(revision)? {
            Some(hash) => Ok(hash),
            None => Err(self.out_of_reach(revision)?),
        }
    }

    fn out_of_reach(&self, revision: &str) -> Result<GitError, GitError> {
        let (revision, dir) = (clean_text(revision), self.dir.clone());
        Ok(if self.is_shallow()? {
            GitError::Shallow { revision, dir }
        } else {
            GitError::UnknownRevision { revision, dir }
        })
    }

    fn is_shallow(&self) -> Result<bool, GitError> {
        Ok(text(&self.ask(&["rev-parse", "--is-shallow-repository"])?.stdout) == "true")
    }

    /// Whether a commit is here.
    pub fn has(&self, commit: &str) -> Result<bool, GitError> {
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.status.success())
    }

    /// The newest commit that both come from, if any: `one` itself where it is an ancestor of `other`. Both are full hashes.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>, GitError> {
        let output = self.ask(&["merge-base", one, other])?;
        match output.status.code() {
            Some(1) if self.is_shallow()? => Err(self.out_of_reach(one)?),
            Some(1) => Ok(None),
            _ => Ok(Some(text(&self.checked("merge-base", output)?.stdout))),
        }
    }

    /// Whether a commit is another one, or comes before it.
    pub fn is_ancestor(&self, commit: &str, of: &str) -> Result<bool, GitError> {
        let output = self.ask(&["merge-base", "--is-ancestor", commit, of])?;
        Ok(output.status.code() != Some(1) && self.checked("merge-base", output)?.status.success())
    }

    /// The first parent of a commit, if it has any.
    pub fn parent(&self, commit: &str) -> Result<Option<String>, GitError> {
        let parent = format!("{commit}^1");
        match self.find(&parent)? {
            None if self.is_shallow()? => Err(self.out_of_reach(&parent)?),
            parent => Ok(parent),
        }
    }

    /// The hash of a commit's tree.
    pub fn tree_of(&self, commit: &str) -> Option<String> {
        self.line(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{tree}}")])
    }

    /// Where the repository was cloned from, by its own settings.
    pub fn origin_url(&self) -> Option<String> {
        self.line(&["config", "--get", "remote.origin.url"])
    }

    /// A file of a commit, if it has it.
    pub fn read_file(&self, commit: &str, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let done = self.ask(&["cat-file", "blob", &format!("{commit}:{path}")])?;
        Ok(done.status.success().then_some(done.stdout))
    }

    /// The plain files of a commit below a folder, given from the root. Links are left out.
    pub fn plain_files(&self, commit: &str, folder: &str) -> Result<Vec<String>, GitError> {
        let listed = self.ask(&["ls-tree", "-r", "-z", "--full-tree", commit, "--", folder])?;
        let plain = |entry: String| {
            let (kind, path) = entry.split_once('\t')?;
            kind.starts_with("100").then(|| path.to_owned())
        };
        Ok(paths(&listed.stdout).into_iter().filter_map(plain).collect())
    }

    /// Files that have changed in a range and match one of the patterns; all of them without any.
    pub fn changed_files(&self, range: &str, patterns: &[String]) -> Result<Vec<String>, GitError> {
        let mut arguments =
            vec!["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"];
        arguments.extend(["--ignore-submodules=none", "--no-relative", range, "--"]);
        arguments.extend(patterns.iter().map(String::as_str));
        Ok(paths(&self.answer(&arguments)?))
    }

    /// Whether any of these paths below the folder is tracked, or a folder with tracked files.
    pub fn tracks_any(&self, tracked: &[PathBuf]) -> Result<bool, GitError> {
        if tracked.is_empty() {
            return Ok(false);
        }
        let names: Vec<_> = tracked.iter().map(|path| path.to_string_lossy()).collect();
        let mut arguments = vec!["--literal-pathspecs", "ls-files", "-z", "--full-name", "--"];
        arguments.extend(names.iter().map(|name| if name.is_empty() { "." } else { name.as_ref() }));
        Ok(!self.answer(&arguments)?.is_empty())
    }

    /// The commits after one and up to another, along first parents, oldest first.
    pub fn between(&self, one: &str, other: &str) -> Result<Vec<Commit>, GitError> {
        self.commits(&["--first-parent", "--reverse", &format!("{one}..{other}")])
    }

    pub fn describe(&self, revision: &str) -> Result<Commit, GitError> {
        let commit = self.resolve(revision)?;
        let found = self.commits(&["--max-count=1", &commit])?.pop();
        found.ok_or_else(|| GitError::UnknownRevision { revision: commit, dir: self.dir.clone() })
    }

    fn commits(&self, which: &[&str]) -> Result<Vec<Commit>, GitError> {
        let answer = self.answer(&[&["rev-list", RECORD, "--encoding=UTF-8"], which, &["--"]].concat())?;
        // Git prints a line with the hash alone before each record.
        Ok(String::from_utf8_lossy(&answer).lines().filter_map(parse_commit).collect())
    }

    /// The branch that changes go to: the remote's default, else `main`, `master` or `trunk`, else the one that is checked out.
    pub fn default_branch(&self) -> String {
        let known = self.default_branch_ref();
        let known = known.map(|name| name.strip_prefix(REMOTE).unwrap_or(&name).to_owned());
        known.or_else(|| self.current_branch()).unwrap_or_else(|| "main".to_owned())
    }

    /// The branch that is checked out, if any is.
    pub fn current_branch(&self) -> Option<String> {
        self.line(&["symbolic-ref", "--quiet", "--short", "HEAD"])
    }

    /// The same as git takes it, where the repository has it: the remote's copy first, because the branch here may hold changes that
    /// are not there yet.
    pub fn default_branch_ref(&self) -> Option<String> {
        let is_there = |name: &String| {
            let place = if name.starts_with(REMOTE) { "remotes" } else { "heads" };
            self.line(&["rev-parse", "--quiet", "--verify", &format!("refs/{place}/{name}")]).is_some()
        };
        let usual = ["main", "master", "trunk"].map(|name| [format!("{REMOTE}{name}"), name.to_owned()]);
        let named = self.line(&["symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD"]);
        named.into_iter().chain(usual.into_iter().flatten()).find(is_there)
    }
}

fn parse_commit(line: &str) -> Option<Commit> {
    let mut fields = line.splitn(3, '\0');
    let (hash, date, subject) = (fields.next()?, fields.next()?, fields.next()?);
    Some(Commit { hash: hash.to_owned(), date: date.to_owned(), subject: clean_text(subject) })
}
