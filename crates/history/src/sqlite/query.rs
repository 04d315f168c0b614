//! Reading, accepting and pruning in a file of SQLite's.

use super::Failure;
use crate::pack;
use crate::rows::{
    self, Counts, ListedRun, PointRow, RunRow, Runs, RunsWanted, SeriesRow, VerdictsByTime, WantedRuns,
};
use crate::store::{Prune, PruneWhat, Pruned, RunAt, Values};
use holdpoint_model::{
    Acceptance, RunFilter, RunHash, RunPage, Series, SeriesFilter, SeriesSummary, TimeRange, Timestamp,
    Versions,
};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::collections::HashMap;

pub fn known(connection: &Connection, hashes: &[RunHash]) -> Result<Vec<bool>, Failure> {
    let mut find = connection.prepare_cached("SELECT 1 FROM runs WHERE hash = ?")?;
    let found = hashes.iter().map(|hash| find.exists([&hash.0[..]]));
    Ok(found.collect::<Result<_, _>>()?)
}

pub fn list(connection: &Connection, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, Failure> {
    let mut series = Vec::new();
    let mut statement = connection.prepare("SELECT id, name, key_json, better FROM series")?;
    let mut found = statement.query([])?;
    while let Some(row) = found.next()? {
        let row = series_row(row)?;
        if row.matches(filter) {
            series.push(row);
        }
    }
    let mut count = connection.prepare(
        "SELECT (SELECT count(*) FROM points WHERE series = ?1), (SELECT min(at) FROM points WHERE series = ?1),
         (SELECT max(at) FROM points WHERE series = ?1), (SELECT count(*) FROM accepted WHERE series = ?1)",
    )?;
    let machines = machines(connection)?;
    let mut summaries = Vec::new();
    for row in series {
        let counts = count.query_row([row.id], |row| {
            Ok(Counts { points: row.get(0)?, first: row.get(1)?, last: row.get(2)?, accepted: row.get(3)? })
        })?;
        let machine = machine_words(&machines, &row);
        summaries.push(row.summary(machine, counts));
    }
    rows::sort(&mut summaries);
    Ok(summaries)
}

fn series_row(row: &Row<'_>) -> Result<SeriesRow, Failure> {
    let (key_json, better): (String, String) = (row.get(2)?, row.get(3)?);
    SeriesRow::new(row.get(0)?, row.get(1)?, &key_json, &better).map_err(Failure::Content)
}

fn machines(connection: &Connection) -> Result<HashMap<String, String>, Failure> {
    let mut statement = connection.prepare_cached("SELECT fingerprint, words FROM machines")?;
    let pairs = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.collect::<Result<_, _>>()?)
}

fn machine_words(machines: &HashMap<String, String>, row: &SeriesRow) -> String {
    let fingerprint = row.key.machine.as_deref().unwrap_or_default();
    machines.get(fingerprint).cloned().unwrap_or_default()
}

pub(crate) fn runs_page(connection: &Connection, filter: &RunFilter) -> Result<RunPage, Failure> {
    let wanted = RunsWanted::new(filter);
    let mut statement = connection.prepare_cached(&rows::runs_question())?;
    let found = statement.query_map(
        params![
            wanted.since,
            wanted.until,
            wanted.at,
            wanted.hash,
            wanted.suite,
            wanted.branch,
            wanted.machine,
            wanted.verdict,
            wanted.limit
        ],
        |row| {
            Ok(ListedRun {
                hash: row.get(0)?,
                kind: row.get(1)?,
                suite: row.get(2)?,
                at: row.get(3)?,
                revision: row.get(4)?,
                dirty: row.get(5)?,
                branch: row.get(6)?,
                machine: row.get(7)?,
                words: row.get(8)?,
                verdict: row.get(9)?,
            })
        },
    )?;
    rows::run_page(filter, found.collect::<Result<_, _>>()?).map_err(Failure::Content)
}

pub fn read(connection: &Connection, id: &str, times: TimeRange) -> Result<Option<Series>, Failure> {
    let Some(row) = find_series(connection, id)? else { return Ok(None) };
    let mut statement = connection.prepare_cached(
        "SELECT at, run, value, low, high, samples FROM points WHERE series = ? AND at >= ? AND at < ? ORDER BY at, run",
    )?;
    let [since, until] = times.bounds();
    let points = statement.query_map([row.id, since, until], |row| {
        Ok(PointRow {
            at: row.get(0)?,
            run: row.get(1)?,
            value: row.get(2)?,
            low: row.get(3)?,
            high: row.get(4)?,
            samples: row.get(5)?,
        })
    })?;
    let points = points.collect::<Result<Vec<_>, _>>()?;
    let runs = runs(connection, &WantedRuns::of(&points))?;
    let machine = machine_words(&machines(connection)?, &row);
    let (verdicts, accepted) = (verdicts(connection, &row)?, accepted(connection, row.id)?);
    Ok(Some(rows::series(row, machine, points, runs, &versions(connection)?, &verdicts, accepted)))
}

pub fn values(connection: &Connection, id: &str) -> Result<Option<Values>, Failure> {
    let Some(row) = find_series(connection, id)? else { return Ok(None) };
    let mut statement =
        connection.prepare_cached("SELECT at, value FROM points WHERE series = ? ORDER BY at")?;
    let points = statement.query_map([row.id], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let points = points.collect::<Result<Vec<(i64, f64)>, _>>()?;
    let accepted = accepted(connection, row.id)?;
    Ok(Some(rows::values(row, points, accepted)))
}

fn find_series(connection: &Connection, id: &str) -> Result<Option<SeriesRow>, Failure> {
    let mut statement =
        connection.prepare_cached("SELECT id, name, key_json, better FROM series WHERE name = ?")?;
    let mut found = statement.query([id])?;
    found.next()?.map(series_row).transpose()
}

pub(crate) fn runs_at(connection: &Connection, id: &str, times: &[Timestamp]) -> Result<Vec<RunAt>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT revision, text FROM points JOIN runs ON runs.id = run LEFT JOIN versions ON versions.id = runs.versions
         WHERE series = (SELECT id FROM series WHERE name = ?) AND points.at = ?",
    )?;
    let mut runs = Vec::new();
    for at in times {
        let found = statement.query_map(params![id, at.millis()], |row| {
            let versions: Option<String> = row.get(1)?;
            Ok(rows::run_at(*at, row.get(0)?, versions.as_deref()))
        })?;
        runs.extend(found.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(runs)
}

fn runs(connection: &Connection, wanted: &WantedRuns) -> Result<Runs, Failure> {
    let columns = "SELECT id, hash, revision, dirty, versions FROM runs";
    let run = |row: &Row<'_>| {
        let (hash, revision) = (row.get(1)?, row.get(2)?);
        Ok((row.get(0)?, RunRow { hash, revision, dirty: row.get(3)?, versions: row.get(4)? }))
    };
    let mut runs = Runs::new(wanted);
    match wanted {
        WantedRuns::Range(range) => {
            let mut statement =
                connection.prepare_cached(&format!("{columns} WHERE id BETWEEN ? AND ? ORDER BY id"))?;
            for row in statement.query_map(*range, run)? {
                let (id, row) = row?;
                runs.insert(id, row);
            }
        }
        WantedRuns::Single(ids) => {
            let mut statement = connection.prepare_cached(&format!("{columns} WHERE id = ?"))?;
            for id in ids {
                if let Some((id, row)) = statement.query_row([id], run).optional()? {
                    runs.insert(id, row);
                }
            }
        }
    }
    Ok(runs)
}

fn versions(connection: &Connection) -> Result<HashMap<i64, Versions>, Failure> {
    let mut statement = connection.prepare_cached("SELECT id, text FROM versions")?;
    let pairs = statement.query_map([], |row| {
        let text: String = row.get(1)?;
        Ok((row.get(0)?, serde_json::from_str(&text).unwrap_or_default()))
    })?;
    Ok(pairs.collect::<Result<_, _>>()?)
}

fn verdicts(connection: &Connection, row: &SeriesRow) -> Result<VerdictsByTime, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT at, verdict FROM verdicts WHERE suite = ? AND metric = ? AND machine = ?")?;
    let machine = row.key.machine.as_deref().unwrap_or_default();
    let mut found = statement.query(params![row.key.suite, row.key.metric_name(), machine])?;
    let mut verdicts = VerdictsByTime::new();
    while let Some(row) = found.next()? {
        rows::add_verdict(&mut verdicts, row.get(0)?, &row.get::<_, String>(1)?);
    }
    Ok(verdicts)
}

fn accepted(connection: &Connection, series: i64) -> Result<Vec<Acceptance>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT at, run, person, why, accepted_at FROM accepted WHERE series = ? ORDER BY at, run",
    )?;
    let rows = statement.query_map([series], |row| {
        let at = |millis: i64| Timestamp::from_millis(millis);
        Ok(at(row.get(0)?).zip(at(row.get(4)?)).map(|(at, accepted_at_utc)| {
            let run = RunHash(row.get(1)?);
            Ok(Acceptance { at, run, by: row.get(2)?, why: row.get(3)?, accepted_at_utc })
        }))
    })?;
    let rows = rows.collect::<Result<Vec<Option<rusqlite::Result<Acceptance>>>, _>>()?;
    Ok(rows.into_iter().flatten().collect::<Result<_, _>>()?)
}

/// Whether there is such a series.
pub fn accept(transaction: &Transaction<'_>, id: &str, acceptance: &Acceptance) -> Result<bool, Failure> {
    let done = transaction.execute(
        "INSERT OR REPLACE INTO accepted (series, at, run, person, why, accepted_at)
         SELECT id, ?2, ?3, ?4, ?5, ?6 FROM series WHERE name = ?1",
        params![
            id,
            acceptance.at.millis(),
            &acceptance.run.0[..],
            acceptance.by,
            acceptance.why,
            acceptance.accepted_at_utc.millis()
        ],
    )?;
    Ok(done > 0)
}

pub fn document(connection: &Connection, run: &RunHash) -> Result<Option<String>, Failure> {
    let mut statement = connection
        .prepare_cached("SELECT body FROM documents JOIN runs ON runs.id = documents.run WHERE hash = ?")?;
    let body: Option<Vec<u8>> = statement.query_row([&run.0[..]], |row| row.get(0)).optional()?;
    body.map(|body| pack::unpack(&body)).transpose().map_err(|error| Failure::Content(error.to_string()))
}

pub fn prune(transaction: &Transaction<'_>, prune: &Prune) -> Result<Pruned, Failure> {
    let old = find_old(transaction, "id", prune, |row| row.get(0))?;
    match prune.what {
        PruneWhat::Samples => prune_samples(transaction, &old),
        PruneWhat::Runs => prune_runs(transaction, &old),
    }
}

pub fn old(connection: &Connection, prune: &Prune) -> Result<Vec<RunHash>, Failure> {
    find_old(connection, "hash", prune, |row| row.get(0).map(RunHash))
}

pub fn forget(transaction: &Transaction<'_>, runs: &[RunHash]) -> Result<Pruned, Failure> {
    let mut find = transaction.prepare("SELECT id FROM runs WHERE hash = ?")?;
    let found = runs.iter().map(|run| find.query_row([&run.0[..]], |row| row.get(0)).optional());
    let ids: Vec<Option<i64>> = found.collect::<Result<_, _>>()?;
    prune_runs(transaction, &ids.into_iter().flatten().collect::<Vec<_>>())
}

/// A column of the runs that are old.
fn find_old<T>(
    connection: &Connection,
    column: &str,
    prune: &Prune,
    get: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> Result<Vec<T>, Failure> {
    let mut statement = connection.prepare(&format!(
        "SELECT {column} FROM (SELECT id, hash, at, row_number() OVER (PARTITION BY suite, kind ORDER BY at DESC, hash) AS place
         FROM runs) WHERE (?1 IS NULL OR at < ?1) AND (?2 IS NULL OR place > ?2)",
    ))?;
    let old = statement.query_map(params![prune.before.map(Timestamp::millis), prune.keep], get)?;
    Ok(old.collect::<Result<_, _>>()?)
}

fn prune_samples(transaction: &Transaction<'_>, old: &[i64]) -> Result<Pruned, Failure> {
    let mut find = transaction.prepare("SELECT body FROM documents WHERE run = ? AND has_samples")?;
    let mut update =
        transaction.prepare("UPDATE documents SET body = ?, has_samples = FALSE WHERE run = ?")?;
    let mut pruned = Pruned::default();
    for run in old {
        let body: Option<Vec<u8>> = find.query_row([run], |row| row.get(0)).optional()?;
        let Some(body) = body else { continue };
        let body =
            pack::repack_without_samples(&body).map_err(|error| Failure::Content(error.to_string()))?;
        update.execute(params![body, run])?;
        pruned.runs_count += 1;
    }
    Ok(pruned)
}

fn prune_runs(transaction: &Transaction<'_>, old: &[i64]) -> Result<Pruned, Failure> {
    transaction
        .execute_batch("CREATE TEMP TABLE IF NOT EXISTS old (id INTEGER PRIMARY KEY); DELETE FROM old;")?;
    let mut insert = transaction.prepare("INSERT INTO old (id) VALUES (?)")?;
    for run in old {
        insert.execute([run])?;
    }
    let points = transaction.execute("DELETE FROM points WHERE run IN (SELECT id FROM old)", [])?;
    for (table, column) in [("verdicts", "run"), ("documents", "run"), ("runs", "id")] {
        transaction.execute(&format!("DELETE FROM {table} WHERE {column} IN (SELECT id FROM old)"), [])?;
    }
    Ok(Pruned { runs_count: old.len() as u64, points_count: points as u64 })
}
