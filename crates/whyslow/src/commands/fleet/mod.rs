//! `fleet`: many recordings in one lake.

mod push;
mod upkeep;

use whyslow_fleet::lake::LakeError;

use crate::cli::{FleetCommand, TalkArgs};
use crate::failure::Failure;

pub(super) fn run(command: &FleetCommand, talk: &TalkArgs) -> Result<(), Failure> {
    match command {
        FleetCommand::Push(args) => push::run(args, talk),
        FleetCommand::Compact(args) => upkeep::compact(args, talk),
        FleetCommand::Expire(args) => upkeep::expire(args, talk),
    }
}

impl From<LakeError> for Failure {
    fn from(error: LakeError) -> Self {
        let hint = error.hint();
        let failure = match error {
            LakeError::Interrupted => Failure::interrupted(),
            LakeError::Recording(error) => error.into(),
            LakeError::Url { .. } | LakeError::Name { .. } => Failure::usage(error.to_string()),
            other => Failure::new(other.to_string()).caused_by_chain(&other),
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}
