//! Everything a person reads, by snapshot.

mod ab;
mod apex;
mod calibration;
mod comment;
mod forms;
mod fuzz;
mod markdown;
mod profile;
mod roofline;
mod sides;
mod terminal;
mod tune;
mod values;
