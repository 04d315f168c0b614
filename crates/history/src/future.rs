//! Runs that claim to be of a time that has not come yet.

use holdpoint_model::Timestamp;
use std::time::SystemTime;

/// Clocks of machines differ; by more than ten minutes, one of them is off.
const AHEAD_MS_MAX: i64 = 10 * 60 * 1000;

/// Why a run from the future is refused: it would be the newest of its series until that time has come.
pub fn check_time(at: Timestamp) -> Result<(), String> {
    match now().filter(|now| is_ahead(at, *now)) {
        Some(now) => Err(format!(
            "its run began at {at}, and here it is {now}: one of the clocks is off; correct timestamp_utc, or the clock"
        )),
        None => Ok(()),
    }
}

/// Whether a time has not come yet.
pub fn is_future(at: Timestamp) -> bool {
    now().is_some_and(|now| is_ahead(at, now))
}

fn now() -> Option<Timestamp> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?)
}

fn is_ahead(at: Timestamp, now: Timestamp) -> bool {
    at.millis().saturating_sub(now.millis()) > AHEAD_MS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_minutes_ahead_and_no_more() {
        let time = |text| Timestamp::parse(text).unwrap();
        let now = time("2026-11-18T10:00:00Z");
        for (at, ahead) in [
            ("2026-11-18T09:00:00Z", false),
            ("2026-11-18T10:10:00Z", false),
            ("2026-11-18T10:10:01Z", true),
            ("2027-11-18T10:00:00Z", true),
            ("1999-01-01T00:00:00Z", false),
        ] {
            assert_eq!(is_ahead(time(at), now), ahead, "{at}");
        }
        let error = check_time(time("9999-12-31T00:00:00Z")).unwrap_err();
        assert!(error.starts_with("its run began at 9999-12-31"), "{error}");
    }
}
