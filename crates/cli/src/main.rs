//! The holdpoint command.

fn main() -> std::process::ExitCode {
    holdpoint_cli::main().into()
}
