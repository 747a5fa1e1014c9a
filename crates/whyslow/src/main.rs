//! whyslow: find out why something on a Linux machine was slow, and who did it.

mod cli;
mod commands;

use std::process::ExitCode;

use whyslow_base::interrupt;

use cli::Cli;

fn main() -> ExitCode {
    // Rust ignores SIGPIPE, so a closed pipe is a write error; it maps to exit code 0.
    let code = match commands::run(Cli::from_args()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    };
    interrupt::remove_all();
    code
}
