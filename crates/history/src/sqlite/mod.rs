//! A history in a file of SQLite's. Writers take turns: each waits for the others, for a minute at most.

mod add;
mod query;

use crate::error::HistoryError;
use crate::record::RunRecord;
use crate::rows::Known;
use crate::schema::{Dialect, VERSION};
use crate::store::{Access, Prune, Pruned, RunAt, Store, Values};
use holdpoint_model::{Acceptance, RunHash, Series, SeriesFilter, SeriesSummary, Timestamp};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// How long a writer waits for others: two hundred at once with a hundred milliseconds each take a third of it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

const DIALECT: Dialect =
    Dialect { id: "INTEGER PRIMARY KEY", bytes: "BLOB", float: "REAL", clustered: " WITHOUT ROWID" };

/// `application_id` of our files: the letters `hpnt`.
const APPLICATION_ID: i64 = 0x6870_6e74;

pub struct Sqlite {
    connection: Connection,
    place: String,
    known: Known,
}

impl Sqlite {
    pub fn open(path: &Path, access: Access) -> Result<Self, HistoryError> {
        let place = path.display().to_string();
        let mut connection = connect(path, &place, access)?;
        let found = version(&connection, &place)?;
        match found {
            0 if access == Access::Create => set_up(&mut connection, &place, VERSION)?,
            0 => return Err(HistoryError::Missing { place }),
            _ => check_version(&place, found)?,
        }
        Ok(Self { connection, place, known: Known::new() })
    }

    /// Runs statements that change the store: all of them or none, once no other writer is at it.
    fn change<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>,
    ) -> Result<T, HistoryError> {
        let place = &self.place;
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(|error| failed(place, &error))?;
        let done = change(&transaction).map_err(|failure| failure.at(place))?;
        transaction.commit().map_err(|error| failed(place, &error))?;
        Ok(done)
    }

    fn ask<T>(&self, ask: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, HistoryError> {
        ask(&self.connection).map_err(|failure| failure.at(&self.place))
    }

    fn no_series(&self, id: &str) -> HistoryError {
        HistoryError::NoSeries { place: self.place.clone(), id: id.to_owned() }
    }
}

impl Store for Sqlite {
    fn add(&mut self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
        let mut known = std::mem::take(&mut self.known);
        // On an error it stays empty: ids of series that were rolled back are nobody's.
        let added = self.change(|transaction| add::add(transaction, runs, &mut known))?;
        self.known = known;
        Ok(added)
    }

    fn known(&mut self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        self.ask(|connection| query::known(connection, hashes))
    }

    fn list(&mut self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError> {
        self.ask(|connection| query::list(connection, filter))
    }

    fn read(&mut self, id: &str) -> Result<Series, HistoryError> {
        let found = self.ask(|connection| query::read(connection, id))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn runs_at(&mut self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError> {
        self.ask(|connection| query::runs_at(connection, id, times))
    }

    fn values(&mut self, id: &str) -> Result<Values, HistoryError> {
        let found = self.ask(|connection| query::values(connection, id))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn accept(&mut self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError> {
        let done = self.change(|transaction| query::accept(transaction, id, acceptance))?;
        if done { Ok(()) } else { Err(self.no_series(id)) }
    }

    fn document(&mut self, run: &RunHash) -> Result<Option<String>, HistoryError> {
        self.ask(|connection| query::document(connection, run))
    }

    fn old(&mut self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError> {
        self.ask(|connection| query::old(connection, prune))
    }

    fn forget(&mut self, runs: &[RunHash]) -> Result<Pruned, HistoryError> {
        self.change(|transaction| query::forget(transaction, runs))
    }

    fn prune(&mut self, prune: &Prune) -> Result<Pruned, HistoryError> {
        self.change(|transaction| query::prune(transaction, prune))
    }
}

/// Takes an older file to this version; the version that it had.
pub fn migrate(path: &Path) -> Result<u32, HistoryError> {
    let place = path.display().to_string();
    let mut connection = connect(path, &place, Access::Existing)?;
    match version(&connection, &place)? {
        0 => Err(HistoryError::Missing { place }),
        found if found > VERSION => Err(HistoryError::Newer { place, found }),
        found => {
            set_up(&mut connection, &place, VERSION)?;
            Ok(found)
        }
    }
}

fn connect(path: &Path, place: &str, access: Access) -> Result<Connection, HistoryError> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if access == Access::Create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(Err(error)) = folder.map(std::fs::create_dir_all) {
            let what = format!("its folder cannot be made: {error}");
            return Err(HistoryError::Place { place: place.to_owned(), what });
        }
    } else if !path.exists() {
        return Err(HistoryError::Missing { place: place.to_owned() });
    }
    let connection = Connection::open_with_flags(path, flags).map_err(|error| failed(place, &error))?;
    let prepare = || -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        // Every commit reaches the disk: what was acknowledged survives a power cut.
        connection.pragma_update(None, "synchronous", "full")?;
        // 64 MiB: a batch touches a page of every series.
        connection.pragma_update(None, "cache_size", -65_536)?;
        connection.set_prepared_statement_cache_capacity(64);
        Ok(())
    };
    prepare().map_err(|error| failed(place, &error))?;
    Ok(connection)
}

/// The version of the file; 0 of an empty one.
fn version(connection: &Connection, place: &str) -> Result<u32, HistoryError> {
    let number = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let ask = || -> rusqlite::Result<(i64, i64, i64)> {
        let tables = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables))
    };
    let (application, version, tables) = ask().map_err(|error| failed(place, &error))?;
    if application != APPLICATION_ID && tables > 0 {
        let what = "another program's database lies there; name another file".to_owned();
        return Err(HistoryError::Foreign { place: place.to_owned(), what });
    }
    Ok(u32::try_from(version).unwrap_or(u32::MAX))
}

fn check_version(place: &str, found: u32) -> Result<(), HistoryError> {
    let place = place.to_owned();
    match found.cmp(&VERSION) {
        std::cmp::Ordering::Greater => Err(HistoryError::Newer { place, found }),
        std::cmp::Ordering::Less => Err(HistoryError::Older { place, found }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// Takes the file to a version, whatever another process does meanwhile.
fn set_up(connection: &mut Connection, place: &str, to: u32) -> Result<(), HistoryError> {
    let mut change = || -> rusqlite::Result<()> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Looked at again now that nobody else writes.
        let from: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        if from < to {
            transaction.execute_batch(&DIALECT.steps(from, to))?;
            transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
            transaction.pragma_update(None, "user_version", to)?;
        }
        transaction.commit()
    };
    change().map_err(|error| failed(place, &error))
}

/// Makes a file of this version, or takes a file to it, whether or not there is such a version.
pub fn force_version(path: &Path, version: u32) -> Result<(), HistoryError> {
    let place = path.display().to_string();
    let mut connection = connect(path, &place, Access::Create)?;
    set_up(&mut connection, &place, version)
}

/// Why statements failed.
pub enum Failure {
    Database(rusqlite::Error),
    Content(String),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl Failure {
    fn at(self, place: &str) -> HistoryError {
        match self {
            Self::Database(error) => failed(place, &error),
            Self::Content(what) => HistoryError::Failed { place: place.to_owned(), what },
        }
    }
}

fn failed(place: &str, error: &rusqlite::Error) -> HistoryError {
    let place = place.to_owned();
    let what = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "no space left on the disk".to_owned(),
        Some(ErrorCode::SystemIoFailure) => "the disk refused to read or write: is it full?".to_owned(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another process has been writing for {} s", BUSY_TIMEOUT.as_secs())
        }
        Some(ErrorCode::NotADatabase) => {
            let what = "the file is not SQLite's; name another one".to_owned();
            return HistoryError::Foreign { place, what };
        }
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            return HistoryError::Place { place, what: format!("cannot be opened for writing: {error}") };
        }
        _ => error.to_string(),
    };
    HistoryError::Failed { place, what }
}
