//! A history on a PostgreSQL server, in a schema of its own. A server that goes away is waited for, with growing pauses; every change is
//! one transaction, and adding a run twice changes nothing, so a change whose answer was lost is simply made again.

mod add;
mod query;
mod tls;

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
use postgres::error::SqlState;
use postgres::{Client, Config, GenericClient, Transaction};
use std::path::Path;
use std::time::Duration;
use tls::Tls;

/// Pauses before each new try of a server that does not answer: half a minute in all, enough for it to be restarted.
const PAUSES_MS: [u64; 17] = [
    100, 300, 600, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000, 2_000,
    2_000,
];

/// How long a single try to connect may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

const DIALECT: Dialect = Dialect {
    id: "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    bytes: "BYTEA",
    float: "DOUBLE PRECISION",
    clustered: "",
    key: "key_json::json",
};

/// Held while the schema is made or changed: the letters `hpnt`.
const SCHEMA_LOCK: i64 = 0x6870_6e74;

/// URLs of servers: `postgres://…`.
pub(crate) struct PostgreSql;

impl Backend for PostgreSql {
    fn schemes(&self) -> &'static [&'static str] {
        &["postgres://", "postgresql://"]
    }

    fn show(&self, place: &Path) -> String {
        without_password(&place.to_string_lossy())
    }

    fn open(&self, place: &Path, access: Access, _: Judge) -> Result<Box<dyn Store>, HistoryError> {
        Ok(Box::new(Postgres::open(&place.to_string_lossy(), access)?))
    }

    fn migrate(&self, place: &Path) -> Result<u32, HistoryError> {
        migrate(&place.to_string_lossy())
    }

    fn force_version(&self, place: &Path, version: u32, rows: &str) -> Result<(), HistoryError> {
        force_version(&place.to_string_lossy(), version, rows)
    }
}

struct Postgres {
    server: Server,
    sessions: Pool<Session>,
}

/// A connection, and the series that it has met.
struct Session {
    client: Client,
    known: Known,
}

/// The URL less everything between the user's name and the host, and less its parameters, which may hold a password too.
fn without_password(url: &str) -> String {
    let url = url.split('?').next().unwrap_or(url);
    let Some((scheme, rest)) = url.split_once("://") else { return "postgres".to_owned() };
    match rest.rsplit_once('@') {
        Some((user, host)) => format!("{scheme}://{}@{host}", user.split(':').next().unwrap_or(user)),
        None => url.to_owned(),
    }
}

/// How the server is reached.
struct Server {
    config: Config,
    tls: Tls,
    place: String,
}

impl Postgres {
    fn open(url: &str, access: Access) -> Result<Self, HistoryError> {
        let server = Server::new(url)?;
        let mut client = server.connect()?;
        let found = version(&mut client).map_err(|error| server.failed(&error))?;
        let place = server.place.clone();
        match found {
            0 if access == Access::Create => {
                set_up(&mut client, VERSION).map_err(|error| server.failed(&error))?;
            }
            0 => return Err(HistoryError::Missing { place }),
            found if found > VERSION => return Err(HistoryError::Newer { place, found }),
            found if found < VERSION => return Err(HistoryError::Older { place, found }),
            _ => {}
        }
        Ok(Self { server, sessions: Pool::new(Session { client, known: Known::new() }) })
    }

    /// Runs statements in one transaction, again if the connection is lost or the server asks for it.
    fn change<T>(
        &self,
        mut change: impl FnMut(&mut Transaction<'_>, &mut Known) -> Result<T, Failure>,
    ) -> Result<T, HistoryError> {
        let connect = || Ok(Session { client: self.server.connect()?, known: Known::new() });
        self.sessions.with(connect, |session| self.change_in(session, &mut change))
    }

    fn change_in<T>(
        &self,
        Session { client, known }: &mut Session,
        change: &mut impl FnMut(&mut Transaction<'_>, &mut Known) -> Result<T, Failure>,
    ) -> Result<T, HistoryError> {
        let mut pauses = PAUSES_MS.iter();
        loop {
            let outcome = client.transaction().map_err(Failure::Database).and_then(|mut transaction| {
                let done = change(&mut transaction, known)?;
                transaction.commit()?;
                Ok(done)
            });
            let error = match outcome {
                Ok(done) => return Ok(done),
                Err(Failure::Content(what)) => {
                    known.clear();
                    return Err(HistoryError::Failed { place: self.server.place.clone(), what });
                }
                Err(Failure::Database(error)) => error,
            };
            // Ids of series that were rolled back are nobody's.
            known.clear();
            let Some(pause_ms) = pauses.next().filter(|_| is_worth_repeating(&error)) else {
                return Err(self.server.failed(&error));
            };
            std::thread::sleep(Duration::from_millis(*pause_ms));
            if client.is_closed() {
                *client = self.server.connect()?;
            }
        }
    }

    fn no_series(&self, id: &str) -> HistoryError {
        HistoryError::NoSeries { place: self.server.place.clone(), id: id.to_owned() }
    }
}

impl Store for Postgres {
    fn add(&self, runs: &[RunRecord]) -> Result<Vec<bool>, HistoryError> {
        self.change(|transaction, known| add::add(transaction, runs, known))
    }

    fn known(&self, hashes: &[RunHash]) -> Result<Vec<bool>, HistoryError> {
        self.change(|transaction, _| query::known(transaction, hashes))
    }

    fn list(&self, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, HistoryError> {
        self.change(|transaction, _| query::list(transaction, filter))
    }

    fn runs(&self, filter: &RunFilter) -> Result<RunPage, HistoryError> {
        self.change(|transaction, _| query::runs_page(transaction, filter))
    }

    fn read(&self, id: &str, times: TimeRange) -> Result<Series, HistoryError> {
        let found = self.change(|transaction, _| query::read(transaction, id, times))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn runs_at(&self, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, HistoryError> {
        self.change(|transaction, _| query::runs_at(transaction, id, times))
    }

    fn values(&self, id: &str) -> Result<Values, HistoryError> {
        let found = self.change(|transaction, _| query::values(transaction, id))?;
        found.ok_or_else(|| self.no_series(id))
    }

    fn accept(&self, id: &str, acceptance: &Acceptance) -> Result<(), HistoryError> {
        let done = self.change(|transaction, _| query::accept(transaction, id, acceptance))?;
        if done { Ok(()) } else { Err(self.no_series(id)) }
    }

    fn document(&self, run: &RunHash) -> Result<Option<String>, HistoryError> {
        self.change(|transaction, _| query::document(transaction, run))
    }

    fn old(&self, prune: &Prune) -> Result<Vec<RunHash>, HistoryError> {
        self.change(|transaction, _| query::old(transaction, prune))
    }

    fn forget(&self, runs: &[RunHash]) -> Result<Pruned, HistoryError> {
        self.change(|transaction, _| query::forget(transaction, runs))
    }

    fn prune(&self, prune: &Prune) -> Result<Pruned, HistoryError> {
        self.change(|transaction, _| query::prune(transaction, prune))
    }
}

/// Takes an older store to this version; the version that it had.
fn migrate(url: &str) -> Result<u32, HistoryError> {
    let server = Server::new(url)?;
    let mut client = server.connect()?;
    let place = server.place.clone();
    match version(&mut client).map_err(|error| server.failed(&error))? {
        0 => Err(HistoryError::Missing { place }),
        found if found > VERSION => Err(HistoryError::Newer { place, found }),
        found => {
            set_up(&mut client, VERSION).map_err(|error| server.failed(&error))?;
            Ok(found)
        }
    }
}

impl Server {
    fn new(url: &str) -> Result<Self, HistoryError> {
        let place = without_password(url);
        let (mut config, tls) =
            tls::configure(url).map_err(|what| HistoryError::Place { place: place.clone(), what })?;
        config.connect_timeout(CONNECT_TIMEOUT).application_name("holdpoint");
        Ok(Self { config, tls, place })
    }

    /// Connects; a server that is being started or restarted is waited for.
    fn connect(&self) -> Result<Client, HistoryError> {
        let mut pauses = PAUSES_MS.iter();
        loop {
            let error = match self.config.connect(self.tls.connector()).and_then(prepare) {
                Ok(client) => return Ok(client),
                Err(error) => error,
            };
            if let Some(what) = self.tls.refusal(&error) {
                return Err(HistoryError::Place { place: self.place.clone(), what });
            }
            let Some(pause_ms) = pauses.next().filter(|_| is_worth_repeating(&error)) else {
                return Err(self.failed(&error));
            };
            std::thread::sleep(Duration::from_millis(*pause_ms));
        }
    }

    fn failed(&self, error: &postgres::Error) -> HistoryError {
        let what = match error.as_db_error() {
            Some(db) => db.message().to_owned(),
            None if is_worth_repeating(error) => {
                let waited_s = PAUSES_MS.iter().sum::<u64>() / 1_000;
                format!("the server does not answer ({}), tried for {waited_s} s", cause(error))
            }
            None => cause(error),
        };
        HistoryError::Failed { place: self.place.clone(), what }
    }
}

fn prepare(mut client: Client) -> Result<Client, postgres::Error> {
    client.batch_execute("SET search_path = holdpoint")?;
    Ok(client)
}

/// The innermost reason: the outer ones only say where it came up.
fn cause(error: &postgres::Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Whether the same may succeed in a moment: the connection was lost, the server is starting or stopping, or two writers met.
fn is_worth_repeating(error: &postgres::Error) -> bool {
    match error.code() {
        Some(code) => [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::T_R_SERIALIZATION_FAILURE,
        ]
        .contains(code),
        None => {
            let is_io = std::iter::successors(Some(error as &dyn std::error::Error), |e| e.source())
                .any(|error| error.is::<std::io::Error>());
            error.is_closed() || is_io
        }
    }
}

/// The version of the store; 0 where there is none.
fn version(client: &mut impl GenericClient) -> Result<u32, postgres::Error> {
    let is_there: bool = client.query_one("SELECT to_regclass('holdpoint.store') IS NOT NULL", &[])?.get(0);
    if !is_there {
        return Ok(0);
    }
    let version: Option<i64> = client.query_one("SELECT max(version) FROM holdpoint.store", &[])?.get(0);
    Ok(u32::try_from(version.unwrap_or(0)).unwrap_or(u32::MAX))
}

/// Takes the store to a version, whatever another process does meanwhile.
fn set_up(client: &mut Client, to: u32) -> Result<(), postgres::Error> {
    let mut transaction = client.transaction()?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])?;
    transaction.batch_execute(
        "CREATE SCHEMA IF NOT EXISTS holdpoint; CREATE TABLE IF NOT EXISTS holdpoint.store (version BIGINT NOT NULL)",
    )?;
    let from = version(&mut transaction)?;
    if from < to {
        transaction.batch_execute(&DIALECT.steps(from, to))?;
        transaction.execute("INSERT INTO store (version) VALUES ($1)", &[&i64::from(to)])?;
    }
    transaction.commit()
}

/// Makes a store of this version, or takes one to it, whether or not there is such a version.
fn force_version(url: &str, version: u32, rows: &str) -> Result<(), HistoryError> {
    let server = Server::new(url)?;
    let mut client = server.connect()?;
    set_up(&mut client, version)
        .and_then(|()| client.batch_execute(&DIALECT.spell(rows)))
        .map_err(|error| server.failed(&error))
}

/// Why statements failed.
pub enum Failure {
    Database(postgres::Error),
    Content(String),
}

impl From<postgres::Error> for Failure {
    fn from(error: postgres::Error) -> Self {
        Self::Database(error)
    }
}
