//! Finds a key that one object has twice.
//!
//! A scan over the bytes that keeps nothing but the keys of the objects it is inside of: several times faster
//! than walking the document with serde a second time. It need not judge the text, since serde does; of a text
//! that is not JSON it may say anything, but must not panic.

use super::JsonError;
use std::borrow::Cow;

/// Up to here comparing each with each is cheaper than sorting.
const FEW: usize = 16;

/// A key and where it begins.
type Key<'a> = (Cow<'a, str>, usize);

pub(super) fn refuse(text: &str) -> Result<(), JsonError> {
    let bytes = text.as_bytes();
    // The keys of all open objects, outermost first, and where each object's begin.
    let (mut keys, mut objects): (Vec<Key>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => objects.push(keys.len()),
            b'}' => {
                let first = objects.pop().unwrap_or(0);
                if let Some((key, offset)) = twice(&mut keys[first..]) {
                    return Err(error(text, key, *offset));
                }
                keys.truncate(first);
            }
            b'"' => {
                let end = end_of_string(bytes, at);
                if is_key(bytes, end) {
                    keys.push((decoded(&text[at..end]), at));
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The second use of a key that occurs twice.
fn twice<'k, 'a>(keys: &'k mut [Key<'a>]) -> Option<&'k Key<'a>> {
    if keys.len() > FEW {
        keys.sort_unstable();
        return keys.windows(2).find(|pair| pair[0].0 == pair[1].0).map(|pair| &pair[1]);
    }
    let is_repeated =
        |(index, (key, _)): &(usize, &Key)| keys[..*index].iter().any(|(other, _)| other == key);
    keys.iter().enumerate().find(is_repeated).map(|(_, key)| key)
}

/// Just behind the closing quote of the string that opens at `start`.
pub fn end_of_string(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Only a key is followed by a colon.
fn is_key(bytes: &[u8], end: usize) -> bool {
    bytes[end..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b':')
}

/// The key that a quoted text means: `"\u0061"` is `a`.
fn decoded(quoted: &str) -> Cow<'_, str> {
    if quoted.contains('\\') {
        return serde_json::from_str(quoted).map_or(Cow::Borrowed(quoted), Cow::Owned);
    }
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    Cow::Borrowed(inner.strip_suffix('"').unwrap_or(inner))
}

fn error(text: &str, key: &str, offset: usize) -> JsonError {
    let before = &text.as_bytes()[..offset];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    JsonError::Duplicate {
        key: key.to_owned(),
        line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
        column: offset - line_start + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        refuse(text).err().map(|error| error.to_string())
    }

    #[test]
    fn the_second_use_is_found_by_line_and_column() {
        let text = "{\n  \"a\": 1,\n  \"b\": [{\"a\": 2}],\n  \"a\": 3\n}";
        assert_eq!(found(text).unwrap(), "duplicate key \"a\" at line 4 column 3");
    }

    #[test]
    fn a_key_in_disguise_is_the_same_key() {
        assert!(found(r#"{"a": 1, "\u0061": 2}"#).is_some());
        assert!(found(r#"{"\"": 1, "\u0022": 2}"#).is_some());
        assert!(found(r#"{"": 1, "": 2}"#).is_some());
        assert!(found(r#"{"\"a": 1, "a": 2, "{": 3, "}": 4, "\\": 5}"#).is_none());
    }

    #[test]
    fn values_and_keys_of_other_objects_do_not_count() {
        assert_eq!(found(r#"{"a": "a", "b": ["a", "a"], "c": {"a": {"a": 1}}, "d": {"a": 1}}"#), None);
    }

    #[test]
    fn large_objects_are_searched_too() {
        let keys = (0..1_000).map(|i| format!("\"k{i}\": {i}")).collect::<Vec<_>>().join(", ");
        assert_eq!(found(&format!("{{{keys}}}")), None);
        assert!(found(&format!("{{{keys}, \"k500\": 1}}")).unwrap().contains("\"k500\""));
    }

    #[test]
    fn half_documents_do_not_panic() {
        for text in
            ["", "}", "}}{", "\"", "\"\\", "{\"a", "{\"a\\", "{\"ü\\", "{\"a\":1,\"a\"", "{\"a\"}\"a\":}"]
        {
            let _ = refuse(text);
        }
    }
}
