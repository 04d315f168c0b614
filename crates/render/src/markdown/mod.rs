//! `report.md`, the pages of comparisons and calibrations, and Apex-X's own, in GitHub's Markdown.

mod apex;
mod attestation;
mod bisection;
mod calibration;
pub mod comment;
mod roofline;
mod sides;
mod tables;

pub use apex::{apex_gpu, apex_sweep};
pub use attestation::{attestation, checklist_block};
pub use bisection::bisection;
pub(crate) use bisection::bisection_sections;
pub use calibration::calibration;
pub(crate) use calibration::calibration_sections;
pub use roofline::roofline;
pub(crate) use sides::sections as sides_sections;

use crate::escape;
use crate::judged::Judged;
use crate::summary::judgement::{checks_table, reasons};
use crate::table::EmptyColumns;
use crate::{remedy, summary};
use holdpoint_model::{Failure, Outcome, Report, Source, Stated};

pub fn report(r: &Report, j: Option<&Stated>) -> String {
    let judged = j.map(|j| Judged::new(j, Some(Source::Run(r))));
    joined(&[title(r, judged), report_sections(r, j)])
}

/// The page of a run without its title.
pub(crate) fn report_sections(r: &Report, j: Option<&Stated>) -> String {
    let judged = j.map(|j| Judged::new(j, Some(Source::Run(r))));
    let sections = [
        judged.map(checks).unwrap_or_default(),
        section("Measurements", tables::measurements(r)),
        section("Failed", failed(r)),
        section("Skipped", skipped(r)),
        section("Notes", notes(r, j)),
        section("Machine and settings", if r.is_imported() { String::new() } else { tables::provenance(r) }),
        section("Reproduce", if r.is_imported() { String::new() } else { reproduce(r) }),
    ];
    joined(&sections)
}

/// The page of a judgement with its samples; absent where there are none to show.
pub fn judgement(judged: Judged<'_>) -> Option<String> {
    if judged.is_sides() {
        return Some(sides::page(judged));
    }
    judged.run().map(|run| report(run, Some(judged.judgement)))
}

/// A warning to put before a page whose evidence has a problem.
pub fn problem(problem: &str) -> String {
    format!("> **problem**: {}\n\n", escape::prose(&crate::text::clip(problem, 600)))
}

/// Remarks below a page.
pub fn remarks(notes: &[String]) -> String {
    notes.iter().map(|note| format!("\n> {}\n", escape::prose(&crate::text::clip(note, 600)))).collect()
}

/// Sections with an empty line between them; empty ones are left out.
fn joined(sections: &[String]) -> String {
    let sections: Vec<&str> = sections.iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    sections.join("\n")
}

fn section(title: &str, body: String) -> String {
    if body.is_empty() { body } else { format!("## {title}\n\n{body}") }
}

/// The empty lines around the body let it be Markdown inside of HTML.
fn details(summary: &str, body: String) -> String {
    if body.is_empty() {
        return body;
    }
    format!("<details>\n<summary>{summary}</summary>\n\n{body}\n</details>\n")
}

fn reproduce(r: &Report) -> String {
    if !escape::is_command_word(&r.suite) {
        return String::new();
    }
    format!("```sh\nholdpoint run --suite {0}    # or the file that holds suite {0}\n```\n", r.suite)
}

fn title(r: &Report, judged: Option<Judged<'_>>) -> String {
    match judged {
        Some(judged) => tables::verdict_title(judged),
        None => tables::title(&r.suite, r.status.as_str(), &summary::describe_run(r)),
    }
}

fn checks(judged: Judged<'_>) -> String {
    let out = explained(checks_table(judged).markdown(EmptyColumns::Keep), judged);
    section(&format!("Checks (policy {})", escape::prose(&judged.judgement.policy)), out)
}

/// The table, with the reasons below it.
fn explained(table: String, judged: Judged<'_>) -> String {
    let groups = reasons(judged);
    let mut out = table;
    if !out.is_empty() && !groups.is_empty() {
        out.push('\n');
    }
    for group in groups {
        let names: Vec<String> = group.names.iter().map(|name| escape::name(name)).collect();
        let names = crate::text::list(&names, summary::NAMES_SHOWN);
        let reason = escape::prose(&remedy::with(group.reason));
        let separator = if names.is_empty() { "" } else { ": " };
        out.push_str(&format!("- **{}** {names}{separator}{reason}\n", group.verdict.as_str()));
    }
    out
}

fn failed(r: &Report) -> String {
    let failures = r.benchmarks.iter().filter_map(|(name, m)| match &m.outcome {
        Outcome::Failed(failure) => Some((escape::name(name), failure)),
        _ => None,
    });
    failure_list(failures)
}

/// Failures by name, which is escaped already, with the last lines that each wrote.
fn failure_list<'a>(failures: impl Iterator<Item = (String, &'a Failure)>) -> String {
    let mut out = String::new();
    for (name, failure) in failures {
        let detail = escape::prose(&failure.detail);
        out.push_str(&format!("- {name}: **{}**: {detail}\n", failure.cause.as_str()));
        if !failure.stderr_tail.is_empty() {
            // The block ends at `</pre>` only, so an empty line in it does not turn the rest into Markdown.
            let lines: Vec<String> = failure.stderr_tail.iter().map(|line| escape::html(line)).collect();
            out.push_str(&format!("\n<pre>\n{}\n</pre>\n\n", lines.join("\n")));
        }
    }
    let kept = out.trim_end().len();
    out.truncate(kept);
    if out.is_empty() { out } else { out + "\n" }
}

fn skipped(r: &Report) -> String {
    let reason_of = |outcome: &Outcome| match outcome {
        Outcome::Skipped { reason } => Some(reason.clone()),
        Outcome::Measured(measured) => measured.distrust.clone(),
        Outcome::Failed(_) => None,
    };
    let line = |(name, reason): (&String, String)| {
        format!("- {}: {}\n", escape::name(name), escape::prose(&remedy::with(&reason)))
    };
    r.benchmarks.iter().filter_map(|(name, m)| Some((name, reason_of(&m.outcome)?))).map(line).collect()
}

fn notes(r: &Report, j: Option<&Stated>) -> String {
    let mut notes = Vec::new();
    if let Some(j) = j {
        notes.extend(j.notes.iter().map(|note| escape::prose(note)));
        if !j.ungated.is_empty() {
            let names: Vec<String> = j.ungated.iter().map(|metric| escape::name(metric)).collect();
            let names = crate::text::list(&names, tables::NAMES_SHOWN);
            notes.push(format!(
                "not in the baseline, not judged: {names}; `holdpoint baseline record` takes in what is new"
            ));
        }
    }
    if r.toolchain.profile == "debug" {
        notes.push(summary::DEBUG_BUILD.to_owned());
    }
    if r.benchmarks.is_empty() {
        notes.push(format!("the run has no measurements (status {})", r.status.as_str()));
    }
    notes.iter().map(|note| format!("- {note}\n")).collect()
}
