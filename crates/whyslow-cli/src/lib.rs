//! The command line of whyslow and its commands.
//!
//! A crate of its own because of how the program is optimised: the optimisation across all crates
//! happens at the level of the crate with `main`, which has to be the highest, and most of what is
//! in here runs once and should be small.

mod cli;
mod commands;
#[cfg(test)]
mod message_snapshots;

use std::process::ExitCode;

use whyslow_base::interrupt;

use cli::Cli;

/// Runs the command that the process was started with.
pub fn run() -> ExitCode {
    // Rust ignores SIGPIPE, so a closed pipe is a write error; it maps to exit code 0.
    let code = match Cli::from_args().and_then(commands::run) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    };
    interrupt::remove_all();
    code
}
