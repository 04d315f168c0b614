//! Where a repository is, looked for without git: a setting such as `core.worktree` has no say in it.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: PathBuf,
    /// `.git` in the root: a folder, or a file that names one.
    pub(super) git_dir: PathBuf,
}

impl Place {
    /// The nearest work tree that a folder is in.
    pub(super) fn find(dir: &Path) -> Option<Self> {
        let dir = std::fs::canonicalize(dir).ok()?;
        let root = dir.ancestors().find(|folder| folder.join(".git").exists())?;
        Some(Self { git_dir: root.join(".git"), root: root.to_owned() })
    }
}
