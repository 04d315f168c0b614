//! The repository that a history's ref is in, by what a history asks of it. Errors name the history.

use crate::error::HistoryError;
use holdpoint_model::limits::{
    HISTORY_BATCH_BYTES_MAX, HISTORY_BYTES_MAX, HISTORY_FILE_BYTES_MAX, HISTORY_FILES_MAX,
    HISTORY_LISTING_BYTES_MAX,
};
use holdpoint_process::git::{self, BlobLimits, GitError, TreeFile};
use std::path::{Path, PathBuf};

pub struct Repository {
    git: git::Repository,
    place: String,
}

/// What a history may hold.
pub(crate) const LIMITS: BlobLimits = BlobLimits {
    file_bytes: HISTORY_FILE_BYTES_MAX,
    batch_bytes: HISTORY_BATCH_BYTES_MAX,
    left_bytes: HISTORY_BYTES_MAX,
};

impl Repository {
    pub fn open(dir: &Path, name: &str) -> Result<Self, HistoryError> {
        let repository = Self { git: git::Repository::around(dir), place: super::place(name) };
        let is_full = name.starts_with("refs/") && !name.ends_with('/');
        if !is_full {
            let what = "a full name is wanted, such as git:refs/holdpoint/history or git:refs/heads/perf";
            return Err(HistoryError::Place { place: repository.place, what: what.to_owned() });
        }
        repository.told(repository.git.check_ref_name(name))?;
        Ok(repository)
    }

    /// The same, of a history's errors.
    fn told<T>(&self, answer: Result<T, GitError>) -> Result<T, HistoryError> {
        answer.map_err(|error| {
            let (place, what) = (self.place.clone(), error.to_string());
            if error.is_input() || matches!(error, GitError::Failed { .. }) {
                HistoryError::Place { place, what }
            } else {
                HistoryError::Failed { place, what }
            }
        })
    }

    /// Where git keeps its own files.
    pub fn folder(&self) -> Result<PathBuf, HistoryError> {
        self.told(self.git.common_dir())
    }

    /// The commit that a ref points to.
    pub fn commit(&self, name: &str) -> Result<Option<String>, HistoryError> {
        self.told(self.git.find(name))
    }

    /// Whether a commit is another one or comes after it.
    pub fn contains(&self, commit: &str, other: &str) -> Result<bool, HistoryError> {
        self.told(self.git.is_ancestor(other, commit))
    }

    /// The files of a commit.
    pub fn files(&self, commit: &str) -> Result<Vec<TreeFile>, HistoryError> {
        self.told(self.git.files(commit, HISTORY_FILES_MAX, HISTORY_LISTING_BYTES_MAX))
    }

    /// Reads the texts of these blobs, in batches, each text with its position or why there is none.
    pub fn read(
        &self,
        blobs: &[&str],
        limits: &mut BlobLimits,
        mut take: impl FnMut(Vec<(usize, Result<String, String>)>) -> Result<(), HistoryError>,
    ) -> Result<(), HistoryError> {
        let mut failed = Ok(());
        let read = self.git.read_blobs(blobs, limits, |texts| -> Result<(), GitError> {
            if failed.is_ok() {
                failed = take(texts);
            }
            Ok(())
        });
        self.told(read).and(failed)
    }

    /// Writes texts as blobs; the same paths with their ids.
    pub fn write(&self, files: &[(String, String)]) -> Result<Vec<TreeFile>, HistoryError> {
        self.told(self.git.write_blobs(files))
    }

    /// The tree of a commit with files added and removed, and no other change.
    pub fn tree_with(
        &self,
        commit: Option<&str>,
        add: &[TreeFile],
        remove: &[String],
    ) -> Result<String, HistoryError> {
        self.told(self.git.tree_with(commit, add, remove))
    }

    pub fn commit_tree(&self, tree: &str, parents: &[&str], message: &str) -> Result<String, HistoryError> {
        self.told(self.git.commit_tree(tree, parents, message))
    }

    /// Moves a ref, if it still points to `from`; whether it did.
    pub fn move_ref(&self, name: &str, to: &str, from: Option<&str>) -> Result<bool, HistoryError> {
        self.told(self.git.move_ref(name, to, from))
    }

    /// The commit of a remote's ref, fetched; `None` where it has none.
    pub fn fetch(&self, remote: &str, name: &str) -> Result<Option<String>, HistoryError> {
        self.told(self.git.fetch_ref(remote, name))
    }

    /// Pushes a commit to a remote's ref if that still is `from`; why not, if somebody else was first.
    pub fn push(
        &self,
        remote: &str,
        commit: &str,
        name: &str,
        from: Option<&str>,
    ) -> Result<Option<String>, HistoryError> {
        self.told(self.git.push_ref(remote, commit, name, from))
    }
}
