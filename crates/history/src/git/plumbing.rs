//! The repository that a history's ref is in. Errors name the history.

use crate::error::HistoryError;
use holdpoint_model::limits::{
    HISTORY_BATCH_BYTES_MAX, HISTORY_BYTES_MAX, HISTORY_FILE_BYTES_MAX, HISTORY_FILES_MAX,
    HISTORY_LISTING_BYTES_MAX,
};
use holdpoint_process::git::{self, BlobLimits, GitError, TreeFile};
use std::path::Path;

pub struct Repository {
    git: git::Repository,
    place: String,
}

/// The most that is read from a history.
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
        repository.ask(|git| git.check_ref_name(name))?;
        Ok(repository)
    }

    /// Asks git; an error names the history.
    pub fn ask<T>(
        &self,
        question: impl FnOnce(&git::Repository) -> Result<T, GitError>,
    ) -> Result<T, HistoryError> {
        question(&self.git).map_err(|error| {
            let (place, what) = (self.place.clone(), error.to_string());
            if error.is_input() || matches!(error, GitError::Failed { .. }) {
                HistoryError::Place { place, what }
            } else {
                HistoryError::Failed { place, what }
            }
        })
    }

    /// The commit that a ref points to.
    pub fn commit(&self, name: &str) -> Result<Option<String>, HistoryError> {
        self.ask(|git| git.find(name))
    }

    /// The files of a commit.
    pub fn files(&self, commit: &str) -> Result<Vec<TreeFile>, HistoryError> {
        self.ask(|git| git.files(commit, HISTORY_FILES_MAX, HISTORY_LISTING_BYTES_MAX))
    }

    /// Reads the texts of these blobs, in batches, each text with its position or why there is none.
    pub fn read(
        &self,
        blobs: &[&str],
        limits: &mut BlobLimits,
        mut take: impl FnMut(Vec<(usize, Result<String, String>)>) -> Result<(), HistoryError>,
    ) -> Result<(), HistoryError> {
        let mut taken = Ok(());
        self.ask(|git| {
            git.read_blobs(blobs, limits, |texts| -> Result<(), GitError> {
                if taken.is_ok() {
                    taken = take(texts);
                }
                Ok(())
            })
        })?;
        taken
    }
}
