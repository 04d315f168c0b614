//! Reads a measurement without holding it in memory twice.
//!
//! Its outcome's keys lie beside its own, and `status` tells which they are. Serde's `flatten` copies them all,
//! samples included, before it looks at `status`: half of the time of reading a large report. holdpoint writes
//! `status` first, so the outcome can be read straight from the file; in any other order it is copied.

use crate::report::{Failure, Measured, Measurement, Outcome};
use crate::suite::Identity;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::fmt;

impl<'de> Deserialize<'de> for Measurement {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MeasurementVisitor)
    }
}

/// The measurement's own keys, as far as they have been seen.
#[derive(Default)]
struct Own {
    identity: Option<Identity>,
    gated: Option<Vec<String>>,
    status: Option<Status>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Measured,
    Skipped,
    Failed,
}

impl Own {
    /// Reads the value of one of its keys; of any other it reads nothing and says so.
    fn take<'de, A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<bool, A::Error> {
        match key {
            "identity" => fill(&mut self.identity, "identity", map)?,
            "gated" => fill(&mut self.gated, "gated", map)?,
            "status" => fill(&mut self.status, "status", map)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn fill<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    slot: &mut Option<T>,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    match slot.replace(map.next_value()?) {
        Some(_) => Err(A::Error::duplicate_field(name)),
        None => Ok(()),
    }
}

struct MeasurementVisitor;

impl<'de> Visitor<'de> for MeasurementVisitor {
    type Value = Measurement;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a measurement")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Measurement, A::Error> {
        let (mut own, mut early) = (Own::default(), Map::new());
        let mut outcome = None;
        while let Some(key) = map.next_key::<String>()? {
            if own.take(&key, &mut map)? {
                continue;
            }
            match own.status {
                Some(status) if early.is_empty() => {
                    let rest = Rest { key: Some(key), map: &mut map, own: &mut own };
                    outcome = Some(read(status, MapAccessDeserializer::new(rest))?);
                    break;
                }
                _ => early.insert(key, map.next_value::<Value>()?),
            };
        }
        let status = own.status.ok_or_else(|| A::Error::missing_field("status"))?;
        let outcome = match outcome {
            Some(outcome) => outcome,
            None => read(status, Value::Object(early)).map_err(A::Error::custom)?,
        };
        let identity = own.identity.ok_or_else(|| A::Error::missing_field("identity"))?;
        Ok(Measurement { identity, gated: own.gated.unwrap_or_default(), outcome })
    }
}

#[derive(Deserialize)]
struct Skipped {
    reason: String,
}

fn read<'de, D: Deserializer<'de>>(status: Status, map: D) -> Result<Outcome, D::Error> {
    Ok(match status {
        Status::Measured => Outcome::Measured(Box::new(Measured::deserialize(map)?)),
        Status::Skipped => Outcome::Skipped { reason: Skipped::deserialize(map)?.reason },
        Status::Failed => Outcome::Failed(Failure::deserialize(map)?),
    })
}

/// The rest of the map, from a key already read on; the measurement's own keys are taken out on the way.
struct Rest<'a, A> {
    key: Option<String>,
    map: &'a mut A,
    own: &'a mut Own,
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Rest<'_, A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        if let Some(key) = self.key.take() {
            return seed.deserialize(StrDeserializer::new(&key)).map(Some);
        }
        while let Some(key) = self.map.next_key::<String>()? {
            if !self.own.take(&key, self.map)? {
                return seed.deserialize(StrDeserializer::new(&key)).map(Some);
            }
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.map.next_value_seed(seed)
    }
}
