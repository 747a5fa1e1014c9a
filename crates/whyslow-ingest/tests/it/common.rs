//! Shared by tests of real traces.

use std::path::PathBuf;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::tables::SyscallRow;
use whyslow_testkit::data_folder;

/// The directory of the traces, or the reason to skip.
#[track_caller]
pub(crate) fn data() -> Option<PathBuf> {
    data_folder("ctf")
}

pub(crate) fn import(source: impl Into<PathBuf>) -> InMemory {
    import_in_memory(&[source.into()]).expect("the trace imports")
}

/// A text column of a row.
pub(crate) fn text(import: &InMemory, sym: Option<Sym>) -> &str {
    sym.map_or("", |sym| import.symbols.get(sym))
}

/// System calls by thread name, call name, and path suffix.
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
