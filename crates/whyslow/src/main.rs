//! whyslow: find out why something on a Linux machine was slow, and who did it.

mod cli;
mod commands;

use std::process::ExitCode;

use cli::Cli;
use whyslow_base::interrupt;

fn main() -> ExitCode {
    // A closed pipe comes back as an error from writing (Rust ignores SIGPIPE), and an error that
    // says so is exit code 0.
    let code = match commands::run(Cli::from_words()) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    };
    interrupt::remove_all();
    code
}
