//! Adding runs to a file of SQLite's.

use super::Failure;
use crate::pack;
use crate::record::{RunRecord, id_of_json};
use crate::rows::{self, Known};
use rusqlite::{OptionalExtension, Transaction, params};

/// Adds the runs that are not there yet, with their points in the order of the table: pages are filled one after the other.
pub fn add(
    transaction: &Transaction<'_>,
    runs: &[RunRecord],
    known: &mut Known,
) -> Result<Vec<bool>, Failure> {
    let mut ids: Vec<Option<i64>> = Vec::with_capacity(runs.len());
    for record in runs {
        ids.push(add_run(transaction, record)?);
    }
    let new = || runs.iter().enumerate().filter(|(run, _)| ids[*run].is_some());
    let placed = rows::place(new());
    add_series(transaction, &placed, known)?;
    let mut points: Vec<(i64, i64, i64, usize)> = Vec::with_capacity(placed.len());
    for (index, point) in placed.iter().enumerate() {
        let (Some(series), Some(run)) = (known.get(&point.key_json), ids[point.run]) else { continue };
        points.push((*series, runs[point.run].at.millis(), run, index));
    }
    points.sort_unstable();
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO points (series, at, run, value, low, high, samples) VALUES (?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (series, at, run, index) in points {
        let point = placed[index].point;
        let [low, high] = point.interval.map_or([None; 2], |[low, high]| [Some(low), Some(high)]);
        insert.execute(params![series, at, run, point.value, low, high, point.samples_count])?;
    }
    Ok(ids.into_iter().map(|id| id.is_some()).collect())
}

/// The id of a run that was not there; `None` of one that was.
fn add_run(transaction: &Transaction<'_>, record: &RunRecord) -> Result<Option<i64>, Failure> {
    let hash = &record.hash.0[..];
    let mut find = transaction.prepare_cached("SELECT id FROM runs WHERE hash = ?")?;
    if find.exists([hash])? {
        return Ok(None);
    }
    let versions = add_versions(transaction, record)?;
    let mut insert = transaction.prepare_cached(
        "INSERT INTO runs (hash, kind, suite, at, revision, dirty, versions, branch, machine) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let (revision, at) = (record.revision.as_ref(), record.at.millis());
    let (commit, dirty) = (revision.map(|r| r.commit.as_str()), revision.is_some_and(|r| r.dirty));
    let (kind, suite, machine) = (record.kind.as_str(), &record.suite, record.fingerprint());
    let id =
        insert.insert(params![hash, kind, suite, at, commit, dirty, versions, record.branch, machine])?;
    if let Some(text) = record.kept_document() {
        let body = pack::pack(text).map_err(|error| Failure::Content(error.to_string()))?;
        let mut insert =
            transaction.prepare_cached("INSERT INTO documents (run, body, has_samples) VALUES (?, ?, ?)")?;
        insert.execute(params![id, body, record.has_samples()])?;
    }
    if let Some(machine) = &record.machine {
        let mut insert = transaction
            .prepare_cached("INSERT OR IGNORE INTO machines (fingerprint, words) VALUES (?, ?)")?;
        insert.execute(params![machine.fingerprint, machine.describe()])?;
    }
    let mut insert = transaction.prepare_cached(
        "INSERT OR IGNORE INTO verdicts (suite, metric, at, machine, run, verdict) VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for (metric, verdict) in &record.verdicts {
        insert.execute(params![record.suite, metric, at, record.fingerprint(), id, verdict.as_str()])?;
    }
    Ok(Some(id))
}

fn add_versions(transaction: &Transaction<'_>, record: &RunRecord) -> Result<i64, Failure> {
    let text = record.versions_json();
    let mut find = transaction.prepare_cached("SELECT id FROM versions WHERE text = ?")?;
    if let Some(id) = find.query_row([&text], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    Ok(transaction.prepare_cached("INSERT INTO versions (text) VALUES (?)")?.insert([&text])?)
}

/// Gives every series of these points an id.
fn add_series(
    transaction: &Transaction<'_>,
    placed: &[rows::Placed<'_>],
    known: &mut Known,
) -> Result<(), Failure> {
    for (key_json, point) in rows::unknown(placed, known) {
        let name = id_of_json(key_json);
        let mut find = transaction.prepare_cached("SELECT id, key_json FROM series WHERE name = ?")?;
        let found = find.query_row([&name], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let id = match found {
            Some((id, found)) => {
                let found: String = found;
                rows::check_key(&name, &found, key_json).map_err(Failure::Content)?;
                id
            }
            None => transaction
                .prepare_cached("INSERT INTO series (name, key_json, better) VALUES (?, ?, ?)")?
                .insert(params![name, key_json, rows::better_name(point.better)])?,
        };
        known.insert(key_json.to_owned(), id);
    }
    Ok(())
}
