//! Reading, accepting and pruning on a PostgreSQL server.

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
use postgres::{Row, Transaction};
use std::collections::{HashMap, HashSet};

const HASH_BYTES: usize = 32;

pub fn known(transaction: &mut Transaction<'_>, hashes: &[RunHash]) -> Result<Vec<bool>, Failure> {
    let wanted: Vec<&[u8]> = hashes.iter().map(|hash| &hash.0[..]).collect();
    let found = transaction.query("SELECT hash FROM runs WHERE hash = ANY($1)", &[&wanted])?;
    let found: HashSet<&[u8]> = found.iter().map(|row| row.get(0)).collect();
    Ok(wanted.iter().map(|hash| found.contains(hash)).collect())
}

pub fn list(transaction: &mut Transaction<'_>, filter: &SeriesFilter) -> Result<Vec<SeriesSummary>, Failure> {
    let mut series = Vec::new();
    for row in transaction.query("SELECT id, name, key_json, better FROM series", &[])? {
        let row = series_row(&row)?;
        if row.matches(filter) {
            series.push(row);
        }
    }
    let ids: Vec<i64> = series.iter().map(|row| row.id).collect();
    let found = transaction.query(
        "SELECT series, count(*), min(at), max(at) FROM points WHERE series = ANY($1) GROUP BY series",
        &[&ids],
    )?;
    let accepted = transaction.query("SELECT series, count(*) FROM accepted GROUP BY series", &[])?;
    let accepted: HashMap<i64, i64> = accepted.iter().map(|row| (row.get(0), row.get(1))).collect();
    let points: HashMap<i64, Counts> = found.iter().map(|row| (row.get(0), counts(row))).collect();
    let machines = machines(transaction)?;
    let summary = |row: SeriesRow| {
        let accepted = accepted.get(&row.id).and_then(|count| u32::try_from(*count).ok()).unwrap_or(0);
        let counts = Counts { accepted, ..points.get(&row.id).copied().unwrap_or_default() };
        let machine = machine_words(&machines, &row);
        row.summary(machine, counts)
    };
    let mut summaries: Vec<SeriesSummary> = series.into_iter().map(summary).collect();
    rows::sort(&mut summaries);
    Ok(summaries)
}

fn counts(row: &Row) -> Counts {
    Counts { points: row.get(1), first: row.get(2), last: row.get(3), accepted: 0 }
}

fn series_row(row: &Row) -> Result<SeriesRow, Failure> {
    SeriesRow::new(row.get(0), row.get(1), row.get(2), row.get(3)).map_err(Failure::Content)
}

fn machines(transaction: &mut Transaction<'_>) -> Result<HashMap<String, String>, Failure> {
    let rows = transaction.query("SELECT fingerprint, words FROM machines", &[])?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

fn machine_words(machines: &HashMap<String, String>, row: &SeriesRow) -> String {
    let fingerprint = row.key.machine.as_deref().unwrap_or_default();
    machines.get(fingerprint).cloned().unwrap_or_default()
}

pub(crate) fn runs_page(transaction: &mut Transaction<'_>, filter: &RunFilter) -> Result<RunPage, Failure> {
    let wanted = RunsWanted::new(filter);
    let found = transaction.query(
        &rows::runs_question(),
        &[
            &wanted.since,
            &wanted.until,
            &wanted.at,
            &wanted.hash,
            &wanted.suite,
            &wanted.branch,
            &wanted.machine,
            &wanted.verdict,
            &wanted.limit,
        ],
    )?;
    let listed = |row: &Row| {
        Ok(ListedRun {
            hash: hash(row.get(0))?.0,
            kind: row.get(1),
            suite: row.get(2),
            at: row.get(3),
            revision: row.get(4),
            dirty: row.get(5),
            branch: row.get(6),
            machine: row.get(7),
            words: row.get(8),
            verdict: row.get(9),
        })
    };
    let listed = found.iter().map(listed).collect::<Result<_, Failure>>()?;
    rows::run_page(filter, listed).map_err(Failure::Content)
}

pub fn read(
    transaction: &mut Transaction<'_>,
    id: &str,
    times: TimeRange,
) -> Result<Option<Series>, Failure> {
    let Some(row) = find_series(transaction, id)? else { return Ok(None) };
    let points = points(transaction, row.id, times)?;
    let runs = runs(transaction, &WantedRuns::of(&points))?;
    let machine = machine_words(&machines(transaction)?, &row);
    let (verdicts, accepted) = (verdicts(transaction, &row)?, accepted(transaction, row.id)?);
    Ok(Some(rows::series(row, machine, points, runs, &versions(transaction)?, &verdicts, accepted)))
}

pub fn values(transaction: &mut Transaction<'_>, id: &str) -> Result<Option<Values>, Failure> {
    let Some(row) = find_series(transaction, id)? else { return Ok(None) };
    let found = transaction.query_one(
        "SELECT coalesce(array_agg(at), '{}'), coalesce(array_agg(value), '{}') FROM points WHERE series = $1",
        &[&row.id],
    )?;
    let (times, values): (Vec<i64>, Vec<f64>) = (found.get(0), found.get(1));
    let mut points: Vec<(i64, f64)> = times.into_iter().zip(values).collect();
    // Most are in order already; the server would sort them all.
    points.sort_by_key(|(at, _)| *at);
    let accepted = accepted(transaction, row.id)?;
    Ok(Some(rows::values(row, points, accepted)))
}

pub(crate) fn runs_at(
    transaction: &mut Transaction<'_>,
    id: &str,
    times: &[Timestamp],
) -> Result<Vec<RunAt>, Failure> {
    let times: Vec<i64> = times.iter().map(|time| time.millis()).collect();
    let found = transaction.query(
        "SELECT points.at, revision, text FROM points JOIN runs ON runs.id = run LEFT JOIN versions ON versions.id = runs.versions
         WHERE series = (SELECT id FROM series WHERE name = $1) AND points.at = ANY($2)",
        &[&id, &times],
    )?;
    let run = |row: &Row| Some(rows::run_at(Timestamp::from_millis(row.get(0))?, row.get(1), row.get(2)));
    Ok(found.iter().filter_map(run).collect())
}

fn find_series(transaction: &mut Transaction<'_>, id: &str) -> Result<Option<SeriesRow>, Failure> {
    let found =
        transaction.query_opt("SELECT id, name, key_json, better FROM series WHERE name = $1", &[&id])?;
    found.as_ref().map(series_row).transpose()
}

/// Columns come as one array each: a message for every row costs more than the row.
fn points(
    transaction: &mut Transaction<'_>,
    series: i64,
    times: TimeRange,
) -> Result<Vec<PointRow>, Failure> {
    let [since, until] = times.bounds();
    let row = transaction.query_one(
        "SELECT coalesce(array_agg(at), '{}'), coalesce(array_agg(run), '{}'), coalesce(array_agg(value), '{}'),
         coalesce(array_agg(low), '{}'), coalesce(array_agg(high), '{}'), coalesce(array_agg(samples), '{}')
         FROM points WHERE series = $1 AND at >= $2 AND at < $3",
        &[&series, &since, &until],
    )?;
    let (times, runs, values): (Vec<i64>, Vec<i64>, Vec<f64>) = (row.get(0), row.get(1), row.get(2));
    let (lows, highs, samples): (Vec<Option<f64>>, Vec<Option<f64>>, Vec<i64>) =
        (row.get(3), row.get(4), row.get(5));
    let point = |i: usize| PointRow {
        at: times[i],
        run: runs[i],
        value: values[i],
        low: lows[i],
        high: highs[i],
        samples: samples[i],
    };
    Ok((0..times.len()).map(point).collect())
}

fn runs(transaction: &mut Transaction<'_>, wanted: &WantedRuns) -> Result<Runs, Failure> {
    // Texts as one, a line each: an array of texts takes three times as long to make.
    let select = |condition: &str| {
        format!(
            "SELECT coalesce(array_agg(id), '{{}}'), coalesce(string_agg(hash, ''), ''),
             coalesce(string_agg(replace(coalesce(revision, ''), E'\\n', ' '), E'\\n'), ''),
             coalesce(array_agg(dirty), '{{}}'), coalesce(array_agg(versions), '{{}}') FROM runs WHERE {condition}"
        )
    };
    let row = match wanted {
        WantedRuns::Range([first, last]) => {
            transaction.query_one(&select("id BETWEEN $1 AND $2"), &[first, last])?
        }
        WantedRuns::Single(ids) => transaction.query_one(&select("id = ANY($1)"), &[ids])?,
    };
    let (ids, hashes, revisions): (Vec<i64>, &[u8], &str) = (row.get(0), row.get(1), row.get(2));
    let (dirty, versions): (Vec<bool>, Vec<i64>) = (row.get(3), row.get(4));
    let mut runs = Runs::new(wanted);
    for (i, (hash_bytes, revision)) in hashes.chunks(HASH_BYTES).zip(revisions.split('\n')).enumerate() {
        let revision = Some(revision.to_owned()).filter(|revision| !revision.is_empty());
        let hash = hash(hash_bytes)?.0;
        runs.insert(ids[i], RunRow { hash, revision, dirty: dirty[i], versions: versions[i] });
    }
    Ok(runs)
}

fn hash(bytes: &[u8]) -> Result<RunHash, Failure> {
    bytes.try_into().map(RunHash).map_err(|_| Failure::Content("a hash has not 32 bytes".to_owned()))
}

fn versions(transaction: &mut Transaction<'_>) -> Result<HashMap<i64, Versions>, Failure> {
    let rows = transaction.query("SELECT id, text FROM versions", &[])?;
    Ok(rows.iter().map(|row| (row.get(0), serde_json::from_str(row.get(1)).unwrap_or_default())).collect())
}

fn verdicts(transaction: &mut Transaction<'_>, row: &SeriesRow) -> Result<VerdictsByTime, Failure> {
    let machine = row.key.machine.as_deref().unwrap_or_default();
    let found = transaction.query(
        "SELECT at, verdict FROM verdicts WHERE suite = $1 AND metric = $2 AND machine = $3",
        &[&row.key.suite, &row.key.metric_name(), &machine],
    )?;
    let mut verdicts = VerdictsByTime::new();
    found.iter().for_each(|row| rows::add_verdict(&mut verdicts, row.get(0), row.get(1)));
    Ok(verdicts)
}

fn accepted(transaction: &mut Transaction<'_>, series: i64) -> Result<Vec<Acceptance>, Failure> {
    let rows = transaction.query(
        "SELECT at, run, person, why, accepted_at FROM accepted WHERE series = $1 ORDER BY at, run",
        &[&series],
    )?;
    let mut accepted = Vec::new();
    for row in &rows {
        let times = Timestamp::from_millis(row.get(0)).zip(Timestamp::from_millis(row.get(4)));
        if let Some((at, accepted_at_utc)) = times {
            let run = hash(row.get(1))?;
            accepted.push(Acceptance { at, run, by: row.get(2), why: row.get(3), accepted_at_utc });
        }
    }
    Ok(accepted)
}

/// Whether there is such a series.
pub fn accept(transaction: &mut Transaction<'_>, id: &str, accepted: &Acceptance) -> Result<bool, Failure> {
    let done = transaction.execute(
        "INSERT INTO accepted (series, at, run, person, why, accepted_at)
         SELECT id, $2, $3, $4, $5, $6 FROM series WHERE name = $1
         ON CONFLICT (series, at, run) DO UPDATE SET person = $4, why = $5, accepted_at = $6",
        &[
            &id,
            &accepted.at.millis(),
            &&accepted.run.0[..],
            &accepted.by,
            &accepted.why,
            &accepted.accepted_at_utc.millis(),
        ],
    )?;
    Ok(done > 0)
}

pub fn document(transaction: &mut Transaction<'_>, run: &RunHash) -> Result<Option<String>, Failure> {
    let row = transaction.query_opt(
        "SELECT body FROM documents JOIN runs ON runs.id = documents.run WHERE hash = $1",
        &[&&run.0[..]],
    )?;
    let text = row.map(|row| pack::unpack(row.get(0)));
    text.transpose().map_err(|error| Failure::Content(error.to_string()))
}

pub fn prune(transaction: &mut Transaction<'_>, prune: &Prune) -> Result<Pruned, Failure> {
    let old = find_old(transaction, "id", prune)?;
    let old: Vec<i64> = old.iter().map(|row| row.get(0)).collect();
    match prune.what {
        PruneWhat::Samples => prune_samples(transaction, &old),
        PruneWhat::Runs => prune_runs(transaction, &old),
    }
}

pub fn old(transaction: &mut Transaction<'_>, prune: &Prune) -> Result<Vec<RunHash>, Failure> {
    find_old(transaction, "hash", prune)?.iter().map(|row| hash(row.get(0))).collect()
}

pub fn forget(transaction: &mut Transaction<'_>, runs: &[RunHash]) -> Result<Pruned, Failure> {
    let hashes: Vec<&[u8]> = runs.iter().map(|run| &run.0[..]).collect();
    let found = transaction.query("SELECT id FROM runs WHERE hash = ANY($1)", &[&hashes])?;
    prune_runs(transaction, &found.iter().map(|row| row.get(0)).collect::<Vec<_>>())
}

/// A column of the runs that are old.
fn find_old(transaction: &mut Transaction<'_>, column: &str, prune: &Prune) -> Result<Vec<Row>, Failure> {
    let (before, keep) = (prune.before.map(Timestamp::millis), prune.keep.map(i64::from));
    Ok(transaction.query(
        &format!(
            "SELECT {column} FROM (SELECT id, hash, at, row_number() OVER (PARTITION BY suite, kind ORDER BY at DESC, hash) AS place
             FROM runs) AS placed WHERE ($1::bigint IS NULL OR at < $1) AND ($2::bigint IS NULL OR place > $2)"
        ),
        &[&before, &keep],
    )?)
}

fn prune_samples(transaction: &mut Transaction<'_>, old: &[i64]) -> Result<Pruned, Failure> {
    let mut pruned = Pruned::default();
    for run in old {
        let found =
            transaction.query_opt("SELECT body FROM documents WHERE run = $1 AND has_samples", &[run])?;
        let Some(row) = found else { continue };
        let body =
            pack::repack_without_samples(row.get(0)).map_err(|error| Failure::Content(error.to_string()))?;
        transaction
            .execute("UPDATE documents SET body = $1, has_samples = FALSE WHERE run = $2", &[&body, run])?;
        pruned.runs_count += 1;
    }
    Ok(pruned)
}

fn prune_runs(transaction: &mut Transaction<'_>, old: &[i64]) -> Result<Pruned, Failure> {
    let points_count = transaction.execute("DELETE FROM points WHERE run = ANY($1)", &[&old])?;
    for (table, column) in [("verdicts", "run"), ("documents", "run"), ("runs", "id")] {
        transaction.execute(&format!("DELETE FROM {table} WHERE {column} = ANY($1)"), &[&old])?;
    }
    Ok(Pruned { runs_count: old.len() as u64, points_count })
}
