//! The command lines by which this program starts itself.

use super::{Args, Command};
use clap::FromArgMatches;
use holdpoint_flow::ci::CiRequest;
use holdpoint_flow::request::{MeasureRequest, OwnProcess, SuiteChoice, WorkerRequest};
use holdpoint_flow::run::{RunRequest, RunSubject};
use std::ffi::OsString;

/// The request that `cli` parses from a command line.
fn parsed(arguments: Vec<OsString>) -> OwnProcess {
    let line = [vec!["holdpoint".into()], arguments].concat();
    let matches = super::command().try_get_matches_from(line).unwrap();
    match Args::from_arg_matches(&matches).unwrap().command {
        Some(Command::Run(args)) => match args.into() {
            RunRequest { subject: RunSubject::Suite(suite), output, parent: Some(parent), .. } => {
                OwnProcess::Run { suite, output, parent }
            }
            request => panic!("{request:?}"),
        },
        Some(Command::Worker(args)) => OwnProcess::Worker(args.into()),
        Some(Command::Ci(args)) => match args.into() {
            CiRequest::Measure(request) => OwnProcess::Measure(request),
            CiRequest::Wall => OwnProcess::Wall,
            request => panic!("{request:?}"),
        },
        Some(Command::Watchdog { session }) if session == "tag" => OwnProcess::Watchdog,
        command => panic!("{command:?}"),
    }
}

#[test]
fn every_command_line_of_our_own_is_parsed_into_what_it_was_made_of() {
    let small = SuiteChoice::new("perf.toml", None);
    let whole = SuiteChoice { device: Some(3), workdir: Some("a b".into()), ..small.clone() };
    let measure = MeasureRequest {
        suite: "/s/perf.toml".into(),
        workdir: "/w".into(),
        settings: "/b/.holdpoint".into(),
        artifacts: "/a".into(),
        head: "1".repeat(40),
        against: Some("2".repeat(40)),
        gpu: true,
        trend: true,
    };
    let alone = MeasureRequest { against: None, gpu: false, trend: false, ..measure.clone() };
    let worker =
        WorkerRequest { suite: whole.clone(), worker: Some("cuda".into()), slowdown: 0.25, tail: 0.5 };
    let plain = WorkerRequest { suite: small.clone(), worker: None, slowdown: 0.0, tail: 0.0 };
    let run = |suite| OwnProcess::Run { suite, output: "r.json".into(), parent: 7 };
    let processes = [run(small), run(whole), OwnProcess::Wall]
        .into_iter()
        .chain([worker, plain].map(OwnProcess::Worker))
        .chain([measure, alone].map(OwnProcess::Measure));
    for process in processes {
        assert_eq!(parsed(process.arguments()), process);
    }
    let watchdog = [OwnProcess::Watchdog.arguments(), vec!["tag".into()]].concat();
    assert_eq!(parsed(watchdog), OwnProcess::Watchdog);
}
