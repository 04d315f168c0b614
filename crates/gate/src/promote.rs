//! A new baseline from reports of a revision that was merged: nothing that would make the gate weaker unseen gets in.

use crate::compare::identity_difference;
use crate::record::{RecordError, record};
use crate::tolerance::{self, RUNS_MIN, TOLERANCE};
use holdpoint_model::{Allow, Baseline, Current, Promotion};
use holdpoint_stats::sequential::ALARM_RATE;

/// A report that cannot become the baseline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromoteError {
    /// No baseline can be made of these runs at all.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Report number so-and-so.
    #[error("report {number} {what}")]
    Report {
        /// Counted from 1, in the order given.
        number: usize,
        what: String,
    },
    /// Something that the baseline had and this one would not.
    #[error("{0}")]
    Lost(String),
}

/// A baseline of runs that are all of the promoted revision, and clean. Where there are too few for a spread, metrics keep
/// the tolerances of the baseline before.
pub fn promote(
    runs: &[Current],
    before: Option<&Baseline>,
    promotion: Promotion,
) -> Result<Baseline, PromoteError> {
    for (index, run) in runs.iter().enumerate() {
        check_run(run, &promotion.commit).map_err(|what| PromoteError::Report { number: index + 1, what })?;
    }
    for (index, run) in runs.iter().enumerate() {
        // The run itself: a copy of its file may have another hash.
        let is_again =
            |other: &Current| (&other.timestamp_utc, &other.metrics) == (&run.timestamp_utc, &run.metrics);
        if let Some(first) = runs[..index].iter().position(is_again) {
            let what = format!("is report {} again; one run given twice is no second run", first + 1);
            return Err(PromoteError::Report { number: index + 1, what });
        }
    }
    let alarm_rate = before.and_then(|before| before.alarm_rate).unwrap_or(ALARM_RATE);
    let mut baseline = record(runs, alarm_rate)?;
    if let Some(before) = before {
        check_before(before, &baseline).map_err(PromoteError::Lost)?;
        baseline.baseline_notes.clone_from(&before.baseline_notes);
        if runs.len() < RUNS_MIN {
            keep_tolerances(&mut baseline, before, alarm_rate);
        }
    }
    baseline.promoted = Some(promotion);
    Ok(baseline)
}

fn check_run(run: &Current, commit: &str) -> Result<(), String> {
    match run.status.as_deref() {
        Some("ok" | "partial") => {}
        Some(status) => return Err(format!("is of a run that {}: no baseline", past(status))),
        None => return Err("does not say how its run ended".to_owned()),
    }
    let revision = run.revision.as_ref().ok_or("names no revision; run it in the repository")?;
    if revision.commit != commit {
        return Err(format!("is of revision {}, not of {commit}", revision.commit));
    }
    if revision.dirty {
        return Err("was made with uncommitted changes, which no revision names".to_owned());
    }
    match run.machine {
        Some(_) => Ok(()),
        None => Err("names no machine".to_owned()),
    }
}

fn past(status: &str) -> &str {
    match status {
        "skipped" => "was skipped",
        _ => "failed",
    }
}

fn check_before(before: &Baseline, now: &Baseline) -> Result<(), String> {
    if before.suite != now.suite {
        return Err(format!(
            "the baseline is of suite {:?}, the reports are of {:?}",
            before.suite, now.suite
        ));
    }
    if let (Some(was), Some(is)) = (&before.machine, &now.machine)
        && was.fingerprint != is.fingerprint
    {
        return Err(format!(
            "the baseline is of another machine ({}), the reports are of {}; give it a file of its own",
            was.describe(),
            is.describe()
        ));
    }
    if before.required_status() == "ok" && now.required_status() != "ok" {
        return Err("workloads that the baseline has were skipped in these reports".to_owned());
    }
    for (name, was) in &before.metrics {
        let identities = was.identity.as_ref().zip(now.metrics.get(name).and_then(|is| is.identity.as_ref()));
        let differs = identities.and_then(|(was, is)| identity_difference(was, is, Allow::default()));
        if let Some(what) = differs {
            return Err(format!("{name}: {what}; if that is meant: \"holdpoint baseline record REPORT…\""));
        }
    }
    match before.metrics.keys().find(|metric| !now.metrics.contains_key(*metric)) {
        Some(lost) => Err(format!(
            "the baseline has {lost:?}, the reports have not; if that is meant: \"holdpoint baseline record REPORT…\""
        )),
        None => Ok(()),
    }
}

/// A run alone does not say how far runs differ: the baseline before does.
fn keep_tolerances(baseline: &mut Baseline, before: &Baseline, alarm_rate: f64) {
    let tail = tolerance::tail(baseline, alarm_rate);
    for (name, metric) in &mut baseline.metrics {
        let Some(was) = before.metrics.get(name) else { continue };
        metric.max_regression_ratio = was.max_regression_ratio;
        metric.max_regression_abs_ms = was.max_regression_abs_ms;
        if was.is_widened() {
            tolerance::set(metric, TOLERANCE);
        }
        metric.noise = tolerance::noise_of(was);
        let visible = [tolerance::smallest_visible(metric, tail), was.smallest_visible_slowdown];
        metric.smallest_visible_slowdown = visible.into_iter().flatten().reduce(f64::max);
    }
}
