//! Lines of the protocol: of limited length, from an untrusted stream.

use holdpoint_model::limits::LINE_BYTES_MAX;
use holdpoint_model::protocol::Message;
use serde::Serialize;
use std::io::{self, BufRead};

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// A whole line, or the last one without its newline.
    Text(String),
    /// A line over the limit; nothing more can be read from the stream.
    TooLong,
    NotText,
    End,
}

/// Reads one line of at most [`LINE_BYTES_MAX`] bytes.
pub(super) fn read_line(reader: &mut impl BufRead) -> io::Result<Line> {
    let mut bytes = Vec::new();
    loop {
        let buffer = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if buffer.is_empty() {
            return Ok(if bytes.is_empty() { Line::End } else { text(bytes) });
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let taken = newline.unwrap_or(buffer.len());
        if bytes.len() + taken > LINE_BYTES_MAX {
            return Ok(Line::TooLong);
        }
        bytes.extend_from_slice(&buffer[..taken]);
        reader.consume(taken + usize::from(newline.is_some()));
        if newline.is_some() {
            return Ok(text(bytes));
        }
    }
}

/// A message as the protocol sends it.
pub(crate) fn to_line(id: u64, body: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Message { id, body })?;
    line.push(b'\n');
    Ok(line)
}

fn text(bytes: Vec<u8>) -> Line {
    String::from_utf8(bytes).map_or(Line::NotText, Line::Text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut bytes: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        loop {
            let line = read_line(&mut bytes).unwrap();
            let over = matches!(line, Line::End | Line::TooLong);
            lines.push(line);
            if over {
                return lines;
            }
        }
    }

    #[test]
    fn lines_come_whole_and_limited() {
        let text = |text: &str| Line::Text(text.to_owned());
        assert_eq!(all(b"a\n\nb"), [text("a"), text(""), text("b"), Line::End]);
        assert_eq!(all(b"\xff\n"), [Line::NotText, Line::End]);
        assert_eq!(all(&vec![b'x'; LINE_BYTES_MAX + 1]), [Line::TooLong]);
        assert_eq!(all(&vec![b'x'; LINE_BYTES_MAX]).len(), 2);
    }
}
