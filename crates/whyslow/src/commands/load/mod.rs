//! What is asked of load: whether a change helped, and whether it keeps what was promised.

mod check;
mod diff;

use crate::cli::{LoadCommand, TalkArgs};
use crate::failure::Failure;

pub(super) fn run(command: &LoadCommand, talk: &TalkArgs) -> Result<(), Failure> {
    match command {
        LoadCommand::Diff(args) => diff::run(args, talk),
        LoadCommand::Check(args) => check::run(args, talk),
    }
}
