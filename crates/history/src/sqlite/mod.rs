//! A history in a file of SQLite's. Writers take turns: each waits for the others, for a minute at most. Readers wait for nobody.

mod add;
mod query;

use crate::backend::Backend;
use crate::error::HistoryError;
use crate::pool::Pool;
use crate::record::{Judge, RunRecord};
use crate::rows::Known;
use crate::schema::{Dialect, VERSION};
use crate::store::{Access, Prune, Pruned, RunAt, Store, Values};
use holdpoint_model::{
    Acceptance, RunFilter, RunHash, RunPage, Series, SeriesFilter, SeriesSummary, TimeRange, Timestamp,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a writer waits for others: two hundred at once with a hundred milliseconds each take a third of it.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);

const DIALECT: Dialect = Dialect {
    id: "INTEGER PRIMARY KEY",
    bytes: "BLOB",
    float: "REAL",
    clustered: " WITHOUT ROWID",
    key: "key_json",
};

/// `application_id` of our files: the letters `hpnt`.
const APPLICATION_ID: i64 = 0x6870_6e74;

/// Files of SQLite's: any place that is no other backend's.
pub(crate) struct SqliteFile;

impl Backend for SqliteFile {
    fn schemes(&self) -> &'static [&'static str] {
        &[""]
    }

    fn is_file(&self) -> bool {
        true
    }

    fn open(&self, place: &Path, access: Access, _: Judge) -> Result<Box<dyn Store>, HistoryError> {
        Ok(Box::new(Sqlite::open(place, access)?))
    }

    fn migrate(&self, place: &Path) -> Result<u32, HistoryError> {
        migrate(place)
    }

    fn force_version(&self, place: &Path, version: u32, rows: &str) -> Result<(), HistoryError> {
        force_version(place, version, rows)
    }
}

pub(crate) struct Sqlite {
    sessions: Pool<Session>,
    path: PathBuf,
    place: String,
}

/// A connection, and the series that it has met.
struct Session {
    connection: Connection,
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
        let sessions = Pool::new(Session { connection, known: Known::new() });
        Ok(Self { sessions, path: path.to_owned(), place })
    }

    /// Runs statements that change the store: all of them or none, once no other writer is at it.
    fn change<T>(
        &self,
        change: impl FnOnce(&Transaction<'_>, &mut Known) -> Result<T, Failure>,
    ) -> Result<T, HistoryError> {
        self.run(TransactionBehavior::Immediate, change)
    }

    /// Asks questions about one state of the store, whatever others write meanwhile.
    fn ask<T>(&self, ask: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, HistoryError> {
        self.run(TransactionBehavior::Deferred, |transaction, _| ask(transaction))
    }

    fn run<T>(
        &self,
        behavior: TransactionBehavior,
        act: impl FnOnce(&Transaction<'_>, &mut Known) -> Result<T, Failure>,
    ) -> Result<T, HistoryError> {
        let connect = || {
            let connection = connect(&self.path, &self.place, Access::Existing)?;
            Ok(Session { connection, known: Known::new() })
        };
        self.sessions.with(connect, |Session { connection, known }| {
            // On an error it stays empty: ids of series that were rolled back are nobody's.
            let mut met = std::mem::take(known);
            let act = || -> Result<T, Failure> {
                let transaction = connection.transaction_with_behavior(behavior)?;
                let done = act(&transaction, &mut met)?;
                transaction.commit()?;
                Ok(done)
            };
            let done = act().map_err(|failure| failure.at(&self.place))?;
            *known = met;
            Ok(done)
        })
    }

    fn no_series(&self, id: &str) -> HistoryError {
        HistoryError::NoSeries { place: self.place.clone(), id: id.to_owned() }
    }
}

impl Store for Sqlite {
    fn add(&self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
        self.change(|transaction, known| add::add(transaction, runs, known))
    }

    fn known(&self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        self.ask(|connection| query::known(connection, hashes))
    }

    fn list(&self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError> {
        self.ask(|connection| query::list(connection, filter))
    }

    fn runs(&self, filter: &RunFilter) -> Result<RunPage, HistoryError> {
        self.ask(|connection| query::runs_page(connection, filter))
    }

    fn read(&self, id: &str, times: TimeRange) -> Result<Series, HistoryError> {
        let found = self.ask(|connection| query::read(connection, id, times))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn runs_at(&self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError> {
        self.ask(|connection| query::runs_at(connection, id, times))
    }

    fn values(&self, id: &str) -> Result<Values, HistoryError> {
        let found = self.ask(|connection| query::values(connection, id))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn accept(&self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError> {
        let done = self.change(|transaction, _| query::accept(transaction, id, acceptance))?;
        if done { Ok(()) } else { Err(self.no_series(id)) }
    }

    fn document(&self, run: &RunHash) -> Result<Option<String>, HistoryError> {
        self.ask(|connection| query::document(connection, run))
    }

    fn old(&self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError> {
        self.ask(|connection| query::old(connection, prune))
    }

    fn forget(&self, runs: &[RunHash]) -> Result<Pruned, HistoryError> {
        self.change(|transaction, _| query::forget(transaction, runs))
    }

    fn prune(&self, prune: &Prune) -> Result<Pruned, HistoryError> {
        self.change(|transaction, _| query::prune(transaction, prune))
    }
}

/// Takes an older file to this version; the version that it had.
fn migrate(path: &Path) -> Result<u32, HistoryError> {
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
fn force_version(path: &Path, version: u32, rows: &str) -> Result<(), HistoryError> {
    let place = path.display().to_string();
    let mut connection = connect(path, &place, Access::Create)?;
    set_up(&mut connection, &place, version)?;
    connection.execute_batch(&DIALECT.spell(rows)).map_err(|error| failed(&place, &error))
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
