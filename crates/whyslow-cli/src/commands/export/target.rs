//! Common parts of all exports: the recording and window of the flags, and where the output is
//! written.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use whyslow_base::args::{RedactArgs, RedactScope, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_export::stacks::About;
use whyslow_model::Window;
use whyslow_model::text::shown;
use whyslow_sources::recording::Opened;

use crate::cli::{ExportArgs, FilterArgs, WindowArgs};

/// Whether a format is text or binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Binary,
}

/// Writes to the output of the flags; a file is written atomically.
pub(super) fn write<T>(
    args: &ExportArgs,
    form: Form,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    write_to(args.output.as_deref(), form, write)
}

pub(crate) fn write_to<T>(
    output: Option<&Path>,
    form: Form,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let Some(path) = output.filter(|path| path.as_os_str() != "-") else {
        if form == Form::Binary && io::stdout().is_terminal() {
            return Err(Failure::usage("cannot write a binary format to a terminal")
                .hint("write to a file: -o FILE"));
        }
        let mut out = BufWriter::with_capacity(whyslow_render::BUFFER_BYTES, io::stdout());
        let done = write(&mut out)?;
        out.flush()?;
        return Ok(done);
    };
    let mut done = None;
    whyslow_render::to_file(path, |out| {
        done = Some(write(out)?);
        Ok(())
    })?;
    done.ok_or_else(|| Failure::new("cannot export the recording: nothing was written"))
}

/// The recording of the flags, redacted if they request it.
pub(super) fn opened(args: &ExportArgs, talk: &TalkArgs) -> Result<Opened, Failure> {
    check_redaction(&args.redact, &args.filter)?;
    Opened::find(args.recording.as_deref(), talk)?.redacted(&args.redact)
}

/// The window of the flags in this recording.
pub(super) fn window(args: &ExportArgs, opened: &Opened) -> Result<Option<Window>, Failure> {
    window_of(&args.window, opened)
}

pub(super) fn window_of(args: &WindowArgs, opened: &Opened) -> Result<Option<Window>, Failure> {
    let calendar = opened.calendar(None);
    opened.window(args.text().as_ref(), &calendar)
}

/// Rejects filters by redacted names: they would match nothing, or the replacement of another name.
fn check_redaction(redact: &RedactArgs, filter: &FilterArgs) -> Result<(), Failure> {
    let by_text = !filter.file.is_empty() || !filter.cgroup.is_empty();
    let names = [
        &filter.comm,
        &filter.threads,
        &filter.frames,
        &filter.frames_not,
    ];
    let by_name =
        names.iter().any(|of| !of.is_empty()) && redact.redact == Some(RedactScope::Names);
    if redact.redact.is_none() || !redact.keep.is_empty() || !(by_text || by_name) {
        return Ok(());
    }
    let message = "cannot filter by names that --redact hides";
    Err(Failure::usage(message)
        .hint("keep these names readable with --keep GLOB, or filter by -p, -t or -w"))
}

/// Prints losses and caveats, which the formats cannot contain.
pub(crate) fn print_notes(about: &About, talk: &TalkArgs) {
    if !about.losses.is_empty() {
        let ranges = about.losses.len();
        whyslow_base::talk::line(&format!(
            "! events were lost in {ranges} ranges of the window"
        ));
    }
    for caveat in about.caveats.iter().filter(|_| !talk.quiet) {
        whyslow_base::talk::line(&format!("note: {}", shown(caveat, false)));
    }
}
