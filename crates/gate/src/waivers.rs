//! Rules of waivers: what one is about, how long it may hold, and whether it covers a change.

use holdpoint_model::limits::is_said;
use holdpoint_model::pattern::matches;
use holdpoint_model::toml_file::{TomlError, invalid};
use holdpoint_model::waiver::LIMIT_MAX;
use holdpoint_model::{Date, UsedWaiver, Waiver, WaiverState, Waivers};

/// Refuses waivers that hold for longer than a year from today. One that has expired is refused where it would be used: the others
/// of its file still hold.
pub fn check_expiry(waivers: &Waivers, today: Date) -> Result<(), TomlError> {
    let last = today.a_year_later();
    match waivers.waivers.iter().enumerate().find(|(_, waiver)| waiver.expires > last) {
        None => Ok(()),
        Some((index, waiver)) => {
            invalid(&waiver.place(index), format!("expires is more than a year away; {last} at the latest"))
        }
    }
}

/// Whether a waiver is about a metric or a workload of this name.
pub(crate) fn is_about(waiver: &Waiver, name: &str) -> bool {
    matches(&waiver.metric, name)
}

/// A waiver as a judgement records it.
pub(crate) fn used(waiver: &Waiver, state: WaiverState) -> UsedWaiver {
    UsedWaiver {
        state,
        owner: waiver.owner.clone(),
        reason: waiver.reason.clone(),
        metric: waiver.metric.clone(),
        limit: waiver.limit.share(),
        expires: waiver.expires,
    }
}

/// Why a waiver does not cover the change that it stands beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCovered {
    #[error("the waiver beside it does not cover it")]
    State,
    #[error("how much slower it is, it does not say")]
    NoChange,
    #[error("it is beyond the limit of its waiver")]
    BeyondLimit,
    #[error("no waiver may have that limit")]
    Limit,
    #[error("its waiver is about something else")]
    Name,
    #[error("its waiver names no owner or no reason")]
    NoOwner,
    #[error("the day that it was judged on is not known")]
    NoDay,
    #[error("its waiver had expired")]
    Expired,
    #[error("its waiver holds for more than a year")]
    TooLong,
}

/// Whether a waiver covers a change of something of these names, judged on this day.
pub fn covers(
    waiver: &UsedWaiver,
    names: &[&str],
    change: Option<f64>,
    day: Option<Date>,
) -> Result<(), NotCovered> {
    Err(match (change, day) {
        _ if waiver.state != WaiverState::Waived => NotCovered::State,
        (None, _) => NotCovered::NoChange,
        (Some(change), _) if change.is_nan() || change > waiver.limit => NotCovered::BeyondLimit,
        _ if !(waiver.limit > 0.0 && waiver.limit <= LIMIT_MAX) => NotCovered::Limit,
        _ if !names.iter().any(|name| matches(&waiver.metric, name)) => NotCovered::Name,
        _ if !is_said(&waiver.owner) || !is_said(&waiver.reason) => NotCovered::NoOwner,
        (_, None) => NotCovered::NoDay,
        (_, Some(day)) if waiver.expires < day => NotCovered::Expired,
        (_, Some(day)) if waiver.expires > day.a_year_later() => NotCovered::TooLong,
        _ => return Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waivers(expires: &str) -> Waivers {
        let text = "schema_version = 1\n[[waiver]]\nowner = \"@ada\"\nreason = \"checks were added\"\n\
                    metric = \"sort_*\"\nlimit = \"5%\"\n";
        Waivers::parse(&format!("{text}expires = {expires}\n")).unwrap()
    }

    #[test]
    fn a_waiver_holds_for_a_year_at_most_and_an_expired_one_does_not_spoil_its_file() {
        let today = Date::parse("2026-11-15").unwrap();
        for expires in ["2027-11-15", "2020-01-01"] {
            assert_eq!(check_expiry(&waivers(expires), today), Ok(()));
        }
        let error = check_expiry(&waivers("2027-11-16"), today).unwrap_err().to_string();
        let expected = "waiver 1 (\"sort_*\"): expires is more than a year away; 2027-11-15 at the latest";
        assert_eq!(error, expected);
    }

    #[test]
    fn a_waiver_that_is_said_to_cover_something_must() {
        let good = used(&waivers("2026-12-31").waivers[0], WaiverState::Waived);
        let problem = |edit: fn(&mut UsedWaiver), names: &[&str], change, day: Option<&str>| {
            let mut used = good.clone();
            edit(&mut used);
            covers(&used, names, change, day.and_then(Date::parse)).err()
        };
        let (names, day) = (&["sort_p50_ms"][..], Some("2026-11-15"));
        assert_eq!(problem(|_| {}, names, Some(0.04), day), None);
        for (found, expected) in [
            (problem(|_| {}, names, Some(0.06), day), NotCovered::BeyondLimit),
            (problem(|_| {}, names, Some(f64::NAN), day), NotCovered::BeyondLimit),
            (problem(|_| {}, names, None, day), NotCovered::NoChange),
            (problem(|_| {}, &["zip_p50_ms"], Some(0.04), day), NotCovered::Name),
            (problem(|_| {}, names, Some(0.04), None), NotCovered::NoDay),
            (problem(|_| {}, names, Some(0.04), Some("2027-01-01")), NotCovered::Expired),
            (problem(|_| {}, names, Some(0.04), Some("2025-01-01")), NotCovered::TooLong),
            (problem(|w| w.limit = 1e9, names, Some(0.04), day), NotCovered::Limit),
            (problem(|w| w.owner.clear(), names, Some(0.04), day), NotCovered::NoOwner),
            (problem(|w| w.reason = " - ".to_owned(), names, Some(0.04), day), NotCovered::NoOwner),
            (problem(|w| w.state = WaiverState::Expired, names, Some(0.04), day), NotCovered::State),
        ] {
            assert_eq!(found, Some(expected));
        }
    }
}
