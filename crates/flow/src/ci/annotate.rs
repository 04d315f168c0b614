//! Lines of a job's log that its forge shows beside the change.

use super::event::variable;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Error,
    Warning,
    Notice,
}

/// Whether a runner of GitHub reads the log.
pub(crate) fn is_github() -> bool {
    variable("GITHUB_ACTIONS") == "true"
}

/// An annotation where GitHub reads the log, else a line for people.
pub fn line(level: Level, text: &str) -> String {
    let word = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    if is_github() {
        return format!("::{word}::{}\n", escape(text));
    }
    match level {
        Level::Error => String::new(),
        Level::Warning | Level::Notice => format!("{}: {text}\n", word.to_uppercase()),
    }
}

/// As the runner reads it back. A bracket behind two hashes would be a command of the old form, anywhere in a line.
fn escape(text: &str) -> String {
    let escaped = text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    escaped.replace("##[", "#%23[")
}
