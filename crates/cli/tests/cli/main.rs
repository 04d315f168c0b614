//! The binary from the outside: files and flags in; files, text and exit code out.

#![allow(clippy::unwrap_used)]

mod bad_files;
mod bad_places;
mod bad_suites;
mod common;
mod compare;
mod examples;
mod gate;
mod help;
mod keep;
mod talk;
