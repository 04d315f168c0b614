//! Adding runs on a PostgreSQL server. Rows that others may be adding too come in one order, so that writers wait and never block
//! each other for good.

use super::Failure;
use crate::pack;
use crate::record::{RunRecord, id_of_json};
use crate::rows::{self, Known};
use postgres::Transaction;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::types::Type;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Adds the runs that are not there yet, their points by COPY.
pub fn add(
    transaction: &mut Transaction<'_>,
    runs: &[RunRecord],
    known: &mut Known,
) -> Result<Vec<bool>, Failure> {
    add_machines(transaction, runs)?;
    let versions = add_versions(transaction, runs)?;
    let ids = add_runs(transaction, runs, &versions)?;
    let new = || runs.iter().enumerate().filter(|(run, _)| ids[*run].is_some());
    for (run, record) in new() {
        add_document(transaction, record, ids[run].unwrap_or_default())?;
    }
    let placed = rows::place(new());
    add_series(transaction, &placed, known)?;
    copy_points(transaction, runs, &ids, &placed, known)?;
    Ok(ids.into_iter().map(|id| id.is_some()).collect())
}

fn add_machines(transaction: &mut Transaction<'_>, runs: &[RunRecord]) -> Result<(), Failure> {
    let machines = runs.iter().filter_map(|record| record.machine.as_ref());
    let machines: BTreeMap<&str, String> =
        machines.map(|machine| (machine.fingerprint.as_str(), machine.describe())).collect();
    let (fingerprints, words): (Vec<&str>, Vec<String>) = machines.into_iter().unzip();
    transaction.execute(
        "INSERT INTO machines (fingerprint, words) SELECT * FROM unnest($1::text[], $2::text[]) ON CONFLICT DO NOTHING",
        &[&fingerprints, &words],
    )?;
    Ok(())
}

fn add_versions(
    transaction: &mut Transaction<'_>,
    runs: &[RunRecord],
) -> Result<HashMap<String, i64>, Failure> {
    let texts: BTreeSet<String> = runs.iter().map(RunRecord::versions_json).collect();
    let texts: Vec<String> = texts.into_iter().collect();
    transaction.execute(
        "INSERT INTO versions (text) SELECT * FROM unnest($1::text[]) ON CONFLICT DO NOTHING",
        &[&texts],
    )?;
    let rows = transaction.query("SELECT text, id FROM versions WHERE text = ANY($1)", &[&texts])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// The ids of runs that were not there; `None` of one that was.
fn add_runs(
    transaction: &mut Transaction<'_>,
    runs: &[RunRecord],
    versions: &HashMap<String, i64>,
) -> Result<Vec<Option<i64>>, Failure> {
    // By hash: each once, and in the order of every other writer.
    let by_hash: BTreeMap<&[u8], usize> =
        runs.iter().enumerate().rev().map(|(run, record)| (&record.hash.0[..], run)).collect();
    let all = || by_hash.values().map(|run| &runs[*run]);
    let hashes: Vec<&[u8]> = by_hash.keys().copied().collect();
    let kinds: Vec<&str> = all().map(|record| record.kind.as_str()).collect();
    let suites: Vec<&str> = all().map(|record| record.suite.as_str()).collect();
    let times: Vec<i64> = all().map(|record| record.at.millis()).collect();
    let commits: Vec<Option<&str>> =
        all().map(|record| record.revision.as_ref().map(|r| r.commit.as_str())).collect();
    let dirty: Vec<bool> = all().map(|record| record.revision.as_ref().is_some_and(|r| r.dirty)).collect();
    let versions: Vec<i64> =
        all().map(|record| versions.get(&record.versions_json()).copied().unwrap_or_default()).collect();
    let branches: Vec<Option<&str>> = all().map(|record| record.branch.as_deref()).collect();
    let machines: Vec<&str> = all().map(RunRecord::fingerprint).collect();
    let rows = transaction.query(
        "INSERT INTO runs (hash, kind, suite, at, revision, dirty, versions, branch, machine)
         SELECT * FROM unnest($1::bytea[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::boolean[], $7::bigint[], $8::text[], $9::text[])
         ON CONFLICT DO NOTHING RETURNING hash, id",
        &[&hashes, &kinds, &suites, &times, &commits, &dirty, &versions, &branches, &machines],
    )?;
    let mut ids = vec![None; runs.len()];
    for row in rows {
        let hash: &[u8] = row.get(0);
        if let Some(run) = by_hash.get(hash) {
            ids[*run] = Some(row.get(1));
        }
    }
    Ok(ids)
}

fn add_document(transaction: &mut Transaction<'_>, record: &RunRecord, run: i64) -> Result<(), Failure> {
    if let Some(text) = record.kept_document() {
        let body = pack::pack(text).map_err(|error| Failure::Content(error.to_string()))?;
        transaction.execute(
            "INSERT INTO documents (run, body, has_samples) VALUES ($1, $2, $3)",
            &[&run, &body, &record.has_samples()],
        )?;
    }
    if record.verdicts.is_empty() {
        return Ok(());
    }
    let metrics: Vec<&str> = record.verdicts.iter().map(|(metric, _)| metric.as_str()).collect();
    let verdicts: Vec<&str> = record.verdicts.iter().map(|(_, verdict)| verdict.as_str()).collect();
    transaction.execute(
        "INSERT INTO verdicts (suite, metric, at, machine, run, verdict)
         SELECT $1, metric, $2, $3, $4, verdict FROM unnest($5::text[], $6::text[]) AS judged (metric, verdict)
         ON CONFLICT DO NOTHING",
        &[&record.suite, &record.at.millis(), &record.fingerprint(), &run, &metrics, &verdicts],
    )?;
    Ok(())
}

/// Gives every series of these points an id.
fn add_series(
    transaction: &mut Transaction<'_>,
    placed: &[rows::Placed<'_>],
    known: &mut Known,
) -> Result<(), Failure> {
    let unknown = rows::unknown(placed, known);
    if unknown.is_empty() {
        return Ok(());
    }
    let by_name: BTreeMap<String, (&str, &str)> = unknown
        .iter()
        .map(|(key_json, point)| (id_of_json(key_json), (*key_json, rows::better_name(point.better))))
        .collect();
    let names: Vec<&str> = by_name.keys().map(String::as_str).collect();
    let (keys, betters): (Vec<&str>, Vec<&str>) = by_name.values().copied().unzip();
    transaction.execute(
        "INSERT INTO series (name, key_json, better) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
         ON CONFLICT DO NOTHING",
        &[&names, &keys, &betters],
    )?;
    let found = transaction.query("SELECT name, id, key_json FROM series WHERE name = ANY($1)", &[&names])?;
    for row in found {
        let (name, id, key_json): (&str, i64, &str) = (row.get(0), row.get(1), row.get(2));
        let wanted = by_name.get(name).map_or("", |(key_json, _)| key_json);
        rows::check_key(name, key_json, wanted).map_err(Failure::Content)?;
        known.insert(key_json.to_owned(), id);
    }
    Ok(())
}

fn copy_points(
    transaction: &mut Transaction<'_>,
    runs: &[RunRecord],
    ids: &[Option<i64>],
    placed: &[rows::Placed<'_>],
    known: &Known,
) -> Result<(), Failure> {
    let mut points: Vec<(i64, i64, i64, usize)> = Vec::with_capacity(placed.len());
    for (index, point) in placed.iter().enumerate() {
        let (Some(series), Some(run)) = (known.get(&point.key_json), ids[point.run]) else { continue };
        points.push((*series, runs[point.run].at.millis(), run, index));
    }
    points.sort_unstable();
    // A workload that is in a run twice under one key has one value there.
    points.dedup_by_key(|point| (point.0, point.1, point.2));
    let writer =
        transaction.copy_in("COPY points (series, at, run, value, low, high, samples) FROM STDIN BINARY")?;
    let types = [Type::INT8, Type::INT8, Type::INT8, Type::FLOAT8, Type::FLOAT8, Type::FLOAT8, Type::INT8];
    let mut writer = BinaryCopyInWriter::new(writer, &types);
    for (series, at, run, index) in points {
        let point = placed[index].point;
        let [low, high] = point.interval.map_or([None; 2], |[low, high]| [Some(low), Some(high)]);
        let samples = i64::from(point.samples_count);
        writer.write(&[&series, &at, &run, &point.value, &low, &high, &samples])?;
    }
    writer.finish()?;
    Ok(())
}
