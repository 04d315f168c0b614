//! Everything a person reads, by snapshot.

mod ab;
mod apex;
mod calibration;
mod comment;
mod comment_facts;
mod evidence;
mod forms;
mod fuzz;
mod history;
mod html;
mod markdown;
mod profile;
mod roofline;
mod sides;
mod terminal;
mod tune;
mod values;
