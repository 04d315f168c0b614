//! How often the stored-baseline gate calls unchanged code slower: reports of one revision, judged against each
//! other by the gate's own rules.

use holdpoint_flow::baseline::RUNS_DEFAULT;
use holdpoint_flow::gate::CONFIRM_DEFAULT;
use holdpoint_gate::{Allow, Policy, compare, confirm, judge, record};
use holdpoint_model::{Baseline, Current, Verdict};
use holdpoint_stats::sequential::ALARM_RATE;
use std::path::Path;

/// Runs behind a baseline, and runs judged together when the first is slow: the defaults of `holdpoint gate`.
const BASELINE_RUNS: usize = RUNS_DEFAULT as usize;
const JUDGED_RUNS: usize = CONFIRM_DEFAULT as usize + 1;

/// Judges every three runs in a row that a baseline of ten in a row does not contain; prints a table. The problems, if any.
pub fn judge_all(paths: &[String]) -> Vec<String> {
    let runs: Result<Vec<Current>, _> =
        paths.iter().map(|p| holdpoint_store::read_current(Path::new(p))).collect();
    let runs = match runs {
        Ok(runs) if runs.len() >= BASELINE_RUNS + JUDGED_RUNS => runs,
        Ok(runs) => {
            let least = BASELINE_RUNS + JUDGED_RUNS;
            return vec![format!("{} reports; at least {least} are needed", runs.len())];
        }
        Err(error) => return vec![error.to_string()],
    };
    let (mut judged, mut slow_once, mut slow_confirmed) = (0_u32, 0_u32, 0_u32);
    for start in 0..=runs.len() - BASELINE_RUNS {
        let baseline = match record::record(&runs[start..start + BASELINE_RUNS], ALARM_RATE) {
            Ok(baseline) => baseline,
            Err(error) => return vec![error.to_string()],
        };
        let others: Vec<&Current> = runs
            .iter()
            .enumerate()
            .filter(|(i, _)| !(start..start + BASELINE_RUNS).contains(i))
            .map(|(_, r)| r)
            .collect();
        for first in 0..others.len() {
            let together: Vec<Current> =
                (0..JUDGED_RUNS).map(|next| others[(first + next) % others.len()].clone()).collect();
            judged += 1;
            if is_slow(&together[0], &baseline) {
                slow_once += 1;
                let merged = confirm::median_run(&together);
                slow_confirmed += u32::from(merged.is_some_and(|merged| is_slow(&merged.current, &baseline)));
            }
        }
    }
    let percent = |count: u32| f64::from(count) / f64::from(judged) * 100.0;
    println!(
        "| unchanged suites judged | slower by one run | slower by the median of three |\n|--:|--:|--:|"
    );
    println!(
        "| {judged} | {slow_once} ({:.1} %) | {slow_confirmed} ({:.1} %) |",
        percent(slow_once),
        percent(slow_confirmed)
    );
    Vec::new()
}

fn is_slow(current: &Current, baseline: &Baseline) -> bool {
    judge(&compare(current, baseline, Allow::default()), Policy::Stored).verdict == Verdict::Regressed
}
