//! Everything a person reads, by snapshot.

mod markdown;
mod terminal;
mod values;
