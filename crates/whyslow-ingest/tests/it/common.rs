//! What tests of real traces share.

use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::tables::SyscallRow;

/// The folder with the traces, or the reason to skip.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn data() -> Option<PathBuf> {
    let folder = std::env::var_os("WHYSLOW_DATA").map(|data| PathBuf::from(data).join("ctf"));
    if folder.is_none() {
        eprintln!("skipped: WHYSLOW_DATA does not name the folder with the traces");
    }
    folder
}

pub(crate) fn import(source: impl Into<PathBuf>) -> InMemory {
    import_in_memory(&[source.into()]).expect("the trace imports")
}

/// A text column of a row.
pub(crate) fn text(import: &InMemory, sym: Option<Sym>) -> &str {
    sym.map_or("", |sym| import.symbols.get(sym))
}

/// System calls by name of the thread, its own name, and the end of its path.
pub(crate) fn calls<'i>(
    import: &'i InMemory,
    comm: &'i str,
    name: &'i str,
    path: &'i str,
) -> impl Iterator<Item = &'i SyscallRow> {
    import.rows.syscall.iter().filter(move |row| {
        text(import, row.comm) == comm
            && import.symbols.get(row.name) == name
            && text(import, row.path).ends_with(path)
    })
}
