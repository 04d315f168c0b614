//! Applying the rules to counters.

use super::rules::{Condition, Rule, Rules, Unit};
use holdpoint_model::profile::{Finding, KernelProfile, Profile, ProfileOutcome, Severity};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Puts what the rules find beside each kernel's counters, the weightiest first.
pub fn add_findings(profile: &mut Profile, rules: &Rules) {
    for workload in profile.profiles.values_mut() {
        if let ProfileOutcome::Profiled(profiled) = &mut workload.outcome {
            for kernel in &mut profiled.kernels {
                kernel.findings = find(kernel, rules);
            }
        }
    }
}

fn find(kernel: &KernelProfile, rules: &Rules) -> Vec<Finding> {
    let stall = top_stall(&kernel.metrics, rules);
    let applied = rules.rules.iter().filter_map(|rule| apply(rule, &kernel.metrics, rules));
    let mut findings: Vec<Finding> = applied.chain(stall).collect();
    // Stable: among equals the order of the rules counts.
    findings.sort_by_key(|finding| Reverse(finding.severity));
    findings
}

fn apply(rule: &Rule, metrics: &BTreeMap<String, f64>, rules: &Rules) -> Option<Finding> {
    let (mut what, mut evidence) = (rule.what.clone(), BTreeMap::new());
    for (at, condition) in rule.when.iter().enumerate() {
        let (value, text) = value(condition, metrics, rules, &mut evidence)?;
        if !condition.holds(value) {
            return None;
        }
        what = what.replace(&format!("{{{at}}}"), &text);
    }
    let (severity, remedy) = (rule.severity, rule.remedy.clone());
    Some(Finding { rule: rule.id.clone(), severity, what, remedy, evidence })
}

/// The value of a condition and its text; none where a counter is absent, or a share is of nothing.
fn value(
    condition: &Condition,
    metrics: &BTreeMap<String, f64>,
    rules: &Rules,
    evidence: &mut BTreeMap<String, f64>,
) -> Option<(f64, String)> {
    let mut counted = |name: &str| {
        let value = *metrics.get(name)?;
        evidence.insert(name.to_owned(), value);
        Some(value)
    };
    let value = counted(&condition.metric)?;
    let Some(per) = &condition.per else {
        let unit = rules.metrics.iter().find(|metric| metric.name == condition.metric);
        return Some((value, shown(value, unit.map_or(Unit::Number, |metric| metric.unit))));
    };
    let whole = counted(per).filter(|whole| *whole > 0.0)?;
    Some((value / whole, shown(value / whole * 100.0, Unit::Percent)))
}

/// The reason for which most warps waited, where that can matter.
fn top_stall(metrics: &BTreeMap<String, f64>, rules: &Rules) -> Option<Finding> {
    let issue = *metrics.get(&rules.stalls.issue_metric)?;
    if issue >= rules.stalls.issue_below {
        return None;
    }
    let counted: Vec<_> = rules
        .stall
        .iter()
        .filter_map(|stall| Some((stall, *metrics.get(&stall.metric())?)))
        .filter(|(_, value)| *value >= 0.0)
        .collect();
    let total: f64 = counted.iter().map(|(_, value)| value).sum();
    let waits = counted.iter().filter(|(stall, _)| !stall.is_work);
    // The earlier of two alike: `max_by` would take the later.
    let (stall, value) = waits.rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
    // No warps at all have no shares.
    let share = Some(value / total).filter(|share| *share >= rules.stalls.share)?;
    let (share, issued) = (shown(share * 100.0, Unit::Percent), shown(issue, Unit::Percent));
    let what = format!("{share} of the warps {}, while {issued} of the issue slots are used", stall.what);
    let evidence = [(stall.metric(), *value), (rules.stalls.issue_metric.clone(), issue)];
    Some(Finding {
        rule: format!("stall_{}", stall.reason),
        severity: Severity::Medium,
        what,
        remedy: stall.remedy.clone(),
        evidence: BTreeMap::from(evidence),
    })
}

/// A counter for a sentence.
fn shown(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Percent => format!("{value:.1} %"),
        Unit::Count => scaled(value, &["", "thousand", "million", "billion"], 1e3),
        Unit::Bytes => scaled(value, &["B", "KiB", "MiB", "GiB", "TiB"], 1024.0),
        Unit::Number if value.fract() == 0.0 => format!("{value:.0}"),
        Unit::Number => format!("{value:.2}"),
    }
}

fn scaled(value: f64, units: &[&str], step: f64) -> String {
    let (mut value, mut at) = (value, 0);
    while value >= step && at + 1 < units.len() {
        value /= step;
        at += 1;
    }
    let digits = if at == 0 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[at]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SM: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
    const DRAM: &str = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
    const LOADS: &str = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct";
    const CONFLICTS: &str = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
    const WAVEFRONTS: &str = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum";
    const ISSUE: &str = "smsp__issue_active.avg.pct_of_peak_sustained_active";

    fn found(metrics: &[(&str, f64)]) -> Vec<(String, String)> {
        let kernel = KernelProfile {
            name: "k".to_owned(),
            grid: String::new(),
            block: String::new(),
            launches_count: 1,
            metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            replayed_ns: None,
            findings: Vec::new(),
        };
        let findings = find(&kernel, &Rules::built_in().unwrap());
        assert!(findings.is_sorted_by_key(|finding| Reverse(finding.severity)));
        for finding in &findings {
            assert!(!finding.evidence.is_empty() && !finding.what.contains('{'), "{finding:?}");
        }
        findings.into_iter().map(|finding| (finding.rule, finding.what)).collect()
    }

    fn rules_of(metrics: &[(&str, f64)]) -> Vec<String> {
        found(metrics).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn a_rule_without_its_counters_finds_nothing() {
        assert_eq!(rules_of(&[]), [""; 0]);
        assert_eq!(rules_of(&[(SM, 10.0)]), [""; 0], "waits_for_latency wants DRAM as well");
        assert_eq!(rules_of(&[(CONFLICTS, 9.0), (WAVEFRONTS, 0.0)]), [""; 0], "a share of nothing");
    }

    #[test]
    fn bounds_are_where_they_are_said_to_be() {
        assert_eq!(rules_of(&[(LOADS, 49.9)]), ["uncoalesced_loads"]);
        assert_eq!(rules_of(&[(LOADS, 50.0)]), ["partly_coalesced_loads"]);
        assert_eq!(rules_of(&[(LOADS, 80.0)]), [""; 0]);
        assert_eq!(rules_of(&[(CONFLICTS, 5.0), (WAVEFRONTS, 100.0)]), [""; 0]);
        assert_eq!(rules_of(&[(CONFLICTS, 25.0), (WAVEFRONTS, 100.0)]), ["some_bank_conflicts"]);
        assert_eq!(rules_of(&[(CONFLICTS, 26.0), (WAVEFRONTS, 100.0)]), ["bank_conflicts"]);
        assert_eq!(rules_of(&[(LOADS, 0.0)]), [""; 0], "no loads at all");
        assert_eq!(rules_of(&[(DRAM, 70.0)]), ["memory_bound"]);
    }

    #[test]
    fn sentences_carry_their_values_and_the_weightiest_comes_first() {
        let all = found(&[(DRAM, 91.26), (LOADS, 25.0)]);
        assert_eq!(
            all[0],
            (
                "uncoalesced_loads".to_owned(),
                "global loads use 25.0 % of the bytes that they fetch".to_owned()
            )
        );
        assert_eq!(all[1], ("memory_bound".to_owned(), "DRAM is at 91.3 %: memory sets the pace".to_owned()));
    }

    #[test]
    fn the_largest_stall_is_named_unless_the_issue_slots_are_busy() {
        let stall =
            |reason: &str| format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio");
        let (long, barrier, selected) = (stall("long_scoreboard"), stall("barrier"), stall("selected"));
        let with = |issue: f64, values: [f64; 3]| {
            rules_of(&[(ISSUE, issue), (&long, values[0]), (&barrier, values[1]), (&selected, values[2])])
        };
        assert_eq!(with(20.0, [8.0, 2.0, 1.0]), ["stall_long_scoreboard"]);
        assert_eq!(with(20.0, [2.0, 8.0, 1.0]), ["stall_barrier"]);
        assert_eq!(with(20.0, [4.0, 4.0, 1.0]), ["stall_long_scoreboard"], "the earlier of two alike");
        assert_eq!(with(80.0, [8.0, 2.0, 1.0]), [""; 0]);
        assert_eq!(with(20.0, [0.1, 0.1, 1.0]), [""; 0], "below the share");
        assert_eq!(with(20.0, [0.0, 0.0, 0.0]), [""; 0], "no warps at all");
    }

    #[test]
    fn values_are_shown_in_their_units() {
        assert_eq!(shown(1_234_567.0, Unit::Count), "1.2 million");
        assert_eq!(shown(999.0, Unit::Count), "999");
        assert_eq!(shown(3.0 * 1024.0 * 1024.0, Unit::Bytes), "3.0 MiB");
        assert_eq!(
            (shown(2.0, Unit::Number), shown(0.25, Unit::Number)),
            ("2".to_owned(), "0.25".to_owned())
        );
    }
}
