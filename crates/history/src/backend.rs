//! The backends that hold histories.

use crate::error::HistoryError;
use crate::record::Judge;
use crate::store::{Access, Store};
use std::path::Path;

/// Takes a place and a remote.
pub type Exchange = fn(&Path, &str) -> Result<(), HistoryError>;

/// A way to hold histories: how their places are written, and how one is opened.
pub trait Backend: Sync {
    /// Beginnings of its places.
    fn schemes(&self) -> &'static [&'static str];

    /// Whether its places are files.
    fn is_file(&self) -> bool {
        false
    }

    /// A place as it may be shown, without secrets.
    fn show(&self, place: &Path) -> String {
        place.display().to_string()
    }

    /// Opens the store at a place.
    fn open(&self, place: &Path, access: Access, judge: Judge) -> Result<Box<dyn Store>, HistoryError>;

    /// Takes a store of an older version to this one's; the version that it had.
    fn migrate(&self, place: &Path) -> Result<u32, HistoryError>;

    /// Joins the store at a place with a remote's and pushes the outcome; absent where there are no remotes.
    fn exchange(&self) -> Option<Exchange> {
        None
    }

    /// Makes a store of another version with these rows, for tests; only where there are versions.
    fn force_version(&self, place: &Path, _version: u32, _rows: &str) -> Result<(), HistoryError> {
        self.migrate(place).map(drop)
    }
}
