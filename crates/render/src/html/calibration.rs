//! The page of a calibration.

use super::rows::{self, ListRow};
use super::{Banner, Extras, banner_page, figures, ink_class, markup, section};
use crate::charts;
use crate::markdown::calibration_sections;
use crate::paint::Ink;
use crate::summary::calibration::{describe_calibration, facts, ink};
use crate::summary::sides::out_of;
use crate::units;
use holdpoint_model::{Calibrated, Calibration};

const READING: &str = "The dot is the median over the trials.";

pub fn calibration(c: &Calibration, extras: &Extras<'_>) -> String {
    let (word, sentence) = describe_calibration(c);
    let mut all_facts = Vec::from(facts(c));
    all_facts.extend([c.machine.describe(), c.timestamp_utc.clone()]);
    let ink = ink_class(ink(c));
    let title = format!("holdpoint: {}, calibration", c.suite);
    let banner = Banner { title, ink, word: &word, sentence: &sentence, facts: all_facts };
    let parts = [
        section("Seconds to a verdict", &seconds(c)),
        section("Noise: standard deviation of a unit", &noise(c)),
        markup(&calibration_sections(c), None),
    ];
    banner_page(&banner, &parts, extras, &[])
}

fn list(
    c: &Calibration,
    values: &[(Option<f64>, Option<f64>)],
    limit: Option<f64>,
    format: fn(f64) -> String,
    body: impl Fn(&Calibrated) -> String,
    caption: &str,
) -> String {
    let names: Vec<String> = c
        .workloads
        .keys()
        .zip(values)
        .map(|(name, (value, _))| format!("{name}: {}", units::number(*value, format)))
        .collect();
    let Some((strips, axis)) = charts::dots(values, limit, format, &names) else { return String::new() };
    let listed: Vec<ListRow> = c
        .workloads
        .iter()
        .zip(strips)
        .zip(values)
        .map(|(((name, workload), strip), (value, _))| {
            let (class, word) = describe(c, workload);
            let number = units::number(*value, format);
            let body = body(workload);
            ListRow { class, word, name: name.clone(), number, strip, body, wants_attention: false }
        })
        .collect();
    rows::list(&listed, &axis, caption)
}

/// False alarms, or what was detected, of the trials that were decided.
fn describe(c: &Calibration, w: &Calibrated) -> (&'static str, String) {
    let decided = w.decided();
    match () {
        () if w.failed > 0 => (ink_class(Ink::Bad), "failed".to_owned()),
        () if w.too_noisy => (ink_class(Ink::Doubt), "too noisy".to_owned()),
        () if c.inject > 0.0 => (ink_class(Ink::Calm), format!("{} seen", out_of(w.detected, w.trials))),
        () if w.false_alarms > 0 => {
            (ink_class(Ink::Bad), format!("{} alarms", out_of(w.false_alarms, decided)))
        }
        () => (ink_class(Ink::Calm), format!("{} alarms", out_of(0, decided))),
    }
}

fn seconds(c: &Calibration) -> String {
    let values: Vec<_> = c.workloads.values().map(|w| (Some(w.seconds), Some(w.seconds_p90))).collect();
    let seconds = |s: f64| format!("{} s", units::seconds(s));
    let caption = format!(
        "{READING} The line reaches to the 90th percentile. Open a row for the smallest slowdown that is detected in a given time."
    );
    list(c, &values, None, seconds, |w| figures(&charts::visible(&w.visible, w.tolerance)), &caption)
}

fn noise(c: &Calibration) -> String {
    let values: Vec<_> = c.workloads.values().map(|w| (w.unit_sd, None)).collect();
    let caption = format!(
        "{READING} The dashed line is the tolerance of {}: with more noise than that, a decision takes many units.",
        units::setting(c.tolerance)
    );
    list(c, &values, Some(c.tolerance), units::small_share, |_| String::new(), &caption)
}
