//! `fleet push`: what recordings come to is put into a lake, one after the other.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tempfile::NamedTempFile;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::{interrupt, talk};
use whyslow_fleet::lake::{Lake, PushOptions, Pushed};
use whyslow_fleet::{Told, recording_id};
use whyslow_model::text::shown;
use whyslow_sources::recording::Opened;
use whyslow_store::{Recording, packed};

use super::failed::failed;
use crate::cli::FleetPushArgs;
use crate::commands::export::snapshot::hidden;

pub(super) fn run(args: &FleetPushArgs, told: &TalkArgs) -> Result<(), Failure> {
    let Some((lake, recordings)) = args.paths.split_last() else {
        return Err(Failure::usage("which recording, and into which lake?"));
    };
    if Path::new(lake).join("manifest.json").exists() {
        let message = format!("`{}` is a recording, not a lake", shown(lake, false));
        return Err(Failure::usage(message)
            .hint("the lake comes last: whyslow fleet push web.wsl s3://traces/lake"));
    }
    if args.redact.redact.is_some() && args.redact.redact_key.is_none() {
        if args.whole {
            let message = "--whole and --redact need --redact-key";
            return Err(Failure::usage(message)
                .hint("else a name in the lake would be another one in the recording"));
        }
        if args.host.is_none() {
            let message = "--redact needs --redact-key, or --host";
            return Err(Failure::usage(message).hint(
                "else the host would have another name in each push, and a recording that is \
                 pushed again would be there twice: head -c 32 /dev/urandom > key",
            ));
        }
    }
    let cancel = interrupt::flag()?;
    let lake = Lake::make(lake).map_err(failed)?;
    let mut refused = 0;
    for recording in recordings {
        match one(&lake, recording, args, (&cancel, told), Nameless(None)) {
            Ok(pushed) if !told.quiet => tell(recording, pushed, &lake, args),
            Ok(_) => {}
            // Those after it may be whole, and are sent.
            Err(failure) if recordings.len() > 1 && !failure.is_interrupted() => {
                refused += 1;
                talk::line(&format!(
                    "note: `{}` is not pushed",
                    shown(recording, false)
                ));
                failure.report();
            }
            Err(failure) => return Err(failure),
        }
    }
    if refused > 0 {
        let message = format!(
            "{refused} of {} recordings were not pushed",
            recordings.len()
        );
        return Err(Failure::new(message)
            .hint("once what is told above is mended, the same command sends what is missing"));
    }
    Ok(())
}

/// What a host is called whose recording does not tell.
pub(super) struct Nameless(pub(super) Option<String>);

pub(super) fn one(
    lake: &Lake,
    name: &str,
    args: &FleetPushArgs,
    (cancel, told): (&AtomicBool, &TalkArgs),
    Nameless(otherwise): Nameless,
) -> Result<Pushed, Failure> {
    let opened = Opened::beside(name, told)?;
    let digest = Recording::open(opened.path())?.digest()?;
    // Of what was recorded, also where it is hidden in what is sent.
    let recording = recording_id(opened.tables.info(), &digest, args.host.as_deref());
    let origin = origin(&opened).filter(|_| args.redact.redact.is_none());
    let opened = opened.redacted(&args.redact)?;
    let info = opened.tables.info();
    let host = args
        .host
        .clone()
        .or_else(|| info.host.clone())
        .or(otherwise);
    let host = host.ok_or_else(|| {
        let message = format!("`{}` does not say which host it is of", shown(name, false));
        Failure::usage(message).hint("name it: --host web-17")
    })?;
    let about = Told {
        recording,
        digest,
        host,
        name: opened.name().to_owned(),
        origin,
        labels: args.label.clone(),
        raw: args.raw,
    };
    let packed = packed(&opened, args, told)?;
    let options = PushOptions {
        cluster: args.cluster.clone(),
        replace: args.replace,
        whole: packed.as_ref().map(|packed| packed.path().to_owned()),
    };
    let told = about;
    lake.push(&*opened.tables, &told, &options, cancel)
        .map_err(failed)
}

/// The recording as one file, where it is to be sent whole: with its texts hidden, if they are.
fn packed(
    opened: &Opened,
    args: &FleetPushArgs,
    told: &TalkArgs,
) -> Result<Option<NamedTempFile>, Failure> {
    if !args.whole {
        return Ok(None);
    }
    let unpacked =
        |error: std::io::Error| Failure::new("failed to pack the recording").caused_by(&error);
    let mut file = NamedTempFile::new().map_err(unpacked)?;
    let hidden = match args.redact.redact {
        Some(_) => hidden(opened.path().to_str(), &args.redact, told)?,
        None => None,
    };
    let path = hidden
        .as_ref()
        .map_or(opened.path(), |hidden| hidden.path());
    packed::pack(path, &mut file)?;
    Ok(Some(file))
}

/// Where people find it again.
fn origin(opened: &Opened) -> Option<String> {
    if opened.is_unpacked() {
        return None;
    }
    let path = std::path::absolute(opened.path()).ok()?;
    let node = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned();
    Some(format!("{node}:{}", path.display()))
}

fn tell(recording: &str, pushed: Pushed, lake: &Lake, args: &FleetPushArgs) {
    let (recording, lake) = (shown(recording, false), shown(lake.url(), false));
    if pushed.was_there() {
        let labels = if args.label.is_empty() {
            ""
        } else {
            "; its labels stay as they are (--replace sends it anew)"
        };
        talk::line(&format!("{recording}: is in {lake} already{labels}"));
        return;
    }
    let kept = match pushed.kept {
        0 => String::new(),
        kept => format!("; {kept} files were there from a push before"),
    };
    let kibibytes = pushed.bytes as f64 / 1024.0;
    talk::line(&format!("{recording}: {kibibytes:.1} KiB to {lake}{kept}"));
}
