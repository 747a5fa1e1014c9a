//! What rows can be grouped by, and groups as small numbers while scanning.
//!
//! A text column is translated once per word of its dictionary, an integer column through a map
//! with the last value at hand; several keys are folded pairwise into one number. The numbers are
//! private to a thread: results are merged by the keys' values.

use std::borrow::Cow;

use arrow_array::RecordBatch;
use rustc_hash::FxHashMap;
use whyslow_model::answer::{AnswerColumn, Measure, Value};
use whyslow_model::{Ns, Window};

use crate::AnalysisError;
use crate::errno;
use crate::kinds::Spec;
use crate::pattern::pattern_of;
use crate::scan::{ColumnRef, PerWord, Projection};
use crate::threads::Names;

/// A key of `--by`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Comm,
    Pid,
    Tid,
    Process,
    Thread,
    File,
    Dir,
    Pattern,
    Dev,
    Part,
    Op,
    Name,
    State,
    Cpu,
    Fd,
    FdClass,
    Errno,
}

const KEYS: [(Key, &str); 17] = [
    (Key::Comm, "comm"),
    (Key::Pid, "pid"),
    (Key::Tid, "tid"),
    (Key::Process, "process"),
    (Key::Thread, "thread"),
    (Key::File, "file"),
    (Key::Dir, "dir"),
    (Key::Pattern, "pattern"),
    (Key::Dev, "dev"),
    (Key::Part, "part"),
    (Key::Op, "op"),
    (Key::Name, "name"),
    (Key::State, "state"),
    (Key::Cpu, "cpu"),
    (Key::Fd, "fd"),
    (Key::FdClass, "fd_class"),
    (Key::Errno, "errno"),
];

impl Key {
    pub(crate) fn name(self) -> &'static str {
        KEYS.iter()
            .find(|(key, _)| *key == self)
            .map_or("", |(_, name)| name)
    }

    /// The keys of a question, or the default where it names none.
    pub(crate) fn parse_all(
        spec: &Spec,
        by: &[String],
        default: &[Key],
    ) -> Result<Vec<Key>, AnalysisError> {
        if by.is_empty() {
            return Ok(default.to_vec());
        }
        by.iter().map(|name| Key::parse(spec, name)).collect()
    }

    pub(crate) fn parse(spec: &Spec, name: &str) -> Result<Key, AnalysisError> {
        let known = KEYS.iter().find(|(_, known)| *known == name);
        match known {
            Some((key, _)) if key.columns(spec).is_some() => Ok(*key),
            _ => {
                let has = |(key, _): &&(Key, &str)| key.columns(spec).is_some();
                let keys: Vec<&str> = KEYS.iter().filter(has).map(|(_, name)| *name).collect();
                Err(AnalysisError::query(
                    format!("{} has no key `{name}` to group by", spec.name),
                    format!("it has {}", keys.join(", ")),
                ))
            }
        }
    }

    /// The columns it is made of, where the kind has them.
    fn columns(self, spec: &Spec) -> Option<Shape> {
        let shape = match self {
            Key::Comm => Shape::Text("comm", Derive::Same),
            Key::Pid => Shape::Int("pid"),
            Key::Tid => Shape::Int("tid"),
            Key::Process => Shape::Int("upid"),
            Key::Thread => Shape::Int("utid"),
            Key::File => Shape::Object(Derive::Same),
            Key::Dir => Shape::Object(Derive::Dir),
            Key::Pattern => Shape::Object(Derive::Pattern),
            Key::Dev => Shape::Text("dev_name", Derive::Same),
            Key::Part => Shape::Text("part_name", Derive::Same),
            Key::Op => Shape::Text("op", Derive::Same),
            Key::Name => Shape::Text("name", Derive::Same),
            Key::State => Shape::Text("state", Derive::Same),
            Key::Cpu => Shape::Int("cpu"),
            Key::Fd => Shape::Int("fd"),
            Key::FdClass => Shape::Text("fd_class", Derive::Same),
            Key::Errno => Shape::Int(spec.errno?),
        };
        let column = match shape {
            Shape::Text(column, _) | Shape::Int(column) => column,
            Shape::Object(_) => "path",
        };
        spec.table.column(column).map(|_| shape)
    }

    /// Whether it names what a call acts on.
    pub(crate) fn is_object(self) -> bool {
        matches!(self, Key::File | Key::Dir | Key::Pattern)
    }

    /// The value of an object's key that a path has.
    pub(crate) fn of_path(self, path: &str) -> Cow<'_, str> {
        match self {
            Key::Dir => Derive::Dir.apply(path),
            Key::Pattern => Derive::Pattern.apply(path),
            _ => Cow::Borrowed(path),
        }
    }

    /// Columns of an answer that show it.
    pub(crate) fn answer_columns(self) -> Vec<AnswerColumn> {
        let column = |name, measure| vec![AnswerColumn::new(name, name, measure)];
        match self {
            Key::Process => vec![
                AnswerColumn::new("comm", "process", Measure::Text),
                AnswerColumn::new("pid", "pid", Measure::Count),
            ],
            Key::Thread => vec![
                AnswerColumn::new("comm", "thread", Measure::Text),
                AnswerColumn::new("tid", "tid", Measure::Count),
            ],
            Key::File | Key::Dir | Key::Pattern => column(self.name(), Measure::Path),
            Key::Pid | Key::Tid | Key::Cpu | Key::Fd => column(self.name(), Measure::Count),
            _ => column(self.name(), Measure::Text),
        }
    }

    /// Cells of these columns.
    pub(crate) fn cells(self, value: &KeyValue, names: &Names) -> Vec<Value> {
        match (self, value) {
            (Key::Process, KeyValue::Int(upid)) => match names.process(*upid) {
                Some(process) => vec![process.comm.clone().into(), process.pid.into()],
                None => vec![Value::Null, Value::Null],
            },
            (Key::Thread, KeyValue::Int(utid)) => match names.thread(*utid) {
                Some(thread) => vec![thread.comm.clone().into(), thread.tid.into()],
                None => vec![Value::Null, Value::Null],
            },
            (Key::Process | Key::Thread, _) => vec![Value::Null, Value::Null],
            (Key::Errno, KeyValue::Int(0)) => vec![Value::Null],
            (Key::Errno, KeyValue::Int(number)) => vec![errno::name(*number).into()],
            (_, KeyValue::Int(number)) => vec![(*number).into()],
            (_, KeyValue::Text(text)) => vec![text.as_ref().into()],
            (_, KeyValue::Null) => vec![Value::Null],
        }
    }

    /// One word for a series: `openat`, `apache2 (31517)`.
    pub(crate) fn label(self, value: &KeyValue, names: &Names) -> String {
        let cells = self.cells(value, names);
        match cells.as_slice() {
            [Value::Text(comm), Value::Int(id)] => format!("{comm} ({id})"),
            [_, Value::Int(id)] => format!("({id})"),
            [Value::Text(text)] => text.clone(),
            [Value::Int(number)] => format!("{} {number}", self.name()),
            _ if matches!(self, Key::Process | Key::Thread) => format!("unknown {}", self.name()),
            _ => format!("no {}", self.name()),
        }
    }
}

/// Name of a group: `sda write`.
pub(crate) fn label(keys: &[Key], group: &[KeyValue], names: &Names) -> String {
    let labels = keys
        .iter()
        .zip(group)
        .map(|(key, value)| key.label(value, names));
    labels.collect::<Vec<_>>().join(" ")
}

/// Value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum KeyValue {
    Null,
    Int(i64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy)]
enum Shape {
    Text(&'static str, Derive),
    Int(&'static str),
    /// The path, or why it is unknown.
    Object(Derive),
}

/// What becomes of a path.
#[derive(Debug, Clone, Copy)]
enum Derive {
    Same,
    Dir,
    Pattern,
}

impl Derive {
    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Derive::Same => Cow::Borrowed(text),
            Derive::Dir => Cow::Borrowed(dir_of(text)),
            Derive::Pattern => pattern_of(text),
        }
    }
}

/// Directory of a path; other objects (sockets, pipes) are their own.
pub(crate) fn dir_of(path: &str) -> &str {
    match path.strip_prefix('/').map(|rest| rest.rfind('/')) {
        Some(Some(slash)) => &path[..=slash],
        Some(None) => "/",
        None => path,
    }
}

/// How an object without a known path is shown.
pub(crate) fn unknown_object(reason: &str) -> String {
    format!("unknown ({reason})")
}

/// Keys bound to the columns of a projection.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    columns: Vec<Bound>,
}

/// Intervals of time as a key: the begin of the interval that `column` lies in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeKey {
    pub(crate) column: ColumnRef,
    pub(crate) span: Window,
    pub(crate) width: Ns,
}

impl TimeKey {
    /// What lies outside of the span is put to its first or last interval.
    #[inline]
    pub(crate) fn begin(&self, ts: Ns) -> Ns {
        let last = self.span.end.max(self.span.begin + 1) - 1;
        let ts = ts.clamp(self.span.begin, last);
        ts - (ts - self.span.begin) % self.width
    }
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    Text(ColumnRef, Derive),
    Int(ColumnRef),
    Time(TimeKey),
    Object {
        path: ColumnRef,
        reason: ColumnRef,
        derive: Derive,
    },
}

/// Which object of a call its keys are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Object {
    /// What `fd` leads to, or the path it was called with.
    First,
    /// What `fd2` leads to.
    Second,
}

impl Grouping {
    pub(crate) fn new(
        spec: &Spec,
        keys: &[Key],
        object: Object,
        projection: &mut Projection,
    ) -> Self {
        let bind = |key: &Key| {
            Some(match (key.columns(spec)?, object) {
                (Shape::Object(derive), Object::First)
                    if spec.table.column("unknown_reason").is_none() =>
                {
                    Bound::Text(projection.need("path"), derive)
                }
                (Shape::Object(derive), Object::First) => Bound::Object {
                    path: projection.need("path"),
                    reason: projection.need("unknown_reason"),
                    derive,
                },
                (Shape::Object(derive), Object::Second) => {
                    Bound::Text(projection.need("path2"), derive)
                }
                (Shape::Int("fd"), Object::Second) => Bound::Int(projection.need("fd2")),
                (Shape::Text(column, derive), _) => Bound::Text(projection.need(column), derive),
                (Shape::Int(column), _) => Bound::Int(projection.need(column)),
            })
        };
        Self {
            columns: keys.iter().filter_map(bind).collect(),
        }
    }

    /// Groups by time as well, as the last key.
    pub(crate) fn push_time(&mut self, key: TimeKey) {
        self.columns.push(Bound::Time(key));
    }

    pub(crate) fn coder(&self) -> Coder {
        Coder {
            columns: self
                .columns
                .iter()
                .map(|bound| ColumnCoder::new(*bound))
                .collect(),
            pairs: vec![PairCoder::default(); self.columns.len().saturating_sub(1)],
            scratch: Vec::new(),
        }
    }
}

const UNSET: u32 = u32::MAX;

/// Turns rows into numbers of groups, `0..count()`.
pub(crate) struct Coder {
    columns: Vec<ColumnCoder>,
    pairs: Vec<PairCoder>,
    scratch: Vec<u32>,
}

impl Coder {
    /// Number of the group of each of `rows`.
    pub(crate) fn codes(
        &mut self,
        batch: &RecordBatch,
        rows: &[u32],
        codes: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        codes.clear();
        let Some((first, others)) = self.columns.split_first_mut() else {
            codes.resize(rows.len(), 0);
            return Ok(());
        };
        first.codes(batch, rows, codes)?;
        for (column, pairs) in others.iter_mut().zip(&mut self.pairs) {
            self.scratch.clear();
            column.codes(batch, rows, &mut self.scratch)?;
            for (code, right) in codes.iter_mut().zip(&self.scratch) {
                *code = pairs.code((*code, *right));
            }
        }
        Ok(())
    }

    /// Values of the keys of a group.
    pub(crate) fn values(&self, code: u32) -> Vec<KeyValue> {
        let Some((first, others)) = self.columns.split_first() else {
            return Vec::new();
        };
        let mut values = Vec::with_capacity(self.columns.len());
        let mut code = code;
        for (column, pairs) in others.iter().zip(&self.pairs).rev() {
            let (left, right) = pairs.pairs[code as usize];
            values.push(column.values[right as usize].clone());
            code = left;
        }
        values.push(first.values[code as usize].clone());
        values.reverse();
        values
    }
}

#[derive(Debug, Clone, Default)]
struct PairCoder {
    codes: FxHashMap<(u32, u32), u32>,
    pairs: Vec<(u32, u32)>,
    last: Option<((u32, u32), u32)>,
}

impl PairCoder {
    #[inline]
    fn code(&mut self, pair: (u32, u32)) -> u32 {
        if let Some((last, code)) = self.last
            && last == pair
        {
            return code;
        }
        let code = *self.codes.entry(pair).or_insert_with(|| {
            self.pairs.push(pair);
            self.pairs.len() as u32 - 1
        });
        self.last = Some((pair, code));
        code
    }
}

struct ColumnCoder {
    bound: Bound,
    values: Vec<KeyValue>,
    texts: FxHashMap<Box<str>, u32>,
    ints: FxHashMap<i64, u32>,
    null: u32,
    words: PerWord<u32>,
    reasons: PerWord<u32>,
}

impl ColumnCoder {
    fn new(bound: Bound) -> Self {
        Self {
            bound,
            values: Vec::new(),
            texts: FxHashMap::default(),
            ints: FxHashMap::default(),
            null: UNSET,
            words: PerWord::new(),
            reasons: PerWord::new(),
        }
    }

    fn codes(
        &mut self,
        batch: &RecordBatch,
        rows: &[u32],
        codes: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        match self.bound {
            Bound::Int(column) => {
                let column = column.ints(batch)?;
                self.int_codes(rows.iter().map(|row| column.get(*row)), codes);
                Ok(())
            }
            Bound::Time(key) => {
                let column = key.column.ints(batch)?;
                let begins = rows.iter().map(|row| Some(key.begin(column.get(*row)?)));
                self.int_codes(begins, codes);
                Ok(())
            }
            Bound::Text(column, derive) => {
                let texts = column.texts(batch)?;
                let mut words = std::mem::replace(&mut self.words, PerWord::new());
                let known = words.of(&texts, UNSET);
                codes.extend(rows.iter().map(|row| match texts.key(*row) {
                    None => self.null_code(),
                    Some(key) => {
                        if known[key] == UNSET {
                            known[key] = self.text_code(derive.apply(texts.words.value(key)));
                        }
                        known[key]
                    }
                }));
                self.words = words;
                Ok(())
            }
            Bound::Object {
                path,
                reason,
                derive,
            } => {
                let (paths, why) = (path.texts(batch)?, reason.texts(batch)?);
                let mut words = std::mem::replace(&mut self.words, PerWord::new());
                let mut reasons = std::mem::replace(&mut self.reasons, PerWord::new());
                let known = words.of(&paths, UNSET);
                let known_why = reasons.of(&why, UNSET);
                codes.extend(
                    rows.iter()
                        .map(|row| match (paths.key(*row), why.key(*row)) {
                            (Some(key), _) => {
                                if known[key] == UNSET {
                                    known[key] =
                                        self.text_code(derive.apply(paths.words.value(key)));
                                }
                                known[key]
                            }
                            (None, Some(key)) => {
                                if known_why[key] == UNSET {
                                    let shown = unknown_object(why.words.value(key));
                                    known_why[key] = self.text_code(Cow::Owned(shown));
                                }
                                known_why[key]
                            }
                            (None, None) => self.null_code(),
                        }),
                );
                self.words = words;
                self.reasons = reasons;
                Ok(())
            }
        }
    }

    fn int_codes(&mut self, values: impl Iterator<Item = Option<i64>>, codes: &mut Vec<u32>) {
        let mut last: Option<(i64, u32)> = None;
        for value in values {
            let code = match (value, last) {
                (None, _) => self.null_code(),
                (Some(value), Some((seen, code))) if seen == value => code,
                (Some(value), _) => {
                    let values = &mut self.values;
                    let code = *self.ints.entry(value).or_insert_with(|| {
                        values.push(KeyValue::Int(value));
                        values.len() as u32 - 1
                    });
                    last = Some((value, code));
                    code
                }
            };
            codes.push(code);
        }
    }

    fn null_code(&mut self) -> u32 {
        if self.null == UNSET {
            self.values.push(KeyValue::Null);
            self.null = self.values.len() as u32 - 1;
        }
        self.null
    }

    fn text_code(&mut self, text: Cow<'_, str>) -> u32 {
        if let Some(code) = self.texts.get(text.as_ref()) {
            return *code;
        }
        let text: Box<str> = text.into();
        self.values.push(KeyValue::Text(text.clone()));
        let code = self.values.len() as u32 - 1;
        self.texts.insert(text, code);
        code
    }
}

#[cfg(test)]
mod tests {
    use super::dir_of;

    #[test]
    fn directory_of_a_path_ends_with_a_slash() {
        for (path, dir) in [
            ("/etc/passwd", "/etc/"),
            ("/vmlinuz", "/"),
            ("/a/b/c", "/a/b/"),
            ("pipe:[17]", "pipe:[17]"),
            ("/", "/"),
        ] {
            assert_eq!(dir_of(path), dir, "{path}");
        }
    }
}
