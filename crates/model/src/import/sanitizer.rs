//! What compute-sanitizer writes: lines that begin with `=========`, a paragraph for each error, a summary at the end.

use crate::limits::clean_text;
use crate::profile::SanitizerError;

/// Errors kept; the count tells of all.
const ERRORS_KEPT: usize = 100;
const MARK: &str = "=========";

/// A log as far as it could be understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizerLog {
    /// As many errors as its summary counts; absent where there is no summary, so that nothing was looked at to the end.
    pub errors_count: Option<u64>,
    /// The first errors.
    pub errors: Vec<SanitizerError>,
    /// Complaints about the sanitizer itself or its machine: `Error: …`, `Internal …`, `Target application …`.
    pub troubles: Vec<String>,
}

/// Reads a log. Lines of the program's own in between are skipped; nothing is refused.
#[must_use]
pub fn sanitizer_log(text: &str) -> SanitizerLog {
    let mut log = SanitizerLog::default();
    let mut is_open = false;
    for line in text.lines() {
        let Some(rest) = line.split_once(MARK).map(|(_, rest)| rest) else { continue };
        let (indent, words) = (rest.len() - rest.trim_start().len(), rest.trim());
        if words.is_empty() {
            is_open = false;
        } else if let Some(count) = summary(words) {
            log.errors_count = Some(log.errors_count.unwrap_or(0).saturating_add(count));
            is_open = false;
        } else if indent > 1 {
            if is_open && let Some(error) = log.errors.last_mut() {
                describe(error, words);
            }
        } else if is_own_trouble(words) {
            log.troubles.push(clean_text(words));
            is_open = false;
        } else if !is_banner(words) {
            is_open = log.errors.len() < ERRORS_KEPT;
            if is_open {
                log.errors.push(SanitizerError { what: clean_text(words), ..SanitizerError::default() });
                if let Some(error) = log.errors.last_mut() {
                    describe(error, words);
                }
            }
        }
    }
    log
}

/// `ERROR SUMMARY: 2 errors`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`, and the like: what is counted comes
/// first.
fn summary(words: &str) -> Option<u64> {
    let (_, counted) = words.split_once("SUMMARY: ").filter(|(kind, _)| kind.chars().all(|c| !c.is_lowercase()))?;
    let digits: String = counted.chars().take_while(char::is_ascii_digit).collect();
    // `LEAK SUMMARY: 0 bytes leaked` counts bytes; its errors are in the other.
    let is_of_errors = counted.contains("error") || counted.contains("hazard");
    digits.parse().ok().filter(|_| is_of_errors)
}

fn is_banner(words: &str) -> bool {
    words == "COMPUTE-SANITIZER"
        || words.starts_with("This tool is deprecated")
        || words.contains("SUMMARY: ")
        || words.starts_with("Printed ")
        || words.starts_with("Saving ")
}

/// Words about the tool, not about the program.
fn is_own_trouble(words: &str) -> bool {
    ["Error: Target application", "Error: No attachable process", "Error: Device not supported", "Internal "]
        .iter()
        .any(|begin| words.starts_with(begin))
        || words.contains("Device not supported")
        || words.contains("LibraryNotLoaded")
        || words.starts_with("Target application")
}

/// Takes what a line of an error's paragraph tells.
fn describe(error: &mut SanitizerError, words: &str) {
    if let Some(at) = place(words) {
        let kernel = at.split(['+', '(']).next().unwrap_or(at).trim();
        if error.kernel.is_none() && !kernel.is_empty() && !kernel.starts_with("0x") {
            error.kernel = Some(clean_text(kernel));
        }
        error.place.get_or_insert_with(|| clean_text(at));
    }
    if let Some((_, thread)) = words.split_once("by thread ") {
        error.thread.get_or_insert_with(|| clean_text(&format!("thread {thread}")));
    }
}

/// `at kernel+0x50 in file.cu:3`, alone or behind `Race reported between Write access`.
fn place(words: &str) -> Option<&str> {
    let at = words.strip_prefix("at ").or_else(|| words.split_once(" access at ").map(|(_, at)| at));
    at.filter(|at| at.contains("+0x") || at.contains(" in ") || at.starts_with("0x"))
}
