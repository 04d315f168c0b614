//! Folders and seeds of commands that exchange tensors with workers.

use crate::error::FlowError;
use holdpoint_measure::fuzz::Folders;
use holdpoint_store::Scratch;
use std::hash::{BuildHasher, RandomState};

/// One folder for the candidate's tensors and another for the oracle's: a candidate knows the path of its own file.
pub(crate) struct TensorFolders {
    candidate: Scratch,
    oracle: Scratch,
}

impl TensorFolders {
    pub fn new() -> Result<Self, FlowError> {
        Ok(Self { candidate: Scratch::new()?, oracle: Scratch::new()? })
    }

    pub fn folders(&self) -> Folders<'_> {
        Folders { candidate: self.candidate.path(), oracle: self.oracle.path() }
    }
}

/// A seed that no worker can know beforehand; 32 bits, so that it can be typed.
pub(crate) fn random_seed() -> u64 {
    RandomState::new().hash_one(()) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_differ_and_the_folders_too() {
        assert_ne!([random_seed(), random_seed()], [random_seed(), random_seed()]);
        let folders = TensorFolders::new().unwrap();
        assert_ne!(folders.folders().candidate, folders.folders().oracle);
    }
}
