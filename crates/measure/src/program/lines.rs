//! Lines from and to untrusted processes: of limited length, and never lines but for the last few.

use holdpoint_model::limits::{LINE_BYTES_MAX, STDERR_LINES_KEPT, clean_text};
use holdpoint_model::protocol::Message;
use serde::Serialize;
use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// A whole line, or the last one without its newline.
    Text(String),
    /// A line over the limit; nothing more can be read from the stream.
    TooLong,
    NotText,
    End,
}

/// Reads one line of at most [`LINE_BYTES_MAX`] bytes.
pub(crate) fn read_line(reader: &mut impl BufRead) -> io::Result<Line> {
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

/// How long a stream may stay open after its writer has ended: a grandchild may hold it.
const GRACE: Duration = Duration::from_millis(500);

/// The last lines of a stream: always drained, so that the writer never waits for a reader.
pub(crate) struct Tail {
    lines: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    /// Reads the stream to its end, in a thread of its own.
    pub(crate) fn new(pipe: impl Read + Send + 'static) -> Self {
        let lines = Arc::new(Mutex::new(VecDeque::new()));
        let for_reader = Arc::clone(&lines);
        Self { lines, reader: std::thread::spawn(move || drain(pipe, &for_reader)) }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The last lines of a writer that has ended.
    pub(crate) fn last_lines(&self) -> Vec<String> {
        let step = Duration::from_millis(5);
        (0..GRACE.as_millis() / step.as_millis())
            .take_while(|_| !self.reader.is_finished())
            .for_each(|_| std::thread::sleep(step));
        self.lines()
    }
}

fn drain(pipe: impl Read, lines: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let line = match read_line(&mut reader) {
            Ok(Line::Text(text)) => clean_text(&text),
            Ok(Line::NotText) => "(not UTF-8)".to_owned(),
            Ok(Line::TooLong) => {
                push(lines, "(a line over the limit; nothing after it was kept)".to_owned());
                let _ = io::copy(&mut reader, &mut io::sink());
                return;
            }
            Ok(Line::End) | Err(_) => return,
        };
        push(lines, line);
    }
}

fn push(lines: &Mutex<VecDeque<String>>, line: String) {
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == STDERR_LINES_KEPT {
        lines.pop_front();
    }
    lines.push_back(line);
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
