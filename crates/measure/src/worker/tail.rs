//! The last lines of an untrusted stream: bounded in memory, never on disk, and always drained, so that the writer
//! never waits.

use super::lines::{Line, read_line};
use holdpoint_model::limits::{STDERR_LINES_KEPT, clean_text};
use std::collections::VecDeque;
use std::io::{BufReader, Read};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a stream may stay open after its writer has ended: a grandchild may hold it.
const GRACE: Duration = Duration::from_millis(500);

pub(crate) struct Tail {
    kept: Arc<Mutex<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Tail {
    /// Reads the stream to its end, in a thread of its own.
    pub(crate) fn new(pipe: impl Read + Send + 'static) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        let for_reader = Arc::clone(&kept);
        Self { kept, reader: std::thread::spawn(move || keep(pipe, &for_reader)) }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
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

fn keep(pipe: impl Read, kept: &Mutex<VecDeque<String>>) {
    let mut reader = BufReader::new(pipe);
    loop {
        let line = match read_line(&mut reader) {
            Ok(Line::Text(text)) => clean_text(&text),
            Ok(Line::NotText) => "(not UTF-8)".to_owned(),
            Ok(Line::TooLong) => {
                push(kept, "(a line over the limit; nothing after it was kept)".to_owned());
                let _ = std::io::copy(&mut reader, &mut std::io::sink());
                return;
            }
            Ok(Line::End) | Err(_) => return,
        };
        push(kept, line);
    }
}

fn push(kept: &Mutex<VecDeque<String>>, line: String) {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == STDERR_LINES_KEPT {
        kept.pop_front();
    }
    kept.push_back(line);
}
