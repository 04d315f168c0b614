//! Bencher Metric Format: for each benchmark its measures, each one number, perhaps with bounds. Bencher gives its measures
//! `latency`, `throughput` and `build-time` their units; others have none in the file.

use crate::unit::Unit;
use crate::{Format, Imported};
use holdpoint_model::document::{Head, value_error};
use holdpoint_model::{FileError, json};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

pub(crate) const FORMAT: Format = Format {
    words: "a file in Bencher Metric Format",
    matches: |probe| probe.any_head(matches),
    read: |source| source.read_each(matches, read),
};

/// Measures of one benchmark, by name.
type Measures = Pairs<Measure>;

/// An object in the order of its keys. A map for each of a million benchmarks takes most of the time of reading them.
struct Pairs<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct PairsVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for PairsVisitor<T> {
    type Value = Pairs<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

#[derive(Deserialize)]
struct Measure {
    value: f64,
}

fn matches(head: &Head<'_>) -> bool {
    let first = head.keys().next().and_then(|key| head.get::<Measures>(key));
    first.is_some_and(|Pairs(measures)| !measures.is_empty())
}

fn read(text: &str) -> Result<Imported, FileError> {
    let Pairs(benchmarks): Pairs<Measures> = json::parse(text)?;
    let mut imported = Imported::new("bmf");
    for (name, Pairs(measures)) in benchmarks {
        for (measure, Measure { value }) in measures {
            let (unit, statistic) = match measure.as_str() {
                "latency" => (Unit::Time(1e-6), ""),
                "build-time" => (Unit::Time(1e3), "build_time"),
                "throughput" => (Unit::Rate("operation".to_owned()), ""),
                _ => {
                    imported.leave_out(&name, &measure);
                    continue;
                }
            };
            let Some(ms) = unit.to_ms(value) else {
                return value_error(format!("{name}.{measure}"), "a rate must be above 0");
            };
            imported.add(name.as_str(), &unit.metric(statistic), ms, Vec::new())?;
        }
    }
    Ok(imported)
}
