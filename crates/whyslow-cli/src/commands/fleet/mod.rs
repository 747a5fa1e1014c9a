//! `fleet`: recordings of many hosts in one lake.

mod failed;
mod find;
mod push;
mod query;
mod upkeep;

use std::path::Path;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_sources::lake::keep;

use crate::cli::{FleetCommand, FleetPushArgs, PushArgs};

pub(super) fn run(command: &FleetCommand, talk: &TalkArgs) -> Result<(), Failure> {
    match command {
        FleetCommand::Push(args) => push::run(args, talk),
        FleetCommand::Compact(args) => upkeep::compact(args, talk),
        FleetCommand::Expire(args) => upkeep::expire(args, talk),
        FleetCommand::Find(args) => find::find(args, talk),
        FleetCommand::Fetch(args) => find::fetch(args, talk),
        FleetCommand::Keep(args) => keep(&args.lake, &args.engine),
        FleetCommand::Query(args) => query::run(args, talk),
    }
}

/// The push of `record --push`, after the import; the recording is kept in any case.
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
            "push the recording later: whyslow fleet push {name} {lake}"
        ))
    })
}
