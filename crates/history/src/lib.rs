//! The history: every run kept, its values as points of series, in one store behind one trait.
//!
//! SQLite (a file) and PostgreSQL (a URL) hold the same tables and pass the same tests. Nothing here decides, draws or reads a clock.

mod error;
mod location;
mod pack;
mod postgres;
mod record;
mod rows;
mod schema;
mod sqlite;
mod store;
mod tracks;

pub use error::HistoryError;
pub use location::Location;
pub use record::{NewPoint, RunRecord, series_id};
pub use schema::VERSION;
pub use store::{Access, Prune, PruneWhat, Pruned, RunAt, Store, Values};
pub use tracks::StoreTracks;

/// Opens the store at a file or a URL.
///
/// # Errors
/// When it is not there and may not be made, is no history, or is of another version: [`migrate`] takes an older one on.
pub fn open(location: &Location, access: Access) -> Result<Box<dyn Store>, HistoryError> {
    match location {
        Location::File(path) => Ok(Box::new(sqlite::Sqlite::open(path, access)?)),
        Location::Postgres(url) => Ok(Box::new(postgres::Postgres::open(url, access)?)),
        Location::Git(name) => Err(HistoryError::Indirect(name.clone())),
    }
}

/// Takes a store of an older version to this one's; the version that it had.
pub fn migrate(location: &Location) -> Result<u32, HistoryError> {
    match location {
        Location::File(path) => sqlite::migrate(path),
        Location::Postgres(url) => postgres::migrate(url),
        Location::Git(name) => Err(HistoryError::Indirect(name.clone())),
    }
}

/// Makes a store of another version, as an older or a newer holdpoint would: for tests.
#[doc(hidden)]
pub fn force_version(location: &Location, version: u32) -> Result<(), HistoryError> {
    match location {
        Location::File(path) => sqlite::force_version(path, version),
        Location::Postgres(url) => postgres::force_version(url, version),
        Location::Git(name) => Err(HistoryError::Indirect(name.clone())),
    }
}
