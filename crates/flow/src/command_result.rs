//! The result of a command.

use crate::error::FlowError;
use holdpoint_model::ExitCode;
use serde_json::Value;

/// A command that did its work.
#[derive(Debug)]
pub struct CommandResult<T> {
    pub document: T,
    /// For people, to be shown below the document.
    pub notes: Vec<String>,
    /// How it ended. An error here is one that the document can be shown before.
    pub end: Result<ExitCode, FlowError>,
}

impl<T> CommandResult<T> {
    pub fn new(document: T, exit: ExitCode) -> Self {
        Self { document, notes: Vec::new(), end: Ok(exit) }
    }

    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    pub fn map<U>(self, into: impl FnOnce(T) -> U) -> CommandResult<U> {
        CommandResult { document: into(self.document), notes: self.notes, end: self.end }
    }
}

/// The result of a command that has no document of its own: the same for programs and for people.
#[derive(Clone, Debug)]
pub struct Message {
    pub json: Value,
    pub text: String,
}
