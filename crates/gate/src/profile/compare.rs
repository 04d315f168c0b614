//! Two profiles of a suite beside each other.

use super::rules::Rules;
use holdpoint_model::SCHEMA_VERSION;
use holdpoint_model::profile::{
    KernelChange, KernelProfile, MetricChange, Profile, ProfileComparison, ProfileOutcome, WorkloadProfile,
};
use std::collections::BTreeMap;

/// Compares two profiles kernel by kernel. Reasons why they are not comparable are listed.
pub fn compare(base: &Profile, head: &Profile, rules: &Rules) -> ProfileComparison {
    let mut differences = differences(base, head);
    let mut kernels = Vec::new();
    for (name, head) in &head.profiles {
        let Some(base) = base.profiles.get(name) else {
            differences.push(format!("workload {name:?} is not in base"));
            continue;
        };
        if base.identity != head.identity {
            differences.push(format!("workload {name:?} is not the same: {}", what_differs(base, head)));
        }
        match (&base.outcome, &head.outcome) {
            (ProfileOutcome::Profiled(base), ProfileOutcome::Profiled(head)) => {
                let (base, head) = (numbered(&base.kernels), numbered(&head.kernels));
                let only = |these: &BTreeMap<Key, &KernelProfile>, those: &BTreeMap<Key, &KernelProfile>| {
                    let names = these.keys().filter(|key| !those.contains_key(*key)).map(title);
                    names.collect::<Vec<_>>().join(", ")
                };
                for (side, missing) in [("base", only(&base, &head)), ("head", only(&head, &base))] {
                    if !missing.is_empty() {
                        differences.push(format!("workload {name:?}: only {side} has {missing}"));
                    }
                }
                for (key, head) in &head {
                    if let Some(base) = base.get(key) {
                        kernels.push(change(name, title(key), base, head, rules));
                    }
                }
            }
            (ProfileOutcome::Profiled(_), _) => {
                differences.push(format!("workload {name:?} has no profile in head"))
            }
            (_, _) => differences.push(format!("workload {name:?} has no profile in base")),
        }
    }
    let gone = base.profiles.keys().filter(|name| !head.profiles.contains_key(*name));
    differences.extend(gone.map(|name| format!("workload {name:?} is not in head")));
    ProfileComparison {
        schema_version: SCHEMA_VERSION,
        base_timestamp_utc: base.timestamp_utc.clone(),
        head_timestamp_utc: head.timestamp_utc.clone(),
        differences,
        kernels,
    }
}

/// A kernel by its name, and which of that name it is.
type Key = (String, usize);

fn title((name, nth): &Key) -> String {
    if *nth == 0 { name.clone() } else { format!("{name} #{}", nth + 1) }
}

/// Grids may differ between the sides, so that kernels of a name are matched in their order.
fn numbered(kernels: &[KernelProfile]) -> BTreeMap<Key, &KernelProfile> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let key = |kernel: &'_ KernelProfile, nth: usize| (kernel.name.clone(), nth);
    kernels
        .iter()
        .map(|kernel| {
            let count = seen.entry(kernel.name.as_str()).or_default();
            *count += 1;
            (key(kernel, *count - 1), kernel)
        })
        .collect()
}

fn differences(base: &Profile, head: &Profile) -> Vec<String> {
    let device = |profile: &Profile| profile.device.as_ref().map(|device| device.name.clone());
    let driver = |profile: &Profile| profile.device.as_ref().map(|device| device.versions.driver.clone());
    let profiler = |profile: &Profile| profile.profiler.as_ref().map(|tool| tool.version.clone());
    let facts = [
        ("suite", Some(base.suite.clone()), Some(head.suite.clone())),
        ("device", device(base), device(head)),
        ("driver", driver(base), driver(head)),
        ("profiler", profiler(base), profiler(head)),
    ];
    let shown = |fact: Option<String>| fact.unwrap_or_else(|| "unknown".to_owned());
    facts
        .into_iter()
        .filter(|(_, base, head)| base != head)
        .map(|(what, base, head)| format!("another {what}: {} in base, {} in head", shown(base), shown(head)))
        .collect()
}

fn what_differs(base: &WorkloadProfile, head: &WorkloadProfile) -> String {
    let (b, h) = (&base.identity, &head.identity);
    let parts = [
        ("op", b.op != h.op),
        ("shape", b.shape != h.shape),
        ("dtype", b.dtype != h.dtype),
        ("timer", b.timer != h.timer),
        ("params", b.params != h.params),
    ];
    parts.iter().filter(|(_, differs)| *differs).map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

fn change(
    workload: &str,
    kernel: String,
    base: &KernelProfile,
    head: &KernelProfile,
    rules: &Rules,
) -> KernelChange {
    let metrics = rules.metrics.iter().map(|metric| {
        (metric.name.clone(), metric.title.clone(), metric.step, metric.step_ratio.unwrap_or(1.0))
    });
    let stalls = rules
        .stall
        .iter()
        .map(|stall| (stall.metric(), format!("stall {}", stall.reason), None, rules.stalls.step_ratio));
    let mut changes: Vec<MetricChange> = metrics
        .chain(stalls)
        .filter_map(|(metric, title, step, step_ratio)| {
            let (base, head) = (*base.metrics.get(&metric)?, *head.metrics.get(&metric)?);
            // Of two sides, the larger: swapping them changes nothing.
            let step = step.unwrap_or_else(|| step_ratio * base.abs().max(head.abs()));
            let weight = if base == head { 0.0 } else { (head - base).abs() / step };
            Some(MetricChange { metric, title, base, head, weight })
        })
        .filter(|change| change.weight >= 1.0)
        .collect();
    changes.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let missing_in = |these: &KernelProfile, those: &KernelProfile| -> Vec<String> {
        let rules = these.findings.iter().map(|finding| &finding.rule);
        rules.filter(|rule| those.findings.iter().all(|finding| finding.rule != **rule)).cloned().collect()
    };
    KernelChange {
        workload: workload.to_owned(),
        kernel,
        changes,
        findings_new: missing_in(head, base),
        findings_gone: missing_in(base, head),
    }
}
