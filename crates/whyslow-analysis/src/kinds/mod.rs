//! What is measured: each kind names its table, its measures, its keys and the columns of a row.

mod block;
mod files;
mod io;
mod states;
mod threads;

pub(crate) use block::BLOCK;
pub(crate) use files::{DESCRIPTORS, FILES, LIVES, MAPPINGS, of_second};
pub(crate) use io::{IO, SYSCALLS};
pub(crate) use states::STATES;
pub(crate) use threads::{SLICES, THREADS};

use whyslow_model::Table;
use whyslow_model::answer::{AnswerColumn, Measure};

use crate::keys::Key;
use crate::query::Kind;

/// Rows of the table that belong to the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Only {
    Everything,
    /// System calls whose class is I/O.
    Io,
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
    /// Default grouping of `stats`, `hist` and `top`.
    pub(crate) group: &'static [Key],
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

/// A column of `top` and `log`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) measure: Measure,
    pub(crate) priority: u8,
    pub(crate) cell: Cell,
}

/// Where its cell comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    Int(&'static str),
    Text(&'static str),
    Bool(&'static str),
    /// The path, or why it is unknown.
    Object,
    /// The name of an error number.
    Errno(&'static str),
    /// The row's id with the kind's prefix.
    Id,
}

impl Field {
    const fn new(name: &'static str, title: &'static str, measure: Measure, cell: Cell) -> Self {
        Self {
            name,
            title,
            measure,
            priority: 0,
            cell,
        }
    }

    const fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    pub(crate) fn answer_column(&self) -> AnswerColumn {
        AnswerColumn::new(self.name, self.title, self.measure).priority(self.priority)
    }
}
