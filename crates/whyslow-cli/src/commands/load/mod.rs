//! `load`: sends requests, compares them before and after a change, and checks assertions.

mod check;
mod diff;
#[cfg(feature = "load")]
mod failed;
#[cfg(feature = "load")]
mod plan;
#[cfg(feature = "load")]
mod progress;
#[cfg(feature = "load")]
mod send;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;

use crate::cli::{LoadArgs, LoadCommand};

pub(super) fn run(args: &LoadArgs, talk: &TalkArgs) -> Result<(), Failure> {
    match &args.command {
        Some(LoadCommand::Diff(args)) => diff::run(args, talk),
        Some(LoadCommand::Check(args)) => check::run(args, talk),
        #[cfg(feature = "load")]
        None => send::run(args, talk),
        #[cfg(not(feature = "load"))]
        None => Err(super::left_out::load()),
    }
}
