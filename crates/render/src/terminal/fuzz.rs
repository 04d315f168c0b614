//! The table after `holdpoint fuzz`.

use super::{last_line, paragraphs};
use crate::paint::{Ink, Style};
use crate::remedy;
use crate::table::{Cell, Column, Grid, names, numbers, words};
use crate::text::{entry, plural};
use crate::units;
use holdpoint_model::fuzz::{Finding, FuzzFailure, FuzzedKernel, Replayed, Shown, SizeRange};
use holdpoint_model::{FindingKind, FuzzCase, FuzzReport, Values};

const COLUMNS: &[Column] = &[
    names("op"),
    words("dtype"),
    words("worker"),
    numbers("cases"),
    numbers("passed"),
    numbers("max abs").drop(2),
    numbers("max rel").drop(3),
    numbers("rel norm").drop(1),
    numbers("correlation").drop(4),
];

pub fn fuzz(report: &FuzzReport, style: Style) -> String {
    let mut grid = Grid::new(COLUMNS);
    let (mut ranges, mut notes) = (String::new(), String::new());
    for kernel in &report.kernels {
        if kernel.cases_count > 0 {
            grid.push(row(kernel));
        }
        if !kernel.sizes.is_empty() {
            ranges += &entry(style, Ink::Plain, "sizes", &sizes(kernel));
        }
        for failure in &kernel.failures {
            let is_unknown = failure.finding.kind == FindingKind::OracleFailed;
            let word = if is_unknown { "broken" } else { "wrong" };
            notes += &found(kernel, failure, (Ink::Bad, word), style);
        }
        if let Some(inaccuracy) = &kernel.less_accurate {
            notes += &found(kernel, inaccuracy, (Ink::Doubt, "inaccurate"), style);
        }
        if let Some(reason) = &kernel.skipped {
            notes += &entry(style, Ink::Doubt, "skipped", &skipped(kernel, reason));
        }
    }
    let seed = format!("{}: --seed {} draws the same cases", report.seed, report.seed);
    notes += &entry(style, Ink::Dim, "seed", &seed);
    paragraphs(&[grid.render(style), ranges, notes, end(report, style)])
}

/// `attention f32 by mine: batch 1–8, heads 1–32`.
fn sizes(kernel: &FuzzedKernel) -> String {
    let range = |SizeRange { name, min, max }: &SizeRange| match min == max {
        true => format!("{name} {min}"),
        false => format!("{name} {min}–{max}"),
    };
    let ranges: Vec<String> = kernel.sizes.iter().map(range).collect();
    format!("{} {} by {}: {}", kernel.name(), kernel.dtype, kernel.worker, ranges.join(", "))
}

/// `3 of 150 runs`.
fn runs(shown: Shown) -> String {
    format!("{} of {}", shown.failed_count, plural(shown.runs_count, "run"))
}

fn row(kernel: &FuzzedKernel) -> [Cell; 9] {
    let errors = &kernel.errors;
    let failed = kernel.cases_count - kernel.passed_count;
    let small = |value: f64| if value == 0.0 { "0".to_owned() } else { format!("{value:.1e}") };
    [
        Cell::new(kernel.name()),
        Cell::new(&kernel.dtype),
        Cell::new(&kernel.worker),
        Cell::new(&units::count(kernel.cases_count)),
        Cell::new(&units::count(kernel.passed_count)).with(if failed > 0 { Ink::Bad } else { Ink::Good }),
        Cell::number(Some(errors.max_abs_err), small),
        Cell::number(Some(errors.max_rel_err), small),
        Cell::number(Some(errors.rel_norm), small),
        Cell::number(errors.correlation, |value| format!("{value:.6}")),
    ]
}

fn finding_name(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::LessAccurate => "less accurate than it should be",
        kind => kind.name(),
    }
}

/// The finding, the case, and the command that replays it, each on a line of its own.
fn found(kernel: &FuzzedKernel, failure: &FuzzFailure, (ink, word): (Ink, &str), style: Style) -> String {
    let Finding { kind, detail } = &failure.finding;
    let found_after = plural(failure.found_after, "case");
    let mut case = format!("{}, found after {found_after}", describe_case(&failure.case));
    if !failure.shown.is_always() {
        case += &format!(", failed in {}", runs(failure.shown));
    }
    let mut text = entry(style, ink, word, &format!("{}: {}: {detail}", kernel.name(), finding_name(*kind)));
    text += &entry(style, Ink::Plain, "", &case);
    if let Some(file) = &failure.file {
        text += &entry(style, Ink::Plain, "", &format!("again: holdpoint fuzz replay {file}"));
    }
    text
}

fn skipped(kernel: &FuzzedKernel, reason: &str) -> String {
    let refused = match (kernel.refused_count, kernel.cases_count) {
        (0, _) | (_, 0) => String::new(),
        (count, _) => plural(count, "case") + ", the last: ",
    };
    format!("{} {} by {}: {refused}{}", kernel.name(), kernel.dtype, kernel.worker, remedy::with(reason))
}

/// `[1,1,17,64] f16 causal=true, normal values`.
fn describe_case(case: &FuzzCase) -> String {
    let shape: Vec<String> = case.shape.iter().map(ToString::to_string).collect();
    let mut text = format!("[{}] {}", shape.join(","), case.dtype);
    for (name, value) in &case.params {
        text += &format!(" {name}={value}");
    }
    if case.offset > 0 {
        text += &format!(", {} off alignment", plural(case.offset, "element"));
    }
    format!("{text}, {} values", values(case.values))
}

fn values(values: Values) -> &'static str {
    match values {
        Values::Normal => "normal",
        Values::Uniform => "uniform",
        Values::Zero => "zero",
        Values::Constant => "constant",
        Values::Large => "large",
        Values::Tiny => "tiny",
        Values::Small => "small",
        Values::Spikes => "spiked",
        Values::Spread => "spread",
        Values::Nan => "NaN among normal",
        Values::Infinite => "infinity among normal",
    }
}

fn end(report: &FuzzReport, style: Style) -> String {
    let cases: u64 = report.kernels.iter().map(|kernel| kernel.cases_count).sum();
    let passed: u64 = report.kernels.iter().map(|kernel| kernel.passed_count).sum();
    let wrong = report.kernels.iter().filter(|kernel| kernel.is_wrong()).count();
    let unknown = report.kernels.iter().filter(|kernel| !kernel.failures.is_empty()).count();
    let took = format!("{} s", units::seconds(report.elapsed_s));
    let ran = report.kernels.iter().filter(|kernel| kernel.cases_count > 0).count();
    let kernels = plural(ran, "kernel");
    let idle = report.kernels.len() - ran;
    let unchecked = report.kernels.iter().filter(|kernel| kernel.is_unchecked()).count();
    let idle = if idle == 0 { String::new() } else { format!("; {idle} did not run") };
    match (wrong, cases) {
        (0, _) if unknown > 0 => last_line(
            style,
            Ink::Bad,
            "broken",
            &format!("the oracle of {unknown} of {kernels} failed{idle}"),
        ),
        (0, _) if unchecked > 0 => {
            let all = plural(report.kernels.len(), "kernel");
            let checked = units::count(cases);
            let body = format!(
                "the oracles skipped every case of {unchecked} of {all}; {checked} cases were checked"
            );
            last_line(style, Ink::Doubt, "skipped", &body)
        }
        (0, 0) => last_line(style, Ink::Doubt, "skipped", "no kernel could be run"),
        (0, _) => last_line(
            style,
            Ink::Good,
            "ok",
            &format!("{} cases of {kernels} passed in {took}{idle}", units::count(passed)),
        ),
        _ => {
            let body = format!(
                "{wrong} of {kernels}, {} of {} cases, in {took}{idle}",
                units::count(cases - passed),
                units::count(cases)
            );
            last_line(style, Ink::Bad, "wrong", &body)
        }
    }
}

/// The outcomes of saved cases.
pub fn replayed(outcomes: &[(String, Replayed)], style: Style) -> String {
    let mut text = String::new();
    for (path, Replayed { evaluated, shown }) in outcomes {
        let seen = runs(*shown);
        text += &match (&evaluated.finding, &evaluated.skipped) {
            (Some(finding), _) => entry(
                style,
                Ink::Bad,
                if finding.kind == FindingKind::OracleFailed { "broken" } else { "wrong" },
                &format!("{path}: {} in {seen}: {}", finding.kind.name(), finding.detail),
            ),
            (None, Some(reason)) => {
                entry(style, Ink::Doubt, "skipped", &format!("{path}: {}", remedy::with(reason)))
            }
            (None, None) => entry(style, Ink::Good, "passed", &format!("{path}: wrong in {seen}")),
        };
    }
    text
}
