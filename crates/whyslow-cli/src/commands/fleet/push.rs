//! `fleet push`: pushes summaries of recordings to a lake.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use tempfile::NamedTempFile;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_base::talk::line;
use whyslow_fleet::lake::{Lake, PushOptions, Pushed};
use whyslow_fleet::{RecordingFacts, recording_id};
use whyslow_model::text::shown;
use whyslow_sources::recording::Opened;
use whyslow_store::{Recording, packed};

use super::failed::failed;
use crate::cli::FleetPushArgs;
use crate::commands::export::snapshot::hidden;

pub(super) fn run(args: &FleetPushArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let Some((lake, recordings)) = args.paths.split_last() else {
        return Err(
            Failure::usage("cannot push: no recording or lake specified")
                .hint("name both: whyslow fleet push web.wsl s3://traces/lake"),
        );
    };
    if Path::new(lake).join("manifest.json").exists() {
        let message = format!("`{}` is a recording, not a lake", shown(lake, false));
        return Err(Failure::usage(message)
            .hint("name the lake last: whyslow fleet push web.wsl s3://traces/lake"));
    }
    if args.redact.redact.is_some() && args.redact.redact_key.is_none() {
        if args.whole {
            let message = "--whole with --redact needs --redact-key: otherwise names in the lake and in \
                           the recording would differ";
            return Err(Failure::usage(message).hint(KEY_HINT));
        }
        if args.host.is_none() {
            let message = "--redact needs --redact-key or --host: otherwise each push would give \
                           the host another name";
            return Err(Failure::usage(message).hint(KEY_HINT));
        }
    }
    let cancel = interrupt::flag()?;
    let lake = Lake::make(lake).map_err(failed)?;
    let mut refused = 0;
    for recording in recordings {
        match one(&lake, recording, args, (&cancel, talk), FallbackHost(None)) {
            Ok(pushed) if !talk.quiet => print_pushed(recording, pushed, &lake, args),
            Ok(_) => {}
            // The remaining recordings may be intact, and are pushed.
            Err(failure) if recordings.len() > 1 && !failure.is_interrupted() => {
                refused += 1;
                line(&format!(
                    "note: `{}` was not pushed",
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
            .hint("fix the errors above and run the same command again; it pushes the rest"));
    }
    Ok(())
}

const KEY_HINT: &str = "create a key: head -c 32 /dev/urandom > key, and add --redact-key key";

/// Host name for recordings without one.
pub(super) struct FallbackHost(pub(super) Option<String>);

pub(super) fn one(
    lake: &Lake,
    name: &str,
    args: &FleetPushArgs,
    (cancel, talk): (&AtomicBool, &TalkArgs),
    FallbackHost(fallback): FallbackHost,
) -> Result<Pushed, Failure> {
    let opened = Opened::beside(name, talk)?;
    let digest = Recording::open(opened.path())?.digest()?;
    // From the original recording, also if the pushed data is redacted.
    let recording = recording_id(opened.tables.info(), &digest, args.host.as_deref());
    let origin = origin(&opened).filter(|_| args.redact.redact.is_none());
    let opened = opened.redacted(&args.redact)?;
    let info = opened.tables.info();
    let host = args.host.clone().or_else(|| info.host.clone()).or(fallback);
    let host = host.ok_or_else(|| {
        let message = format!(
            "`{}` does not contain the name of its host",
            shown(name, false)
        );
        Failure::usage(message).hint("set it: --host web-17")
    })?;
    let about = RecordingFacts {
        recording,
        digest,
        host,
        name: opened.name().to_owned(),
        origin,
        labels: args.label.clone(),
        raw: args.raw,
    };
    let packed = packed(&opened, args, talk)?;
    let options = PushOptions {
        cluster: args.cluster.clone(),
        replace: args.replace,
        whole: packed.as_ref().map(|packed| packed.path().to_owned()),
    };
    lake.push(&*opened.tables, &about, &options, cancel)
        .map_err(failed)
}

/// The recording as one file for `--whole`, redacted if requested.
fn packed(
    opened: &Opened,
    args: &FleetPushArgs,
    talk: &TalkArgs,
) -> Result<Option<NamedTempFile>, Failure> {
    if !args.whole {
        return Ok(None);
    }
    let unpacked =
        |error: std::io::Error| Failure::new("cannot pack the recording").caused_by(&error);
    let mut file = NamedTempFile::new().map_err(unpacked)?;
    let hidden = match args.redact.redact {
        Some(_) => hidden(opened.path().to_str(), &args.redact, talk)?,
        None => None,
    };
    let path = hidden
        .as_ref()
        .map_or(opened.path(), |hidden| hidden.path());
    packed::pack(path, &mut file)?;
    Ok(Some(file))
}

/// Where the recording is stored: `HOST:PATH`.
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

fn print_pushed(recording: &str, pushed: Pushed, lake: &Lake, args: &FleetPushArgs) {
    let (recording, lake) = (shown(recording, false), shown(lake.url(), false));
    if pushed.was_there() {
        let labels = if args.label.is_empty() {
            ""
        } else {
            "; its labels were not changed (--replace pushes it again)"
        };
        line(&format!("{recording}: already in {lake}{labels}"));
        return;
    }
    let kept = match pushed.kept {
        0 => String::new(),
        kept => format!("; {kept} files were already there from an earlier push"),
    };
    let kibibytes = pushed.bytes as f64 / 1024.0;
    line(&format!("{recording}: {kibibytes:.1} KiB to {lake}{kept}"));
}
