//! What a kind is: its views, its table, what the columns mean, and what is particular to it.

use whyslow_model::Table;
use whyslow_model::answer::{AnswerColumn, Measure};

use crate::AnalysisError;
use crate::key::Key;
use crate::query::{Filter, Kind, Question, Verb};

/// A kind as people ask for it. Everything that can be asked is in [`crate::TOPICS`]; the command line,
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

    /// The table that it reads first of all.
    pub fn table(&self) -> &'static Table {
        self.spec.table
    }
}

/// A kind: one table of intervals, and what its columns mean to the verbs.
pub(crate) struct Spec {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    /// What a row is called, many of them.
    pub(crate) rows: &'static str,
    pub(crate) table: &'static Table,
    /// Rows of the table that belong to the kind: those that pass all of these tests.
    pub(crate) only: &'static [Only],
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
    pub(crate) hooks: Hooks,
}

impl Spec {
    /// The rows of the kind by their second objects.
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
            format!("{} are not told apart in stages", self.rows)
        } else {
            format!("{} have {}", self.rows, names.join(", "))
        };
        let message = format!("{} has no stage `{name}`", self.name);
        Err(AnalysisError::query(message, hint))
    }
}

/// A test of a text column; a row without a value does not pass.
#[derive(Clone, Copy)]
pub(crate) struct Only {
    pub(crate) column: &'static str,
    pub(crate) holds: fn(&str) -> bool,
}

/// What some kinds need of the engine and others do not. The engine follows these and compares no
/// names of kinds or tables.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// The kind whose rows answer the query instead, where it needs those.
    pub(crate) instead: fn(&Question) -> Option<&'static Spec>,
    /// The rows by their second objects, where these are other rows.
    pub(crate) second: Option<&'static Spec>,
    /// Which rows failed, where no error number shows it.
    pub(crate) failure: Option<Failure>,
    pub(crate) part_of: Option<PartOf>,
    pub(crate) duplicates: Option<Duplicates>,
    pub(crate) sides: Option<Sides>,
    /// The kind of which a thread has one row at a time: of those without an end only the last of
    /// each thread can be in progress.
    pub(crate) one_at_a_time: Option<&'static Spec>,
    /// Whether there are rows whose end is known and whose start is not.
    pub(crate) has_ends_alone: bool,
    /// Whether a word is a class of operation; else it is a name.
    pub(crate) is_class: fn(&str) -> bool,
    /// Place of a class of operation among the groups of an answer.
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
        has_ends_alone: false,
        is_class: |_| true,
        class_rank: |_| 0,
        hint: "io",
    };
}

/// The column whose words show whether a row failed.
#[derive(Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) column: &'static str,
    pub(crate) is_failure: fn(&str) -> bool,
}

/// The rows are parts of rows of another kind, and a filter may be about either.
#[derive(Clone, Copy)]
pub(crate) struct PartOf {
    pub(crate) whole: &'static Spec,
    /// The column with the id of the whole.
    pub(crate) column: &'static str,
    /// What of a filter selects parts, and what selects wholes.
    pub(crate) split: fn(&Filter) -> (Filter, Filter),
}

/// Several sources may report the same thing, each in a row of its own.
#[derive(Clone, Copy)]
pub(crate) struct Duplicates {
    /// The column with the id of the row that counts instead.
    pub(crate) column: &'static str,
    /// Whether all of them count in a query that is grouped by these keys.
    pub(crate) count: fn(&Question, &[Key]) -> bool,
}

/// Several sides may see the same thing, and rows of all of them count.
#[derive(Clone, Copy)]
pub(crate) struct Sides {
    pub(crate) key: Key,
    /// The caveat where the rows of these sides are taken together.
    pub(crate) caveat: fn(&[String]) -> String,
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
    /// What woke the thread: a row of another kind.
    WokenBy(WokenBy),
}

/// A cause of wakeups that is a row of another kind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WokenBy {
    /// As the column `wake_cause` has it.
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
