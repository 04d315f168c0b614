//! Waivers on judged comparisons: a regression that somebody answers for does not fail, for a while and up to a limit.
//!
//! Only what was measured and found slower can be waived: what is broken, undecided, skipped or missing stays so. The
//! measured change is held against the limit, not the end of its interval: a comparison stops once it is decided, long before its
//! interval is narrow. Which day it is, the caller says.

use crate::Judgement;
use crate::checks::{overall_status, overall_verdict, status_of};
use crate::waivers::{is_about, used};
use holdpoint_model::{CheckStatus, Date, UsedWaiver, Verdict, Waiver, WaiverState, Waivers};

/// Waives what may be waived in a judged run, and says of every waiver that has expired.
pub fn waive(judgement: &mut Judgement, waivers: &Waivers, today: Date) {
    let judgement = judgement.edit();
    for check in &mut judgement.checks {
        let is_slower = check.verdict == Verdict::Regressed && check.status == CheckStatus::Fail;
        let Some(change) = check.regression_ratio.filter(|_| is_slower) else { continue };
        let names = [Some(check.metric.as_str()), check.workload.as_deref()];
        let Some(used) = choose(waivers, &names, change, today) else { continue };
        (check.verdict, check.reason) = outcome(&used, &check.reason);
        check.status = status_of(check.verdict);
        check.waiver = Some(used);
    }
    judgement.notes.extend(expired(waivers, today));
    let names: Vec<&str> = judgement
        .checks
        .iter()
        .flat_map(|check| [Some(check.metric.as_str()), check.workload.as_deref()])
        .flatten()
        .collect();
    judgement.notes.extend(unused(waivers, &names));
    if judgement.sides.as_ref().is_none_or(|sides| sides.finished) {
        judgement.verdict = overall_verdict(&judgement.checks);
        overall_status(&judgement.checks).clone_into(&mut judgement.status);
    }
}

/// The first waiver that covers the change; where none does, the first that is about it, and why it does not.
fn choose(waivers: &Waivers, names: &[Option<&str>], change: f64, today: Date) -> Option<UsedWaiver> {
    let is_named = |waiver: &&Waiver| names.iter().flatten().any(|name| is_about(waiver, name));
    let state = |waiver: &Waiver| match () {
        () if waiver.expires < today => WaiverState::Expired,
        () if change <= waiver.limit.share() => WaiverState::Waived,
        () => WaiverState::BeyondLimit,
    };
    let about: Vec<&Waiver> = waivers.waivers.iter().filter(is_named).collect();
    let covers = about.iter().find(|waiver| state(waiver) == WaiverState::Waived);
    covers.or(about.first()).map(|waiver| used(waiver, state(waiver)))
}

fn outcome(used: &UsedWaiver, reason: &str) -> (Verdict, String) {
    let UsedWaiver { owner, limit, expires, .. } = used;
    let limit = limit * 100.0;
    match used.state {
        WaiverState::Waived => {
            let why = &used.reason;
            (
                Verdict::Waived,
                format!("{reason}; waived up to {limit:+.1} % by {owner} until {expires}: {why}"),
            )
        }
        WaiverState::BeyondLimit => {
            (Verdict::Regressed, format!("{reason}; beyond the {limit:+.1} % that {owner} waived"))
        }
        WaiverState::Expired => {
            (Verdict::Regressed, format!("{reason}; refused: the waiver of {owner} expired on {expires}"))
        }
    }
}

/// A sentence for each waiver that is about nothing here: most likely its name is not right, or no longer.
fn unused(waivers: &Waivers, names: &[&str]) -> Vec<String> {
    let about_nothing = |waiver: &&Waiver| !names.iter().any(|name| is_about(waiver, name));
    let sentence = |waiver: &Waiver| {
        format!("the waiver for {:?} of {} is about nothing that was compared", waiver.metric, waiver.owner)
    };
    waivers.waivers.iter().filter(about_nothing).map(sentence).collect()
}

/// A sentence for each waiver that holds no more, whether or not it would have been used.
fn expired(waivers: &Waivers, today: Date) -> Vec<String> {
    let gone = waivers.waivers.iter().filter(|waiver| waiver.expires < today);
    gone.map(|waiver| {
        format!(
            "the waiver for {:?} of {} expired on {} and is refused; remove it or renew it",
            waiver.metric, waiver.owner, waiver.expires
        )
    })
    .collect()
}
