//! Files that people write, in TOML: suites, waivers, who is told.

use crate::limits::clean_text;
use serde::de::DeserializeOwned;

/// A file that cannot be used. No secret is in it.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TomlError {
    /// Not TOML, or not of its form.
    #[error("{0}")]
    Syntax(String),
    /// A value that makes no sense, or does not belong there.
    #[error("{place}: {what}")]
    Invalid {
        place: String,
        /// The problem and its remedy.
        what: String,
    },
}

pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| TomlError::Syntax(syntax_error(text, &error)))
}

/// The error in one line that names the place.
fn syntax_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let place = before.map_or_else(String::new, |before| {
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        format!(" at line {line} column {column}")
    });
    let lines: Vec<String> = error.message().lines().map(clean_text).collect();
    format!("TOML parse error{place}: {}", lines.join("; "))
}

/// The error of a value at a place in the file.
pub fn invalid<T>(place: &str, what: impl AsRef<str>) -> Result<T, TomlError> {
    Err(TomlError::Invalid { place: clean_text(place), what: clean_text(what.as_ref()) })
}
