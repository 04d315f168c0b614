//! The text that a command prints for people.

mod baseline;
mod bisection;
mod cache;
mod calibration;
mod caps;
mod changes;
mod check;
mod devices;
mod evidence;
mod fuzz;
mod history;
mod judgement;
mod plot;
mod profile;
mod report;
mod roofline;
mod sanitize;
mod trend;
mod tune;

pub use baseline::baseline;
pub use bisection::bisection;
pub use cache::cache;
pub use calibration::calibration;
pub use caps::caps;
pub use changes::changes;
pub use check::check;
pub use devices::devices;
pub use evidence::{attestation, replay_manifest, replay_verification, verified};
pub use fuzz::{fuzz, replayed};
pub use history::{history, runs, series};
pub use judgement::{evidence_of_sides, judgement};
pub use profile::{profile, profile_comparison};
pub use report::report;
pub use roofline::{ceilings, roofline};
pub use sanitize::sanitize;
pub use trend::trend;
pub use tune::tune;

use crate::paint::{Ink, Style};
use crate::remedy;
use crate::summary::{NAMES_SHOWN, group};
use crate::text::{clean, entry, list, wrap};
use holdpoint_model::profile::{ToolInfo, Unavailable};
use holdpoint_model::protocol::DeviceInfo;

/// Paragraphs with an empty line between them; empty ones are left out.
fn paragraphs(parts: &[String]) -> String {
    let parts: Vec<&str> = parts.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

/// The last line: the word that counts, and a sentence.
fn last_line(style: Style, ink: Ink, word: &str, sentence: &str) -> String {
    let text = wrap(&format!("{word}: {}", clean(sentence)), style.width, 2);
    match text.strip_prefix(word) {
        Some(rest) => format!("{}{rest}\n", style.paint(ink, word)),
        None => format!("{text}\n"),
    }
}

/// `2 skipped`, `1 failed`, where there are any.
fn counted<const N: usize>(counts: [(usize, &str); N]) -> impl Iterator<Item = String> {
    counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}"))
}

fn ink_of_counts(bad: usize, good: usize) -> Ink {
    match (bad, good) {
        (1.., _) => Ink::Bad,
        (0, 0) => Ink::Doubt,
        _ => Ink::Calm,
    }
}

fn describe_tool(tool: &ToolInfo) -> String {
    format!("{} {}", tool.name, tool.version)
}

fn describe_device(device: &DeviceInfo) -> String {
    format!("{}, driver {}", device.name, device.versions.driver)
}

/// Workloads with the same reason in one paragraph.
fn group_by_reason(others: &[(Ink, &str, String, &String)], style: Style) -> String {
    let groups =
        group(others.iter().map(|(ink, label, why, workload)| ((*ink, *label, why.as_str()), workload)));
    let entries = groups.iter().map(|((ink, label, why), workloads)| {
        entry(style, *ink, label, &format!("{}: {why}", list(workloads, NAMES_SHOWN)))
    });
    entries.collect()
}

/// The reason, the detail and the remedy.
fn describe_unavailable(why: &Unavailable) -> String {
    let seen = why.detail.as_ref().map(|detail| format!(": {detail}")).unwrap_or_default();
    let remedy = why.remedy.as_deref().or_else(|| remedy::find(&why.reason));
    let remedy = remedy.map(|remedy| format!(" ({remedy})")).unwrap_or_default();
    format!("{}{seen}{remedy}", why.reason)
}
