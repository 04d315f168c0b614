//! Flags and glue: what was typed becomes calls into the other crates. The only crate that prints and exits.

pub mod args;
mod commands;
mod error;
mod output;
mod progress;
mod suites;

use args::{Args, Command};
use clap::Parser;
use error::CliError;
use holdpoint_measure::worker;
use holdpoint_model::ExitCode;
use output::Output;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(message) => {
            // Help and version go to stdout and are no error; clap knows which is which.
            let _ = message.print();
            return if message.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let output = Output::new(&args.global);
    end_with_signals();
    match run(args.command, &output) {
        Ok(code) => code,
        Err(error) => {
            output.error(&error);
            error.exit_code()
        }
    }
}

/// Ends the workloads' processes with this one when it is interrupted: they run in groups of their own, which
/// the terminal does not reach. What was measured so far is given up.
fn end_with_signals() {
    // Without handlers a signal still ends this process, as it would any.
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGHUP]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            worker::kill_all();
            std::process::exit(128 + signal);
        }
    });
}

fn run(command: Command, output: &Output) -> Result<ExitCode, CliError> {
    match command {
        Command::Gate(args) => commands::gate::run(&args, output),
        Command::Run(args) => commands::run::run(&args, output),
        Command::Compare(args) => commands::compare::run(&args, output),
        Command::Baseline(args) => commands::baseline::run(&args, output),
        Command::Trend(args) => commands::trend::run(&args, output),
        Command::Report(args) => commands::report::run(&args, output),
        Command::Doctor => commands::doctor::run(output),
        Command::Worker(args) => commands::worker::run(&args),
        Command::Completions(args) => commands::completions::run(&args, output),
    }
}
