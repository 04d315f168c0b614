//! The text that a command prints for people.

mod baseline;
mod bisection;
mod calibration;
mod caps;
mod check;
mod devices;
mod evidence;
mod fuzz;
mod judgement;
mod profile;
mod report;
mod roofline;
mod sanitize;
mod trend;
mod tune;

pub use baseline::baseline;
pub use bisection::bisection;
pub use calibration::calibration;
pub use caps::caps;
pub use check::check;
pub use devices::devices;
pub use evidence::{attestation, replay_manifest, replay_verification, verified};
pub use fuzz::{fuzz, replayed};
pub use judgement::{evidence_of_sides, judgement};
pub use profile::{profile, profile_comparison};
pub use report::report;
pub(crate) use report::{measured, samples_count, stopped};
pub use roofline::{ceilings, roofline};
pub use sanitize::sanitize;
pub use trend::trend;
pub use tune::tune;

use crate::paint::{Ink, Style};
use crate::text::{clean, wrap};

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
