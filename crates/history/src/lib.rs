//! The history: every run kept, its values as points of series, in one store behind one trait.
//!
//! SQLite (a file) and PostgreSQL (a URL) hold the same tables; a git ref is read into a file of SQLite's. All pass the same tests. Nothing
//! here decides or draws, and the clock is read only to refuse runs of the future.

mod backend;
mod error;
mod future;
mod git;
mod location;
mod pack;
mod pool;
mod postgres;
mod record;
mod rows;
mod schema;
mod sqlite;
mod store;
mod tracks;

pub use error::HistoryError;
pub use future::{check_time, is_future};
pub use location::Location;
pub use record::{Judge, NewPoint, RunRecord, series_id};
pub use schema::VERSION;
pub use store::{Access, Prune, PruneWhat, Store, Values};
pub use tracks::StoreTracks;

/// Opens the store at a place. A server opens it once: several threads may use it. Two sides that are read from files of it are judged again.
///
/// # Errors
/// When it is not there and may not be made, is no history, or is of another version: [`migrate`] takes an older one on.
pub fn open(location: &Location, access: Access, judge: Judge) -> Result<Box<dyn Store>, HistoryError> {
    location.backend.open(&location.place, access, judge)
}

/// Takes a store of an older version to this one's; the version that it had.
pub fn migrate(location: &Location) -> Result<u32, HistoryError> {
    location.backend.migrate(&location.place)
}

/// Makes a database of another version, as an older or a newer holdpoint would, and adds rows to it by these statements: for tests.
#[doc(hidden)]
pub fn force_version(location: &Location, version: u32, rows: &str) -> Result<(), HistoryError> {
    location.backend.force_version(&location.place, version, rows)
}
