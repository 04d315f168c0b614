//! The same cases on every store.
//!
//! PostgreSQL's run on a server of their own, which is made and started here and ends with the test. Without PostgreSQL they are skipped,
//! which is said aloud; with HOLDPOINT_REQUIRE_INTEROP set, as in `.ci/run`, they fail instead.

#![allow(clippy::print_stderr, clippy::unwrap_used)]

mod cases;
mod server;
mod tls;

use cases::{CASES, DATABASE_CASES};
use holdpoint_history::Location;

const REQUIRED: &str = "HOLDPOINT_REQUIRE_INTEROP";

#[test]
fn sqlite_passes_every_case() {
    for (name, case) in CASES.iter().chain(DATABASE_CASES) {
        let dir = tempfile::tempdir().unwrap();
        eprintln!("sqlite: {name}");
        case(&Location::file(dir.path().join("deep/history.db")));
    }
}

#[test]
fn git_passes_the_cases_that_are_not_about_databases() {
    let dir = tempfile::tempdir().unwrap();
    let done = holdpoint_process::command("git").args(["init", "--quiet"]).arg(dir.path()).status();
    assert!(done.unwrap().success());
    // A ref is one of the repository here; the other tests name full paths.
    std::env::set_current_dir(dir.path()).unwrap();
    for (number, (name, case)) in CASES.iter().enumerate() {
        eprintln!("git: {name}");
        case(&Location::parse(&format!("git:refs/cases/{number}")));
    }
}

#[test]
fn postgresql_passes_every_case() {
    let Some(server) = server::Server::start("-c fsync=off") else {
        assert!(std::env::var_os(REQUIRED).is_none(), "PostgreSQL's initdb is not installed");
        eprintln!("skipped: PostgreSQL's initdb is not installed");
        return;
    };
    for (number, (name, case)) in CASES.iter().chain(DATABASE_CASES).enumerate() {
        eprintln!("postgresql: {name}");
        case(&server.create_database(&format!("case{number}")));
    }
    let location = server.create_database("restart");
    eprintln!("postgresql: a restarted server is waited for");
    cases::a_writer_waits_for_its_server(&location, &server);
}

#[test]
fn a_server_is_believed_as_far_as_its_url_says() {
    if !tls::a_server_is_believed_as_far_as_its_url_says() {
        assert!(std::env::var_os(REQUIRED).is_none(), "PostgreSQL's initdb or openssl is not installed");
        eprintln!("skipped: PostgreSQL's initdb or openssl is not installed");
    }
}
