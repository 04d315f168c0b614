//! Git below the level of branches and work trees: blobs, trees, commits and refs.

use crate::error::FlowError;
use crate::support;
use holdpoint_process::git;
use holdpoint_store::Scratch;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A file of a tree: its path, and the id of its blob.
pub type File = (String, String);

/// The repository that a folder is in.
pub struct Repository {
    dir: PathBuf,
    folder: PathBuf,
    place: String,
}

impl Repository {
    pub fn open(dir: &Path, name: &str) -> Result<Self, FlowError> {
        let place = format!("git:{name}");
        let is_full = name.starts_with("refs/") && !name.ends_with('/');
        if !is_full {
            let what = "a full name is wanted, such as git:refs/holdpoint/history or git:refs/heads/perf";
            return Err(FlowError::Input(format!("{place}: {what}")));
        }
        let mut repository = Self { dir: dir.to_owned(), folder: PathBuf::new(), place };
        repository.ask(&["check-ref-format", name])?;
        let folder = repository.ask(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?;
        repository.folder = PathBuf::from(folder.trim());
        Ok(repository)
    }

    /// Where git keeps its own files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The commit that a ref points to.
    pub fn commit(&self, name: &str) -> Result<Option<String>, FlowError> {
        let done =
            self.run(self.git(&["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")]), None)?;
        Ok(done.status.success().then(|| line(&done)))
    }

    /// Whether a commit is another one or comes after it.
    pub fn contains(&self, commit: &str, other: &str) -> Result<bool, FlowError> {
        Ok(self.run(self.git(&["merge-base", "--is-ancestor", other, commit]), None)?.status.success())
    }

    /// The files of a commit.
    pub fn files(&self, commit: &str) -> Result<Vec<File>, FlowError> {
        let listed = self.ask(&["ls-tree", "-r", "-z", commit])?;
        let file = |entry: &str| {
            let (about, path) = entry.split_once('\t')?;
            Some((path.to_owned(), about.split(' ').nth(2)?.to_owned()))
        };
        Ok(listed.split('\0').filter_map(file).collect())
    }

    /// The texts of these blobs, few enough for their ids to fit into a pipe: git writes while it still reads.
    pub fn read(&self, blobs: &[&str]) -> Result<Vec<String>, FlowError> {
        let ids: String = blobs.iter().map(|blob| format!("{blob}\n")).collect();
        let done = self.check(self.run(self.git(&["cat-file", "--batch"]), Some(&ids))?)?;
        let mut rest = done.stdout.as_slice();
        let mut texts = Vec::new();
        for blob in blobs {
            let text = next_blob(&mut rest);
            let unread = || FlowError::Input(format!("{}: git does not have {blob}", self.place));
            texts.push(text.ok_or_else(unread)?);
        }
        Ok(texts)
    }

    /// Writes texts as blobs; the same paths with their ids.
    pub fn write(&self, files: &[(String, String)]) -> Result<Vec<File>, FlowError> {
        let mut written = Vec::new();
        for (path, text) in files {
            let done = self.run(self.git(&["hash-object", "-w", "--stdin"]), Some(text))?;
            written.push((path.clone(), line(&self.check(done)?)));
        }
        Ok(written)
    }

    /// The tree of a commit with files added and removed, and no other change.
    pub fn tree_with(
        &self,
        commit: Option<&str>,
        add: &[File],
        remove: &[String],
    ) -> Result<String, FlowError> {
        let scratch = Scratch::new()?;
        let index = scratch.path().join("index");
        let git = |arguments: &[&str]| {
            let mut git = self.git(arguments);
            git.env("GIT_INDEX_FILE", &index);
            git
        };
        if let Some(commit) = commit {
            self.check(self.run(git(&["read-tree", commit]), None)?)?;
        }
        let none = commit.map_or(String::new(), |commit| "0".repeat(commit.len()));
        let removed = remove.iter().map(|path| format!("0 {none}\t{path}\n"));
        let added = add.iter().map(|(path, blob)| format!("100644 {blob}\t{path}\n"));
        let entries: String = removed.chain(added).collect();
        self.check(self.run(git(&["update-index", "--add", "--index-info"]), Some(&entries))?)?;
        Ok(line(&self.check(self.run(git(&["write-tree"]), None)?)?))
    }

    pub fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, FlowError> {
        let mut git = self.git(&["commit-tree", tree, "-m", message]);
        git.args(parents.iter().flat_map(|parent| ["-p", *parent]));
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "holdpoint")
                .env(format!("GIT_{who}_EMAIL"), "holdpoint@localhost");
        }
        Ok(line(&self.check(self.run(git, None)?)?))
    }

    /// Moves a ref, if it still points to `from`; whether it did.
    pub fn move_ref(&self, name: &str, to: &str, from: Option<&str>) -> Result<bool, FlowError> {
        let none = "0".repeat(to.len());
        let done = self.run(self.git(&["update-ref", name, to, from.unwrap_or(&none)]), None)?;
        Ok(done.status.success())
    }

    /// The commit of a remote's ref, fetched; `None` where it has none.
    pub fn fetch(&self, remote: &str, name: &str) -> Result<Option<String>, FlowError> {
        let listed = self.check(self.run(self.remote_git(&["ls-remote", remote, name]), None)?)?;
        let listed = line(&listed);
        let Some(commit) = listed.split_whitespace().next() else { return Ok(None) };
        let fetch = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", remote, name];
        self.check(self.run(self.remote_git(&fetch), None)?)?;
        Ok(Some(commit.to_owned()))
    }

    /// Pushes a commit to a remote's ref if that still is `from`; why not, if somebody else was first. What was pruned is no ancestor of the
    /// commit, so this may not be a fast-forward.
    pub fn push(
        &self,
        remote: &str,
        commit: &str,
        name: &str,
        from: Option<&str>,
    ) -> Result<Option<String>, FlowError> {
        let lease = format!("--force-with-lease={name}:{}", from.unwrap_or_default());
        let push = ["push", "--quiet", &lease, remote, &format!("{commit}:{name}")];
        let done = self.run(self.remote_git(&push), None)?;
        if done.status.success() {
            return Ok(None);
        }
        let words = String::from_utf8_lossy(&done.stderr);
        let is_late = ["stale info", "cannot lock ref", "incorrect old value"];
        match is_late.iter().any(|reason| words.contains(reason)) {
            true => Ok(Some(git::complaint(&done))),
            false => Err(self.refused(&done)),
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, FlowError> {
        let done = self.check(self.run(self.git(arguments), None)?)?;
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }

    fn git(&self, arguments: &[&str]) -> Command {
        let mut git = git::checkout_command(&self.dir);
        git.args(arguments);
        git
    }

    /// Git for a remote, with the token of a CI job where there is one.
    fn remote_git(&self, arguments: &[&str]) -> Command {
        let token = |name: &&str| std::env::var(name).ok().filter(|token| !token.is_empty());
        let token = ["HOLDPOINT_PUSH_TOKEN", "GITHUB_TOKEN"].iter().find_map(token);
        let mut git = match token {
            Some(token) => support::git_with_token(&self.dir, &token),
            None => git::checkout_command(&self.dir),
        };
        git.args(arguments);
        git
    }

    fn run(&self, mut git: Command, input: Option<&str>) -> Result<Output, FlowError> {
        let failed = |error| FlowError::Internal(format!("{}: cannot run git: {error}", self.place));
        let Some(input) = input else { return git.output().map_err(failed) };
        let piped = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().map_err(failed)?;
        // Git reads all of it before it writes more than a line, so neither waits for the other. If it ends early, its words tell why.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().map_err(failed)
    }

    fn check(&self, done: Output) -> Result<Output, FlowError> {
        if done.status.success() { Ok(done) } else { Err(self.refused(&done)) }
    }

    fn refused(&self, done: &Output) -> FlowError {
        FlowError::Input(format!("{}: git: {}", self.place, git::complaint(done)))
    }
}

/// The next blob of a batch: a line of id, kind and size, then its bytes and a line's end.
fn next_blob(rest: &mut &[u8]) -> Option<String> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, bytes) = (std::str::from_utf8(&rest[..end]).ok()?, &rest[end + 1..]);
    let size: usize = head.split(' ').nth(2)?.parse().ok()?;
    let text = String::from_utf8(bytes.get(..size)?.to_vec()).ok()?;
    *rest = bytes.get(size + 1..)?;
    Some(text)
}

fn line(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}
