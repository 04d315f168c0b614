//! Results to stdout, everything else to stderr. All text passes here on its way out, and whatever file or process it came from,
//! none of it is a command to a terminal or to a pipeline's runner.

use crate::args::{Format, Global};
use crate::interrupt;
use crate::progress::Bar;
use holdpoint_flow::{FlowError, Progress, Watch};
use holdpoint_model::json;
use holdpoint_render::{Style, for_log, for_terminal, json_for_terminal};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// How this process talks.
#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub format: Format,
    /// Print only errors.
    pub quiet: bool,
}

impl Output {
    /// As the flags say.
    pub fn new(global: &Global) -> Self {
        Self { format: global.format, quiet: global.quiet }
    }

    /// How text for stdout may look.
    pub fn style(&self) -> Style {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
            || std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let width = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
        Style { color: terminal && !no_color, width, ascii: is_ascii_locale(|name| std::env::var(name).ok()) }
    }

    /// The result: a document or a text, as asked for.
    pub fn result<T: Serialize>(
        &self,
        document: &T,
        text: impl FnOnce(Style) -> String,
    ) -> Result<(), FlowError> {
        match self.format {
            Format::Json => {
                let document = json::to_pretty(document).map_err(|e| FlowError::Internal(e.to_string()))?;
                print(&json_for_terminal(&document))
            }
            Format::Human if self.quiet => Ok(()),
            Format::Human => {
                let style = self.style();
                write_stdout(&for_terminal(&for_log(&text(style)), style))
            }
        }
    }

    /// Prints an error.
    pub fn error(&self, error: &FlowError) {
        // One line, so that no file or name in it can speak for us in the next.
        write_stderr(&format!("holdpoint: {error}").replace(['\n', '\r'], " "));
        for line in error.lines_below() {
            write_stderr(&format!("  | {line}"));
        }
    }
}

impl Watch for Output {
    fn note(&self, text: &str) {
        if !self.quiet {
            write_stderr(text);
        }
    }

    /// Only where somebody watches.
    fn progress(&self, text: &str) {
        if io::stderr().is_terminal() {
            self.note(text);
        }
    }

    fn start(&self, workloads_count: usize) -> Box<dyn Progress> {
        Box::new(Bar::new(workloads_count, self.quiet))
    }

    fn keep_on_interrupt(&self) {
        interrupt::hold();
    }

    fn is_interrupted(&self) -> bool {
        interrupt::has_come()
    }
}

/// Whether the locale names a character set other than UTF-8. Without a locale nothing is known, and UTF-8 is usual.
fn is_ascii_locale(variable: impl Fn(&str) -> Option<String>) -> bool {
    let named = ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .find_map(|name| variable(name).filter(|value| !value.is_empty()));
    named.is_some_and(|locale| !locale.to_lowercase().replace('-', "").contains("utf8"))
}

/// Writes a page for people or programs to stdout, without colours.
pub fn print(text: &str) -> Result<(), FlowError> {
    write_stdout(&for_terminal(text, Style::default()))
}

pub(crate) fn write_stderr(text: &str) {
    // Nobody listening is no reason to fail.
    let _ = writeln!(io::stderr(), "{}", for_terminal(&for_log(text), Style::default()));
}

/// Writes to stdout. A reader that has gone away (`| head`) has seen enough.
fn write_stdout(text: &str) -> Result<(), FlowError> {
    let mut stdout = io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(FlowError::Internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawings_follow_the_locale_that_counts() {
        let locale = |all: &'static str, lang: &'static str| {
            is_ascii_locale(move |name| match name {
                "LC_ALL" => Some(all.to_owned()),
                "LANG" => Some(lang.to_owned()),
                _ => None,
            })
        };
        assert!(!locale("", "") && !locale("", "de_DE.UTF-8") && !locale("C.utf8", "C"));
        assert!(locale("C", "en_US.UTF-8") && locale("", "POSIX") && locale("", "de_DE.ISO-8859-1"));
    }
}
