//! The page of a comparison of two sides.

use super::{escape, explained, failure_list, joined, section, tables};
use crate::judged::Judged;
use crate::summary::judgement::{Failed, checks_table, failures, notes};
use crate::summary::sides;
use crate::table::EmptyColumns;
use crate::units;
use holdpoint_model::{Machine, Side};

/// Base against head: one line per workload, the reasons, and the evidence.
pub(super) fn page(judged: Judged<'_>) -> String {
    joined(&[title(judged), sections(judged)])
}

/// The page without its title.
pub(crate) fn sections(judged: Judged<'_>) -> String {
    let table = checks_table(judged).markdown(EmptyColumns::Drop);
    let evidence = evidence(judged, &table);
    let policy = escape::prose(&judged.judgement.policy);
    joined(&[
        section(&format!("Workloads (policy {policy})"), explained(table, judged)),
        section("Failed", failed(judged)),
        section("Notes", describe_notes(judged)),
        evidence,
        section("Machine and settings", provenance(judged)),
    ])
}

fn title(judged: Judged<'_>) -> String {
    let facts = [
        Some(sides::describe_sides(judged)),
        judged.machine().map(Machine::describe),
        Some(sides::describe_promise(judged)),
    ];
    let facts: Vec<String> = facts.iter().flatten().map(|fact| escape::prose(fact)).collect();
    let title = tables::verdict_title(judged);
    format!("{title}\n{}\n", facts.join(" · "))
}

fn failed(judged: Judged<'_>) -> String {
    let failures = failures(judged);
    failure_list(failures.iter().map(|Failed { name, side, failure, .. }| {
        let side = side.map(|side| format!(" on {}", side.as_str())).unwrap_or_default();
        (escape::name(name) + &side, *failure)
    }))
}

fn describe_notes(judged: Judged<'_>) -> String {
    let line = |(label, note): &(&str, String)| match *label {
        "note" | "rounds" => format!("- {}\n", escape::prose(note)),
        label => format!("- **{label}**: {}\n", escape::prose(note)),
    };
    notes(judged).iter().map(line).collect()
}

fn evidence(judged: Judged<'_>, workloads: &str) -> String {
    let evidence = sides::evidence_table(judged).markdown(EmptyColumns::Drop);
    if evidence.is_empty() {
        return evidence;
    }
    let remarks = sides::remarks(judged, &[workloads, &evidence]).into_iter();
    let remarks = remarks.map(|remark| format!("- {}\n", escape::prose(remark))).collect();
    let times = sides::times_table(judged).markdown(EmptyColumns::Drop);
    super::details("Evidence", joined(&[times, evidence, remarks]))
}

fn provenance(judged: Judged<'_>) -> String {
    let Some(r) = judged.sides() else { return String::new() };
    let mut facts = vec![("began", r.timestamp_utc.clone())];
    facts.push(("took", format!("{} s", units::seconds(r.elapsed_s))));
    facts.extend([("base", full(&r.base)), ("head", full(&r.head))]);
    facts.extend(r.machine.iter().flat_map(tables::machine_facts));
    facts.extend(tables::tool_facts(&r.toolchain));
    let plan = &r.plan;
    if !judged.is_disjoint_ci() {
        facts.extend([
            ("tolerance", units::setting(plan.tolerance)),
            ("false alarms per suite, at most", units::setting(plan.alarm_rate)),
            ("misses per slow workload, at most", units::setting(plan.miss_rate)),
        ]);
    }
    facts.extend([
        ("units per workload, at most", units::count(plan.units_max.into())),
        ("budget per workload", format!("{} s", units::seconds(plan.budget_s))),
        ("seed", plan.seed.to_string()),
    ]);
    tables::fact_table(&facts)
}

/// The label and the whole commit.
fn full(side: &Side) -> String {
    match &side.revision {
        Some(at) => format!("{} {}", side.label, tables::full_revision(at)),
        None => side.label.clone(),
    }
}
