//! `fleet`: many recordings in one lake.

mod ask;
mod find;
mod push;
mod upkeep;

pub(crate) use ask::request_of;

use std::error::Error;
use std::path::Path;

use whyslow_fleet::lake::LakeError;

use crate::cli::{FleetCommand, FleetPushArgs, PushArgs, TalkArgs};
use crate::failure::Failure;
use crate::fleet::keep;

pub(super) fn run(command: &FleetCommand, talk: &TalkArgs) -> Result<(), Failure> {
    match command {
        FleetCommand::Push(args) => push::run(args, talk),
        FleetCommand::Compact(args) => upkeep::compact(args, talk),
        FleetCommand::Expire(args) => upkeep::expire(args, talk),
        FleetCommand::Find(args) => find::find(args, talk),
        FleetCommand::Fetch(args) => find::fetch(args, talk),
        FleetCommand::Keep(args) => keep(&args.lake, &args.engine),
        FleetCommand::Ask(asked) => ask::run(asked, talk),
    }
}

/// What `record --push` does when it has become a recording, which stays whatever becomes of it.
pub(super) fn push_recorded(
    recording: &Path,
    push: &PushArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let Some(lake) = &push.push else {
        return Ok(());
    };
    let name = recording.display().to_string();
    let args = FleetPushArgs {
        paths: vec![name.clone(), lake.clone()],
        cluster: push.cluster.clone(),
        label: push.label.clone(),
        ..FleetPushArgs::default()
    };
    push::run(&args, talk).map_err(|failure| {
        failure.hint(format!(
            "it is recorded, and can be sent later: whyslow fleet push {name} {lake}"
        ))
    })
}

impl From<LakeError> for Failure {
    fn from(error: LakeError) -> Self {
        let hint = error.hint();
        let failure = match error {
            LakeError::Interrupted => Failure::interrupted(),
            LakeError::Recording(error) => error.into(),
            LakeError::Url { .. } | LakeError::Name { .. } => Failure::usage(error.to_string()),
            other => {
                let failure = Failure::new(other.to_string());
                // Each error of a store repeats those behind it.
                match innermost(&other) {
                    Some(cause) => failure.caused_by(cause),
                    None => failure,
                }
            }
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

fn innermost<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e (dyn Error + 'static)> {
    let mut found = error.source()?;
    while let Some(next) = found.source() {
        found = next;
    }
    Some(found)
}
