//! The command line: flags, help, printing, signals and exit codes. What the commands do is in `holdpoint_flow`.

pub mod args;
mod interrupt;
mod options;
mod output;
mod progress;
mod show;
mod streams;

use args::{Args, Command};
use clap::FromArgMatches;
use holdpoint_flow::request::OwnProcess;
use holdpoint_flow::{self as flow, CommandResult, FlowError, Watch};
use holdpoint_measure::program::peak;
use holdpoint_measure::{doctor, jobs};
use holdpoint_model::ExitCode;
use output::Output;
use show::{Show, WithEvidence};
use std::io;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    // Before anything else: what this process has used by then is the least peak that it can tell.
    if let [_, command, program @ ..] = arguments.as_slice()
        && command == peak::COMMAND
    {
        let peak = peak::call(program).map(|bytes| streams::print(&format!("{bytes}\n")));
        return if matches!(peak, Some(Ok(()))) { ExitCode::Ok } else { ExitCode::Internal };
    }
    if let Some(help) = args::help_all(&arguments) {
        return if streams::print(&help).is_ok() { ExitCode::Ok } else { ExitCode::Internal };
    }
    let matches = args::command().try_get_matches();
    let args = match matches.and_then(|matches| Args::from_arg_matches(&matches)) {
        Ok(args) => args,
        Err(message) => {
            // Help and version go to stdout and are no error; clap knows which is which.
            let _ = message.print();
            return if message.use_stderr() { ExitCode::Usage } else { ExitCode::Ok };
        }
    };
    let output = Output::new(&args.global);
    interrupt::listen();
    if let Ok(program) = std::env::current_exe() {
        peak::launch_with(program.clone());
        let watchdog = [vec![program.into()], OwnProcess::Watchdog.arguments()].concat();
        jobs::watchdog::guard_with(watchdog);
    }
    let done = hide_secrets().and_then(|()| run(args.command, &output));
    jobs::sweep();
    let code = done.unwrap_or_else(|error| {
        // A build that was killed with us did not fail.
        if !(interrupt::has_come() && matches!(error, FlowError::Build(_))) {
            output.error(&error);
        }
        error.exit_code()
    });
    interrupt::end_if_come();
    code
}

/// No other process of this user may read the secrets in our environment.
fn hide_secrets() -> Result<(), FlowError> {
    holdpoint_process::hide_from_children(false)
        .map_err(|error| FlowError::Internal(format!("secrets of the environment cannot be hidden: {error}")))
}

fn run(command: Option<Command>, output: &Output) -> Result<ExitCode, FlowError> {
    let Some(command) = command else { return show(flow::status::run()?, output) };
    match command {
        Command::Gate(args) => show(flow::gate::run(&args.request()?, output)?, output),
        Command::Ab(args) => {
            let with_evidence = args.evidence;
            let done = flow::ab::run(&args.request()?, output)?;
            if with_evidence { show(done.map(WithEvidence), output) } else { show(done, output) }
        }
        Command::Calibrate(args) => show(flow::calibrate::run(&args.into(), output)?, output),
        Command::Bisect(args) => show(flow::bisect::run(&args.into(), output)?, output),
        Command::Blame(args) => show(flow::blame::run(&args.into(), output)?, output),
        Command::Run(args) => show(flow::run::run(&args.into(), output)?, output),
        Command::Sweep(args) => show(flow::sweep::run(&args.into(), output)?, output),
        Command::Compare(args) => show(flow::compare::run(&args.into())?, output),
        Command::Baseline(args) => show(flow::baseline::run(&args.into(), output)?, output),
        Command::Changes(args) => show(flow::changes::run(&args.into(), output)?, output),
        Command::History(args) => show(flow::history::run(&args.into(), output)?, output),
        Command::Trend(args) => show(flow::trend::run(&args.into(), output)?, output),
        Command::Report(args) => show(flow::report::run(&args.into(), output)?, output),
        Command::Roofline(args) => show(flow::roofline::run(&args.into(), output)?, output),
        Command::Cache(args) => show(flow::cache::run(&args.into())?, output),
        Command::Init(args) => show(flow::init::run(&args.into(), output)?, output),
        Command::Doctor => show(CommandResult::new(doctor::runtime_caps(), ExitCode::Ok), output),
        Command::Profile(args) => show(flow::profile::run(&args.into(), output)?, output),
        Command::Sanitize(args) => show(flow::sanitize::run(&args.into(), output)?, output),
        Command::Tune(args) => show(flow::tune::run(&args.into(), output)?, output),
        Command::Check(args) => show(flow::check::run(&args.into(), output)?, output),
        Command::Fuzz(args) => show(flow::fuzz::run(&args.into(), output)?, output),
        Command::Replay(args) => show(flow::replay::run(&args.into(), output)?, output),
        Command::Attest(args) => show(flow::attest::run(&args.into())?, output),
        Command::Checklist(args) => show(flow::checklist::run(&args.into(), output)?, output),
        Command::Ci(args) => show(flow::ci::run(&args.into(), output)?, output),
        Command::Watchdog { session } => {
            jobs::watchdog::watch(&session, io::stdin().lock());
            Ok(ExitCode::Ok)
        }
        Command::Worker(args) => {
            flow::worker::run(&args.into(), io::stdin().lock(), io::stdout().lock()).map(|()| ExitCode::Ok)
        }
        Command::Completions(args) => {
            let mut script = Vec::new();
            clap_complete::generate(args.shell, &mut args::command(), "holdpoint", &mut script);
            streams::print(&String::from_utf8_lossy(&script)).map(|()| ExitCode::Ok)
        }
    }
}

/// Prints the result of a command, then its notes.
fn show<T: Show>(done: CommandResult<T>, output: &Output) -> Result<ExitCode, FlowError> {
    done.document.show(output)?;
    done.notes.iter().for_each(|note| output.note(note));
    done.end
}
