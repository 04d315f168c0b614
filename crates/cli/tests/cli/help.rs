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
        "run",
        "compare",
        "baseline",
        "baseline record",
        "baseline show",
        "baseline template",
        "baseline tighten",
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
        "ci guard",
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
