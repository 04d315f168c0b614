//! Waivers: slowdowns that somebody answers for, for a while. A file of the user's, in TOML.

use crate::date::Date;
use crate::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX, clean_text, is_said};
use crate::metric::METRICS;
use crate::pattern::matches;
use crate::toml_file::{TomlError, invalid, parse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Most waivers in a file: more than that is no exception any more.
const WAIVERS_MAX: usize = 1_000;
/// Largest slowdown that can be waived, as a share: eleven times the time.
pub const LIMIT_MAX: f64 = 10.0;
/// Fewest characters beside its stars of a pattern that begins with one: fewer are in nearly every name.
const LITERAL_CHARS_MIN: usize = 2;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waivers {
    pub schema_version: u32,
    /// The waivers, in order; the first that covers a regression counts.
    #[serde(default, rename = "waiver")]
    pub waivers: Vec<Waiver>,
}

/// One slowdown that is allowed for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// The person responsible for it.
    pub owner: String,
    pub reason: String,
    /// The metric or the workload it is about; `*` stands for any characters, but not for everything.
    pub metric: String,
    /// How much slower it may be.
    pub limit: Limit,
    /// The last day on which it holds; at most a year from now.
    pub expires: Date,
}

/// How much slower something may be, written as `5%`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Limit(f64);

impl Limit {
    /// As a share: 0.05 is 5 %.
    pub fn share(self) -> f64 {
        self.0
    }
}

impl Serialize for Limit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0 * 100.0))
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = || serde::de::Error::custom("a percentage in quotes is wanted, such as \"5%\"");
        let text = String::deserialize(deserializer)?;
        let percent = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let share = percent.map(|percent| percent / 100.0).ok_or_else(wanted)?;
        if share > 0.0 && share <= LIMIT_MAX {
            return Ok(Self(share));
        }
        Err(serde::de::Error::custom(format!("must be above 0% and at most {:.0}%", LIMIT_MAX * 100.0)))
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^[0-9.]+ *%$",
            "description": "How much slower something may be, written as `5%`."
        })
    }
}

impl Waivers {
    /// Reads a waiver file. Whether a waiver still holds is for `gate` to say.
    pub fn parse(text: &str) -> Result<Self, TomlError> {
        let mut file: Self = parse(text)?;
        if file.schema_version != crate::SCHEMA_VERSION {
            let what = format!(
                "{} is not known here; this holdpoint reads {}",
                file.schema_version,
                crate::SCHEMA_VERSION
            );
            return invalid("schema_version", what);
        }
        if file.waivers.len() > WAIVERS_MAX {
            return invalid("waiver", format!("{} waivers, at most {WAIVERS_MAX}", file.waivers.len()));
        }
        for (index, waiver) in file.waivers.iter_mut().enumerate() {
            waiver.check(&waiver.place(index))?;
        }
        Ok(file)
    }
}

impl Waiver {
    /// Where it stands in its file, for messages.
    pub fn place(&self, index: usize) -> String {
        format!("waiver {} ({:?})", index + 1, clean_text(&self.metric))
    }

    fn check(&mut self, place: &str) -> Result<(), TomlError> {
        for (key, value) in [("owner", &mut self.owner), ("reason", &mut self.reason)] {
            *value = value.trim().to_owned();
            if !is_said(value) {
                return invalid(place, format!("{key} is empty; say who answers for it, and why"));
            }
            if value.chars().count() > TEXT_CHARS_MAX {
                return invalid(place, format!("{key} has over {TEXT_CHARS_MAX} characters"));
            }
        }
        if self.metric.chars().count() > NAME_CHARS_MAX {
            return invalid(place, format!("metric has over {NAME_CHARS_MAX} characters"));
        }
        if self.metric.chars().all(|c| c == '*' || c.is_whitespace()) {
            return invalid(place, "metric would waive everything; name a metric or a workload");
        }
        let is_short = self.metric.starts_with('*')
            && self.metric.chars().filter(|c| *c != '*').count() < LITERAL_CHARS_MIN;
        let is_any = || METRICS.iter().any(|metric| matches(&self.metric, &format!("_{metric}")));
        if self.metric.contains('*') && (is_short || is_any()) {
            return invalid(
                place,
                "metric would waive nearly everything: it names nothing but what all metrics have; name a \
                 metric or a workload",
            );
        }
        Ok(())
    }
}

/// A waiver beside the regression it is about, in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsedWaiver {
    pub state: WaiverState,
    /// The person responsible for it.
    pub owner: String,
    pub reason: String,
    /// The pattern it was given for.
    pub metric: String,
    /// How much slower it may be: 0.05 is 5 %.
    pub limit: f64,
    /// The last day on which it holds.
    pub expires: Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaiverState {
    /// The regression is within its limit.
    Waived,
    /// The regression is beyond its limit: it fails.
    BeyondLimit,
    /// The waiver holds no more: the regression fails.
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "schema_version = 1\n[[waiver]]\nowner = \"@ada\"\nreason = \"checks were added\"\nmetric = \"sort_*\"\nlimit = \"5%\"\nexpires = 2026-12-31\n";

    fn parse(from: &str, to: &str) -> Result<Waivers, String> {
        assert!(from.is_empty() || GOOD.contains(from), "{from}");
        Waivers::parse(&GOOD.replace(from, to)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_waiver_is_read_with_its_date_as_toml_or_as_text() {
        let read = parse("schema", "schema").unwrap();
        assert_eq!(
            (read.waivers[0].limit.share(), read.waivers[0].expires.to_string()),
            (0.05, "2026-12-31".to_owned())
        );
        assert_eq!(parse("2026-12-31", "\"2026-12-31\"").unwrap(), read);
        assert_eq!(parse("\"5%\"", "\"5 %\"").unwrap(), read);
    }

    #[test]
    fn whatever_is_missing_empty_or_unknown_is_refused_with_its_place() {
        for (from, to, words) in [
            ("owner = \"@ada\"\n", "", "missing field `owner`"),
            ("reason = \"checks were added\"\n", "", "missing field `reason`"),
            ("metric = \"sort_*\"\n", "", "missing field `metric`"),
            ("limit = \"5%\"\n", "", "missing field `limit`"),
            ("expires = 2026-12-31\n", "", "missing field `expires`"),
            ("@ada", "", "waiver 1 (\"sort_*\"): owner is empty"),
            ("checks were added", " - ", "reason is empty"),
            ("checks were added", "\u{3164}\u{115f}\u{e0041}", "reason is empty"),
            ("@ada", "\u{ffa0}\u{ad}", "owner is empty"),
            ("owner =", "ownr =", "unknown field `ownr`"),
            ("schema_version = 1", "schema_version = 1\nx = 1", "unknown field `x`"),
            ("schema_version = 1", "schema_version = 2", "schema_version: 2 is not known here"),
            ("sort_*", "**", "would waive everything"),
            ("sort_*", "", "would waive everything"),
            ("sort_*", "*_ms", "would waive nearly everything"),
            ("sort_*", "*_p50_ms*", "would waive nearly everything"),
            ("sort_*", "*p*_ms", "would waive nearly everything"),
            ("sort_*", "*t*", "would waive nearly everything"),
            ("\"5%\"", "\"5\"", "a percentage in quotes is wanted"),
            ("\"5%\"", "0.05", "expected a string"),
            ("\"5%\"", "\"0%\"", "above 0%"),
            ("\"5%\"", "\"NaN%\"", "above 0%"),
            ("\"5%\"", "\"2000%\"", "at most 1000%"),
            ("2026-12-31", "\"never\"", "a date is wanted"),
            ("2026-12-31", "2026-02-30", ""),
            ("2026-12-31", "2026-12-31T12:00:00Z", "a date is wanted"),
            ("2026-12-31", "20261231", "a date is wanted"),
        ] {
            let error = parse(from, to).expect_err(to);
            assert!(error.contains(words) && !error.contains('\n'), "{to}: {error}");
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, is) in [
            ("sort", "sort", true),
            ("sort", "sorted", false),
            ("sort", "resort", false),
            ("sort_*", "sort_p50_ms", true),
            ("*_p50_ms", "sort_p50_ms", true),
            ("s*t*ms", "sort_p50_ms", true),
            ("s*x*ms", "sort_p50_ms", false),
            ("ab*b", "ab", false),
            ("a*a", "a", false),
            ("a*", "", false),
            ("a.c", "abc", false),
        ] {
            assert_eq!(matches(pattern, name), is, "{pattern} {name}");
        }
    }
}
