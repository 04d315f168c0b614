//! Where a repository is, looked for without git: a setting such as `core.worktree` has no say in it.

use std::path::{Path, PathBuf};

pub(super) struct Place {
    pub(super) root: PathBuf,
    /// `.git` in the root: a folder, or a file that names one.
    pub(super) git_dir: PathBuf,
}

/// The nearest work tree that a folder is in.
pub(super) fn locate(dir: &Path) -> Option<Place> {
    let dir = std::fs::canonicalize(dir).ok()?;
    let root = dir.ancestors().find(|folder| folder.join(".git").exists())?;
    Some(Place { git_dir: root.join(".git"), root: root.to_owned() })
}

pub fn root(dir: &Path) -> Option<PathBuf> {
    locate(dir).map(|place| place.root)
}
