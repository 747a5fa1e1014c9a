use crate::Sym;

crate::table! {
    /// What the importer met that a user should know: one row a kind, or an example with its place.
    ImportLogRow = "import_log", Entity by id {
        /// Id.
        id: i64 [Id],
        /// info, warning, error.
        severity: Sym,
        /// Name of the anomaly, as in `trace_stat`.
        name: Sym,
        /// Source file.
        source: Option<Sym>,
        /// Byte offset in it.
        byte_offset: Option<i64> [Bytes],
        /// Time, where known.
        ts: Option<i64> [Time],
        /// What happened.
        text: Sym,
    }
}
