//! Names of people who answer for something.

use crate::limits::is_said;

/// Words that stand for no person, and accounts that several people or none are behind.
const NO_PERSON: [&str; 24] = [
    "admin",
    "administrator",
    "all",
    "anon",
    "anonymous",
    "anybody",
    "anyone",
    "bot",
    "ci",
    "everybody",
    "everyone",
    "me",
    "nobody",
    "none",
    "noone",
    "person",
    "root",
    "runner",
    "somebody",
    "someone",
    "team",
    "unknown",
    "us",
    "user",
];

/// Whether a name is a person's, as far as words tell.
pub fn is_person(name: &str) -> bool {
    let word = name.trim_start_matches('@').to_lowercase();
    let word: String = word.chars().filter(|c| !matches!(c, ' ' | '-' | '_' | '.')).collect();
    is_said(&word) && !NO_PERSON.contains(&word.as_str()) && !word.ends_with("[bot]")
}
