//! Strict reading and steady writing of JSON.
//!
//! Reading refuses duplicate keys, which serde would resolve silently in favour of the last one. Writing
//! keeps numbers on one line and each object of an array on its own, so that samples and checks read as tables.

mod duplicates;
mod layout;

pub use duplicates::end_of_string;

use crate::limits::{clean_text, is_invisible};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::{self, Write};
use std::thread;

/// JSON that cannot be used; the text is one line and names line and column.
#[derive(Debug)]
pub enum JsonError {
    /// Not JSON, or not of the wanted form.
    Syntax(serde_json::Error),
    /// A key twice in one object.
    Duplicate {
        /// The key.
        key: String,
        /// Line of its second use, from 1.
        line: usize,
        /// Column in bytes of its second use, from 1.
        column: usize,
    },
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            // Names from the file are part of serde's texts, line ends and terminal codes included.
            Self::Syntax(error) => {
                let hint = if error.is_eof() { "; is the file cut off?" } else { "" };
                write!(f, "{}{hint}", clean_text(&error.to_string()))
            }
            Self::Duplicate { key, line, column } => {
                write!(f, "duplicate key {:?} at line {line} column {column}", clean_text(key))
            }
        }
    }
}

impl std::error::Error for JsonError {}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error)
    }
}

/// From this size on duplicate keys are looked for beside reading, on another core.
const LARGE_BYTES: usize = 1 << 23;

/// Reads one JSON document, refusing duplicate keys and anything after its end.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, JsonError> {
    let (value, unique) = match text.len() {
        0..LARGE_BYTES => (serde_json::from_str(text), None),
        _ => thread::scope(|scope| {
            let unique = scope.spawn(|| duplicates::refuse(text));
            (serde_json::from_str(text), unique.join().ok())
        }),
    };
    // Serde notices some duplicates itself, as errors of form; here all are told in one way.
    if !matches!(&value, Err(error) if !error.is_data()) {
        unique.unwrap_or_else(|| duplicates::refuse(text))?;
    }
    Ok(value?)
}

/// Writes a document in the layout described above, newline at the end.
pub fn to_pretty<T: Serialize>(value: &T) -> Result<String, JsonError> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, layout::Layout::default());
    value.serialize(&mut serializer)?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(|error| JsonError::Syntax(serde::ser::Error::custom(error)))
}

/// The same document, in which characters of its texts that paint or hide others are escaped.
pub fn escape_invisible(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        // Those below U+0080 are escaped by every writer, or separate values.
        if (c.is_control() || is_invisible(c)) && c >= '\u{7f}' {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn a_duplicate_key_is_refused_at_any_depth() {
        let error = parse::<Value>(r#"{"a": [{"b": 1, "b": 2}]}"#).unwrap_err().to_string();
        assert!(error.contains("duplicate key \"b\"") && error.contains("line 1"), "{error}");
        assert!(parse::<Value>(r#"{"a": {"b": 1}, "c": {"b": 2}}"#).is_ok());
    }

    #[test]
    fn what_paints_or_hides_is_escaped_and_read_back() {
        let value = json!({"a\u{9b}\u{202e}": "é \u{e0041}\u{7f}\n"});
        let text = escape_invisible(&value.to_string());
        assert_eq!(text, r#"{"a\u009b\u202e":"é \udb40\udc41\u007f\n"}"#);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn text_after_the_end_is_refused() {
        assert!(parse::<Value>("{} {}").is_err());
    }

    #[test]
    fn numbers_stay_on_one_line_and_objects_of_an_array_have_one_each() {
        let value = json!({
            "a": [1, 2], "b": {}, "c": [{"d": null, "e": {"f": [{}]}}, {"g": []}], "h": {"i": [[{"j": 1}], 2]}
        });
        let text = to_pretty(&value).unwrap();
        let expected = r#"{
  "a": [1, 2],
  "b": {},
  "c": [
    {"d": null, "e": {"f": [{}]}},
    {"g": []}
  ],
  "h": {
    "i": [[
      {"j": 1}
    ], 2]
  }
}
"#;
        assert_eq!(text, expected);
        assert_eq!(parse::<Value>(&text).unwrap(), value);
    }

    #[test]
    fn every_number_is_read_back_to_the_last_bit() {
        for value in
            [0.1 + 0.2, 1.0 / 3.0, 0.165_478_000_000_000_01, 5e-324, f64::MAX, 123_456_789.123_456_79]
        {
            let text = to_pretty(&value).unwrap();
            assert_eq!(parse::<f64>(&text).unwrap().to_bits(), f64::to_bits(value), "{text}");
        }
    }

    #[test]
    fn an_error_is_one_line_whatever_the_file_says() {
        let error = parse::<crate::RunStatus>("\"a\\nb\\u001b[31m\"").unwrap_err().to_string();
        assert!(error.contains("unknown variant `ab[31m`"), "{error:?}");
    }
}
