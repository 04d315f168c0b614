//! Revisions of real repositories, checked out and built.

#![allow(clippy::unwrap_used)]

mod cache;
mod common;
mod failures;
mod history;
mod inventory;
mod listing;
mod outside;
#[path = "../../../process/tests/support/program.rs"]
mod program;
mod workshop;
