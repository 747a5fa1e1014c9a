use crate::Sym;

crate::table! {
    /// Properties of the recorded machine and of the sources, as key and value.
    MetadataRow = "metadata", Entity by id {
        /// Id.
        id: i64 [Id],
        /// Source.
        source: Option<Sym>,
        /// Key: hostname, kernel_release, tracer_name, …
        key: Sym,
        /// Value.
        value: Sym,
    }
}
