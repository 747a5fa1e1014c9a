//! What is measured: each kind names its table, its measures, its keys and the columns of a row.

mod block;
mod counters;
mod cpu;
mod dns;
mod files;
mod functions;
mod gaps;
mod io;
mod irq;
mod locks;
mod mem;
mod name_servers;
mod net;
mod requests;
mod resources;
mod runtime;
mod sched;
mod signals;
mod stacks;
mod states;
mod syscalls;
mod tcp;
mod threads;
mod usdt;
mod work;
mod work_items;

pub(crate) use block::BLOCK;
pub(crate) use cpu::SLICES;
pub(crate) use dns::LOOKUPS;
pub(crate) use files::{DESCRIPTORS, FILES, FILLS, LIVES, MAPPINGS, of_second};
pub(crate) use gaps::GAPS;
pub(crate) use io::IO;
pub(crate) use irq::IRQ;
pub(crate) use locks::LOCKS;
pub(crate) use mem::{PAGES, RECLAIM};
pub(crate) use net::PACKETS;
pub(crate) use requests::{PHASES, REQUESTS, WORKERS, of_question};
pub(crate) use runtime::RUNTIME;
pub(crate) use sched::SCHED;
pub(crate) use stacks::STACKS;
pub(crate) use states::STATES;
pub(crate) use syscalls::SYSCALLS;
pub(crate) use threads::THREADS;

use whyslow_model::Table;
use whyslow_model::answer::{AnswerColumn, Measure};

use crate::AnalysisError;
use crate::keys::Key;
use crate::query::{Kind, Verb};

/// A kind as people ask for it. Everything that can be asked is in [`TOPICS`]; the command line,
/// its help and its manual are made from it.
pub struct Topic {
    /// The kind.
    pub kind: Kind,
    /// One line for the help.
    pub about: &'static str,
    /// Lines of examples, each indented by two.
    pub examples: &'static str,
    /// Verbs that it has, in the order of the help.
    pub views: &'static [View],
    /// The view that the kind alone means.
    pub default: Option<Verb>,
    /// Whether a short help lists it.
    pub is_main: bool,
}

/// One view of a kind.
pub struct View {
    /// The verb.
    pub verb: Verb,
    /// One line for the help.
    pub about: &'static str,
    pub(crate) spec: &'static Spec,
    /// Whether it can be asked interval by interval.
    pub by_time: bool,
}

impl View {
    const fn new(verb: Verb, about: &'static str, spec: &'static Spec) -> Self {
        let by_time = matches!(
            verb,
            Verb::Usage
                | Verb::Stats
                | Verb::Heat
                | Verb::Outliers
                | Verb::Syscalls
                | Verb::States
                | Verb::Timeline
                | Verb::Bursts
        );
        Self {
            verb,
            about,
            spec,
            by_time,
        }
    }
}

impl View {
    /// The table that it reads first of all.
    pub fn table(&self) -> &'static Table {
        self.spec.table
    }
}

/// Every kind that can be asked about.
pub static TOPICS: [&Topic; 26] = [
    &io::TOPIC,
    &block::TOPIC,
    &files::TOPIC,
    &sched::TOPIC,
    &threads::TOPIC,
    &states::TOPIC,
    &cpu::TOPIC,
    &irq::TOPIC,
    &syscalls::TOPIC,
    &mem::TOPIC,
    &work::TOPIC,
    &work_items::TOPIC,
    &net::TOPIC,
    &tcp::TOPIC,
    &signals::TOPIC,
    &dns::TOPIC,
    &name_servers::TOPIC,
    &requests::TOPIC,
    &functions::TOPIC,
    &usdt::TOPIC,
    &locks::TOPIC,
    &stacks::TOPIC,
    &gaps::TOPIC,
    &runtime::TOPIC,
    &resources::TOPIC,
    &counters::TOPIC,
];

impl Kind {
    pub(crate) fn topic(self) -> &'static Topic {
        let mut topics = TOPICS.iter();
        topics
            .find(|topic| topic.kind == self)
            .expect("every kind has a topic")
    }
}

/// Rows of the table that belong to the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    Everything,
    /// System calls whose class is I/O.
    Io,
    /// States in which a thread waits for a CPU.
    Runnable,
    /// Those on something with a path.
    Files,
    /// Those that write to something with a path as their second object.
    SecondFiles,
}

/// A kind: one table of intervals, and what its columns mean to the verbs.
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    /// What a row is called, many of them.
    pub(crate) rows: &'static str,
    pub(crate) table: &'static Table,
    pub(crate) only: Only,
    /// Column of the class of operation.
    pub(crate) class: &'static str,
    /// Classes there can be, for messages; empty if names are allowed beside them.
    pub(crate) classes: &'static [&'static str],
    /// Default grouping of `stats`.
    pub(crate) group: &'static [Key],
    /// Default grouping of `hist` and `top`, which have a table for each group.
    pub(crate) series: &'static [Key],
    pub(crate) size: Option<&'static str>,
    pub(crate) errno: Option<&'static str>,
    /// Whether a row without an end goes on, rather than being cut by the recording.
    pub(crate) lasting: bool,
    /// Column that tells whose row it is, against the tracer.
    pub(crate) owner: &'static str,
    /// Parts of `dur` that are columns of their own: name, title, column.
    pub(crate) stages: &'static [(&'static str, &'static str)],
    /// Prefix of ids: `op:17`.
    pub(crate) id_prefix: &'static str,
    pub(crate) fields: &'static [Field],
}

impl Spec {
    /// The column whose words tell whether a row failed, where no error number does.
    pub(crate) fn failed_by(&self) -> Option<&'static str> {
        (self.table.name == REQUESTS.table.name).then_some("outcome")
    }

    /// The column of a part of the duration.
    pub(crate) fn stage(&self, name: &str) -> Result<&'static str, AnalysisError> {
        let mut stages = self.stages.iter();
        if let Some((_, column)) = stages.find(|(known, _)| *known == name) {
            return Ok(column);
        }
        let names: Vec<&str> = self.stages.iter().map(|(name, _)| *name).collect();
        let hint = if names.is_empty() {
            format!("{} are not told apart in stages", self.rows)
        } else {
            format!("{} have {}", self.rows, names.join(", "))
        };
        let message = format!("{} has no stage `{name}`", self.name);
        Err(AnalysisError::query(message, hint))
    }
}

/// A column of `top` and `log`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) measure: Measure,
    pub(crate) priority: u8,
    /// People see it only where some row has a value.
    pub(crate) is_sparse: bool,
    pub(crate) cell: Cell,
}

/// Where its cell comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    Int(&'static str),
    Text(&'static str),
    Bool(&'static str),
    /// Name and kernel id of the thread with this recording-unique id.
    Thread(&'static str),
    /// The path, or why it is unknown.
    Object,
    /// What is known of the arguments of a call, in one line.
    Arguments,
    /// The name of an error number.
    Errno(&'static str),
    /// The row's id with the kind's prefix.
    Id,
    /// Another row's id, with its prefix, from a column.
    IdOf(&'static str, &'static str),
    /// The request to a device whose end woke the thread.
    WokenByRequest,
    /// The packet that woke it.
    WokenByPacket,
}

impl Field {
    const fn new(name: &'static str, title: &'static str, measure: Measure, cell: Cell) -> Self {
        Self {
            name,
            title,
            measure,
            priority: 0,
            is_sparse: false,
            cell,
        }
    }

    const fn sparse(self) -> Self {
        Self {
            is_sparse: true,
            ..self
        }
    }

    const fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    pub(crate) fn answer_column(&self) -> AnswerColumn {
        AnswerColumn::new(self.name, self.title, self.measure)
            .priority(self.priority)
            .sparse(self.is_sparse)
    }
}
