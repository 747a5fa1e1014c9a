//! Classes of text columns: each new column has to be listed here.

use whyslow_model::trigger;

/// What a text can reveal about the owners of the recorded machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Words of the kernel and of this program: unchanged.
    Public,
    /// The object of a call: path, socket address, pipe.
    Object,
    /// Address of a network peer, with or without a port.
    Address,
    /// Host name.
    Host,
    /// A command line.
    Command,
    /// An argument of a program or a function.
    Argument,
    /// Names chosen by people: of users, containers, volumes, interfaces.
    Name,
    /// Name of a thread: unchanged unless names are hidden, too.
    Comm,
    /// Name of a function or USDT probe: likewise; kernel functions always stay.
    Function,
    /// Name of an event: likewise if it belongs to a program (`provider:event`).
    Event,
    /// Free text of people or programs.
    Text,
    /// Messages of the import.
    Log,
    /// Contents of a resolver configuration file.
    ResolverFile,
    /// Value of a metadata entry, the key of which determines its class (`of_fact`).
    Fact,
    /// Source of a mount: a device, or an export of a server.
    MountSource,
    /// Mount options, which contain users, servers and paths.
    MountOptions,
}

impl Class {
    /// Whether such a text may contain words of other classes.
    pub(super) fn holds_others(self) -> bool {
        matches!(
            self,
            Self::Command | Self::Text | Self::Log | Self::ResolverFile | Self::MountOptions
        )
    }
}

type Columns = &'static [(&'static str, Class)];

use Class::{
    Address, Argument, Comm, Command, Event, Fact, Function, Host, Log, MountOptions, MountSource,
    Name, Object, Public, ResolverFile, Text,
};

/// All text columns of all tables.
pub(super) const COLUMNS: &[(&str, Columns)] = &[
    (
        "syscall",
        &[
            ("comm", Comm),
            ("name", Public),
            ("op", Public),
            ("path", Object),
            ("path2", Object),
            ("fd_class", Public),
            ("unknown_reason", Public),
            ("cut", Public),
        ],
    ),
    (
        "block_io",
        &[
            ("dev_name", Public),
            ("part_name", Public),
            ("op", Public),
            ("rwbs", Public),
            ("layer", Public),
            ("comm", Comm),
            ("submitter_source", Public),
            ("cut", Public),
        ],
    ),
    ("block_share", &[("comm", Comm)]),
    ("sched_slice", &[("comm", Comm), ("end_state", Public)]),
    (
        "thread_state",
        &[
            ("comm", Comm),
            ("state", Public),
            ("reason", Public),
            ("wake_context", Public),
            ("wake_cause", Public),
        ],
    ),
    (
        "wakeup",
        &[
            ("kind", Public),
            ("comm", Comm),
            ("context", Public),
            ("cause", Public),
        ],
    ),
    (
        "signal",
        &[
            ("signal", Public),
            ("action", Public),
            ("origin", Public),
            ("result", Public),
            ("comm", Comm),
            ("sender_comm", Comm),
        ],
    ),
    ("irq", &[("kind", Public), ("name", Public), ("comm", Comm)]),
    (
        "net_packet",
        &[
            ("kind", Public),
            ("netif", Name),
            ("comm", Comm),
            ("protocol", Public),
            ("source", Address),
            ("destination", Address),
        ],
    ),
    (
        "tcp_connection",
        &[
            ("kind", Public),
            ("outcome", Public),
            ("closed_by", Public),
            ("local", Address),
            ("peer", Address),
            ("state", Public),
            ("comm", Comm),
        ],
    ),
    (
        "request",
        &[
            ("role", Public),
            ("source", Public),
            ("protocol", Public),
            ("method", Public),
            ("host", Host),
            ("endpoint", Argument),
            ("target", Argument),
            ("outcome", Public),
            ("error", Text),
            ("client", Name),
            ("local", Address),
            ("peer", Address),
            ("joined_by", Public),
            ("comm", Comm),
        ],
    ),
    (
        "request_phase",
        &[("phase", Event), ("endpoint", Argument), ("client", Name)],
    ),
    ("request_thread", &[("received_by", Public), ("comm", Comm)]),
    (
        "fd_life",
        &[
            ("comm", Comm),
            ("fd_class", Public),
            ("path", Object),
            ("unknown_reason", Public),
            ("origin", Public),
            ("closed_by", Public),
        ],
    ),
    (
        "file_life",
        &[("path", Object), ("renamed_from", Object), ("comm", Comm)],
    ),
    ("mapping", &[("comm", Comm), ("path", Object)]),
    ("page_count", &[("comm", Comm)]),
    (
        "cache_fill",
        &[("comm", Comm), ("path", Object), ("cause", Public)],
    ),
    ("reclaim", &[("kind", Public), ("comm", Comm)]),
    (
        "kernel_work",
        &[
            ("kind", Public),
            ("dev_name", Public),
            ("reason", Public),
            ("comm", Comm),
        ],
    ),
    (
        "work_item",
        &[
            ("function", Public),
            ("workqueue", Public),
            ("comm", Comm),
            ("worker_comm", Comm),
        ],
    ),
    (
        "dns_lookup",
        &[
            ("host", Host),
            ("service", Name),
            ("function", Public),
            ("result", Public),
            ("address", Address),
            ("comm", Comm),
        ],
    ),
    (
        "dns_query",
        &[
            ("server", Address),
            ("outcome", Public),
            ("host", Host),
            ("comm", Comm),
        ],
    ),
    (
        "function_call",
        &[
            ("function", Function),
            ("module", Object),
            ("text", Argument),
            ("text2", Argument),
            ("comm", Comm),
        ],
    ),
    (
        "futex_call",
        &[
            ("op", Public),
            ("address", Public),
            ("address2", Public),
            ("comm", Comm),
            ("cut", Public),
        ],
    ),
    (
        "usdt_event",
        &[
            ("provider", Function),
            ("name", Function),
            ("module", Object),
            ("text", Argument),
            ("text2", Argument),
            ("comm", Comm),
        ],
    ),
    (
        "stack_sample",
        &[
            ("kind", Public),
            ("state", Public),
            ("comm", Comm),
            ("function", Function),
            ("user_function", Function),
            ("syscall", Public),
            ("sampler", Public),
        ],
    ),
    (
        "sample_gap",
        &[
            ("class", Public),
            ("comm", Comm),
            ("function", Function),
            ("before_function", Function),
        ],
    ),
    (
        "runtime_event",
        &[
            ("kind", Public),
            ("object", Object),
            ("address", Public),
            ("comm", Comm),
            ("function", Function),
        ],
    ),
    (
        "lock_wait",
        &[
            ("kind", Public),
            ("mode", Public),
            ("lock", Function),
            ("comm", Comm),
            ("function", Function),
            ("reported_by", Public),
            ("object", Function),
            ("holder_comm", Comm),
            ("confidence", Public),
            ("holder_function", Function),
        ],
    ),
    ("callsite", &[]),
    (
        "frame",
        &[("function", Function), ("module", Object), ("kind", Public)],
    ),
    (
        "counter",
        &[
            ("name", Public),
            ("unit", Public),
            ("comm", Comm),
            ("mount_point", Object),
            ("subject", Object),
            ("reported_by", Public),
        ],
    ),
    ("marker", &[("comm", Comm), ("name", Event), ("text", Text)]),
    ("lost_events", &[("stream", Object), ("kind", Public)]),
    ("thread", &[("comm", Comm), ("runtime_name", Comm)]),
    ("thread_comm", &[("comm", Comm)]),
    (
        "process",
        &[
            ("comm", Comm),
            ("exe", Object),
            ("command_line", Command),
            ("user_name", Name),
            ("cgroup", Object),
            ("container", Name),
        ],
    ),
    ("process_view", &[("root", Object)]),
    ("cpu", &[]),
    (
        "device",
        &[
            ("name", Public),
            ("kind", Public),
            ("label", Name),
            ("backing", Object),
        ],
    ),
    ("device_link", &[("kind", Public)]),
    (
        "mount",
        &[
            ("root", Object),
            ("mount_point", Object),
            ("fs_type", Name),
            ("source", MountSource),
            ("options", MountOptions),
        ],
    ),
    ("resolver_file", &[("path", Object), ("text", ResolverFile)]),
    ("net_interface", &[("name", Name), ("address", Address)]),
    ("clock_snapshot", &[("source", Object), ("clock", Public)]),
    (
        "import_log",
        &[
            ("severity", Public),
            ("name", Public),
            ("source", Object),
            ("text", Log),
        ],
    ),
    (
        "trace_stat",
        &[
            ("kind", Public),
            ("name", Event),
            ("severity", Public),
            ("source", Object),
        ],
    ),
    (
        "metadata",
        &[("source", Object), ("key", Public), ("value", Fact)],
    ),
];

/// Class of a column; unclassified columns are not public.
pub(super) fn of_column(table: &str, column: &str) -> Class {
    let columns = COLUMNS.iter().find(|(name, _)| *name == table);
    let found = columns.and_then(|(_, columns)| columns.iter().find(|(name, _)| *name == column));
    found.map_or(Text, |(_, class)| *class)
}

/// Class of a metadata value, by its key.
pub(super) fn of_fact(key: &str) -> Class {
    match key {
        "hostname" => Host,
        "zone"
        | "mount_ns"
        | "topics"
        | "topics_partial"
        | "cgroup_version"
        | "io_scheduler"
        | "architecture"
        | "machine"
        | "domain"
        | "sysname"
        | "recorder_pid"
        | "recorder_cpu_ns"
        | "recorder_elapsed_ns"
        | "tracer_name"
        | "tracer_major"
        | "tracer_minor"
        | "tracer_patch"
        | "tracer_patchlevel"
        | "trace_buffering_scheme"
        | "trace_creation_datetime"
        | "sample_interval_ns"
        | "sample_interval_reported_by"
        | trigger::TIME
        | trigger::CONDITION
        | trigger::KIND
        | trigger::TID
        | trigger::PID
        | trigger::DURATION
        | trigger::COMPLETE => Public,
        "lookup_file" => Object,
        _ => Text,
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::{ColumnType, tables};

    use super::*;

    /// Whoever adds a text column has to decide here what it can reveal.
    #[test]
    fn every_text_column_has_a_class() {
        let declared = tables::ALL.iter().map(|table| {
            let texts = table
                .columns
                .iter()
                .filter(|column| column.kind == ColumnType::Utf8);
            let columns: Vec<&str> = texts.map(|column| column.name).collect();
            (table.name, columns)
        });
        let classified = COLUMNS.iter().map(|(table, columns)| {
            let columns: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
            (*table, columns)
        });
        assert_eq!(declared.collect::<Vec<_>>(), classified.collect::<Vec<_>>());
    }
}
