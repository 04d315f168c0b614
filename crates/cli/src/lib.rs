//! Flags and glue: what was typed becomes calls into the other crates. The only crate that prints and exits.

pub mod args;
mod artifacts;
mod ceilings;
mod commands;
mod error;
mod interrupt;
mod output;
mod progress;
mod sealing;
mod suites;
mod waivers;

use args::{Args, Command};
use clap::FromArgMatches;
use error::CliError;
use holdpoint_measure::jobs;
use holdpoint_model::ExitCode;
use output::Output;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    if let Some(help) = args::help_all(&arguments) {
        return if output::print(&help).is_ok() { ExitCode::Ok } else { ExitCode::Internal };
    }
    let matches = args::command().try_get_matches();
    let parsed =
        matches.and_then(|matches| Ok((Args::from_arg_matches(&matches)?, args::stray_flag(&matches))));
    let (args, stray) = match parsed {
        Ok(parsed) => parsed,
        Err(message) => {
            // Help and version go to stdout and are no error; clap knows which is which.
            let _ = message.print();
            return if message.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let output = Output::new(&args.global);
    interrupt::listen();
    if let Ok(program) = std::env::current_exe() {
        jobs::watchdog::guard_with(vec![program.into(), "watchdog".into()]);
    }
    let done = match stray {
        Some(stray) => Err(CliError::Input(stray)),
        None => hide_secrets().and_then(|()| run(args.command, &output)),
    };
    jobs::sweep();
    match done {
        Ok(code) => code,
        Err(error) => {
            // A build that was killed with us did not fail.
            if !(interrupt::has_come() && matches!(error, CliError::Build(_))) {
                output.error(&error);
            }
            interrupt::end_if_come();
            error.exit_code()
        }
    }
}

/// No other process of this user may read the secrets in our environment.
fn hide_secrets() -> Result<(), CliError> {
    holdpoint_process::hide_from_children(false)
        .map_err(|error| CliError::Internal(format!("secrets of the environment cannot be hidden: {error}")))
}

fn run(command: Command, output: &Output) -> Result<ExitCode, CliError> {
    match command {
        Command::Gate(args) => commands::gate::run(&args, output),
        Command::Ab(args) => commands::ab::run(&args, output),
        Command::Calibrate(args) => commands::calibrate::run(&args, output),
        Command::Bisect(args) => commands::bisect::run(&args, output),
        Command::Run(args) => commands::run::run(&args, output),
        Command::Compare(args) => commands::compare::run(&args, output),
        Command::Baseline(args) => commands::baseline::run(&args, output),
        Command::Trend(args) => commands::trend::run(&args, output),
        Command::Report(args) => commands::report::run(&args, output),
        Command::Roofline(args) => commands::roofline::run(&args, output),
        Command::Doctor => commands::doctor::run(output),
        Command::Profile(args) => commands::profile::run(&args, output),
        Command::Sanitize(args) => commands::sanitize::run(&args, output),
        Command::Tune(args) => commands::tune::run(&args, output),
        Command::Check(args) => commands::check::run(&args, output),
        Command::Fuzz(args) => commands::fuzz::run(&args, output),
        Command::Replay(args) => commands::replay::run(&args, output),
        Command::Attest(args) => commands::attest::run(&args, output),
        Command::Checklist(args) => commands::checklist::run(&args, output),
        Command::Watchdog { session } => {
            jobs::watchdog::watch(&session, std::io::stdin().lock());
            Ok(ExitCode::Ok)
        }
        Command::Worker(args) => commands::worker::run(&args),
        Command::Ci(args) => commands::ci::run(&args, output),
        Command::Completions(args) => commands::completions::run(&args, output),
    }
}
