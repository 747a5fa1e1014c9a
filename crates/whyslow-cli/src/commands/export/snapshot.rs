//! `export snapshot`: cuts a window out of a recording and packs it into one file.

use std::io::Write;
use std::path::{Path, PathBuf};

use whyslow_base::args::{RedactArgs, TalkArgs};
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_base::private_folder::PrivateFolder;
use whyslow_export::snapshot::{CutQuery, cut};
use whyslow_model::Window;
use whyslow_sources::recording::Opened;
use whyslow_store::{Recording, RecordingInfo, packed};

use super::target::{Form, window_of, write_to};
use crate::cli::SnapshotArgs;

const PREFIX: &str = "whyslow-snapshot-";
/// Name in the temporary directory.
const NAME: &str = "cut.wsl";
/// Name shown in a redacted report: the name of the recording may contain what must be hidden.
const HIDDEN_NAME: &str = "redacted.wsl";

pub(super) fn run(args: &SnapshotArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let opened = Opened::find(args.recording.as_deref(), talk)?;
    let window = window_of(&args.window, &opened)?;
    let digest = Recording::open(opened.path())?.digest()?;
    let opened = opened.redacted(&args.redact)?;
    let info = opened.tables.info();
    let all = || Window::new(info.begin_ns, info.end_ns.saturating_add(1));
    let query = CutQuery {
        focus: window.unwrap_or_else(all),
        around: args.around,
        digest,
    };
    let mut made = None;
    // Open the output first, so that a permission error is reported at once.
    let bytes = write_to(args.output.as_deref(), Form::Binary, |out| {
        let mut out = Counted { out, bytes: 0 };
        made = Some(packed_into(&opened, &query, &mut out)?);
        Ok(out.bytes)
    })?;
    if let (Some(made), false) = (made, talk.quiet) {
        print_summary(&made, bytes, args.output.as_deref());
    }
    Ok(())
}

/// A redacted recording in a temporary directory, deleted together with it.
pub(in crate::commands) struct Hidden {
    _folder: PrivateFolder,
    path: PathBuf,
}

impl Hidden {
    pub(in crate::commands) fn path(&self) -> &Path {
        &self.path
    }
}

/// A redacted copy of the whole recording, if redaction is requested.
pub(in crate::commands) fn hidden(
    recording: Option<&str>,
    redact: &RedactArgs,
    talk: &TalkArgs,
) -> Result<Option<Hidden>, Failure> {
    if redact.redact.is_none() {
        return Ok(None);
    }
    let opened = Opened::find(recording, talk)?;
    let digest = Recording::open(opened.path())?.digest()?;
    let opened = opened.redacted(redact)?;
    let info = opened.tables.info();
    let query = CutQuery {
        focus: Window::new(info.begin_ns, info.end_ns.saturating_add(1)),
        around: Some(0),
        digest,
    };
    let cancel = interrupt::flag()?;
    let folder = PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?;
    let path = folder.path().join(HIDDEN_NAME);
    cut(&*opened.tables, &query, &path, &cancel)?;
    Ok(Some(Hidden {
        _folder: folder,
        path,
    }))
}

fn packed_into(
    opened: &Opened,
    query: &CutQuery,
    out: &mut dyn Write,
) -> Result<RecordingInfo, Failure> {
    let cancel = interrupt::flag()?;
    let folder = PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?;
    let target = folder.path().join(NAME);
    let made = cut(&*opened.tables, query, &target, &cancel)?;
    packed::pack(&target, out)?;
    Ok(made)
}

fn print_summary(made: &RecordingInfo, bytes: u64, output: Option<&Path>) {
    let rows: u64 = made.tables.values().map(|table| table.rows).sum();
    let length = made.end_ns.saturating_sub(made.begin_ns) as f64 / 1e9;
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    whyslow_base::talk::line(&format!(
        "{} rows, {length:.1} s, {mebibytes:.1} MiB",
        whyslow_base::talk::grouped(rows)
    ));
    if let Some(path) = output.filter(|path| path.as_os_str() != "-") {
        let name = whyslow_model::text::shown(&path.display().to_string(), false).into_owned();
        whyslow_base::talk::line(&format!("next: whyslow explain {name}"));
    }
}

/// Counts the bytes written.
struct Counted<'w> {
    out: &'w mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, buffer: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(buffer)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}
