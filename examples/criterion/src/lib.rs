//! Words of a text.

use std::collections::HashMap;

/// How often each word is there.
pub fn count(text: &str) -> HashMap<&str, usize> {
    let mut counts = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_insert(0) += 1;
    }
    counts
}

/// The longest word.
pub fn longest(text: &str) -> Option<&str> {
    text.split_whitespace().max_by_key(|word| word.len())
}
