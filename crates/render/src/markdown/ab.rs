//! The page of a comparison of two sides.

use super::tables::{self, left, right};
use super::{escape, failure_list, joined, section, with_reasons};
use crate::judged::Judged;
use crate::summary::ab::{self as said, EVIDENCE_TITLES, TIME_TITLES, TITLES};
use crate::summary::{more_passed, shown};
use crate::{text, units};
use holdpoint_model::{Side, SideName};

/// Base against head: one line per workload, why, and what is behind it.
pub(super) fn sides(judged: Judged<'_>) -> String {
    let workloads = workloads(judged);
    let evidence = evidence(judged, &workloads);
    joined(&[
        title(judged),
        workloads,
        section("Failed", failed(judged)),
        section("Notes", notes(judged)),
        evidence,
        section("Where and with what", provenance(judged)),
    ])
}

fn title(judged: Judged<'_>) -> String {
    let suite = escape::prose(&judged.judgement.suite);
    let sentence = escape::prose(&judged.sentence());
    let facts = [Some(said::sides(judged)), text::machine(judged.machine()), Some(said::promise(judged))];
    let facts: Vec<String> = facts.iter().flatten().map(|fact| escape::prose(fact)).collect();
    let verdict = judged.judgement.verdict.as_str();
    format!("# holdpoint: {suite}\n\n**{verdict}**: {sentence}\n\n{}\n", facts.join(" · "))
}

fn workloads(judged: Judged<'_>) -> String {
    let mut columns = vec![left("verdict"), left("workload")];
    columns.extend(TITLES.map(right));
    let (checks, left_out) = shown(&judged.judgement.checks, |check| check.verdict);
    let rows = checks.into_iter().map(|check| {
        let mut row = vec![tables::verdict(check.verdict), escape::name(check.name())];
        row.extend(said::cells(judged, check));
        row
    });
    let mut out = tables::table(&columns, &rows.collect::<Vec<_>>());
    if let Some(line) = more_passed(left_out) {
        out.push_str(&format!("\n{line}\n"));
    }
    let out = with_reasons(out, &said::reasons(judged));
    section(&format!("Workloads (policy {})", escape::prose(&judged.judgement.policy)), out)
}

fn failed(judged: Judged<'_>) -> String {
    failure_list(said::failures(judged).map(|(name, failed, _)| {
        (format!("{} on {}", escape::name(name), failed.side.as_str()), &failed.failure)
    }))
}

fn notes(judged: Judged<'_>) -> String {
    let line = |(label, note): &(&str, String)| match *label {
        "note" | "rounds" => format!("- {}\n", escape::prose(note)),
        label => format!("- **{label}**: {}\n", escape::prose(note)),
    };
    said::notes(judged).iter().map(line).collect()
}

fn evidence(judged: Judged<'_>, workloads: &str) -> String {
    if said::with_evidence(judged).next().is_none() {
        return String::new();
    }
    let decided_by = decided_by(judged);
    let remarks = said::remarks(judged, &[workloads, &decided_by]).into_iter();
    let remarks = remarks.map(|remark| format!("- {}\n", escape::prose(remark))).collect();
    let body = joined(&[times(judged), decided_by, remarks]);
    // The empty lines around the body let it be Markdown inside of HTML.
    format!("<details>\n<summary>Evidence</summary>\n\n{body}\n</details>\n")
}

fn times(judged: Judged<'_>) -> String {
    let mut columns = vec![left("workload"), left("side")];
    columns.extend(TIME_TITLES.map(right));
    let rows = said::with_evidence(judged).flat_map(|(name, e)| {
        [(SideName::Base, &e.base), (SideName::Head, &e.head)].map(|(side, times)| {
            let mut row = vec![escape::name(name), side.as_str().to_owned()];
            row.extend(said::time_cells(times));
            row
        })
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}

fn decided_by(judged: Judged<'_>) -> String {
    let mut columns = vec![left("workload")];
    columns.extend(EVIDENCE_TITLES.map(right));
    let rows = said::with_evidence(judged).map(|(name, e)| {
        let mut row = vec![escape::name(name)];
        row.extend(said::evidence_cells(e));
        row
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}

fn provenance(judged: Judged<'_>) -> String {
    let Some(r) = judged.sides() else { return String::new() };
    let mut facts = vec![("began", r.timestamp_utc.clone())];
    facts.push(("took", format!("{} s", units::seconds(r.elapsed_s))));
    facts.extend([("base", full(&r.base)), ("head", full(&r.head))]);
    facts.extend(r.machine.iter().flat_map(tables::machine_facts));
    facts.extend(tables::tool_facts(&r.toolchain));
    let plan = &r.plan;
    facts.extend([
        ("tolerance", units::setting(plan.tolerance)),
        ("false alarms per suite, at most", units::setting(plan.alarm_rate)),
        ("misses per slow workload, at most", units::setting(plan.miss_rate)),
        ("units per workload, at most", units::count(plan.units_max.into())),
        ("budget per workload", format!("{} s", units::seconds(plan.budget_s))),
        ("rounds per unit", units::count(plan.rounds_per_unit.into())),
        ("one side of a round", units::time(plan.round_ms)),
        ("seed", plan.seed.to_string()),
    ]);
    if said::is_disjoint_ci(judged) {
        facts.retain(|(what, _)| !["tolerance", "false", "misses"].iter().any(|word| what.starts_with(word)));
    }
    tables::fact_table(&facts)
}

/// The label and the whole commit.
fn full(side: &Side) -> String {
    match &side.revision {
        Some(at) => format!("{} {}{}", side.label, at.commit, if at.dirty { " (dirty)" } else { "" }),
        None => side.label.clone(),
    }
}
