//! Text for stdout and stderr.

use holdpoint_flow::FlowError;
use holdpoint_render::{Style, for_log, for_terminal};
use std::io::{self, Write};

/// Writes a page for people or programs to stdout, without colours.
pub fn print(text: &str) -> Result<(), FlowError> {
    write_stdout(&for_terminal(text, Style::default()))
}

pub(crate) fn write_stderr(text: &str) {
    // Nobody listening is no reason to fail.
    let _ = writeln!(io::stderr(), "{}", for_terminal(&for_log(text), Style::default()));
}

/// Writes to stdout. A reader that has gone away (`| head`) has seen enough.
pub(crate) fn write_stdout(text: &str) -> Result<(), FlowError> {
    let mut stdout = io::stdout().lock();
    let newline = if text.ends_with('\n') { "" } else { "\n" };
    match write!(stdout, "{text}{newline}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(FlowError::Internal(format!("cannot write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}
