//! A moment in UTC to the millisecond, without a clock: `2026-12-31T23:59:59.000Z`.

use crate::date::Date;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::time::{Duration, SystemTime};

/// Milliseconds since 1970 in UTC; later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// Day number of 1 January 1970.
const EPOCH_DAY: i64 = 719_468;
const DAY_MS: i64 = 86_400_000;
/// First moment of the year 0, and last one of the year 9999.
const MIN_MS: i64 = -62_167_219_200_000;
const MAX_MS: i64 = 253_402_300_799_999;

impl Timestamp {
    /// Reads `2026-12-31`, which is the day's first moment, or `2026-12-31T23:59:59Z`, with or without a fraction; digits beyond the
    /// millisecond are dropped. Only UTC is read: `Z` or `+00:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let day_ms = (Date::parse(text)?.day_number() - EPOCH_DAY) * DAY_MS;
        let Some((_, time)) = text.split_once('T') else { return Some(Self(day_ms)) };
        let time = time.strip_suffix('Z').or_else(|| time.strip_suffix("+00:00"))?;
        let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
        let is_shaped = clock.len() == 8
            && clock.bytes().enumerate().all(|(i, byte)| match i {
                2 | 5 => byte == b':',
                _ => byte.is_ascii_digit(),
            });
        let is_fraction = fraction.len() <= 9 && fraction.bytes().all(|byte| byte.is_ascii_digit());
        if !is_shaped || !is_fraction {
            return None;
        }
        let part = |from: usize, below: i64| clock[from..from + 2].parse().ok().filter(|n| *n < below);
        let (hours, minutes, seconds): (i64, i64, i64) = (part(0, 24)?, part(3, 60)?, part(6, 60)?);
        let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
        Some(Self(day_ms + ((hours * 60 + minutes) * 60 + seconds) * 1_000 + millis))
    }

    /// From milliseconds since 1970, if the year has four digits.
    pub fn from_millis(millis: i64) -> Option<Self> {
        (MIN_MS..=MAX_MS).contains(&millis).then_some(Self(millis))
    }

    pub fn millis(self) -> i64 {
        self.0
    }

    /// So many days earlier, at most down to the year 0.
    pub fn days_before(self, days: u32) -> Self {
        Self::from_millis(self.0 - i64::from(days) * DAY_MS).unwrap_or(Self(MIN_MS))
    }
}

impl From<SystemTime> for Timestamp {
    /// Its millisecond, in the years of four digits.
    fn from(time: SystemTime) -> Self {
        let millis = |duration: Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let since = since.map_or_else(|before| -millis(before.duration()), millis);
        Self(since.clamp(MIN_MS, MAX_MS))
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (day, ms) = (self.0.div_euclid(DAY_MS), self.0.rem_euclid(DAY_MS));
        let date = Date::from_day_number(day + EPOCH_DAY).ok_or(fmt::Error)?;
        let (seconds, millis) = (ms / 1_000, ms % 1_000);
        write!(f, "{date}T{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        let wanted = || serde::de::Error::custom("a time in UTC is wanted, such as 2026-12-31T23:59:59Z");
        Self::parse(&text).ok_or_else(wanted)
    }
}

impl JsonSchema for Timestamp {
    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "format": "date-time",
            "description": "A moment in UTC, such as `2026-12-31T23:59:59.000Z`."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_and_written_back() {
        for text in ["1970-01-01T00:00:00.000Z", "2024-02-29T23:59:59.999Z", "0001-03-01T12:30:01.500Z"] {
            assert_eq!(Timestamp::parse(text).unwrap().to_string(), text);
        }
        let at = |text| Timestamp::parse(text).unwrap().to_string();
        assert_eq!(at("2026-11-17"), "2026-11-17T00:00:00.000Z");
        assert_eq!(at("2026-11-17T08:57:58Z"), "2026-11-17T08:57:58.000Z");
        assert_eq!(at("2026-11-17T08:57:58.123456+00:00"), "2026-11-17T08:57:58.123Z");
        assert_eq!(Timestamp::parse("2000-01-01").unwrap().millis(), 946_684_800_000);
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_097_i64 * 2 {
            let at = Timestamp::from_millis(day * DAY_MS - 1).unwrap();
            assert_eq!(Timestamp::parse(&at.to_string()), Some(at));
        }
    }

    #[test]
    fn anything_else_is_no_time() {
        for bad in [
            "",
            "now",
            "2026-02-30T00:00:00Z",
            "2026-11-17T24:00:00Z",
            "2026-11-17T08:57:58",
            "2026-11-17T8:57:58Z",
            "2026-11-17T08:57:58+01:00",
            "2026-11-17T08:57:58.12x4Z",
            "2026-11-17T+8:57:58Z",
        ] {
            assert_eq!(Timestamp::parse(bad), None, "{bad}");
        }
        let end = |ms| Timestamp::from_millis(ms).map(|at| at.to_string());
        assert_eq!(end(MAX_MS).as_deref(), Some("9999-12-31T23:59:59.999Z"));
        assert_eq!(end(MIN_MS).as_deref(), Some("0000-01-01T00:00:00.000Z"));
        assert_eq!((end(MAX_MS + 1), end(MIN_MS - 1)), (None, None));
    }
}
