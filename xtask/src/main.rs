//! Steps for those who work on holdpoint: `cargo xtask gen` writes the generated files, `cargo xtask check` fails
//! when they are out of date, `cargo xtask tidy` checks the rules of CONTRIBUTING.md that a program can check and that
//! commands in the documentation exist,
//! `cargo xtask kernels` compiles every kernel and compares its registers and spills with those recorded,
//! `cargo xtask test-all` runs all tests, with the programs and services that some of them need,
//! `cargo xtask dist` makes the files of a release,
//! `cargo xtask unchanged REPORT…` counts false alarms among reports of one revision.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod constants;
mod cycles;
mod dist;
mod generate;
mod kernels;
mod test_all;
mod tidy;
mod unchanged;
mod unused;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default();
    let step = std::env::args().nth(1).unwrap_or_default();
    let arguments: Vec<String> = std::env::args().skip(2).collect();
    let problems = match step.as_str() {
        "gen" => generate::write(&root),
        "check" => generate::check(&root),
        "tidy" => tidy::check(&root),
        "kernels" => kernels::check(&root, &arguments),
        "test-all" => test_all::run(&root),
        "dist" => dist::make(&root),
        "unchanged" => unchanged::judge_all(&arguments),
        _ => vec![
            "usage: cargo xtask gen|check|tidy|kernels [--record] [--require]|test-all|dist|unchanged REPORT…"
                .to_owned(),
        ],
    };
    for problem in &problems {
        eprintln!("xtask {step}: {problem}");
    }
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
