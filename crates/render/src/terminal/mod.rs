//! What a person reads after a command.

mod baseline;
mod caps;
mod judgement;
mod report;
mod trend;

pub use baseline::baseline;
pub use caps::caps;
pub use judgement::judgement;
pub use report::report;
pub(crate) use report::stopped;
pub use trend::trend;

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
