//! Workers of every temper and the scheduler that must survive them.

#![allow(clippy::unwrap_used)]

mod ab;
mod ab_inputs;
mod ab_processes;
mod builtin;
mod commands;
mod common;
mod crashes;
mod floods;
mod garbage;
mod hangs;
mod lies;
mod listed;
#[path = "../../../process/tests/support/program.rs"]
mod program;
mod schedule;
mod serve;
