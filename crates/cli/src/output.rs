//! Results to stdout, everything else to stderr; nothing of it is a command to a pipeline's runner.

use crate::args::{Format, Global};
use crate::error::CliError;
use holdpoint_model::json;
use holdpoint_render::{Style, for_log};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// How this process talks.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    /// What goes to stdout.
    pub format: Format,
    /// Whether only errors are told.
    pub quiet: bool,
}

impl Output {
    /// As the flags say.
    #[must_use]
    pub fn new(global: &Global) -> Self {
        Self { format: global.format, quiet: global.quiet }
    }

    /// How text for stdout may look.
    #[must_use]
    pub fn style(&self) -> Style {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
        Style { color: terminal && !no_color, width }
    }

    /// The result: a document or a text, as asked for.
    ///
    /// # Errors
    /// When stdout cannot be written to.
    pub fn result<T: Serialize>(
        &self,
        document: &T,
        text: impl FnOnce(Style) -> String,
    ) -> Result<(), CliError> {
        match self.format {
            Format::Json => {
                let document = json::to_pretty(document).map_err(|e| CliError::Internal(e.to_string()))?;
                print(&json_for_log(&document))
            }
            Format::Human if self.quiet => Ok(()),
            Format::Human => print(&for_log(&text(self.style()))),
        }
    }

    /// Something the user should know; not part of the result.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            // Nobody listening is no reason to fail.
            let _ = writeln!(io::stderr(), "{}", for_log(text));
        }
    }

    /// How far things have come; told only where somebody watches.
    pub fn progress(&self, text: &str) {
        if io::stderr().is_terminal() {
            self.note(text);
        }
    }

    /// What went wrong.
    pub fn error(&self, error: &CliError) {
        let _ = writeln!(io::stderr(), "holdpoint: {}", for_log(&error.to_string()));
        if let CliError::Build(error) = error {
            for line in error.last_lines() {
                let _ = writeln!(io::stderr(), "  | {}", for_log(line));
            }
        }
    }
}

/// JSON without a command to a runner. Two hashes and a bracket are in a string there: written so, it is the same string.
#[must_use]
pub fn json_for_log(document: &str) -> String {
    document.replace("##[", "#\\u0023[").replace("##vso[", "#\\u0023vso[")
}

/// Writes to stdout. A reader that has gone away (`| head`) has seen enough.
///
/// # Errors
/// When stdout cannot be written to for any other reason.
pub fn print(text: &str) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::Internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
