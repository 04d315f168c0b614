//! A first look at a file: its top-level keys.

use super::{FileError, Kind};
use crate::SCHEMA_VERSION;
use crate::json::JsonError;
use crate::limits::clean_text;
use serde::Deserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// The top level of a file, its values unread.
pub(super) struct Head<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Head<'a> {
    /// Reads the top level, and stops where it has seen that the file is a report of ours: nine tenths of
    /// such a file come after that, and whoever reads the report will look at them anyway.
    pub(super) fn of(text: &'a str) -> Result<Self, FileError> {
        let mut head = Self(BTreeMap::new());
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let whole = deserializer.deserialize_map(HeadVisitor(&mut head)).and_then(|()| deserializer.end());
        match whole {
            Err(_) if head.is_own_report() => Ok(head),
            whole => whole.map(|()| head).map_err(|error| JsonError::from(error).into()),
        }
    }

    pub(super) fn is_own_report(&self) -> bool {
        self.has("schema_version") && self.has("toolchain") && self.has("benchmarks")
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The second seed's files carry no version; all others must carry one that is known.
    pub(super) fn check_version(&self) -> Result<(), FileError> {
        match self.0.get("schema_version").map(|raw| raw.get()) {
            Some(found) if found != SCHEMA_VERSION.to_string() => {
                Err(FileError::Version { found: clean_text(found) })
            }
            _ => Ok(()),
        }
    }

    /// Three files have `metrics`: baselines hold objects there, reports hold numbers.
    pub(super) fn kind_by_metrics(&self) -> Result<Kind, FileError> {
        let metrics: BTreeMap<String, Value> = match self.0.get("metrics") {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| FileError::Value {
                place: "metrics".to_owned(),
                what: clean_text(&error.to_string()),
            })?,
            None => BTreeMap::new(),
        };
        let says_baseline = self.has("baseline_notes") || self.has("required_status");
        // A baseline may have a metric of that name, recorded from such a file.
        Ok(if metrics.get("mean_time_ms").is_some_and(Value::is_number) {
            Kind::DentResult
        } else if says_baseline || metrics.values().any(Value::is_object) {
            Kind::Baseline
        } else {
            Kind::ApexCpu
        })
    }

    pub(super) fn describe(&self) -> String {
        let keys: Vec<&str> = self.0.keys().map(String::as_str).take(8).collect();
        let keys = if keys.is_empty() { "none".to_owned() } else { clean_text(&keys.join(", ")) };
        format!("its top-level keys are {keys}")
    }
}

struct HeadVisitor<'h, 'a>(&'h mut Head<'a>);

impl<'a> Visitor<'a> for HeadVisitor<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(head) = self;
        while let Some(key) = map.next_key::<String>()? {
            if key == "benchmarks" && head.has("schema_version") && head.has("toolchain") {
                head.0.insert(key, RawValue::NULL);
                return Err(A::Error::custom("enough seen"));
            }
            head.0.insert(key, map.next_value()?);
        }
        Ok(())
    }
}
