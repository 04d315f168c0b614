//! The help texts, as a user sees them.

use crate::common::Here;

#[test]
fn every_command_explains_itself() {
    let here = Here::new();
    for command in [
        "",
        "gate",
        "ab",
        "calibrate",
        "bisect",
        "cache",
        "cache clean",
        "run",
        "sweep",
        "compare",
        "baseline",
        "baseline record",
        "baseline show",
        "baseline template",
        "baseline fit",
        "trend",
        "trend append",
        "trend show",
        "report",
        "roofline",
        "doctor",
        "profile",
        "sanitize",
        "tune",
        "replay",
        "replay record",
        "replay verify",
        "attest",
        "attest keygen",
        "attest create",
        "attest sign",
        "attest verify",
        "attest show",
        "checklist",
        "worker",
        "ci",
        "ci init",
        "ci gate",
        "ci guard",
        "ci promote",
        "ci report",
        "completions",
    ] {
        let arguments: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let ran = here.run(&arguments);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{command}");
        insta::assert_snapshot!(format!("help {command}").trim().replace(' ', "_"), ran.stdout);
    }
}

#[test]
fn the_version_is_told() {
    let version = format!("holdpoint {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Here::new().run(&["--version"]).ends(0).stdout, version);
}

/// Columns and lines of a screen.
const SCREEN: [usize; 2] = [100, 50];
/// Flags of its own that `gate` and `ab` show.
const FLAGS_MAX: usize = 16;

/// Every command, as it is typed.
fn commands() -> Vec<Vec<String>> {
    fn below(command: &clap::Command, path: &[String], all: &mut Vec<Vec<String>>) {
        all.push(path.to_vec());
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
            below(sub, &[path, &[sub.get_name().to_owned()]].concat(), all);
        }
    }
    let mut all = Vec::new();
    below(&holdpoint_cli::args::command(), &[], &mut all);
    all
}

#[test]
fn the_short_help_of_every_command_fits_a_screen() {
    let here = Here::new();
    for command in commands() {
        let words: Vec<&str> = command.iter().map(String::as_str).chain(["-h"]).collect();
        let help = here.run(&words).ends(0).stdout.clone();
        let widest = help.lines().map(|line| line.chars().count()).max().unwrap_or(0);
        assert!(help.lines().count() <= SCREEN[1] && widest <= SCREEN[0], "{command:?}\n{help}");
    }
}

#[test]
fn gate_and_ab_show_few_flags_and_all_when_asked() {
    let here = Here::new();
    for command in ["gate", "ab"] {
        for help in ["-h", "--help"] {
            let text = here.run(&[command, help]).ends(0).stdout.clone();
            let is_flag = |line: &&str| {
                let line = line.trim_start();
                line.starts_with("--") || line.starts_with('-') && !line.starts_with("- ")
            };
            let common = ["--format", "--quiet", "--help", "--help-all", "--version"];
            let own =
                text.lines().filter(is_flag).filter(|line| !common.iter().any(|flag| line.contains(flag)));
            let own: Vec<&str> = own.collect();
            assert!(own.len() <= FLAGS_MAX, "{command} {help}: {own:#?}");
        }
        let all = here.run(&[command, "--help-all"]).ends(0).stdout.clone();
        for flag in ["--units-max", "--at-once", "--measure-same-code", "--calibration-dir"] {
            assert!(all.contains(flag), "{command}: {flag}");
        }
    }
}

#[test]
fn every_command_belongs_to_a_task() {
    let help = Here::new().run(&["--help"]).ends(0).stdout.clone();
    for command in commands().iter().filter(|command| command.len() == 1) {
        let line = format!("\n  {:<12} ", command[0]);
        assert_eq!(help.matches(&line).count(), 1, "{command:?}\n{help}");
    }
}
