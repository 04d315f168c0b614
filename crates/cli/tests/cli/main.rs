//! The binary from the outside: files and flags in; files, text and exit code out.

#![allow(clippy::unwrap_used)]

mod ab;
mod ab_commands;
mod ab_sides;
mod against;
mod attest;
mod bad_files;
mod bad_places;
mod bad_suites;
mod bisect;
mod calibrate;
mod changes;
mod check;
mod ci;
mod comment;
mod comment_verdict;
mod common;
mod compare;
mod environment;
mod escapes;
mod examples;
mod fakes;
mod fuzz;
mod fuzz_workers;
mod gate;
mod github;
mod gpu_reports;
mod harness;
mod harness_kinds;
mod help;
mod imports;
mod init;
mod interrupted;
mod metrics;
mod misbehaving;
mod output;
mod pages;
mod parallel;
mod poisoned;
mod profile;
#[path = "../../../process/tests/support/program.rs"]
mod program;
mod promote;
mod read_first;
mod replay;
mod repository;
mod roofline;
mod sanitize;
mod scripted_worker;
mod sealed;
#[allow(dead_code)]
#[path = "../../../ci/tests/ci/server.rs"]
mod server;
mod status;
mod stored_files;
mod waivers;
