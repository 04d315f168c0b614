//! Waivers: slowdowns that somebody answers for, for a while. A file of the user's, in TOML.

use crate::date::Date;
use crate::limits::{NAME_CHARS_MAX, TEXT_CHARS_MAX, clean_text, is_said};
use crate::pattern::matches;
use crate::report::METRICS;
use crate::toml_file::{TomlError, invalid, parse};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// Most waivers in a file: more than that is no exception any more.
const WAIVERS_MAX: usize = 1_000;
/// Largest slowdown that can be waived, as a share: eleven times the time.
const LIMIT_MAX: f64 = 10.0;
/// Fewest characters beside its stars of a pattern that begins with one: fewer are in nearly every name.
const LITERAL_CHARS_MIN: usize = 2;

/// A waiver file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waivers {
    /// Version of this format.
    pub schema_version: u32,
    /// The waivers, in order; the first that covers a regression counts.
    #[serde(default, rename = "waiver")]
    pub waivers: Vec<Waiver>,
}

/// One slowdown that is allowed for a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Waiver {
    /// Who answers for it.
    pub owner: String,
    /// Why it is allowed.
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
    #[must_use]
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
    /// Reads a waiver file as it is to be used today. What has expired is no error: it is refused where it would be used.
    ///
    /// # Errors
    /// When the text is not TOML, not of the form of a waiver file, names nobody or no reason, waives everything, or holds
    /// for longer than a year.
    pub fn parse(text: &str, today: Date) -> Result<Self, TomlError> {
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
            let place = format!("waiver {} ({:?})", index + 1, clean_text(&waiver.metric));
            if let Err(what) = waiver.check(today) {
                return invalid(&place, what);
            }
        }
        Ok(file)
    }
}

impl Waiver {
    fn check(&mut self, today: Date) -> Result<(), String> {
        for (key, value) in [("owner", &mut self.owner), ("reason", &mut self.reason)] {
            *value = value.trim().to_owned();
            if !is_said(value) {
                return Err(format!("{key} is empty; say who answers for it, and why"));
            }
            if value.chars().count() > TEXT_CHARS_MAX {
                return Err(format!("{key} has over {TEXT_CHARS_MAX} characters"));
            }
        }
        if self.metric.chars().count() > NAME_CHARS_MAX {
            return Err(format!("metric has over {NAME_CHARS_MAX} characters"));
        }
        if self.metric.chars().all(|c| c == '*' || c.is_whitespace()) {
            return Err("metric would waive everything; name a metric or a workload".to_owned());
        }
        if self.metric.contains('*') {
            let is_short = self.metric.starts_with('*')
                && self.metric.chars().filter(|c| *c != '*').count() < LITERAL_CHARS_MIN;
            if is_short || METRICS.iter().any(|metric| matches(&self.metric, &format!("_{metric}"))) {
                return Err(
                    "metric would waive nearly everything: it names nothing but what all metrics have; name a \
                     metric or a workload"
                        .to_owned(),
                );
            }
        }
        let last = today.a_year_later();
        if self.expires > last {
            return Err(format!("expires is more than a year away; {last} at the latest"));
        }
        Ok(())
    }

    /// Whether the waiver is about a metric or a workload of this name.
    #[must_use]
    pub fn is_about(&self, name: &str) -> bool {
        matches(&self.metric, name)
    }

    /// What a comparison keeps of it.
    #[must_use]
    pub fn used(&self, state: WaiverState) -> UsedWaiver {
        UsedWaiver {
            state,
            owner: self.owner.clone(),
            reason: self.reason.clone(),
            metric: self.metric.clone(),
            limit: self.limit.share(),
            expires: self.expires,
        }
    }
}

/// A waiver beside the regression it is about, in a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UsedWaiver {
    /// What became of it.
    pub state: WaiverState,
    /// Who answers for it.
    pub owner: String,
    /// Why it is allowed.
    pub reason: String,
    /// The pattern it was given for.
    pub metric: String,
    /// How much slower it may be: 0.05 is 5 %.
    pub limit: f64,
    /// The last day on which it holds.
    pub expires: Date,
}

impl UsedWaiver {
    /// What is wrong with it where it is said to cover a change of something of these names, judged on this day.
    ///
    /// # Errors
    /// With the first thing.
    pub fn covers(&self, names: &[&str], change: Option<f64>, day: Option<Date>) -> Result<(), String> {
        let what = match (change, day) {
            _ if self.state != WaiverState::Waived => "the waiver beside it does not cover it",
            (None, _) => "how much slower it is, it does not say",
            (Some(change), _) if change.is_nan() || change > self.limit => {
                "it is beyond the limit of its waiver"
            }
            _ if !(self.limit > 0.0 && self.limit <= LIMIT_MAX) => "no waiver may have that limit",
            _ if !names.iter().any(|name| matches(&self.metric, name)) => {
                "its waiver is about something else"
            }
            _ if !is_said(&self.owner) || !is_said(&self.reason) => "its waiver names no owner or no reason",
            (_, None) => "the day that it was judged on is not known",
            (_, Some(day)) if self.expires < day => "its waiver had expired",
            (_, Some(day)) if self.expires > day.a_year_later() => "its waiver holds for more than a year",
            _ => return Ok(()),
        };
        Err(what.to_owned())
    }
}

/// What became of a waiver.
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

    fn today() -> Date {
        Date::parse("2026-11-15").unwrap()
    }

    fn parse(from: &str, to: &str) -> Result<Waivers, String> {
        assert!(from.is_empty() || GOOD.contains(from), "{from}");
        Waivers::parse(&GOOD.replace(from, to), today()).map_err(|error| error.to_string())
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
        // Expired is for whoever uses it to refuse: other waivers of the file still hold.
        assert!(parse("2026-12-31", "2020-01-01").is_ok());
    }

    #[test]
    fn whatever_is_missing_empty_unknown_or_endless_is_refused_with_its_place() {
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
            ("2026-12-31", "2027-11-16", "more than a year away; 2027-11-15 at the latest"),
            ("2026-12-31", "\"never\"", "a date is wanted"),
            ("2026-12-31", "2026-02-30", ""),
            ("2026-12-31", "2026-12-31T12:00:00Z", "a date is wanted"),
            ("2026-12-31", "20261231", "a date is wanted"),
        ] {
            let error = parse(from, to).expect_err(to);
            assert!(error.contains(words) && !error.contains('\n'), "{to}: {error}");
        }
        assert!(parse("2026-12-31", "2027-11-15").is_ok());
    }

    #[test]
    fn a_waiver_that_is_said_to_cover_something_must() {
        let good = parse("schema", "schema").unwrap().waivers[0].used(WaiverState::Waived);
        let says = |edit: fn(&mut UsedWaiver), names: &[&str], change, day: Option<&str>| {
            let mut used = good.clone();
            edit(&mut used);
            used.covers(names, change, day.and_then(Date::parse)).err().unwrap_or_default()
        };
        let (names, day) = (&["sort_p50_ms"][..], Some("2026-11-15"));
        assert_eq!(says(|_| {}, names, Some(0.04), day), "");
        assert!(says(|_| {}, names, Some(0.06), day).contains("beyond the limit"));
        assert!(says(|_| {}, names, Some(f64::NAN), day).contains("beyond the limit"));
        assert!(says(|_| {}, names, None, day).contains("does not say"));
        assert!(says(|_| {}, &["zip_p50_ms"], Some(0.04), day).contains("something else"));
        assert!(says(|_| {}, names, Some(0.04), None).contains("not known"));
        assert!(says(|_| {}, names, Some(0.04), Some("2027-01-01")).contains("expired"));
        assert!(says(|w| w.limit = 1e9, names, Some(0.04), day).contains("that limit"));
        assert!(says(|w| w.owner.clear(), names, Some(0.04), day).contains("no owner"));
        assert!(says(|w| w.reason = " - ".to_owned(), names, Some(0.04), day).contains("no reason"));
        assert!(says(|w| w.state = WaiverState::Expired, names, Some(0.04), day).contains("does not cover"));
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
