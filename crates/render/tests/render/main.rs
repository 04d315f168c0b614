//! Everything a person reads, by snapshot.

mod ab;
mod apex;
mod calibration;
mod markdown;
mod roofline;
mod sides;
mod terminal;
mod tune;
mod values;
