//! whyslow: find out why something on a Linux machine was slow, and which process caused it.

use std::process::ExitCode;

fn main() -> ExitCode {
    whyslow_cli::run()
}
