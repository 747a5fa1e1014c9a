//! A clause of the verdict that follows "because" as well as "overlapped with".

use crate::report::Grade;

/// Subject, verb and rest: the verb depends on the grade.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Clause {
    subject: String,
    /// Past tense and present participle: `held`, `holding`.
    verb: (&'static str, &'static str),
    rest: String,
    /// The cause is not known: there is nothing to put after "because".
    is_unexplained: bool,
}

impl Clause {
    pub(super) fn new(
        subject: impl Into<String>,
        verb: (&'static str, &'static str),
        rest: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            verb,
            rest: rest.into(),
            is_unexplained: false,
        }
    }

    pub(crate) fn unexplained(
        subject: impl Into<String>,
        verb: (&'static str, &'static str),
        rest: impl Into<String>,
    ) -> Self {
        Self {
            is_unexplained: true,
            ..Self::new(subject, verb, rest)
        }
    }

    /// The same with more at its end.
    pub(crate) fn and(mut self, more: &str) -> Self {
        self.rest.push_str(more);
        self
    }

    fn with_verb(&self, verb: &str) -> String {
        let is_attached = self.rest.is_empty() || self.rest.starts_with([',', ' ']);
        let space = if is_attached { "" } else { " " };
        format!("{} {verb}{space}{}", self.subject, self.rest)
    }

    /// `dd[99] held the lock`.
    pub(crate) fn past(&self) -> String {
        self.with_verb(self.verb.0)
    }

    /// As strong as the grade allows: `because dd[99] held the lock`, or `overlapped with dd[99]
    /// holding the lock; causality not established`.
    pub(crate) fn with_grade(&self, grade: Grade) -> String {
        let verb = grade.verb();
        match grade {
            _ if self.is_unexplained => format!("unexplained: {}", self.past()),
            Grade::C => format!(
                "{verb} {}; causality not established",
                self.with_verb(self.verb.1)
            ),
            Grade::A | Grade::B => format!("{verb} {}", self.past()),
        }
    }
}
