use crate::Sym;

crate::table! {
    /// Notices, warnings and errors of the import: one row per kind, or an example with its
    /// location.
    ImportLogRow = "import_log", Entity by id {
        /// Id.
        id: i64 [Id],
        /// info, warning, error.
        severity: Sym,
        /// Name of the anomaly, as in `trace_stat`.
        name: Sym,
        /// Source file.
        source: Option<Sym>,
        /// Byte offset in the source file.
        byte_offset: Option<i64> [Bytes],
        /// Time, if known.
        ts: Option<i64> [Time],
        /// Description.
        text: Sym,
    }
}
