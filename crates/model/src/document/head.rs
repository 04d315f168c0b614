//! A first look at a file: its top-level keys.

use super::{FileError, Kind};
use crate::SCHEMA_VERSION;
use crate::json::JsonError;
use crate::limits::clean_text;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// The top level of a file, its values unread. Of an array, that of its first object.
pub struct Head<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

/// More keys than any kind of file has: from here on they are names, of which a file may have a million.
const KEYS_MAX: usize = 1_000;

/// A key as the text has it.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'a> Head<'a> {
    /// Reads the top level, and stops where it has seen what the file is: nine tenths of a report come after that, and whoever
    /// reads the report will look at them anyway.
    pub fn parse(text: &'a str) -> Result<Self, FileError> {
        let mut head = Self(BTreeMap::new());
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let whole = HeadReader(&mut head).deserialize(&mut deserializer).and_then(|()| deserializer.end());
        match whole {
            Err(_) if head.is_enough() => Ok(head),
            whole => whole.map(|()| head).map_err(|error| JsonError::from(error).into()),
        }
    }

    fn is_enough(&self) -> bool {
        let is_known = self.has("schema_version")
            && (self.has("kind") || self.has("toolchain") && self.has("benchmarks"));
        is_known || self.0.len() >= KEYS_MAX
    }

    /// Whether the file has a key.
    pub fn has(&self, key: &str) -> bool {
        self.0.contains_key(key)
    }

    /// The keys, sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(Cow::as_ref)
    }

    /// The value of a key.
    pub fn get<T: Deserialize<'a>>(&self, key: &str) -> Option<T> {
        serde_json::from_str(self.0.get(key)?.get()).ok()
    }

    /// cudadent42's files carry no version; all others must carry one that is known.
    pub fn check_version(&self) -> Result<(), FileError> {
        match self.0.get("schema_version").map(|raw| raw.get()) {
            Some(found) if found != SCHEMA_VERSION.to_string() => {
                Err(FileError::Version { found: clean_text(found) })
            }
            _ => Ok(()),
        }
    }

    /// The kind that the file names or, if it names none, that its keys suggest.
    pub fn kind(&self) -> Option<Kind> {
        if self.has("kind") {
            return self.get("kind");
        }
        let has_keys = |kind: &&Kind| match kind {
            Kind::Baseline => self.is_old_baseline(),
            kind => !kind.keys().is_empty() && kind.keys().iter().all(|key| self.has(key)),
        };
        Kind::ALL.iter().find(has_keys).copied()
    }

    /// Baselines hold objects under `metrics`, where Apex-X's and cudadent42's reports hold numbers.
    fn is_old_baseline(&self) -> bool {
        let metrics: Option<BTreeMap<String, Value>> = self.get("metrics");
        metrics.is_some_and(|metrics| {
            let says_so = self.has("baseline_notes") || self.has("required_status");
            says_so || metrics.values().any(Value::is_object) && !metrics.values().any(Value::is_number)
        })
    }

    /// The first keys, for messages.
    pub fn describe(&self) -> String {
        let keys: Vec<&str> = self.keys().take(8).collect();
        let keys = if keys.is_empty() { "none".to_owned() } else { clean_text(&keys.join(", ")) };
        match self.get::<String>("kind") {
            Some(kind) => format!("its kind is {:?}, which is not known here", clean_text(&kind)),
            None => format!("its top-level keys are {keys}"),
        }
    }
}

struct HeadReader<'h, 'a>(&'h mut Head<'a>);

impl<'a> DeserializeSeed<'a> for HeadReader<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for HeadReader<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(head) = self;
        while let Some(Key(key)) = map.next_key()? {
            if key == "benchmarks" && head.has("schema_version") && head.has("toolchain") {
                head.0.insert(key, RawValue::NULL);
                return Err(A::Error::custom("enough seen"));
            }
            head.0.insert(key, map.next_value()?);
            if head.is_enough() {
                return Err(A::Error::custom("enough seen"));
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        seq.next_element_seed(HeadReader(self.0))?;
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}
