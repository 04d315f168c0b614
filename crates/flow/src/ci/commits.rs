//! The commits of a change: what they touch, and the suite and settings in them. The clone is only looked at: nothing of it is run,
//! and files in its commits (`.gitmodules`, `.gitattributes`) do not influence the answers.

use crate::error::FlowError;
use holdpoint_ci::guard::{Filter, Sha, plain};
use holdpoint_model::Suite;
use holdpoint_process::git::{GitError, Repository};
use std::path::{Path, PathBuf};

/// Paths that always matter: those that decide how to measure, and what is checked out.
const ALWAYS: [&str; 5] =
    [".holdpoint/**", ".github/workflows/perf*", ".gitlab/holdpoint.yml", ".gitlab-ci.yml", ".gitmodules"];

/// The folder of baselines, calibrations, waivers and notifications.
pub const SETTINGS: &str = ".holdpoint";

/// The commit that a name stands for, if there is one.
pub fn find(clone: &Repository, name: &str) -> Result<Option<Sha>, FlowError> {
    Ok(clone.find(name)?.as_deref().and_then(Sha::new))
}

/// The commit at which head left base.
pub fn merge_base(clone: &Repository, base: &Sha, head: &Sha) -> Result<String, FlowError> {
    match clone.merge_base(base.as_str(), head.as_str()) {
        Ok(Some(commit)) => Ok(commit),
        Err(error @ GitError::NotStarted(_)) => Err(error.into()),
        Ok(None) | Err(_) => Err(FlowError::Input(format!(
            "{head} has no history in common with {base}, so there is nothing to compare it with: rebase it, and let the \
             checkout have the whole history"
        ))),
    }
}

fn changed(clone: &Repository, range: &str, patterns: &[String]) -> Result<Vec<String>, FlowError> {
    clone.changed_files(range, patterns).map_err(|error| match error {
        GitError::Failed { dir, detail, .. } => FlowError::Input(format!(
            "cannot tell what has changed in {range} of {}: {}; the clone needs both commits, with their history",
            dir.display(),
            plain(&detail)
        )),
        error => error.into(),
    })
}

/// Whether a file has changed between two commits.
pub fn differs(clone: &Repository, from: &str, to: &Sha, file: &str) -> Result<bool, FlowError> {
    Ok(!changed(clone, &format!("{from}..{to}"), &[format!(":(literal,top){file}")])?.is_empty())
}

/// Whether anything but baselines has changed.
pub(crate) fn has_changes_beside(
    clone: &Repository,
    from: &Sha,
    to: &Sha,
    folder: &str,
) -> Result<bool, FlowError> {
    let all = [":(top,glob)**".to_owned(), format!(":(exclude,literal,top){folder}")];
    Ok(!changed(clone, &format!("{from}..{to}"), &all)?.is_empty())
}

/// Whether a change touches a file that matters for speed.
pub(crate) fn touches(
    clone: &Repository,
    (head, base): (&Sha, &Sha),
    filter: Filter,
    suite: &Matters,
) -> Result<bool, FlowError> {
    // Without a common past everything has changed; the gate says so.
    let has_both = || Ok::<bool, GitError>(clone.has(head.as_str())? && clone.has(base.as_str())?);
    if filter == Filter::SinceMergeBase && has_both()? && merge_base(clone, base, head).is_err() {
        return Ok(true);
    }
    let dots = if filter == Filter::SinceBase { ".." } else { "..." };
    let range = format!("{base}{dots}{head}");
    let always = ALWAYS.iter().map(|path| format!(":(glob,top){path}"));
    let always: Vec<String> = always.chain([format!(":(literal,top){}", suite.file)]).collect();
    if !changed(clone, &range, &always)?.is_empty() {
        return Ok(true);
    }
    if !suite.paths.is_empty() {
        // A submodule has no files of its own here: dir/** means dir as well.
        let folders = suite.paths.iter().filter_map(|path| path.strip_suffix("/**"));
        let all = suite.paths.iter().map(String::as_str).chain(folders);
        let all: Vec<String> = all.map(|path| format!(":(glob,top){path}")).collect();
        return Ok(!changed(clone, &range, &all)?.is_empty());
    }
    Ok(changed(clone, &range, &[])?.iter().any(|name| !suite.is_document(name)))
}

/// Writes the folder [`SETTINGS`] of a commit, as plain files.
pub(crate) fn extract_settings(clone: &Repository, commit: &Sha, into: &Path) -> Result<(), FlowError> {
    for name in clone.plain_files(commit.as_str(), SETTINGS)? {
        if let Some(bytes) = clone.read_file(commit.as_str(), &name)? {
            holdpoint_store::write_binary(&into.join(name), &bytes)?;
        }
    }
    Ok(())
}

/// The suite at one of the commits, the first that has it, written below a folder.
pub fn read_suite(
    clone: &Repository,
    commits: &[&Sha],
    file: &str,
    into: &Path,
) -> Result<Option<BaseSuite>, FlowError> {
    for (at, commit) in commits.iter().enumerate() {
        let Some(bytes) = clone.read_file(commit.as_str(), file)? else { continue };
        let path = into.join(file);
        holdpoint_store::write_binary(&path, &bytes)?;
        let suite = holdpoint_store::read_suite(&path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        return Ok(Some(BaseSuite { path, suite, text, is_fallback: at > 0 }));
    }
    Ok(None)
}

/// A suite as a commit has it.
pub(crate) struct BaseSuite {
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
pub(crate) struct Matters<'a> {
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
