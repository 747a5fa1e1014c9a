use crate::columns::lake_table;

lake_table! {
    /// What a recording's host belongs to: facts of the host, and what `--label` said.
    LabelRow = "label", sorted by [name, value, host] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// kernel, machine, cpus, zone, source; those of `--label` (rack, service, version, …).
        name: String,
        /// Its value.
        value: String,
    }
}
