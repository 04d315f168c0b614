//! History: the series of points that runs leave in a store, and the changes that somebody accepted.
//!
//! A series is everything that was measured of one metric of one workload under one identity. Points of different identity are
//! never joined: another shape, element type, clock, parameter or class of machine is another series.

use crate::judgement::Verdict;
use crate::kind::Kind;
use crate::machine::{EnvironmentLock, Revision, Toolchain};
use crate::metric::Better;
use crate::suite::Identity;
use crate::timestamp::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// End of the name of a metric that is head's value over base's, such as `p50_ms_ratio`.
pub const RATIO_SUFFIX: &str = "_ratio";

/// Everything that two points must share to be of one series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesKey {
    pub suite: String,
    pub workload: String,
    /// The metric's name within its workload, such as `p50_ms`.
    pub metric: String,
    /// Op, shape, element type, timer and parameters; absent where a file did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// Class of the machine: its fingerprint; absent where a file did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(default, skip_serializing_if = "Taken::is_alone")]
    pub taken: Taken,
}

impl SeriesKey {
    /// The name of the metric in judgements and trends, such as `sort_p50_ms`.
    pub fn metric_name(&self) -> String {
        crate::suite::metric_name(&self.workload, &self.metric)
    }
}

/// How a value was measured: a side that shares the machine with another is slower than it is alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// By a run.
    #[default]
    Alone,
    /// As head, beside base.
    SideBySide,
}

impl Taken {
    pub fn is_alone(&self) -> bool {
        *self == Self::Alone
    }
}

/// Versions and settings, beside the machine, that can explain why a value moved, by name: `kernel`, `driver`, `rustc`, `holdpoint`, …
pub type Versions = BTreeMap<String, String>;

/// The versions that a document names.
pub fn versions(toolchain: &Toolchain, lock: Option<&EnvironmentLock>) -> Versions {
    let mut versions = lock.cloned().unwrap_or_default();
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            versions.insert(name.to_owned(), value.to_owned());
        }
    };
    add("holdpoint", &toolchain.holdpoint);
    add("rustc", &toolchain.rustc);
    add("profile", &toolchain.profile);
    add("kernel", toolchain.kernel.as_deref().unwrap_or_default());
    if let Some(cuda) = &toolchain.cuda {
        add("driver", &cuda.driver);
        add("cuda", &cuda.cuda);
        add("nvrtc", cuda.nvrtc.as_deref().unwrap_or_default());
    }
    versions
}

/// One value of a series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// When its run began.
    #[serde(rename = "timestamp_utc")]
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// In the metric's unit, which its name ends with.
    pub value: f64,
    /// 95 % interval of the value, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<[f64; 2]>,
    /// Samples behind the value; 0 where they are not known.
    pub samples_count: u32,
    /// The document that it comes from.
    pub run: RunHash,
    /// Place of its versions in [`Series::versions`].
    pub versions: u32,
    /// The verdict on it, where it was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// SHA-256 of a document: in files 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunHash(pub [u8; 32]);

impl RunHash {
    /// Reads 64 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for RunHash {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for RunHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("64 hex digits are wanted"))
    }
}

impl JsonSchema for RunHash {
    fn schema_name() -> Cow<'static, str> {
        "RunHash".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 of a document." })
    }
}

/// All points of one key, in order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Twelve hex digits of the key's hash: the same in every store.
    pub id: String,
    pub key: SeriesKey,
    /// The machine in words.
    #[serde(default)]
    pub machine: String,
    pub better: Better,
    pub points: Vec<Point>,
    /// The versions that its points were taken with, each once.
    #[serde(default)]
    pub versions: Vec<Versions>,
    /// Changes that somebody accepted, in order of time.
    #[serde(default)]
    pub accepted: Vec<Acceptance>,
}

impl Series {
    /// The versions that a point was taken with.
    pub fn versions_of(&self, point: &Point) -> Option<&Versions> {
        self.versions.get(usize::try_from(point.versions).ok()?)
    }
}

/// A change that somebody answers for: from this point on, the series has a new level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Acceptance {
    /// Time of the first point of the new level.
    #[serde(rename = "timestamp_utc")]
    pub at: Timestamp,
    /// Its run.
    pub run: RunHash,
    /// The person.
    pub by: String,
    pub why: String,
    pub accepted_at_utc: Timestamp,
}

/// A series without its points, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesSummary {
    pub id: String,
    pub key: SeriesKey,
    /// The machine in words.
    #[serde(default)]
    pub machine: String,
    pub better: Better,
    pub points_count: u64,
    /// Time of the first point; absent where all were pruned.
    #[serde(default)]
    pub first_utc: Option<Timestamp>,
    /// Time of the last point.
    #[serde(default)]
    pub last_utc: Option<Timestamp>,
    pub accepted_count: u32,
}

/// Which series are meant. What is absent leaves all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesFilter {
    pub suite: Option<String>,
    pub workload: Option<String>,
    pub metric: Option<String>,
    /// The beginning of a machine's fingerprint.
    pub machine: Option<String>,
    /// The beginning of a series' id.
    pub id: Option<String>,
}

/// A range of time: from the first moment on, and before the second. What is absent leaves all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl TimeRange {
    /// The same in milliseconds.
    pub fn bounds(self) -> [i64; 2] {
        [self.since.map_or(i64::MIN, Timestamp::millis), self.until.map_or(i64::MAX, Timestamp::millis)]
    }
}

/// A run of a history, as a list shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunSummary {
    /// Its document.
    pub run: RunHash,
    pub kind: Kind,
    pub suite: String,
    /// When it began.
    #[serde(rename = "timestamp_utc")]
    pub at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<Revision>,
    /// The branch that was measured, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The machine's fingerprint; empty where it is not known.
    pub machine: String,
    /// The machine in words.
    pub machine_words: String,
    /// The worst verdict on it, where it was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Some of the runs of a history, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RunPage {
    pub runs: Vec<RunSummary>,
    /// The place after which the next page begins; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<RunCursor>,
}

/// A place in the list of runs. It stays where it is when runs are added: `2026-12-31T23:59:59.000Z_00ff…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunCursor {
    pub at: Timestamp,
    pub run: RunHash,
}

impl RunCursor {
    pub fn parse(text: &str) -> Option<Self> {
        let (at, run) = text.split_once('_')?;
        Some(Self { at: Timestamp::parse(at)?, run: RunHash::parse(run)? })
    }
}

impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}_{}", self.at, self.run)
    }
}

impl Serialize for RunCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Which runs are meant. What is absent leaves all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub suite: Option<String>,
    pub branch: Option<String>,
    /// The beginning of a machine's fingerprint.
    pub machine: Option<String>,
    pub verdict: Option<Verdict>,
    pub times: TimeRange,
    /// The end of the page before.
    pub after: Option<RunCursor>,
    /// Runs on the page at most.
    pub limit: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_and_written_in_hex() {
        let text = "00ff".repeat(16);
        assert_eq!(RunHash::parse(&text).map(|hash| hash.to_string()), Some(text));
        for bad in ["", "00", &"0g".repeat(32), &"é".repeat(32)] {
            assert_eq!(RunHash::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_place_in_the_list_of_runs_is_read_and_written() {
        let text = format!("2026-12-31T23:59:59.000Z_{}", "00ff".repeat(16));
        assert_eq!(RunCursor::parse(&text).map(|cursor| cursor.to_string()), Some(text));
        for bad in ["", "_", "2026-12-31", "2026-12-31T23:59:59Z_00ff"] {
            assert_eq!(RunCursor::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn versions_hold_what_a_toolchain_names_and_nothing_empty() {
        let toolchain = Toolchain {
            holdpoint: String::new(),
            rustc: "1.95.0".to_owned(),
            profile: "release".to_owned(),
            kernel: Some("6.1".to_owned()),
            cuda: None,
        };
        let lock = EnvironmentLock::from([("threads".to_owned(), "2".to_owned())]);
        let names: Vec<String> = versions(&toolchain, Some(&lock)).into_keys().collect();
        assert_eq!(names, ["kernel", "profile", "rustc", "threads"]);
    }
}
