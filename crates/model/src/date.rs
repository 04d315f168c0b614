//! A day in the calendar, without a clock: `2026-12-31`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A day; later is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

impl Date {
    /// Reads `2026-12-31`; whatever follows the day after a `T` is left aside, so a time stamp gives its day.
    pub fn parse(text: &str) -> Option<Self> {
        let day = text.split('T').next()?;
        let bytes = day.as_bytes();
        let is_shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(i, byte)| match i {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_shaped {
            return None;
        }
        Self::new(day[..4].parse().ok()?, day[5..7].parse().ok()?, day[8..].parse().ok()?)
    }

    /// A day that there is.
    pub fn new(year: u16, month: u8, day: u8) -> Option<Self> {
        let is_leap = (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
        let days_count = match month {
            2 if is_leap => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        (1..=days_count).contains(&day).then_some(Self { year, month, day })
    }

    /// Days from another day to this one; negative where that one is later.
    pub fn days_since(self, other: Self) -> i64 {
        self.day_number() - other.day_number()
    }

    /// The day this many days after 1 March of the year 0; `None` beyond the year 9999.
    pub(crate) fn from_day_number(number: i64) -> Option<Self> {
        // 146 097 days are 400 years; the divisions below count whole years by their days, less the leap days before.
        let (era, day) = (number.div_euclid(146_097), number.rem_euclid(146_097));
        let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month = (5 * day_of_year + 2) / 153;
        let (month, year) = (if month < 10 { month + 3 } else { month - 9 }, era * 400 + year_of_era);
        let day = day_of_year - (153 * ((month + 9) % 12) + 2) / 5 + 1;
        let year = if month <= 2 { year + 1 } else { year };
        let year = u16::try_from(year).ok().filter(|year| *year <= 9_999)?;
        Self::new(year, u8::try_from(month).ok()?, u8::try_from(day).ok()?)
    }

    /// Days since 1 March of the year 0, by the rule that a year ends with February.
    pub(crate) fn day_number(self) -> i64 {
        let (year, month) = (i64::from(self.year), i64::from(self.month));
        let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
        365 * year + leap_days + (153 * month + 2) / 5 + i64::from(self.day) - 1
    }

    /// The same day a year later; of 29 February, 1 March.
    pub fn a_year_later(self) -> Self {
        let year = self.year.saturating_add(1);
        Self::new(year, self.month, self.day).unwrap_or(Self { year, month: 3, day: 1 })
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A date as TOML writes one, or as text.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a date is wanted, such as 2026-12-31")]
enum Written {
    Text(String),
    Toml(toml::value::Datetime),
}

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = || serde::de::Error::custom("a date is wanted, such as 2026-12-31");
        let text = match Written::deserialize(deserializer)? {
            Written::Text(text) => text,
            Written::Toml(date) => date.to_string(),
        };
        // A time of day would be read as the whole day, which is not what it says.
        Self::parse(&text).filter(|_| text.len() == 10).ok_or_else(wanted)
    }
}

impl JsonSchema for Date {
    fn schema_name() -> Cow<'static, str> {
        "Date".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date", "description": "A day, such as `2026-12-31`." })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_that_there_are_are_read() {
        for good in ["2026-01-31", "2024-02-29", "2000-02-29", "0001-12-01"] {
            assert_eq!(Date::parse(good).map(|date| date.to_string()).as_deref(), Some(good));
        }
        for bad in [
            "2026-02-29",
            "1900-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "2026-4-1",
            "",
            "x",
            "2026-01-0é",
        ] {
            assert_eq!(Date::parse(bad), None, "{bad}");
        }
        assert_eq!(Date::parse("2026-11-15T03:57:30.029Z"), Date::new(2026, 11, 15));
    }

    #[test]
    fn days_are_counted_over_months_and_leap_years() {
        let days = |from, to| Date::parse(to).unwrap().days_since(Date::parse(from).unwrap());
        assert_eq!(days("2026-01-02", "2026-01-02"), 0);
        assert_eq!(days("2026-01-31", "2026-03-01"), 29);
        assert_eq!(days("2024-02-28", "2024-03-01"), 2);
        assert_eq!(days("1900-02-28", "1900-03-01"), 1);
        assert_eq!(days("2025-12-31", "2026-01-01"), 1);
        assert_eq!(days("1970-01-01", "2000-01-01"), 10_957);
        assert_eq!(days("2026-03-01", "2026-02-28"), -1);
    }

    #[test]
    fn later_is_greater_and_a_year_ends_where_it_began() {
        let date = |text| Date::parse(text).unwrap();
        assert!(date("2026-12-31") < date("2027-01-01") && date("2026-09-30") < date("2026-10-01"));
        assert_eq!(date("2026-11-15").a_year_later(), date("2027-11-15"));
        assert_eq!(date("2028-02-29").a_year_later(), date("2029-03-01"));
    }
}
