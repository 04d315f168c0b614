//! All tests of Rust code, with what they need from Debian's packages: harnesses that the examples use, rsync, by which GitLab's
//! pipelines are run, and PostgreSQL, on which tests of the history start a server.
//!
//! `cargo test --workspace` needs none of this; it leaves out what takes minutes or a network, and skips, aloud, what is missing.

use std::path::Path;
use std::process::{Command, Stdio};

const PACKAGES: [&str; 5] = ["golang-go", "libbenchmark-dev", "rsync", "postgresql", "openssl"];
/// One of each package's files.
const FILES: [&str; 5] = [
    "/usr/bin/go",
    "/usr/include/benchmark/benchmark.h",
    "/usr/bin/rsync",
    "/usr/lib/postgresql",
    "/usr/bin/openssl",
];
/// With it, tests fail where their packages are missing.
const REQUIRED: &str = "HOLDPOINT_REQUIRE_INTEROP";

/// Names what could not be installed, and whether tests failed.
pub fn run(root: &Path) -> Vec<String> {
    let mut problems = Vec::new();
    if !FILES.iter().all(|file| Path::new(file).exists()) && !install() {
        problems.push(format!("could not install {}; install them and try again", PACKAGES.join(", ")));
    }
    let tests = ["test", "--workspace", "--locked", "--features", "holdpoint/all-tests"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(tests).current_dir(root).env(REQUIRED, "1");
    match cargo.status() {
        Ok(status) if status.success() => {}
        Ok(status) => problems.push(format!("tests failed: {status}")),
        Err(error) => problems.push(format!("cargo: {error}")),
    }
    problems
}

fn install() -> bool {
    let apt = |words: &[&str]| {
        let status = Command::new("apt-get").args(words).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let install = [&["install", "-qq", "--yes", "--no-install-recommends"], &PACKAGES[..]].concat();
    apt(&["update", "-qq"]) && apt(&install)
}
