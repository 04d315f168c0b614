//! A clone that is only looked at: nothing of it is run, and files in its commits (`.gitmodules`, `.gitattributes`) do not
//! influence the answers.

use crate::error::FlowError;
use holdpoint_ci::guard::{Filter, Sha, plain};
use holdpoint_model::Suite;
use holdpoint_process::git;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Paths that always matter: those that decide how to measure, and what is checked out.
const ALWAYS: [&str; 5] =
    [".holdpoint/**", ".github/workflows/perf*", ".gitlab/holdpoint.yml", ".gitlab-ci.yml", ".gitmodules"];

/// The folder of baselines, calibrations, waivers and notifications.
pub const SETTINGS: &str = ".holdpoint";

pub struct History<'a> {
    pub repository: &'a Path,
}

impl History<'_> {
    fn ask(&self, arguments: &[&str]) -> Result<Output, FlowError> {
        git::ask(self.repository, arguments)
            .map_err(|error| FlowError::Internal(format!("cannot run git: {error}")))
    }

    /// Whether the clone has the commit.
    pub fn has(&self, commit: &Sha) -> Result<bool, FlowError> {
        Ok(self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?.status.success())
    }

    /// The commit's first parent, if it has any.
    pub fn parent(&self, commit: &Sha) -> Result<Option<String>, FlowError> {
        let done = self.ask(&["rev-parse", "--quiet", "--verify", &format!("{commit}^1")])?;
        Ok(done.status.success().then(|| line(&done)))
    }

    /// The commit that a name stands for, if there is one.
    pub fn resolve(&self, name: &str) -> Result<Option<Sha>, FlowError> {
        let done = self.ask(&["rev-parse", "--quiet", "--verify", &format!("{name}^{{commit}}")])?;
        Ok(if done.status.success() { Sha::new(&line(&done)) } else { None })
    }

    /// The commit at which head left base.
    pub fn merge_base(&self, base: &Sha, head: &Sha) -> Result<String, FlowError> {
        let done = self.ask(&["merge-base", base.as_str(), head.as_str()])?;
        if done.status.success() {
            return Ok(line(&done));
        }
        Err(FlowError::Input(format!(
            "{head} has no history in common with {base}, so there is nothing to compare it with: rebase it, and let the \
             checkout have the whole history"
        )))
    }

    /// Files that have changed in a range and match one of the patterns; all of them without any.
    fn changed(&self, range: &str, patterns: &[String]) -> Result<Vec<String>, FlowError> {
        let mut arguments =
            vec!["diff", "--name-only", "-z", "--no-ext-diff", "--no-textconv", "--no-renames"];
        arguments.extend(["--ignore-submodules=none", "--no-relative", range, "--"]);
        arguments.extend(patterns.iter().map(String::as_str));
        let done = self.ask(&arguments)?;
        if !done.status.success() {
            let message = String::from_utf8_lossy(&done.stderr);
            let message = message.lines().last().unwrap_or_default();
            return Err(FlowError::Input(format!(
                "cannot tell what has changed in {range} of {}: {}; the clone needs both commits, with their history",
                self.repository.display(),
                plain(message)
            )));
        }
        Ok(names(&done))
    }

    /// Whether a file has changed between two commits.
    pub fn differs(&self, from: &str, to: &Sha, file: &str) -> Result<bool, FlowError> {
        Ok(!self.changed(&format!("{from}..{to}"), &[format!(":(literal,top){file}")])?.is_empty())
    }

    /// Whether anything but baselines has changed.
    pub fn has_changes_beside(&self, from: &Sha, to: &Sha, folder: &str) -> Result<bool, FlowError> {
        let all = [":(top,glob)**".to_owned(), format!(":(exclude,literal,top){folder}")];
        Ok(!self.changed(&format!("{from}..{to}"), &all)?.is_empty())
    }

    /// Whether a change touches a file that matters for speed.
    pub fn touches(&self, sides: (&Sha, &Sha), filter: Filter, suite: &Matters) -> Result<bool, FlowError> {
        let (head, base) = sides;
        // Without a common past everything has changed; the gate says so.
        let is_apart = || {
            Ok::<bool, FlowError>(self.has(head)? && self.has(base)? && self.merge_base(base, head).is_err())
        };
        if filter == Filter::SinceMergeBase && is_apart()? {
            return Ok(true);
        }
        let dots = if filter == Filter::SinceBase { ".." } else { "..." };
        let range = format!("{base}{dots}{head}");
        let always = ALWAYS.iter().map(|path| (*path).to_owned()).map(|path| format!(":(glob,top){path}"));
        let always: Vec<String> = always.chain([format!(":(literal,top){}", suite.file)]).collect();
        if !self.changed(&range, &always)?.is_empty() {
            return Ok(true);
        }
        if !suite.paths.is_empty() {
            // A submodule has no files of its own here: dir/** means dir as well.
            let folders = suite.paths.iter().filter_map(|path| path.strip_suffix("/**"));
            let all = suite.paths.iter().map(String::as_str).chain(folders);
            let all: Vec<String> = all.map(|path| format!(":(glob,top){path}")).collect();
            return Ok(!self.changed(&range, &all)?.is_empty());
        }
        Ok(self.changed(&range, &[])?.iter().any(|name| !suite.is_document(name)))
    }

    /// A file of a commit, if it has it.
    pub fn read(&self, commit: &Sha, file: &str) -> Result<Option<Vec<u8>>, FlowError> {
        let done = self.ask(&["cat-file", "blob", &format!("{commit}:{file}")])?;
        Ok(done.status.success().then_some(done.stdout))
    }

    /// Writes a file and the folder [`SETTINGS`] of a commit, as plain files. Links are left out.
    pub fn extract(&self, commit: &Sha, into: &Path) -> Result<(), FlowError> {
        let done = self.ask(&["ls-tree", "-r", "-z", "--full-tree", commit.as_str(), "--", SETTINGS])?;
        for entry in names(&done) {
            let Some((kind, name)) = entry.split_once('\t') else { continue };
            if kind.starts_with("100")
                && let Some(bytes) = self.read(commit, name)?
            {
                holdpoint_store::write_binary(&into.join(name), &bytes)?;
            }
        }
        Ok(())
    }

    /// The suite at one of the commits, the first that has it, written below a folder.
    pub fn suite(&self, commits: &[&Sha], file: &str, into: &Path) -> Result<Option<BaseSuite>, FlowError> {
        for (at, commit) in commits.iter().enumerate() {
            let Some(bytes) = self.read(commit, file)? else { continue };
            let path = into.join(file);
            holdpoint_store::write_binary(&path, &bytes)?;
            let suite = holdpoint_store::read_suite(&path)?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            return Ok(Some(BaseSuite { path, suite, text, is_fallback: at > 0 }));
        }
        Ok(None)
    }
}

/// A suite as a commit has it.
pub struct BaseSuite {
    pub path: PathBuf,
    pub suite: Suite,
    pub text: String,
    /// Whether only a later commit of those asked has it.
    pub is_fallback: bool,
}

impl BaseSuite {
    pub fn matters<'a>(&'a self, file: &'a str) -> Matters<'a> {
        Matters { file, paths: &self.suite.gate.paths, text: &self.text }
    }
}

/// The files that matter to a suite.
pub struct Matters<'a> {
    /// The suite's own file.
    pub file: &'a str,
    /// Globs; every file but documents if empty.
    pub paths: &'a [String],
    /// The suite's text: a document that it names is an input.
    pub text: &'a str,
}

impl Matters<'_> {
    fn is_document(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let is_named = || self.text.contains(name) || name.is_empty();
        (name.to_ascii_lowercase().ends_with(".md") || name.starts_with("LICENSE")) && !is_named()
    }
}

fn line(done: &Output) -> String {
    String::from_utf8_lossy(&done.stdout).trim().to_owned()
}

fn names(done: &Output) -> Vec<String> {
    let text = String::from_utf8_lossy(&done.stdout);
    text.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_matter_only_where_the_suite_names_them() {
        let matters = Matters { file: "perf.toml", paths: &[], text: "command = [\"zip\", \"big.md\"]" };
        for (path, is_document) in [
            ("README.md", true),
            ("docs/Guide.MD", true),
            ("LICENSE-MIT", true),
            ("tests/big.md", false),
            ("src/main.rs", false),
            ("md", false),
        ] {
            assert_eq!(matters.is_document(path), is_document, "{path}");
        }
    }
}
