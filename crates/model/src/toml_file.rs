//! Files that people write, in TOML: suites, waivers, who is told.

use crate::limits::clean_text;
use serde::de::DeserializeOwned;

/// As alike as a slip of the pen leaves two names.
const SIMILAR_MIN: f64 = 0.8;

/// A file that cannot be used. No secret is in it.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum TomlError {
    /// Not TOML, or not of its form.
    #[error("{0}")]
    Syntax(String),
    /// The same in a file whose lines may be shown.
    #[error("{what}")]
    Shown {
        what: String,
        /// The line, and marks below the place.
        lines: Box<[String]>,
    },
    /// A value that makes no sense, or does not belong there.
    #[error("{place}: {what}")]
    Invalid {
        place: String,
        /// The problem and its remedy.
        what: String,
    },
}

/// Reads a file of which no line may be shown.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| TomlError::Syntax(syntax_error(text, &error)))
}

/// Reads a file that holds no secrets: an error has the line in it.
pub(crate) fn parse_shown<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| {
        let shown = error.to_string();
        let lines = shown.lines().filter_map(|line| line.split_once("| ")).take(2);
        let lines = lines.map(|(_, line)| clean_text(line)).collect();
        TomlError::Shown { what: syntax_error(text, &error), lines }
    })
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
    let hint =
        find_similar(error.message()).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
    format!("TOML parse error{place}: {}{hint}", lines.join("; "))
}

/// Of an unknown name and those that are known, each in backquotes, the known one that was probably meant.
fn find_similar(message: &str) -> Option<&str> {
    let mut names = message.strip_prefix("unknown ")?.split('`').skip(1).step_by(2);
    let unknown = names.next()?;
    let similar = |name: &&str| strsim::jaro_winkler(unknown, name);
    let closest = names.max_by(|a, b| similar(a).total_cmp(&similar(b)))?;
    (similar(&closest) > SIMILAR_MIN).then_some(closest)
}

/// The error of a value at a place in the file.
pub fn invalid<T>(place: &str, what: impl AsRef<str>) -> Result<T, TomlError> {
    Err(TomlError::Invalid { place: clean_text(place), what: clean_text(what.as_ref()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Settings {
        #[serde(rename = "rounds_max")]
        _rounds_max: u32,
        #[serde(rename = "round_ms")]
        _round_ms: Option<f64>,
    }

    #[test]
    fn a_mistyped_key_is_shown_with_the_one_that_was_meant() {
        let text = "# a suite\nround_max = 3\n";
        let first = "TOML parse error at line 2 column 1: unknown field `round_max`, expected `rounds_max` or `round_ms`; \
                     did you mean rounds_max?";
        let lines = ["round_max = 3", "^^^^^^^^^"].map(str::to_owned).into();
        assert_eq!(parse_shown::<Settings>(text), Err(TomlError::Shown { what: first.to_owned(), lines }));
        assert_eq!(parse::<Settings>(text).unwrap_err().to_string(), first);
        assert!(!parse::<Settings>("budget = 3\n").unwrap_err().to_string().contains("did you mean"));
    }
}
