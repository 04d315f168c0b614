//! Logs of compute-sanitizer: lines that begin with `=========`, a paragraph for each error, a summary at the end.

use holdpoint_model::limits::clean_text;
use holdpoint_model::profile::SanitizerError;

/// Errors kept; the count covers all.
const ERRORS_KEPT: usize = 20;
const MARK: &str = "=========";

/// A log as far as it could be understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SanitizerLog {
    /// The count of the summary; absent where there is no summary, as the tool did not finish.
    pub errors_count: Option<u64>,
    pub errors: Vec<SanitizerError>,
    /// Complaints about the sanitizer itself or its machine: `Error: …`, `Internal …`, `Target application …`.
    pub troubles: Vec<String>,
}

/// Reads a log. Lines of the program's own in between are skipped; nothing is refused.
pub fn sanitizer_log(text: &str) -> SanitizerLog {
    let mut log = SanitizerLog::default();
    let mut is_open = false;
    for line in text.lines() {
        let Some(rest) = line.split_once(MARK).map(|(_, rest)| rest) else { continue };
        let (indent, words) = (rest.len() - rest.trim_start().len(), rest.trim());
        // A line without a visible character is empty.
        if words.chars().all(char::is_control) {
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

/// The count in `ERROR SUMMARY: 2 errors`, `RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)`, and the like.
fn summary(words: &str) -> Option<u64> {
    let (_, counted) =
        words.split_once("SUMMARY: ").filter(|(kind, _)| kind.chars().all(|c| !c.is_lowercase()))?;
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

/// Adds the facts of one line of an error's paragraph.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> SanitizerLog {
        let path = format!("{}/../model/tests/data/tools/sanitizer-{name}.txt", env!("CARGO_MANIFEST_DIR"));
        sanitizer_log(&std::fs::read_to_string(path).unwrap())
    }

    #[test]
    fn a_clean_run_has_a_summary_that_counts_nothing() {
        for name in ["clean", "racecheck-clean", "leak-clean"] {
            assert_eq!(
                log(name),
                SanitizerLog { errors_count: Some(0), ..SanitizerLog::default() },
                "{name}"
            );
        }
    }

    #[test]
    fn each_tool_tells_what_where_and_by_whom() {
        let first = |name: &str| log(name).errors.swap_remove(0);
        let error = first("memcheck");
        assert_eq!(error.what, "Invalid __global__ write of size 4 bytes");
        assert_eq!(error.kernel.as_deref(), Some("fault_address"));
        assert_eq!(error.place.as_deref(), Some("fault_address+0x80"));
        assert_eq!(error.thread.as_deref(), Some("thread (0,0,0) in block (0,0,0)"));
        let error = first("initcheck");
        assert_eq!(error.what, "Uninitialized __global__ memory read of size 4 bytes");
        assert_eq!(error.place.as_deref(), Some("uninit+0x60 in race.cu:3"));
        let error = first("synccheck");
        assert_eq!(error.what, "Barrier error detected. Divergent thread(s) in warp.");
        assert_eq!(error.kernel.as_deref(), Some("badsync"));
        let error = first("racecheck");
        assert_eq!(error.kernel.as_deref(), Some("race"));
        assert_eq!(error.place.as_deref(), Some("race+0xa0 in race.cu:2"));
        let counts = ["memcheck", "initcheck", "synccheck", "racecheck"].map(|name| log(name).errors_count);
        assert_eq!(counts, [Some(13), Some(64), Some(16), Some(1)]);
        assert_eq!(log("initcheck").errors.len(), ERRORS_KEPT);
    }

    #[test]
    fn without_a_summary_nothing_is_known() {
        let text = "========= COMPUTE-SANITIZER\n========= Invalid __shared__ read of size 1 bytes\n";
        let log = sanitizer_log(text);
        assert_eq!((log.errors_count, log.errors.len()), (None, 1));
        assert_eq!(sanitizer_log("hello\n"), SanitizerLog::default());
        let log = sanitizer_log("========= Error: Device not supported. Please refer to the documentation\n");
        assert_eq!((log.errors.len(), log.troubles.len()), (0, 1));
    }
}
