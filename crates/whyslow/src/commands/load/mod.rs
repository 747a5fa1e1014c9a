//! `load`: sends requests, and tells whether a change helped and whether they keep what was promised.

mod check;
mod diff;
mod plan;
mod progress;
mod send;

use crate::cli::{LoadArgs, LoadCommand, TalkArgs};
use crate::failure::Failure;

pub(super) fn run(args: &LoadArgs, talk: &TalkArgs) -> Result<(), Failure> {
    match &args.command {
        Some(LoadCommand::Diff(args)) => diff::run(args, talk),
        Some(LoadCommand::Check(args)) => check::run(args, talk),
        None => send::run(args, talk),
    }
}
