use crate::columns::lake_table;

lake_table! {
    /// Labels of a recording's host: facts about the host, and those given with `--label`.
    LabelRow = "label", sorted by [name, value, host] {
        /// Id of the recording.
        recording: String,
        /// Host that was recorded.
        host: String,
        /// kernel, machine, cpus, zone, source; or a name given with `--label` (rack, service,
        /// version, …).
        name: String,
        /// Value of the label.
        value: String,
    }
}
