//! Rows, as both databases handle them.

use crate::record::{NewPoint, RunRecord, key_json};
use crate::store::{RunAt, Values};
use holdpoint_model::metric::Better;
use holdpoint_model::{
    Acceptance, Point, Revision, RunCursor, RunFilter, RunHash, RunPage, RunSummary, Series, SeriesFilter,
    SeriesKey, SeriesSummary, Timestamp, Verdict, Versions,
};
use std::collections::{BTreeMap, HashMap};

/// A point's columns. `run` is an id of the database.
pub(crate) struct PointRow {
    pub at: i64,
    pub run: i64,
    pub value: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub samples: i64,
}

/// A run's columns, as far as points need them. `versions` is an id of the database.
pub(crate) struct RunRow {
    pub hash: [u8; 32],
    pub revision: Option<String>,
    pub dirty: bool,
    pub versions: i64,
}

/// The runs of a series' points, by their ids.
pub struct Runs {
    first: i64,
    rows: RunRows,
}

enum RunRows {
    Dense(Vec<Option<RunRow>>),
    Sparse(HashMap<i64, RunRow>),
}

/// Runs between the first and the last of a series that are read although they are not the series', for each that is: reading in order is
/// that much quicker than looking up one by one.
const READ_FOR_ONE: i64 = 8;

/// Which runs are to be read.
pub(crate) enum WantedRuns {
    /// All with ids from the first to the last.
    Range([i64; 2]),
    Single(Vec<i64>),
}

impl WantedRuns {
    pub fn of(points: &[PointRow]) -> Self {
        let ids = || points.iter().map(|point| point.run);
        let (first, last) = (ids().min().unwrap_or(1), ids().max().unwrap_or(0));
        if last - first < READ_FOR_ONE * points.len() as i64 {
            return Self::Range([first, last]);
        }
        let mut ids: Vec<i64> = ids().collect();
        ids.sort_unstable();
        ids.dedup();
        Self::Single(ids)
    }
}

impl Runs {
    /// Room for the runs that are wanted.
    pub fn new(wanted: &WantedRuns) -> Self {
        match wanted {
            WantedRuns::Range([first, last]) => {
                let count = usize::try_from(last - first + 1).unwrap_or(0);
                let rows = std::iter::repeat_with(|| None).take(count).collect();
                Self { first: *first, rows: RunRows::Dense(rows) }
            }
            WantedRuns::Single(_) => Self { first: 0, rows: RunRows::Sparse(HashMap::new()) },
        }
    }

    pub fn insert(&mut self, id: i64, row: RunRow) {
        match &mut self.rows {
            RunRows::Sparse(rows) => drop(rows.insert(id, row)),
            RunRows::Dense(rows) => {
                let place = usize::try_from(id - self.first).ok().and_then(|place| rows.get_mut(place));
                if let Some(place) = place {
                    *place = Some(row);
                }
            }
        }
    }

    fn get_mut(&mut self, id: i64) -> Option<&mut RunRow> {
        match &mut self.rows {
            RunRows::Sparse(rows) => rows.get_mut(&id),
            RunRows::Dense(rows) => rows.get_mut(usize::try_from(id - self.first).ok()?)?.as_mut(),
        }
    }
}

/// A series' columns.
pub(crate) struct SeriesRow {
    pub id: i64,
    pub name: String,
    pub key: SeriesKey,
    pub better: Better,
}

impl SeriesRow {
    pub fn new(id: i64, name: String, key_json: &str, better: &str) -> Result<Self, String> {
        let key = serde_json::from_str(key_json).map_err(|error| format!("series {name}: {error}"))?;
        let better = if better == "higher" { Better::Higher } else { Better::Lower };
        Ok(Self { id, name, key, better })
    }

    pub fn matches(&self, filter: &SeriesFilter) -> bool {
        let is = |wanted: &Option<String>, value: &str| wanted.as_ref().is_none_or(|wanted| wanted == value);
        let begins = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| value.starts_with(wanted.as_str()))
        };
        is(&filter.suite, &self.key.suite)
            && is(&filter.workload, &self.key.workload)
            && is(&filter.metric, &self.key.metric)
            && begins(&filter.machine, self.key.machine.as_deref().unwrap_or_default())
            && begins(&filter.id, &self.name)
    }

    pub fn summary(self, machine: String, counts: Counts) -> SeriesSummary {
        SeriesSummary {
            id: self.name,
            key: self.key,
            machine,
            better: self.better,
            points_count: u64::try_from(counts.points).unwrap_or(0),
            first_utc: counts.first.and_then(Timestamp::from_millis),
            last_utc: counts.last.and_then(Timestamp::from_millis),
            accepted_count: counts.accepted,
        }
    }
}

/// The counts of a series.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub points: i64,
    pub first: Option<i64>,
    pub last: Option<i64>,
    pub accepted: u32,
}

pub(crate) fn better_name(better: Better) -> &'static str {
    if better.is_lower() { "lower" } else { "higher" }
}

/// Verdicts by time; of several at one moment, the worst.
pub(crate) type VerdictsByTime = HashMap<i64, Verdict>;

pub(crate) fn add_verdict(verdicts: &mut VerdictsByTime, at: i64, name: &str) {
    let Ok(verdict) = serde_json::from_value::<Verdict>(name.into()) else { return };
    let kept = verdicts.entry(at).or_insert(verdict);
    *kept = (*kept).max(verdict);
}

/// A series from its rows. `versions_by_id` has all that the rows name.
pub fn series(
    row: SeriesRow,
    machine: String,
    rows: Vec<PointRow>,
    mut runs: Runs,
    versions_by_id: &HashMap<i64, Versions>,
    verdicts: &VerdictsByTime,
    accepted: Vec<Acceptance>,
) -> Series {
    let mut places: HashMap<i64, u32> = HashMap::new();
    let mut versions = Vec::new();
    let mut points = Vec::with_capacity(rows.len());
    for row in rows {
        let (Some(at), Some(run)) = (Timestamp::from_millis(row.at), runs.get_mut(row.run)) else {
            continue;
        };
        let place = *places.entry(run.versions).or_insert_with(|| {
            versions.push(versions_by_id.get(&run.versions).cloned().unwrap_or_default());
            versions.len() as u32 - 1
        });
        points.push(Point {
            at,
            // A run has one point of a series, so its text can be had.
            revision: run.revision.take().map(|commit| Revision { commit, dirty: run.dirty }),
            value: row.value,
            interval: row.low.zip(row.high).map(|(low, high)| [low, high]),
            samples_count: u32::try_from(row.samples).unwrap_or(u32::MAX),
            run: RunHash(run.hash),
            versions: place,
            verdict: verdicts.get(&row.at).copied(),
        });
    }
    // The database orders by time; runs of one moment are ordered by their hashes, so that every store tells the same.
    points.sort_by_key(|point| (point.at, point.run));
    Series { id: row.name, key: row.key, machine, better: row.better, points, versions, accepted }
}

/// Times and values of a series, which the database has put in order of time.
pub fn values(row: SeriesRow, points: Vec<(i64, f64)>, accepted: Vec<Acceptance>) -> Values {
    let point = |(at, value): (i64, f64)| Some((Timestamp::from_millis(at)?, value));
    let points = points.into_iter().filter_map(point).collect();
    Values { key: row.key, better: row.better, points, accepted }
}

pub(crate) fn run_at(at: Timestamp, commit: Option<String>, versions: Option<&str>) -> RunAt {
    let versions = versions.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    RunAt { at, commit, versions }
}

/// The question for a page of runs, in words of both databases: of several verdicts at one moment the worst is the run's. Values come in the
/// order of their numbers, see [`RunsWanted`].
pub(crate) fn runs_question() -> String {
    let ranks = Verdict::ALL.iter().enumerate();
    let ranks: String = ranks
        .map(|(rank, verdict)| {
            format!(" WHEN '{verdict}' THEN '{rank}{verdict}'", verdict = verdict.as_str())
        })
        .collect();
    format!(
        "SELECT hash, kind, suite, at, revision, dirty, branch, machine, words, verdict FROM
         (SELECT runs.*, (SELECT substr(max(CASE verdict{ranks} END), 2) FROM verdicts
             WHERE verdicts.suite = runs.suite AND verdicts.at = runs.at AND verdicts.machine = runs.machine) AS verdict
         FROM runs WHERE kind <> 'comparison') AS judged LEFT JOIN machines ON fingerprint = machine
         WHERE at >= $1 AND at < $2 AND (at, hash) < ($3, $4) AND suite = coalesce($5, suite)
         AND coalesce(branch, '') = coalesce($6, branch, '') AND substr(machine, 1, length($7)) = $7
         AND coalesce(verdict, '') = coalesce($8, verdict, '') ORDER BY at DESC, hash DESC LIMIT $9"
    )
}

/// The values of [`runs_question`], in its order.
pub(crate) struct RunsWanted<'a> {
    pub since: i64,
    pub until: i64,
    /// Before this place, the newest first.
    pub at: i64,
    pub hash: &'a [u8],
    pub suite: Option<&'a str>,
    pub branch: Option<&'a str>,
    pub machine: &'a str,
    pub verdict: Option<&'static str>,
    /// One more than are shown, which tells whether there is another page.
    pub limit: i64,
}

impl<'a> RunsWanted<'a> {
    pub fn new(filter: &'a RunFilter) -> Self {
        let [since, until] = filter.times.bounds();
        let (at, hash) = filter
            .after
            .as_ref()
            .map_or((i64::MAX, [].as_slice()), |after| (after.at.millis(), after.run.0.as_slice()));
        Self {
            since,
            until,
            at,
            hash,
            suite: filter.suite.as_deref(),
            branch: filter.branch.as_deref(),
            machine: filter.machine.as_deref().unwrap_or_default(),
            verdict: filter.verdict.map(Verdict::as_str),
            limit: i64::from(filter.limit) + 1,
        }
    }
}

/// A run's columns, as a list needs them.
pub(crate) struct ListedRun {
    pub hash: [u8; 32],
    pub kind: String,
    pub suite: String,
    pub at: i64,
    pub revision: Option<String>,
    pub dirty: bool,
    pub branch: Option<String>,
    pub machine: String,
    pub words: Option<String>,
    pub verdict: Option<String>,
}

/// A page of runs: as many as are shown, and where the next ones are if there are more.
pub(crate) fn run_page(filter: &RunFilter, rows: Vec<ListedRun>) -> Result<RunPage, String> {
    let limit = filter.limit as usize;
    let has_more = rows.len() > limit;
    let runs: Vec<RunSummary> = rows.into_iter().take(limit).map(run_summary).collect::<Result<_, _>>()?;
    let last = runs.last().filter(|_| has_more);
    let next = last.map(|last| RunCursor { at: last.at, run: last.run });
    Ok(RunPage { runs, next })
}

fn run_summary(row: ListedRun) -> Result<RunSummary, String> {
    let run = RunHash(row.hash);
    let known = |what: &str| format!("run {run}: its {what} is not known here");
    Ok(RunSummary {
        run,
        kind: serde_json::from_value(row.kind.into()).map_err(|_| known("kind"))?,
        suite: row.suite,
        at: Timestamp::from_millis(row.at).ok_or_else(|| known("time"))?,
        revision: row.revision.map(|commit| Revision { commit, dirty: row.dirty }),
        branch: row.branch,
        machine: row.machine,
        machine_words: row.words.unwrap_or_default(),
        verdict: row.verdict.and_then(|verdict| serde_json::from_value(verdict.into()).ok()),
    })
}

/// Ids of series by their keys as JSON, as far as this connection has met them: a batch asks the database for each once.
pub(crate) type Known = HashMap<String, i64>;

/// A point with its run's place in the batch and its series' key as JSON.
pub struct Placed<'a> {
    pub run: usize,
    pub key_json: String,
    pub point: &'a NewPoint,
}

/// The points of these runs.
pub fn place<'a>(runs: impl Iterator<Item = (usize, &'a RunRecord)>) -> Vec<Placed<'a>> {
    let points = runs.flat_map(|(run, record)| record.points.iter().map(move |point| (run, point)));
    points.map(|(run, point)| Placed { run, key_json: key_json(&point.key), point }).collect()
}

/// Series of these points that are not known yet, each once: its key as JSON, and a point of it.
pub fn unknown<'p>(placed: &'p [Placed<'_>], known: &Known) -> BTreeMap<&'p str, &'p NewPoint> {
    let unknown = placed.iter().filter(|placed| !known.contains_key(&placed.key_json));
    unknown.map(|placed| (placed.key_json.as_str(), placed.point)).collect()
}

/// Refuses a series whose id is another key's: the two would be joined.
pub(crate) fn check_key(name: &str, found: &str, wanted: &str) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("two series share the id {name}; rename the workload of {wanted}"))
}

/// By suite, workload and metric.
pub fn sort(summaries: &mut [SeriesSummary]) {
    summaries.sort_by(|a, b| {
        let order = |s: &SeriesSummary| {
            [s.key.suite.clone(), s.key.workload.clone(), s.key.metric.clone(), s.id.clone()]
        };
        order(a).cmp(&order(b))
    });
}
