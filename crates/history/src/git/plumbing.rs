//! Git below the level of branches and work trees: blobs, trees, commits and refs.

use crate::error::HistoryError;
use holdpoint_model::limits::{
    HISTORY_BATCH_BYTES_MAX, HISTORY_BYTES_MAX, HISTORY_FILE_BYTES_MAX, HISTORY_FILES_MAX,
    HISTORY_LISTING_BYTES_MAX,
};
use holdpoint_process::git;
use holdpoint_store::Scratch;
use std::io::{self, BufRead, BufReader, Read, Write};
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
    pub fn open(dir: &Path, name: &str) -> Result<Self, HistoryError> {
        let place = format!("git:{name}");
        let is_full = name.starts_with("refs/") && !name.ends_with('/');
        if !is_full {
            let what = "a full name is wanted, such as git:refs/holdpoint/history or git:refs/heads/perf";
            return Err(HistoryError::Place { place, what: what.to_owned() });
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
    pub fn commit(&self, name: &str) -> Result<Option<String>, HistoryError> {
        let done =
            self.run(self.git(&["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")]), None)?;
        Ok(done.status.success().then(|| line(&done)))
    }

    /// Whether a commit is another one or comes after it.
    pub fn contains(&self, commit: &str, other: &str) -> Result<bool, HistoryError> {
        Ok(self.run(self.git(&["merge-base", "--is-ancestor", other, commit]), None)?.status.success())
    }

    /// The files of a commit, as far as they can be held: a handful of trees can list millions.
    pub fn files(&self, commit: &str) -> Result<Vec<File>, HistoryError> {
        let mut git = self.git(&["ls-tree", "-r", "-z", commit]);
        let spawned = git.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.map_err(|error| self.failed(&error))?;
        let listed = match child.stdout.take() {
            Some(listing) => read_listing(listing, HISTORY_FILES_MAX, HISTORY_LISTING_BYTES_MAX),
            None => Ok(None),
        };
        if matches!(listed, Ok(None)) {
            // It may have ended by itself.
            let _ = child.kill();
            let _ = child.wait();
        } else {
            self.check(child.wait_with_output().map_err(|error| self.failed(&error))?)?;
        }
        listed.map_err(|error| self.failed(&error))?.ok_or_else(|| {
            self.refused(format!(
                "its commit {commit} lists more than {HISTORY_FILES_MAX} files, or paths of more than {HISTORY_LISTING_BYTES_MAX} bytes, \
                 so it is not a history; find who wrote it with \"git log {}\", and set the ref back to the commit before it",
                self.place.trim_start_matches("git:")
            ))
        })
    }

    /// The texts of these blobs, few enough for their ids to fit into a pipe: git writes while it still reads. Sizes are asked for first:
    /// a blob beyond the limits is not read. Handed on in batches of a limited size, each text with its position or why there is none.
    pub fn read(
        &self,
        blobs: &[&str],
        limits: &mut Limits,
        mut take: impl FnMut(Vec<(usize, Result<String, String>)>) -> Result<(), HistoryError>,
    ) -> Result<(), HistoryError> {
        let sizes = self.sizes(blobs)?;
        let allowed: Vec<_> =
            sizes.into_iter().map(|size| size.and_then(|bytes| limits.allow(bytes))).collect();
        let mut at = 0;
        while at < blobs.len() {
            let end = at + limits.batch_len(&allowed[at..]);
            let wanted = (at..end).filter(|at| allowed[*at].is_ok()).map(|at| blobs[at]);
            let done = self.ask_about("--batch", wanted)?;
            let mut rest = done.stdout.as_slice();
            let text = |at: usize| {
                allowed[at].clone()?;
                next_blob(&mut rest).unwrap_or_else(|| Err("git does not have all of it".to_owned()))
            };
            let texts: Vec<_> = (at..end).zip((at..end).map(text)).collect();
            take(texts)?;
            at = end;
        }
        Ok(())
    }

    /// The sizes of these blobs in bytes.
    fn sizes(&self, blobs: &[&str]) -> Result<Vec<Result<u64, String>>, HistoryError> {
        let done = self.ask_about("--batch-check", blobs.iter().copied())?;
        let text = String::from_utf8_lossy(&done.stdout);
        let mut lines = text.lines().map(|line| match *line.split(' ').collect::<Vec<_>>() {
            [_, "blob", bytes] => bytes.parse().map_err(|_| "git does not know its size".to_owned()),
            _ => Err("git does not have it".to_owned()),
        });
        let size = || lines.next().unwrap_or_else(|| Err("git does not have it".to_owned()));
        Ok(std::iter::repeat_with(size).take(blobs.len()).collect())
    }

    fn ask_about<'a>(&self, how: &str, blobs: impl Iterator<Item = &'a str>) -> Result<Output, HistoryError> {
        let ids: String = blobs.map(|blob| format!("{blob}\n")).collect();
        self.check(self.run(self.git(&["cat-file", how]), Some(&ids))?)
    }

    /// Writes texts as blobs; the same paths with their ids.
    pub fn write(&self, files: &[(String, String)]) -> Result<Vec<File>, HistoryError> {
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
    ) -> Result<String, HistoryError> {
        let scratch = Scratch::new()
            .map_err(|error| HistoryError::Failed { place: self.place.clone(), what: error.to_string() })?;
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

    pub fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, HistoryError> {
        let mut git = self.git(&["commit-tree", tree, "-m", message]);
        git.args(parents.iter().flat_map(|parent| ["-p", *parent]));
        for who in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{who}_NAME"), "holdpoint")
                .env(format!("GIT_{who}_EMAIL"), "holdpoint@localhost");
        }
        Ok(line(&self.check(self.run(git, None)?)?))
    }

    /// Moves a ref, if it still points to `from`; whether it did.
    pub fn move_ref(&self, name: &str, to: &str, from: Option<&str>) -> Result<bool, HistoryError> {
        let none = "0".repeat(to.len());
        let done = self.run(self.git(&["update-ref", name, to, from.unwrap_or(&none)]), None)?;
        Ok(done.status.success())
    }

    /// The commit of a remote's ref, fetched; `None` where it has none.
    pub fn fetch(&self, remote: &str, name: &str) -> Result<Option<String>, HistoryError> {
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
    ) -> Result<Option<String>, HistoryError> {
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
            false => Err(self.complaint(&done)),
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, HistoryError> {
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
            Some(token) => git::checkout_command_with_token(&self.dir, &token),
            None => git::checkout_command(&self.dir),
        };
        git.args(arguments);
        git
    }

    fn run(&self, mut git: Command, input: Option<&str>) -> Result<Output, HistoryError> {
        let failed = |error| self.failed(&error);
        let Some(input) = input else { return git.output().map_err(failed) };
        let piped = git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().map_err(failed)?;
        // Git reads all of it before it writes more than a line, so neither waits for the other. If it ends early, its words tell why.
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(input.as_bytes());
        }
        child.wait_with_output().map_err(failed)
    }

    fn failed(&self, error: &io::Error) -> HistoryError {
        HistoryError::Failed { place: self.place.clone(), what: format!("cannot run git: {error}") }
    }

    fn check(&self, done: Output) -> Result<Output, HistoryError> {
        if done.status.success() { Ok(done) } else { Err(self.complaint(&done)) }
    }

    fn complaint(&self, done: &Output) -> HistoryError {
        self.refused(format!("git: {}", git::complaint(done)))
    }

    fn refused(&self, what: String) -> HistoryError {
        HistoryError::Place { place: self.place.clone(), what }
    }
}

/// How many bytes are read.
#[derive(Clone, Debug)]
pub struct Limits {
    pub file_bytes: u64,
    pub batch_bytes: u64,
    /// Of all files that are still to come.
    pub left_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: HISTORY_FILE_BYTES_MAX,
            batch_bytes: HISTORY_BATCH_BYTES_MAX,
            left_bytes: HISTORY_BYTES_MAX,
        }
    }
}

impl Limits {
    /// Books so many bytes, if they may be read.
    fn allow(&mut self, bytes: u64) -> Result<u64, String> {
        if bytes > self.file_bytes {
            return Err(format!("it has {bytes} bytes, over the limit of {}", self.file_bytes));
        }
        let left = self.left_bytes.checked_sub(bytes);
        self.left_bytes =
            left.ok_or_else(|| format!("all files before it leave {} bytes of the limit", self.left_bytes))?;
        Ok(bytes)
    }

    /// How many of these are read together, one at least.
    fn batch_len(&self, sizes: &[Result<u64, String>]) -> usize {
        let mut bytes = 0;
        let fits = |size: &Result<u64, String>| {
            bytes += size.as_ref().unwrap_or(&0);
            bytes <= self.batch_bytes
        };
        sizes.iter().map(fits).take_while(|fits| *fits).count().max(1)
    }
}

/// The files that git lists, each ended by a zero byte; `None` where there are more than these limits allow.
fn read_listing(listing: impl Read, files_max: usize, bytes_max: u64) -> io::Result<Option<Vec<File>>> {
    let mut rest = BufReader::new(listing).take(bytes_max);
    let (mut files, mut entry) = (Vec::new(), Vec::new());
    while rest.read_until(0, &mut entry)? > 0 {
        if files.len() == files_max || entry.pop() != Some(0) {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&entry);
        let file = text.split_once('\t').and_then(|(about, path)| Some((path, about.split(' ').nth(2)?)));
        files.extend(file.map(|(path, id)| (path.to_owned(), id.to_owned())));
        entry.clear();
    }
    Ok((rest.limit() > 0).then_some(files))
}

/// The next blob of a batch: a line of id, kind and size, then its bytes and a line's end. A line alone tells of one that is missing.
fn next_blob(rest: &mut &[u8]) -> Option<Result<String, String>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (head, bytes) = (&rest[..end], &rest[end + 1..]);
    *rest = bytes;
    let size = std::str::from_utf8(head).ok().and_then(|head| head.split(' ').nth(2)?.parse::<usize>().ok());
    let Some(size) = size else { return Some(Err("git does not have it".to_owned())) };
    let text = bytes.get(..size)?.to_vec();
    *rest = bytes.get(size + 1..)?;
    Some(String::from_utf8(text).map_err(|_| "it is not text".to_owned()))
}

fn line(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_the_limits_allow() {
        let mut limits = Limits { file_bytes: 10, batch_bytes: 12, left_bytes: 25 };
        let sizes: Vec<_> = [4, 11, 10, 10, 2, 1].map(|bytes| limits.allow(bytes)).into();
        let is_read: Vec<bool> = sizes.iter().map(Result::is_ok).collect();
        assert_eq!(is_read, [true, false, true, true, false, true]);
        assert_eq!(limits.left_bytes, 0);
        let batches: Vec<usize> = (0..sizes.len()).map(|at| limits.batch_len(&sizes[at..])).collect();
        // Whatever alone is too large for a batch has one of its own.
        assert_eq!(batches, [2, 2, 1, 3, 2, 1]);
        assert_eq!(Limits { batch_bytes: 1, ..limits }.batch_len(&sizes[2..]), 1);
    }

    #[test]
    fn a_listing_beyond_a_limit_is_none() {
        let listing = b"100644 blob aa\truns/a\x00100644 blob bb\truns/b\0".as_slice();
        let files = [("runs/a", "aa"), ("runs/b", "bb")].map(|(path, id)| (path.to_owned(), id.to_owned()));
        let bytes = listing.len() as u64;
        assert_eq!(read_listing(listing, 2, bytes + 1).unwrap(), Some(files.to_vec()));
        assert_eq!(read_listing(listing, 1, bytes + 1).unwrap(), None);
        assert_eq!(read_listing(listing, 2, bytes - 1).unwrap(), None);
        assert_eq!(read_listing(b"".as_slice(), 2, 1).unwrap(), Some(Vec::new()));
    }

    #[test]
    fn a_blob_that_is_missing_or_no_text_does_not_hide_the_next() {
        let mut rest = b"aa missing\nbb blob 2\n\xff\xfe\ncc blob 2\nhi\ndd blob 9\nhi\n".as_slice();
        assert!(next_blob(&mut rest).unwrap().is_err());
        assert!(next_blob(&mut rest).unwrap().is_err());
        assert_eq!(next_blob(&mut rest), Some(Ok("hi".to_owned())));
        assert_eq!(next_blob(&mut rest), None);
    }
}
