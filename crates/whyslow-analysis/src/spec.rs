//! Specification of a kind: its views, its table, the meaning of columns, and its special cases.

use whyslow_model::Table;
use whyslow_model::answer::{AnswerColumn, Measure};

use crate::AnalysisError;
use crate::key::Key;
use crate::query::{Filter, Kind, Query, Verb};

/// A kind as a user sees it. [`crate::TOPICS`] lists all queries; the command line, its help and
/// its manual are generated from it.
pub struct Topic {
    /// The kind.
    pub kind: Kind,
    /// One line for the help.
    pub about: &'static str,
    /// Lines of examples, each indented by two.
    pub examples: &'static str,
    /// Its verbs, in the order of the help.
    pub views: &'static [View],
    /// The view that is shown if none is specified.
    pub default: Option<Verb>,
    /// Whether the short help lists it.
    pub is_main: bool,
}

/// One view of a kind.
pub struct View {
    /// The verb.
    pub verb: Verb,
    /// One line for the help.
    pub about: &'static str,
    pub(crate) spec: &'static Spec,
    /// Whether it can be split into intervals.
    pub by_time: bool,
}

impl View {
    pub(crate) const fn new(verb: Verb, about: &'static str, spec: &'static Spec) -> Self {
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

    /// The main table that it reads.
    pub fn table(&self) -> &'static Table {
        self.spec.table
    }
}

/// A kind: one table of intervals, and what its columns mean to the verbs.
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    /// Plural noun for its rows.
    pub(crate) rows: &'static str,
    pub(crate) table: &'static Table,
    /// Rows of the table that belong to the kind: those that pass all of these tests.
    pub(crate) only: &'static [Only],
    /// Column of the operation class.
    pub(crate) class: &'static str,
    /// Valid classes, for messages; empty if names are also allowed.
    pub(crate) classes: &'static [&'static str],
    /// Default grouping of `stats`.
    pub(crate) group: &'static [Key],
    /// Default grouping of `hist` and `top`, which have a table for each group.
    pub(crate) series: &'static [Key],
    pub(crate) size: Option<&'static str>,
    pub(crate) errno: Option<&'static str>,
    /// Whether a row without an end is still in progress, rather than cut by the recording.
    pub(crate) lasting: bool,
    /// Column with the owner of a row, for the exclusion of the tracer.
    pub(crate) owner: &'static str,
    /// Parts of `dur` with a column of their own: name, column.
    pub(crate) stages: &'static [(&'static str, &'static str)],
    /// Prefix of ids: `op:17`.
    pub(crate) id_prefix: &'static str,
    pub(crate) fields: &'static [Field],
    pub(crate) hooks: Hooks,
}

impl Spec {
    /// The kind for queries by second object.
    pub(crate) fn of_second(&'static self) -> &'static Spec {
        self.hooks.second.unwrap_or(self)
    }

    /// The column of a part of the duration.
    pub(crate) fn stage(&self, name: &str) -> Result<&'static str, AnalysisError> {
        let mut stages = self.stages.iter();
        if let Some((_, column)) = stages.find(|(known, _)| *known == name) {
            return Ok(column);
        }
        let names: Vec<&str> = self.stages.iter().map(|(name, _)| *name).collect();
        let hint = if names.is_empty() {
            format!("remove the stage: {} have none", self.rows)
        } else {
            format!("use a stage of {}: {}", self.rows, names.join(", "))
        };
        let message = format!("unknown stage `{name}` for {}", self.name);
        Err(AnalysisError::query(message, hint))
    }
}

/// A test of a text column; a row without a value does not pass.
#[derive(Clone, Copy)]
pub(crate) struct Only {
    pub(crate) column: &'static str,
    pub(crate) holds: fn(&str) -> bool,
}

/// What some kinds require from the engine and others do not. The engine only uses these hooks and
/// never compares names of kinds or tables.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// The kind that answers the query instead, if the query needs its rows.
    pub(crate) instead: fn(&Query) -> Option<&'static Spec>,
    /// The kind for second objects, if they have rows of their own.
    pub(crate) second: Option<&'static Spec>,
    /// Which rows failed, for kinds without an error number.
    pub(crate) failure: Option<Failure>,
    pub(crate) part_of: Option<PartOf>,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) sides: Option<Sides>,
    /// A kind of which a thread has one row at a time: of rows without an end, only the last of
    /// each thread can be in progress.
    pub(crate) one_at_a_time: Option<&'static Spec>,
    /// Which rows are waits for work, and which views leave them out.
    pub(crate) waits: Option<Waits>,
    /// Whether there are rows with a known end and an unknown start.
    pub(crate) has_ends_alone: bool,
    /// Whether a word is an operation class; otherwise it is a name.
    pub(crate) is_class: fn(&str) -> bool,
    /// Rank of an operation class among the groups of an answer.
    pub(crate) class_rank: fn(&str) -> usize,
    /// The kind that has what this one lacks, for hints.
    pub(crate) hint: &'static str,
}

impl Hooks {
    pub(crate) const NONE: Self = Self {
        instead: |_| None,
        second: None,
        failure: None,
        part_of: None,
        duplicates: None,
        sides: None,
        one_at_a_time: None,
        waits: None,
        has_ends_alone: false,
        is_class: |_| true,
        class_rank: |_| 0,
        hint: "io",
    };
}

/// Rows that are waits for work: their durations show how long there was nothing to do.
#[derive(Clone, Copy)]
pub(crate) struct Waits {
    pub(crate) rows: WaitRows,
    /// Views that leave them out: those of durations, which they would dominate.
    pub(crate) views: &'static [Verb],
}

/// How a row is a wait for work.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitRows {
    /// By the name and the object of a system call.
    Calls,
    /// A sleep of an idle kernel thread, or in a call that waits for work.
    States,
}

impl Waits {
    /// Views whose rows or figures are durations.
    pub(crate) const OF_DURATIONS: &'static [Verb] = &[
        Verb::Top,
        Verb::Stats,
        Verb::Hist,
        Verb::Heat,
        Verb::Differs,
        Verb::Syscalls,
    ];
}

/// The text column that shows whether a row failed.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) column: &'static str,
    pub(crate) is_failure: fn(&str) -> bool,
}

/// The rows are parts of rows of another kind, and a filter may apply to either.
#[derive(Clone, Copy)]
pub(crate) struct PartOf {
    pub(crate) whole: &'static Spec,
    /// The column with the id of the whole.
    pub(crate) column: &'static str,
    /// Splits a filter into one for parts and one for wholes.
    pub(crate) split: fn(&Filter) -> (Filter, Filter),
}

/// Several sources may report the same event, each in a row of its own.
#[derive(Clone, Copy)]
pub(crate) struct Duplicates {
    /// The column with the id of the row that is counted instead.
    pub(crate) column: &'static str,
    /// Whether all of them count in a query that is grouped by these keys.
    pub(crate) count: fn(&Query, &[Key]) -> bool,
}

/// Several sides may see the same event, and the rows of all sides count.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) key: Key,
    /// The caveat if rows of these sides are combined.
    pub(crate) caveat: fn(&[String]) -> String,
}

/// A column of `top` and `log`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) measure: Measure,
    pub(crate) priority: u8,
    /// Hidden in text output if no row has a value.
    pub(crate) is_sparse: bool,
    pub(crate) cell: Cell,
}

/// Source of its cell.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell {
    Int(&'static str),
    Text(&'static str),
    Bool(&'static str),
    /// Name and kernel id of the thread with this recording-unique id.
    Thread(&'static str),
    /// The path, or why it is unknown.
    Object,
    /// The recorded arguments of a call, in one line.
    Arguments,
    /// The name of an error number.
    Errno(&'static str),
    /// The row's id with the kind's prefix.
    Id,
    /// Another row's id, with its prefix, from a column.
    IdOf(&'static str, &'static str),
    /// What woke the thread: a row of another kind.
    WokenBy(WokenBy),
}

/// A cause of wakeups that is a row of another kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WokenBy {
    /// Values of column `wake_cause`.
    pub(crate) causes: [&'static str; 2],
    pub(crate) id_prefix: &'static str,
}

impl Field {
    pub(crate) const fn new(
        name: &'static str,
        title: &'static str,
        measure: Measure,
        cell: Cell,
    ) -> Self {
        Self {
            name,
            title,
            measure,
            priority: 0,
            is_sparse: false,
            cell,
        }
    }

    pub(crate) const fn sparse(self) -> Self {
        Self {
            is_sparse: true,
            ..self
        }
    }

    pub(crate) const fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    pub(crate) fn answer_column(&self) -> AnswerColumn {
        AnswerColumn::new(self.name, self.title, self.measure)
            .priority(self.priority)
            .sparse(self.is_sparse)
    }
}
