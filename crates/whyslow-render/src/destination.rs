//! Destination of an answer: standard output, or a file that is written completely or not at all.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::path::Path;

use whyslow_base::failure::Failure;

use crate::{pager, terminal};

/// Buffer size for standard output.
pub const BUFFER_BYTES: usize = 64 << 10;

/// Writes a complete text.
pub fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush().map_err(Failure::from)
}

/// Shows a complete text in the pager, if it is longer than the terminal on standard output.
pub fn to_pager(text: &str) -> Result<(), Failure> {
    let size = terminal::size();
    let is_long = size.is_some_and(|(_, rows)| text.lines().count() >= rows);
    if is_long && io::stdin().is_terminal() {
        return pager::show(text).map_err(Failure::from);
    }
    to_stdout(text)
}

/// Writes the output of `write` as it is produced.
pub fn stdout_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
    write(&mut out)?;
    out.flush().map_err(Failure::from)
}

/// Writes a temporary file next to the target and renames it, so that a full disk leaves no partial
/// file.
pub fn to_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::writing(path, error);
    // A rename cannot replace devices and pipes.
    if path.exists() && !path.is_file() {
        let mut out = BufWriter::new(File::options().write(true).open(path).map_err(failed)?);
        write(&mut out)?;
        return out.flush().map_err(failed);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let temporary = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    let (file, temporary) = temporary.into_parts();
    let mut out = BufWriter::new(file);
    write(&mut out).map_err(|failure| failure.while_writing(path))?;
    out.flush().map_err(failed)?;
    temporary
        .persist(path)
        .map_err(|error| Failure::writing(path, error.error))
}
