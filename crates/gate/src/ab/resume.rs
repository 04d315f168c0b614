//! Whether an interrupted comparison may be continued: everything its units depend on must be as it was.

use holdpoint_model::{AbPlan, AbReport, Side};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// Characters of a value that are shown: enough to tell two hashes apart.
const VALUE_CHARS: usize = 80;

/// Everything in which a report differs from one that is about to begin, with both values. More time and more units may be
/// given; the seed goes on where none `is_seed_given`.
pub fn differences(old: &AbReport, new: &AbReport, is_seed_given: bool) -> Vec<String> {
    let mut found = Differences::default();
    found.add("the suite", &old.suite, &new.suite);
    found.add("base", &side(&old.base), &side(&new.base));
    found.add("head", &side(&old.head), &side(&new.head));
    let machine = |report: &AbReport| {
        report.machine.as_ref().map(|machine| format!("{} ({})", machine.fingerprint, machine.describe()))
    };
    found.add("the machine", &machine(old).unwrap_or_default(), &machine(new).unwrap_or_default());
    found.add_plans(&old.plan, &new.plan);
    if is_seed_given {
        found.add("--seed", &old.plan.seed.to_string(), &new.plan.seed.to_string());
    }
    found.add("the list of workloads", &names(old), &names(new));
    for (name, workload) in &old.workloads {
        if let Some(now) = new.workloads.get(name) {
            found.add_debug(&format!("workload {name}"), &workload.identity, &now.identity);
        }
    }
    found.add_debug("the toolchain", &old.toolchain, &new.toolchain);
    let keys: BTreeSet<&String> = old.conditions.keys().chain(new.conditions.keys()).collect();
    for key in keys {
        let of =
            |report: &AbReport| report.conditions.get(key).map_or("not recorded", String::as_str).to_owned();
        found.add(key, &of(old), &of(new));
    }
    found.0
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn add(&mut self, what: &str, old: &str, new: &str) {
        if old != new {
            let short = |text: &str| text.chars().take(VALUE_CHARS).collect::<String>();
            self.0.push(format!("{what} was {}, is {}", short(old), short(new)));
        }
    }

    fn add_debug<T: Debug + PartialEq>(&mut self, what: &str, old: &T, new: &T) {
        if old != new {
            self.0.push(format!("{what} was {old:?}, is {new:?}"));
        }
    }

    fn add_plans(&mut self, old: &AbPlan, new: &AbPlan) {
        self.add_debug("--tolerance", &old.tolerance, &new.tolerance);
        self.add_debug("gate.workloads of the suite", &old.tolerances, &new.tolerances);
        self.add_debug("metrics of the suite", &old.metrics, &new.metrics);
        self.add_debug("--alarm-rate", &old.alarm_rate, &new.alarm_rate);
        self.add_debug("--miss-rate", &old.miss_rate, &new.miss_rate);
        self.add_debug("--speedup-max", &old.speedup_max, &new.speedup_max);
        self.add_debug("--metric", &old.clock, &new.clock);
        self.add_debug("--at-once", &old.units_at_once, &new.units_at_once);
    }
}

fn side(side: &Side) -> String {
    match &side.revision {
        None => side.label.clone(),
        Some(revision) if revision.dirty => format!("{} at {} with changes", side.label, revision.commit),
        Some(revision) => format!("{} at {}", side.label, revision.commit),
    }
}

fn names(report: &AbReport) -> String {
    report.workloads.keys().map(String::as_str).collect::<Vec<_>>().join(", ")
}
