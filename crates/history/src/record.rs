//! Documents as runs of a store: the points that they hold, and how they are known.

use holdpoint_model::document::{self, FileError, value_error};
use holdpoint_model::history::{RATIO_SUFFIX, versions};
use holdpoint_model::metric::METRICS;
use holdpoint_model::metric::{Better, METRIC_TIME};
use holdpoint_model::{
    AbReport, AbWorkload, Check, Kind, Machine, Measured, Outcome, Report, Revision, RunHash, SeriesKey,
    Stated, Taken, Timestamp, Trend, Verdict, Versions,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Hex digits of a series' id: 48 bits tell millions of series apart.
const ID_CHARS: usize = 12;

/// A document, ready to be added.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// SHA-256 of the document.
    pub hash: RunHash,
    pub kind: Kind,
    pub suite: String,
    pub at: Timestamp,
    pub revision: Option<Revision>,
    #[serde(default)]
    pub branch: Option<String>,
    pub machine: Option<Machine>,
    pub versions: Versions,
    pub points: Vec<NewPoint>,
    /// Verdicts of a comparison, by the metric's name in it; that of all has no name.
    pub verdicts: Vec<(String, Verdict)>,
    /// The document itself.
    pub document: String,
}

/// A point of a run, and the series that it belongs to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NewPoint {
    pub key: SeriesKey,
    pub better: Better,
    pub value: f64,
    pub interval: Option<[f64; 2]>,
    pub samples_count: u32,
}

/// The id of a series: the same in every store.
pub fn series_id(key: &SeriesKey) -> String {
    id_of_json(&key_json(key))
}

pub(crate) fn id_of_json(key_json: &str) -> String {
    RunHash(Sha256::digest(key_json).into()).to_string()[..ID_CHARS].to_owned()
}

/// The one text of a key. A key of strings and numbers always has a JSON form, and its maps are sorted.
pub(crate) fn key_json(key: &SeriesKey) -> String {
    serde_json::to_string(key).unwrap_or_default()
}

/// Judges two sides by their samples. Verdicts are made by `holdpoint-gate`, which stores do without.
pub type Judge = fn(&AbReport) -> Result<Stated, String>;

impl RunRecord {
    /// The run that a document of ours holds; `revision` is that of a document without one. Two sides are judged again by their samples.
    pub fn read(text: &str, revision: Option<&Revision>, judge: Judge) -> Result<Self, FileError> {
        let fill = |known: &mut Option<Revision>| *known = known.take().or_else(|| revision.cloned());
        match document::kind(text)? {
            Some(Kind::Ab) => {
                let mut ab: AbReport = document::read(text)?;
                fill(&mut ab.head.revision);
                let judgement = judge(&ab).or_else(|error| value_error("workloads".to_owned(), &error))?;
                Self::sides(&ab, &judgement)
            }
            Some(Kind::Comparison) => {
                let mut judgement: Stated = document::read(text)?;
                fill(&mut judgement.revision);
                Self::comparison(&judgement)
            }
            Some(Kind::Trend) => {
                let mut trend: Trend = document::read(text)?;
                fill(&mut trend.revision);
                Self::trend(&trend)
            }
            _ => {
                let mut report: Report = document::read(text)?;
                fill(&mut report.revision);
                Self::report(&report)
            }
        }
    }

    /// A run: a point for each metric that is gated, of every workload whose times can be trusted.
    pub fn report(report: &Report) -> Result<Self, FileError> {
        let mut record = Self::new(Kind::Report, report, &report.suite, &report.timestamp_utc)?;
        record.revision = report.revision.clone();
        record.branch = report.branch.clone();
        record.machine = report.machine.clone();
        record.versions = versions(&report.toolchain, report.environment_lock.as_ref());
        for (name, measurement) in &report.benchmarks {
            let Outcome::Measured(measured) = &measurement.outcome else { continue };
            if measured.distrust.is_some() {
                continue;
            }
            let default = [METRIC_TIME.to_owned()];
            let metrics = if measurement.gated.is_empty() { &default[..] } else { &measurement.gated };
            for metric in metrics {
                let mut key = record.key(name, metric);
                key.identity = Some(measurement.identity.clone());
                record.points.extend(measured_point(key, measured));
            }
        }
        Ok(record)
    }

    /// Two sides: head's level and the ratio, of every metric that was compared. The judgement is the gate's on this very file.
    pub fn sides(ab: &AbReport, judgement: &Stated) -> Result<Self, FileError> {
        let mut record = Self::new(Kind::Ab, ab, &ab.suite, &ab.timestamp_utc)?;
        record.revision = ab.head.revision.clone();
        record.branch = ab.branch.clone();
        record.machine = ab.machine.clone();
        record.versions = versions(&ab.toolchain, None);
        for check in &judgement.checks {
            let workload = check.workload.as_ref().and_then(|name| Some((name, ab.workloads.get(name)?)));
            if let Some((name, workload)) = workload {
                let points = side_points(&record, name, workload, check);
                record.points.extend(points);
            }
        }
        Ok(record)
    }

    /// A comparison: its verdicts. The points come with the samples that it judged, `report.json` or `ab.json`.
    pub fn comparison(judgement: &Stated) -> Result<Self, FileError> {
        let Some(timestamp_utc) = &judgement.timestamp_utc else {
            return value_error("timestamp_utc".to_owned(), "is missing, so its run cannot be found");
        };
        let mut record = Self::new(Kind::Comparison, judgement, &judgement.suite, timestamp_utc)?;
        record.revision = judgement.revision.clone();
        record.machine = judgement.machine.clone();
        let checks = judgement.checks.iter().filter(|check| !check.is_overall());
        let verdicts = checks.map(|check| (check.metric.clone(), check.verdict));
        record.verdicts = verdicts.chain([(String::new(), judgement.verdict)]).collect();
        Ok(record)
    }

    /// A point of a trend: metrics without identity and machine, which a trend does not name. Its points are all of it.
    pub fn trend(trend: &Trend) -> Result<Self, FileError> {
        let mut record = Self::new(Kind::Trend, trend, &trend.suite, &trend.timestamp_utc)?;
        record.revision = trend.revision.clone();
        for metric in &trend.metrics {
            let Some(value) = metric.current_ms else { continue };
            let (workload, name) = split_name(&metric.metric);
            let key = record.key(workload, name);
            record.points.push(NewPoint {
                key,
                better: Better::Lower,
                value,
                interval: None,
                samples_count: 0,
            });
        }
        Ok(record)
    }

    fn new<T: Serialize>(
        kind: Kind,
        document: &T,
        suite: &str,
        timestamp_utc: &str,
    ) -> Result<Self, FileError> {
        let Some(at) = Timestamp::parse(timestamp_utc) else {
            return value_error(
                "timestamp_utc".to_owned(),
                "is not a time in UTC such as 2026-12-31T23:59:59Z",
            );
        };
        let text = serde_json::to_string(document)
            .map_err(|error| FileError::Json(holdpoint_model::json::JsonError::from(error)))?;
        Ok(Self {
            hash: RunHash(Sha256::digest(&text).into()),
            kind,
            suite: suite.to_owned(),
            at,
            revision: None,
            branch: None,
            machine: None,
            versions: Versions::new(),
            points: Vec::new(),
            verdicts: Vec::new(),
            document: text,
        })
    }

    /// The run without its raw samples: summaries and points stay. `None` where it has none.
    pub(crate) fn without_samples(&self) -> Option<Self> {
        let document = self.has_samples().then(|| crate::pack::without_samples(&self.document))??;
        Some(Self { document, ..self.clone() })
    }

    /// The document as far as a database keeps it: of a trend, the points are all there is.
    pub(crate) fn kept_document(&self) -> Option<&str> {
        (self.kind != Kind::Trend).then_some(self.document.as_str())
    }

    pub(crate) fn has_samples(&self) -> bool {
        matches!(self.kind, Kind::Report | Kind::Ab)
    }

    /// The machine's fingerprint; empty where it is not known.
    pub(crate) fn fingerprint(&self) -> &str {
        self.machine.as_ref().map_or("", |machine| machine.fingerprint.as_str())
    }

    pub(crate) fn versions_json(&self) -> String {
        // A map of strings always has a JSON form.
        serde_json::to_string(&self.versions).unwrap_or_default()
    }

    fn key(&self, workload: &str, metric: &str) -> SeriesKey {
        SeriesKey {
            suite: self.suite.clone(),
            workload: workload.to_owned(),
            metric: metric.to_owned(),
            identity: None,
            machine: self.machine.as_ref().map(|machine| machine.fingerprint.clone()),
            taken: Taken::Alone,
        }
    }
}

fn measured_point(key: SeriesKey, measured: &Measured) -> Option<NewPoint> {
    let value = measured.metric(&key.metric)?;
    let interval = measured.p50_interval_ms.filter(|_| key.metric == METRIC_TIME);
    let samples_count = count(measured.samples.rounds.iter().map(|round| round.elapsed_ns.len()).sum());
    Some(NewPoint { key, better: Better::Lower, value, interval, samples_count })
}

/// Head's level and the ratio of one check.
fn side_points(record: &RunRecord, name: &str, workload: &AbWorkload, check: &Check) -> Vec<NewPoint> {
    let rounds = workload.units.iter().flat_map(|unit| &unit.rounds);
    let samples_count = count(rounds.map(|round| round.head_ns.len()).sum());
    let point = |metric: &str, better, value: f64, interval| {
        let mut key = record.key(name, metric);
        key.identity = Some(workload.identity.clone());
        key.taken = Taken::SideBySide;
        NewPoint { key, better, value, interval, samples_count }
    };
    let ratio_name = |metric: &str| format!("{metric}{RATIO_SUFFIX}");
    if let Some(keys) = check.metric_keys() {
        let (Some(base), Some(head)) = (keys.base, keys.head) else { return Vec::new() };
        let level = point(&keys.name, keys.better, head, None);
        let ratio = (base > 0.0).then(|| point(&ratio_name(&keys.name), keys.better, head / base, None));
        return std::iter::once(level).chain(ratio).collect();
    }
    let Some(evidence) = check.evidence() else { return Vec::new() };
    let ratio = point(&ratio_name(METRIC_TIME), Better::Lower, evidence.ratio, evidence.ratio_interval);
    let level = time_metric(workload)
        .map(|metric| point(metric, Better::Lower, evidence.head.p50_ms, evidence.head.p50_interval_ms));
    level.into_iter().chain([ratio]).collect()
}

/// The metric that head's median time is a value of. Units may have been compared by CPU time, which is another quantity; a median over
/// both would be none.
fn time_metric(workload: &AbWorkload) -> Option<&'static str> {
    let mut clocks = workload.units.iter().map(|unit| unit.clock.is_cpu());
    let is_cpu = clocks.next()?;
    clocks.all(|other| other == is_cpu).then_some(if is_cpu { "cpu_p50_ms" } else { METRIC_TIME })
}

/// A trend's name of a metric as workload and metric.
fn split_name(name: &str) -> (&str, &str) {
    let flat = name.strip_prefix("benchmarks.").unwrap_or(name);
    // The longest that fits: `cpu_p50_ms` ends with `p50_ms` too.
    let metrics = METRICS.iter().filter_map(|metric| {
        let rest = flat.strip_suffix(metric)?;
        Some((rest.strip_suffix(['_', '.'])?, *metric))
    });
    let found = metrics.filter(|(workload, _)| !workload.is_empty()).max_by_key(|(_, metric)| metric.len());
    found.unwrap_or((flat, "ms"))
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trends_metric_is_split_into_workload_and_metric() {
        assert_eq!(split_name("sort_p50_ms"), ("sort", "p50_ms"));
        assert_eq!(split_name("sort_cpu_p50_ms"), ("sort", "cpu_p50_ms"));
        assert_eq!(split_name("benchmarks.gpu.pack.p95_ms"), ("gpu.pack", "p95_ms"));
        assert_eq!(split_name("latency_ms"), ("latency_ms", "ms"));
        assert_eq!(split_name("p50_ms"), ("p50_ms", "ms"));
    }
}
