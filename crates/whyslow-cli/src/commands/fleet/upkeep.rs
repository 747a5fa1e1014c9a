//! `fleet compact` and `fleet expire`: maintenance of a lake.

use std::time::Duration;

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_base::talk::line;
use whyslow_fleet::lake::{CompactOptions, ExpireOptions, Lake};
use whyslow_model::Ns;

use super::failed::failed;
use crate::cli::{FleetCompactArgs, FleetExpireArgs};

pub(super) fn compact(args: &FleetCompactArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let cancel = interrupt::flag()?;
    let options = CompactOptions {
        files_min: args.files,
        grace: length(args.grace),
    };
    let done = Lake::open(&args.lake)
        .and_then(|lake| lake.compact(&options, &cancel))
        .map_err(failed)?;
    if !talk.quiet {
        line(&format!(
            "merged {} recordings into {} files per table: {} became {}; deleted {} replaced files",
            done.recordings,
            done.compactions,
            size(done.bytes_before),
            size(done.bytes_after),
            done.deleted,
        ));
    }
    Ok(())
}

pub(super) fn expire(args: &FleetExpireArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let cancel = interrupt::flag()?;
    let options = ExpireOptions {
        keep: args.keep.map(length),
        bytes_max: args.max_size.map(|bytes| bytes.max(0) as u64),
        dry_run: args.dry_run,
    };
    let expired = Lake::open(&args.lake)
        .and_then(|lake| lake.expire(&options, &cancel))
        .map_err(failed)?;
    if talk.quiet {
        return Ok(());
    }
    let (verb, left) = if args.dry_run {
        ("would be deleted", "would remain")
    } else {
        ("deleted", "remain")
    };
    for day in &expired.days {
        line(&format!("{} of {}: {verb}", day.day, day.cluster));
    }
    line(&format!(
        "{} recordings, {} files, {} {verb}; {} {left}",
        expired.recordings,
        expired.objects,
        size(expired.bytes),
        size(expired.bytes_left),
    ));
    Ok(())
}

fn length(ns: Ns) -> Duration {
    Duration::from_nanos(ns.max(0) as u64)
}

fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / 1024.0 / 1024.0;
    format!("{mebibytes:.2} MiB")
}
