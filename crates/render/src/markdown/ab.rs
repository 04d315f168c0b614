//! The page of a comparison of two sides.

use super::tables::{self, left, right};
use super::{escape, failure_list, joined, section, with_reasons};
use crate::summary::ab::{self as said, EVIDENCE_TITLES, TIME_TITLES, TITLES};
use crate::summary::{more_passed, shown};
use crate::{text, units};
use holdpoint_model::{AbReport, Side, SideName};

/// Base against head: one line per workload, why, and what is behind it.
#[must_use]
pub fn ab(r: &AbReport) -> String {
    let workloads = workloads(r);
    let evidence = evidence(r, &workloads);
    joined(&[
        title(r),
        workloads,
        section("Failed", failed(r)),
        section("Notes", notes(r)),
        evidence,
        section("Where and with what", provenance(r)),
    ])
}

fn title(r: &AbReport) -> String {
    let suite = escape::prose(&r.suite);
    let sentence = escape::prose(&said::of_ab(r));
    let facts = [Some(said::sides(r)), text::machine(r.machine.as_ref()), Some(said::promise(r))];
    let facts: Vec<String> = facts.iter().flatten().map(|fact| escape::prose(fact)).collect();
    let verdict = r.verdict.as_str();
    format!("# holdpoint: {suite}\n\n**{verdict}**: {sentence}\n\n{}\n", facts.join(" · "))
}

fn workloads(r: &AbReport) -> String {
    let mut columns = vec![left("verdict"), left("workload")];
    columns.extend(TITLES.map(right));
    let (workloads, left_out) = shown(&r.workloads, |(_, w)| w.verdict);
    let rows = workloads.into_iter().map(|(name, w)| {
        let mut row = vec![tables::verdict(w.verdict), escape::name(name)];
        row.extend(said::cells(r, w));
        row
    });
    let mut out = tables::table(&columns, &rows.collect::<Vec<_>>());
    if let Some(line) = more_passed(left_out) {
        out.push_str(&format!("\n{line}\n"));
    }
    let out = with_reasons(out, &said::reasons(r));
    section(&format!("Workloads (policy {})", escape::prose(&r.policy)), out)
}

fn failed(r: &AbReport) -> String {
    failure_list(said::failures(r).map(|(name, failed, _)| {
        (format!("{} on {}", escape::name(name), failed.side.as_str()), &failed.failure)
    }))
}

fn notes(r: &AbReport) -> String {
    let line = |(label, note): &(&str, String)| match *label {
        "note" | "rounds" => format!("- {}\n", escape::prose(note)),
        label => format!("- **{label}**: {}\n", escape::prose(note)),
    };
    said::notes(r).iter().map(line).collect()
}

fn evidence(r: &AbReport, workloads: &str) -> String {
    if said::with_evidence(r).next().is_none() {
        return String::new();
    }
    let decided_by = decided_by(r);
    let remarks = said::remarks(r, &[workloads, &decided_by]).into_iter();
    let remarks = remarks.map(|remark| format!("- {}\n", escape::prose(remark))).collect();
    let body = joined(&[times(r), decided_by, remarks]);
    // The empty lines around the body let it be Markdown inside of HTML.
    format!("<details>\n<summary>Evidence</summary>\n\n{body}\n</details>\n")
}

fn times(r: &AbReport) -> String {
    let mut columns = vec![left("workload"), left("side")];
    columns.extend(TIME_TITLES.map(right));
    let rows = said::with_evidence(r).flat_map(|(name, e)| {
        [(SideName::Base, &e.base), (SideName::Head, &e.head)].map(|(side, times)| {
            let mut row = vec![escape::name(name), side.as_str().to_owned()];
            row.extend(said::time_cells(times));
            row
        })
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}

fn decided_by(r: &AbReport) -> String {
    let mut columns = vec![left("workload")];
    columns.extend(EVIDENCE_TITLES.map(right));
    let rows = said::with_evidence(r).map(|(name, e)| {
        let mut row = vec![escape::name(name)];
        row.extend(said::evidence_cells(e));
        row
    });
    tables::table(&columns, &rows.collect::<Vec<_>>())
}

fn provenance(r: &AbReport) -> String {
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
    if said::is_disjoint_ci(r) {
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
