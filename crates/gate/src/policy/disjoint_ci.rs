//! The second seed's rule: a change counts when the intervals of the medians are apart, the test agrees and the effect is
//! not small. With the sign right: the seed's own code takes a positive delta, which is slower, for an improvement.
//!
//! Two differences from the seed beside the sign. The intervals come from a bootstrap over blocks, because the seed's,
//! over samples that are correlated, are far too narrow. And a change beyond the thresholds whose test does not agree
//! is no significant difference, where the seed says maintained: too little data is no proof that nothing changed.

use crate::ab::{Blocks, times};
use holdpoint_model::Verdict;
use holdpoint_model::ab::DisjointCiKeys;
use holdpoint_stats as stats;
use holdpoint_stats::classic;

/// The seed's bar for a regression, in percent slower.
pub const REGRESSION_PCT: f64 = 3.0;
/// The seed's bar for an improvement, in percent faster.
pub const IMPROVEMENT_PCT: f64 = 10.0;
/// The seed's bar for an effect that is worth a sentence.
pub const EFFECT_MIN: f64 = 0.3;
/// The seed's level of its test.
pub const P_MAX: f64 = 0.05;
/// Bounds of the seed's words for Cliff's delta: negligible, small, medium, large.
const EFFECT_BOUNDS: [f64; 3] = [0.147, 0.33, 0.474];

/// Judges head's times against base's, each in blocks of what was measured together (units, rounds, or single samples
/// where nothing better is known). Absent when a side has fewer than two blocks or a time is not a positive number.
pub fn compare(base: &[Vec<f64>], head: &[Vec<f64>]) -> Option<(DisjointCiKeys, Verdict)> {
    let [base, head] = [base, head].map(|side| {
        side.iter().filter(|block| !block.is_empty()).cloned().map(times::sorted).collect::<Vec<_>>()
    });
    let is_time = |value: &f64| value.is_finite() && *value > 0.0;
    if !base.iter().chain(&head).flatten().all(is_time) {
        return None;
    }
    let (base_interval, head_interval) = (times::interval(&base)?, times::interval(&head)?);
    let (base, head) = (times::sorted(base.concat()), times::sorted(head.concat()));
    let (was, is) = (stats::median(&base)?, stats::median(&head)?);
    let cis_overlap = head_interval[0] <= base_interval[1] && base_interval[0] <= head_interval[1];
    // The seed's sign: positive where the candidate is faster.
    let cliffs_delta = classic::cliffs_delta(&base, &head)?;
    let mann_whitney_p = classic::mann_whitney(&base, &head)?.p;
    let mut keys = DisjointCiKeys {
        baseline_median_ms: was,
        candidate_median_ms: is,
        delta_pct: (is - was) / was * 100.0,
        speedup: was / is,
        cis_overlap,
        cliffs_delta,
        cliffs_interpretation: effect_word(cliffs_delta).to_owned(),
        mann_whitney_p,
        is_significant: !cis_overlap && mann_whitney_p < P_MAX && cliffs_delta.abs() >= EFFECT_BOUNDS[0],
        verdict: String::new(),
    };
    let (verdict, sentence) = decide(&keys);
    keys.verdict = sentence;
    Some((keys, verdict))
}

/// Judges a workload of two sides, with units as blocks.
pub(super) fn judge(blocks: &Blocks) -> (Verdict, String, Option<DisjointCiKeys>) {
    match compare(&blocks.base, &blocks.head) {
        None => {
            let reason = "too few units for an interval: give it a longer --budget".to_owned();
            (Verdict::Inconclusive, reason, None)
        }
        Some((keys, verdict)) => (verdict, keys.verdict.clone(), Some(keys)),
    }
}

/// The verdict and the seed's sentence, in the seed's order.
fn decide(keys: &DisjointCiKeys) -> (Verdict, String) {
    let (delta_pct, effect) = (keys.delta_pct, keys.cliffs_delta.abs());
    let evidence = format!("(significant, {} effect)", keys.cliffs_interpretation);
    let unclear = |why: String| (Verdict::Inconclusive, format!("NO SIGNIFICANT DIFFERENCE: {why}"));
    if delta_pct >= REGRESSION_PCT && keys.is_significant {
        (Verdict::Regressed, format!("REGRESSION: {delta_pct:.1}% slower {evidence}"))
    } else if delta_pct <= -IMPROVEMENT_PCT && keys.is_significant && effect >= EFFECT_MIN {
        (Verdict::Improved, format!("IMPROVEMENT: {:.1}% faster {evidence}", -delta_pct))
    } else if keys.cis_overlap {
        unclear(format!("CIs overlap (Δ={delta_pct:+.1}%)"))
    } else if effect < EFFECT_MIN {
        unclear(format!("Small effect size (Δ={delta_pct:+.1}%, δ={effect:.3})"))
    } else if !keys.is_significant && !(-IMPROVEMENT_PCT..REGRESSION_PCT).contains(&delta_pct) {
        unclear(format!("Too few samples (Δ={delta_pct:+.1}%, p={:.3})", keys.mann_whitney_p))
    } else {
        (Verdict::Pass, format!("MAINTAINED: {delta_pct:+.1}% (within noise)"))
    }
}

fn effect_word(cliffs_delta: f64) -> &'static str {
    let bounds_passed = EFFECT_BOUNDS.iter().filter(|bound| cliffs_delta.abs() >= **bound).count();
    ["negligible", "small", "medium", "large"][bounds_passed]
}
