//! The tables after `holdpoint profile`. Counters only: no time stands in them.

use super::{
    counted, describe_device, describe_tool, describe_unavailable, group_by_reason, ink_of_counts, last_line,
    paragraphs,
};
use crate::paint::{Ink, Style};
use crate::summary::{NAMES_SHOWN, group};
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{self, entry, list, plural};
use crate::units;
use holdpoint_model::profile::{
    Finding, KernelChange, KernelProfile, MetricChange, Profile, ProfileComparison, ProfileOutcome, Severity,
};
use std::cmp::Reverse;

/// The counters that say most, with their titles; all others are in the file.
const SHOWN: &[(&str, &str, u8)] = &[
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "SM", 0),
    ("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "memory", 0),
    ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "DRAM", 1),
    ("lts__t_sector_hit_rate.pct", "L2 hits", 4),
    ("sm__warps_active.avg.pct_of_peak_sustained_active", "occupancy", 2),
    ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "tensor", 3),
    ("smsp__issue_active.avg.pct_of_peak_sustained_active", "issue", 5),
    ("launch__registers_per_thread", "registers", 6),
];
/// Changes shown of a kernel; all are in the file.
const CHANGES_SHOWN: usize = 8;
/// Kernels named for one rule; all are in the file.
const KERNELS_SHOWN: usize = 6;

pub fn profile(p: &Profile, style: Style) -> String {
    let mut columns: Vec<Column> = vec![names("workload"), names("kernel")];
    columns.extend(SHOWN.iter().map(|(_, title, drop)| numbers(title).drop(*drop)));
    columns.push(numbers("findings"));
    let mut grid = Grid::new(&columns);
    let (mut findings, mut others) = (Vec::new(), Vec::new());
    for (workload, profile) in &p.profiles {
        match &profile.outcome {
            ProfileOutcome::Profiled(profiled) => {
                for kernel in &profiled.kernels {
                    let name = name_among(kernel, &profiled.kernels);
                    grid.push(row(workload, &name, kernel));
                    let describe = |finding: &Finding| format!("{workload}, {name}: {}", finding.what);
                    findings.extend(kernel.findings.iter().map(|finding| (finding, describe(finding))));
                }
            }
            ProfileOutcome::Unavailable(why) => {
                others.push((Ink::Doubt, "unavailable", describe_unavailable(why), workload))
            }
            ProfileOutcome::Failed(failure) => {
                let why = format!("{}: {}", failure.cause.as_str(), failure.detail);
                others.push((Ink::Bad, "failed", why, workload));
            }
        }
    }
    let missing = match p.missing_metrics.as_slice() {
        [] => String::new(),
        names => entry(style, Ink::Dim, "not counted", &list(names, NAMES_SHOWN)),
    };
    let kernels = p.profiles.values().filter_map(|workload| match &workload.outcome {
        ProfileOutcome::Profiled(profiled) => Some(&profiled.kernels),
        _ => None,
    });
    let is_above = |kernel: &KernelProfile| {
        let value = |name: &str| kernel.metrics.get(name).filter(|_| is_share(name));
        SHOWN.iter().any(|(name, ..)| value(name).is_some_and(|value| *value > 100.0))
    };
    let capped = if kernels.flatten().any(is_above) {
        entry(style, Ink::Dim, "capped", CAPPED)
    } else {
        String::new()
    };
    let facts = [
        Some("profile".to_owned()),
        p.profiler.as_ref().map(describe_tool),
        p.revision.as_ref().map(text::revision),
        p.device.as_ref().map(describe_device),
    ];
    paragraphs(&[
        text::heading(style, &p.suite, &facts),
        grid.render(style),
        by_rule(&findings, style),
        group_by_reason(&others, style) + &missing + &capped,
        end(p, style),
    ])
}

/// The name, with its grid where another kernel has the same name.
fn name_among(kernel: &KernelProfile, all: &[KernelProfile]) -> String {
    match all.iter().filter(|other| other.name == kernel.name).count() {
        0 | 1 => kernel.name.clone(),
        _ => format!("{} {}", kernel.name, kernel.grid),
    }
}

fn row(workload: &str, name: &str, kernel: &KernelProfile) -> Vec<Cell> {
    let many =
        if kernel.launches_count > 1 { format!(" ×{}", kernel.launches_count) } else { String::new() };
    let mut row = vec![Cell::new(workload), Cell::new(&format!("{name}{many}"))];
    row.extend(SHOWN.iter().map(|(name, ..)| {
        Cell::new(&kernel.metrics.get(*name).map_or(units::MISSING.to_owned(), |value| counter(name, *value)))
    }));
    let worst = kernel.findings.iter().map(|finding| finding.severity).max();
    row.push(Cell::inked(worst.map_or(Ink::Plain, ink), &units::count(kernel.findings.len() as u64)));
    row
}

/// The findings of each rule, its remedy once; the most severe rule first.
fn by_rule(findings: &[(&Finding, String)], style: Style) -> String {
    let mut rules = group(findings.iter().map(|found| (found.0.rule.as_str(), found)));
    rules.sort_by_key(|(_, found)| Reverse(found[0].0.severity));
    let entries = rules.into_iter().map(|(rule, found)| {
        let (first, _) = found[0];
        let more = found.len().saturating_sub(KERNELS_SHOWN);
        let shown = found.iter().take(KERNELS_SHOWN).map(|(_, text)| text.clone());
        let all = shown.chain((more > 0).then(|| format!("and {} more", units::count(more as u64))));
        let all = all.map(|text| entry(style, Ink::Plain, "", &format!("· {text}")));
        let body = format!("{rule}: {}", first.remedy);
        entry(style, ink(first.severity), first.severity.as_str(), &body) + &all.collect::<String>()
    });
    entries.collect()
}

fn ink(severity: Severity) -> Ink {
    match severity {
        Severity::High => Ink::Bad,
        Severity::Medium => Ink::Doubt,
        Severity::Note => Ink::Plain,
    }
}

/// Whether a counter is a share of something, which cannot be more than all of it.
fn is_share(name: &str) -> bool {
    name.contains("pct")
}

const CAPPED: &str = "shares above 100 % are shown as 100 %: the profiler counts their parts in separate runs of the kernel, which differ a \
                      little; the file has them as counted";

/// A counter in the unit that its name implies.
fn counter(name: &str, value: f64) -> String {
    match () {
        () if is_share(name) => units::share((value / 100.0).min(1.0)),
        () if name.contains("bytes") => units::memory(value / 1e6),
        () if value.fract() == 0.0 && value.abs() < 1e4 => format!("{value:.0}"),
        () => units::rate(value),
    }
}

fn end(p: &Profile, style: Style) -> String {
    let count = |is: fn(&ProfileOutcome) -> bool| p.profiles.values().filter(|w| is(&w.outcome)).count();
    let profiled = count(|outcome| matches!(outcome, ProfileOutcome::Profiled(_)));
    let failed = count(|outcome| matches!(outcome, ProfileOutcome::Failed(_)));
    let unavailable = p.profiles.len() - profiled - failed;
    let of = |severity: Severity| -> usize {
        let kernels = p.profiles.values().filter_map(|workload| match &workload.outcome {
            ProfileOutcome::Profiled(profiled) => Some(&profiled.kernels),
            _ => None,
        });
        let findings = kernels.flatten().flat_map(|kernel| &kernel.findings);
        findings.filter(|finding| finding.severity == severity).count()
    };
    let mut parts = vec![format!("{} profiled", plural(profiled, "workload"))];
    if profiled > 0 {
        parts.push(format!("findings: {} high, {} medium", of(Severity::High), of(Severity::Medium)));
    }
    parts.extend(counted([(unavailable, "unavailable"), (failed, "failed")]));
    last_line(style, ink_of_counts(failed, profiled), "profile", &parts.join(", "))
}

pub fn profile_comparison(c: &ProfileComparison, style: Style) -> String {
    let columns = [
        names("workload"),
        names("kernel"),
        words("counter"),
        numbers("base"),
        numbers("head"),
        numbers("change"),
    ];
    let mut grid = Grid::new(&columns);
    let mut notes = String::new();
    for kernel in &c.kernels {
        for change in kernel.changes.iter().take(CHANGES_SHOWN) {
            grid.push(changed(kernel, change));
        }
        for (ink, label, rules) in
            [(Ink::Doubt, "new", &kernel.findings_new), (Ink::Good, "gone", &kernel.findings_gone)]
        {
            if !rules.is_empty() {
                let body = format!("{}, {}: {}", kernel.workload, kernel.kernel, rules.join(", "));
                notes += &entry(style, ink, label, &body);
            }
        }
    }
    for difference in &c.differences {
        notes += &entry(style, Ink::Doubt, "not alike", difference);
    }
    let changed = c.kernels.iter().filter(|kernel| !kernel.changes.is_empty()).count();
    let sentence = format!("{} compared, {changed} with changed counters", plural(c.kernels.len(), "kernel"));
    let ink = if c.kernels.is_empty() { Ink::Doubt } else { Ink::Calm };
    paragraphs(&[grid.render(style), notes, last_line(style, ink, "before and after", &sentence)])
}

fn changed(kernel: &KernelChange, change: &MetricChange) -> [Cell; 6] {
    let MetricChange { metric, base, head, .. } = change;
    let by = match () {
        () if metric.contains("pct") => format!("{:+.1} points", head - base),
        () if *base == 0.0 => units::MISSING.to_owned(),
        () => units::percent(head / base - 1.0),
    };
    [
        Cell::new(&kernel.workload),
        Cell::new(&kernel.kernel),
        Cell::new(&change.title),
        Cell::new(&counter(metric, *base)),
        Cell::new(&counter(metric, *head)),
        Cell::new(&by),
    ]
}
