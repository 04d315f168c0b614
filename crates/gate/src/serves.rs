//! Whether a baseline can serve the tolerance that is asked of it: else unchanged code stays undecided, which is better said when it is
//! recorded than at every gate.

use crate::noise::Bands;
use crate::policy::PASS_TIMES;
use crate::tolerance::RUNS_MIN;
use holdpoint_model::{Baseline, BaselineMetric};

/// Metrics named at most.
const NAMED_MAX: usize = 8;

/// The metrics of which even an unchanged value would not pass, as a sentence.
pub fn blind_spots(baseline: &Baseline) -> Option<String> {
    let blind = baseline.metrics.iter().filter_map(|(name, metric)| Some((name, blindness(metric)?)));
    let blind: Vec<String> = blind.map(|(name, what)| format!("{name}{what}")).collect();
    let [named, more] = [blind.len().min(NAMED_MAX), blind.len().saturating_sub(NAMED_MAX)];
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!blind.is_empty()).then(|| {
        format!(
            "this baseline cannot serve {} of {} metrics, which will be inconclusive: {}{more}; compare side by side with \
             \"holdpoint gate --against REV\", record {RUNS_MIN} and more runs on a quieter machine, or ask for a wider tolerance",
            blind.len(),
            baseline.metrics.len(),
            blind[..named].join(", "),
        )
    })
}

fn blindness(metric: &BaselineMetric) -> Option<String> {
    let (bands, tolerance) = (Bands::of(metric), metric.tolerance());
    if !bands.is_known {
        return Some(String::new());
    }
    let sees = (1.0 + tolerance) * bands.alarm - 1.0;
    (bands.miss - 1.0 > PASS_TIMES * tolerance)
        .then(|| format!(" sees {:.0} %, asked is {:.1} %", sees * 100.0, tolerance * 100.0))
}
