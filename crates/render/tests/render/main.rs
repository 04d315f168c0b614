//! Everything a person reads, by snapshot.

mod ab;
mod calibration;
mod markdown;
mod sides;
mod terminal;
mod values;
