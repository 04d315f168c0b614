//! Values of flags: words that stand for something, percentages, rates.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use holdpoint_flow::request::Location;

/// Words that a flag takes, each with its line of help.
pub type Words<T> = &'static [(&'static str, &'static str, T)];

/// Reads one of these words.
pub fn word<T: Copy + Send + Sync + 'static>(words: Words<T>) -> impl TypedValueParser<Value = T> {
    let values = words.iter().map(|(word, help, _)| PossibleValue::new(*word).help(*help));
    PossibleValuesParser::new(values).try_map(|text| {
        let found = words.iter().find(|(word, ..)| *word == text);
        found.map(|(.., value)| *value).ok_or("there is no such value")
    })
}

/// Reads the place of a history.
pub fn location(text: &str) -> Result<Location, String> {
    Ok(Location::parse(text))
}

/// Reads a share, typed as percent.
pub fn share(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').map(|number| number.trim().parse::<f64>());
    match number {
        Some(Ok(percent)) if (0.0..=1000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err("a percentage is wanted, such as 1% or 0.5%".to_owned()),
    }
}
