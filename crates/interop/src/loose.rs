//! Numbers that Python writes and JSON does not have: `NaN`, `Infinity`. They become text, so that a reader that wants a number
//! refuses them by name, and one that knows what they mean can ask.

use crate::Source;
use holdpoint_model::json::end_of_string;
use std::borrow::Cow;

/// The words, and what stands for them in JSON.
const WORDS: [(&str, &str); 3] =
    [("-Infinity", "\"-Infinity\""), ("Infinity", "\"Infinity\""), ("NaN", "\"NaN\"")];

/// The same files as JSON; unchanged where they have none of these numbers.
pub(crate) fn as_json(source: &Source) -> Cow<'_, Source> {
    match source {
        Source::File(text) => match quote_words(text) {
            Cow::Borrowed(_) => Cow::Borrowed(source),
            Cow::Owned(text) => Cow::Owned(Source::File(text)),
        },
        Source::Folder(files) if files.values().any(|text| has_words(text)) => {
            let changed = files.iter().map(|(path, text)| (path.clone(), quote_words(text).into_owned()));
            Cow::Owned(Source::Folder(changed.collect()))
        }
        Source::Folder(_) => Cow::Borrowed(source),
    }
}

fn has_words(text: &str) -> bool {
    text.starts_with(['{', '[']) && (text.contains("NaN") || text.contains("Infinity"))
}

fn quote_words(text: &str) -> Cow<'_, str> {
    if !has_words(text) {
        return Cow::Borrowed(text);
    }
    let (mut changed, mut kept, mut at) = (String::with_capacity(text.len()), 0, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        at = match byte {
            b'"' => end_of_string(bytes, at),
            b'N' | b'I' | b'-' => match WORDS.iter().find(|(word, _)| text[at..].starts_with(word)) {
                Some((word, quoted)) => {
                    changed += &text[kept..at];
                    changed += quoted;
                    kept = at + word.len();
                    kept
                }
                None => at + 1,
            },
            _ => at + 1,
        };
    }
    changed += &text[kept..];
    Cow::Owned(changed)
}

#[cfg(test)]
mod tests {
    use super::quote_words;

    #[test]
    fn words_become_text_and_text_stays() {
        for (text, expected) in [
            (r#"{"a": NaN, "b": [-Infinity, Infinity]}"#, r#"{"a": "NaN", "b": ["-Infinity", "Infinity"]}"#),
            (r#"{"NaN": "an \" NaN", "ü": -1}"#, r#"{"NaN": "an \" NaN", "ü": -1}"#),
            ("{\"a\": NaN, \"b\\", "{\"a\": \"NaN\", \"b\\"),
            ("NaN", "NaN"),
        ] {
            assert_eq!(quote_words(text), expected);
        }
    }
}
