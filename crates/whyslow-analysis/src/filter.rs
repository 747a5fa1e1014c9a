//! Selects the rows of a batch that match the window and filter of a query.
//!
//! Semantics that are not obvious:
//! - the operation classes `read` and `write` also match `read_write` (sendfile, splice,
//!   copy_file_range), which transfers bytes in both directions;
//! - minimum and maximum sizes let rows without a size pass (failed calls, opens, syncs); an exact
//!   size requires a size;
//! - if the recording cut the end of an operation, its known duration is compared with the minimum,
//!   and it never satisfies a maximum; without a known start, or if the end may belong to another
//!   operation, nothing is known of its duration;
//! - a device filter matches the whole disk or the partition, by name or by `major:minor`;
//! - an unknown thread is not considered part of the tracer.

mod check;
mod keep;
mod values;
mod waits;

use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use rustc_hash::FxHashSet;
use whyslow_model::syscall::Op;
use whyslow_model::tables::CUT_UNCERTAIN;
use whyslow_model::{Ns, Window};

use self::keep::keep;
use crate::globs::{PathGlobs, comm_globs, regexes};
use crate::grouping::Object;
use crate::keys::{Key, KeyValue, unknown_object};
use crate::losses::LostEnds;
use crate::query::{DeviceRef, Filter};
use crate::scan::{ColumnRef, Ints, PerWord, Projection, Texts};
use crate::spec::{Only, Spec};
use crate::stack_choice::StackChoice;
use crate::waits::Kept;
use crate::{AnalysisError, threads::Tracers};

/// Kernel device number with 20 bits for the minor, as stored in the tables.
pub(crate) fn device_number(major: i32, minor: i32) -> i64 {
    (i64::from(major) << 20) | i64::from(minor)
}

/// A window and a filter, ready to be applied to batches of one projection.
pub(crate) struct Selector {
    window: Option<(Window, ColumnRef, Option<ColumnRef>)>,
    tests: Vec<Test>,
    words: usize,
}

/// Per-thread cache: the verdict on each word of a dictionary.
pub(crate) struct Verdicts(Vec<PerWord<Verdict>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Open,
    No,
    Yes,
}

enum Test {
    /// Any clause holds.
    AnyOf(Vec<Clause>),
    /// The clause does not hold; null passes.
    Not(Clause),
    /// The value is one of these; null does not pass.
    OneOf(ColumnRef, FxHashSet<i64>),
    /// The value is not one of these; null passes.
    NoneOf(ColumnRef, FxHashSet<i64>),
    /// The stack is one of the selected ones.
    Stack(ColumnRef, Arc<StackChoice>),
    /// The column has a value above zero.
    Positive(ColumnRef),
    Size {
        column: ColumnRef,
        exact: Option<i64>,
        min: i64,
        max: i64,
    },
    /// It ended in the window.
    EndedIn { column: ColumnRef, window: Window },
    /// It is a wait for work, or it is none.
    Waits { of: waits::WaitTest, kept: Kept },
    /// The column has a value.
    Known(ColumnRef),
    /// The column has no value.
    Unknown(ColumnRef),
    /// A part of the duration, which must be known.
    Stage { column: ColumnRef, min: Ns, max: Ns },
    Length {
        columns: [ColumnRef; 3],
        /// An end without a duration does not show how long it was, and an end may have been lost.
        is_paired: bool,
        min: Ns,
        max: Ns,
        ends: Arc<LostEnds>,
    },
}

enum Clause {
    Text {
        column: ColumnRef,
        slot: usize,
        holds: TextTest,
    },
    Number(ColumnRef, Vec<i64>),
}

type TextTest = Box<dyn Fn(&str) -> bool + Send + Sync>;

impl Selector {
    pub(crate) fn new(
        spec: &Spec,
        filter: &Filter,
        window: Option<Window>,
        (tracers, ends): (&Tracers, &Arc<LostEnds>),
        projection: &mut Projection,
    ) -> Result<Self, AnalysisError> {
        spec.check(filter)?;
        let mut builder = Builder {
            projection,
            tests: Vec::new(),
            words: 0,
        };
        builder.only(spec.only);
        builder.numbers("pid", &filter.pids);
        builder.numbers("tid", &filter.tids);
        builder.numbers("cpu", &filter.cpus);
        builder.comms(&filter.comms)?;
        builder.threads(&filter.threads)?;
        builder.ops(spec, &filter.ops);
        builder.names(&filter.names);
        builder.devices(spec, &filter.devices);
        builder.files(spec, &filter.files)?;
        if let Some(size) = spec.size {
            builder.size(size, filter);
        }
        builder.values(spec, &filter.values)?;
        if let (true, Some(failure)) = (filter.errors_only, spec.hooks.failure) {
            let clause = builder.text(failure.column, Box::new(failure.is_failure));
            builder.tests.push(Test::AnyOf(vec![clause]));
        }
        if let (true, Some(errno)) = (filter.errors_only, spec.errno) {
            let column = builder.projection.need(errno);
            builder.tests.push(Test::Positive(column));
        }
        if filter.no_tracer {
            let column = builder.projection.need(spec.owner);
            let ids = match spec.owner {
                "upid" => &tracers.upids,
                _ => &tracers.utids,
            };
            builder.tests.push(Test::NoneOf(column, ids.clone()));
        }
        if filter.dur_min.is_some() || filter.dur_max.is_some() {
            builder.length(spec, filter, ends)?;
        }
        if let Some(window) = filter.ended_in {
            let column = builder.projection.need("ts_end");
            builder.tests.push(Test::EndedIn { column, window });
        }
        let (tests, words) = (builder.tests, builder.words);
        let ends = spec.table.column("ts_end");
        let window = window.map(|window| {
            let ts_end = ends.map(|_| projection.need("ts_end"));
            (window, projection.need("ts"), ts_end)
        });
        Ok(Self {
            window,
            tests,
            words,
        })
    }

    /// Keeps only ended operations, for kinds that have rows with a known end and an unknown start.
    /// Other kinds always have a start.
    pub(crate) fn only_ended(&mut self, spec: &Spec, projection: &mut Projection) {
        if spec.hooks.has_ends_alone {
            self.tests.push(Test::Known(projection.need("ts_end")));
        }
    }

    /// Keeps only rows without a value in a column.
    pub(crate) fn only_unknown(&mut self, column: &'static str, projection: &mut Projection) {
        self.tests.push(Test::Unknown(projection.need(column)));
    }

    /// Keeps only rows whose end belongs to their start.
    pub(crate) fn leave_uncertain_out(&mut self, projection: &mut Projection) {
        let clause = self.uncertain(projection);
        self.tests.push(Test::Not(clause));
    }

    /// Keeps only the others.
    pub(crate) fn only_uncertain(&mut self, projection: &mut Projection) {
        let clause = self.uncertain(projection);
        self.tests.push(Test::AnyOf(vec![clause]));
    }

    fn uncertain(&mut self, projection: &mut Projection) -> Clause {
        let mut builder = Builder {
            projection,
            tests: Vec::new(),
            words: self.words,
        };
        let clause = builder.text("cut", Box::new(|cut| cut == CUT_UNCERTAIN));
        self.words = builder.words;
        clause
    }

    /// Keeps only rows with one of these values in a column.
    pub(crate) fn only_among(
        &mut self,
        column: &'static str,
        values: FxHashSet<i64>,
        projection: &mut Projection,
    ) {
        self.tests
            .push(Test::OneOf(projection.need(column), values));
    }

    /// Keeps only rows with these stacks.
    pub(crate) fn only_stacks(&mut self, choice: Arc<StackChoice>, projection: &mut Projection) {
        let column = projection.need("callsite_id");
        self.tests.push(Test::Stack(column, choice));
    }

    /// Excludes one row.
    pub(crate) fn exclude(&mut self, id: i64, projection: &mut Projection) {
        let ids = FxHashSet::from_iter([id]);
        self.tests.push(Test::NoneOf(projection.need("id"), ids));
    }

    /// Keeps only calls that read one object and write another.
    pub(crate) fn only_read_write(&mut self, projection: &mut Projection) {
        self.also(projection, |builder| {
            let holds = |op: &str| op == Op::ReadWrite.name();
            vec![builder.text("op", Box::new(holds))]
        });
    }

    /// Keeps only calls on objects with these values of the key.
    pub(crate) fn only_objects(
        &mut self,
        (key, object): (Key, Object),
        values: Vec<KeyValue>,
        projection: &mut Projection,
    ) {
        let texts = values.into_iter().filter_map(|value| match value {
            KeyValue::Text(text) => Some(text),
            _ => None,
        });
        let wanted: Arc<FxHashSet<Box<str>>> = Arc::new(texts.collect());
        let has_reasons = projection.has("unknown_reason");
        self.also(projection, |builder| {
            let paths = Arc::clone(&wanted);
            let column = if object == Object::First {
                "path"
            } else {
                "path2"
            };
            let holds = move |path: &str| paths.contains(key.of_path(path).as_ref());
            let mut clauses = vec![builder.text(column, Box::new(holds))];
            if object == Object::First && has_reasons {
                let holds = move |reason: &str| wanted.contains(unknown_object(reason).as_str());
                clauses.push(builder.text("unknown_reason", Box::new(holds)));
            }
            clauses
        });
    }

    fn also(
        &mut self,
        projection: &mut Projection,
        clauses: impl FnOnce(&mut Builder<'_>) -> Vec<Clause>,
    ) {
        let mut builder = Builder {
            projection,
            tests: Vec::new(),
            words: self.words,
        };
        let clauses = clauses(&mut builder);
        self.words = builder.words;
        // First, because it rejects more rows than the tests of the query itself.
        self.tests.insert(0, Test::AnyOf(clauses));
    }

    pub(crate) fn verdicts(&self) -> Verdicts {
        Verdicts(vec![PerWord::new(); self.words])
    }

    /// Puts the rows that pass into `rows`, in order.
    pub(crate) fn select(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        rows.clear();
        let all = 0..batch.num_rows() as u32;
        match &self.window {
            None => rows.extend(all),
            Some((window, ts, None)) => {
                let ts = ts.ints(batch)?;
                rows.extend(all.filter(|row| window.contains(ts.at(*row))));
            }
            Some((window, ts, Some(ts_end))) => {
                let (ts, ts_end) = (ts.ints(batch)?, ts_end.ints(batch)?);
                rows.extend(all.filter(|row| window.overlaps(ts.at(*row), ts_end.get(*row))));
            }
        }
        for test in &self.tests {
            if rows.is_empty() {
                break;
            }
            test.retain(verdicts, batch, rows)?;
        }
        Ok(())
    }
}

impl Test {
    fn retain(
        &self,
        verdicts: &mut Verdicts,
        batch: &RecordBatch,
        rows: &mut Vec<u32>,
    ) -> Result<(), AnalysisError> {
        match self {
            Test::AnyOf(clauses) => match clauses.as_slice() {
                [clause] => clause.judge(verdicts, batch, rows)?.keep(rows),
                clauses => {
                    let mut passed = vec![false; rows.len()];
                    for clause in clauses {
                        clause.judge(verdicts, batch, rows)?.mark(rows, &mut passed);
                    }
                    let mut passed = passed.into_iter();
                    keep(rows, |_| passed.next() == Some(true));
                }
            },
            Test::Not(clause) => {
                let mut holds = vec![false; rows.len()];
                clause.judge(verdicts, batch, rows)?.mark(rows, &mut holds);
                let mut holds = holds.into_iter();
                keep(rows, |_| holds.next() == Some(false));
            }
            Test::OneOf(column, ids) => {
                let column = column.ints(batch)?;
                keep(rows, |row| {
                    column.get(row).is_some_and(|id| ids.contains(&id))
                });
            }
            Test::NoneOf(column, ids) => {
                let column = column.ints(batch)?;
                keep(rows, |row| {
                    column.get(row).is_none_or(|id| !ids.contains(&id))
                });
            }
            Test::Stack(column, choice) => {
                let column = column.ints(batch)?;
                keep(rows, |row| choice.takes(column.get(row)));
            }
            Test::Positive(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.or_zero(row) > 0);
            }
            Test::Size {
                column,
                exact,
                min,
                max,
            } => {
                let column = column.ints(batch)?;
                keep(rows, |row| match column.get(row) {
                    None => exact.is_none(),
                    Some(size) => {
                        *min <= size && size <= *max && exact.is_none_or(|exact| exact == size)
                    }
                });
            }
            Test::EndedIn { column, window } => {
                let ts_end = column.ints(batch)?;
                keep(rows, |row| {
                    let ts_end = ts_end.get(row);
                    ts_end.is_some_and(|ts_end| window.contains(ts_end))
                });
            }
            Test::Waits { of, kept } => {
                let mut waits = of.judge(verdicts, batch, rows)?.into_iter();
                keep(rows, |_| waits.next() == Some(*kept == Kept::Waits));
            }
            Test::Known(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.get(row).is_some());
            }
            Test::Unknown(column) => {
                let column = column.ints(batch)?;
                keep(rows, |row| column.get(row).is_none());
            }
            Test::Stage { column, min, max } => {
                let stage = column.ints(batch)?;
                keep(rows, |row| {
                    let stage = stage.get(row);
                    stage.is_some_and(|stage| *min <= stage && stage <= *max)
                });
            }
            Test::Length {
                columns: [ts, dur, ts_end],
                is_paired,
                min,
                max,
                ends,
            } => {
                let (ts, dur) = (ts.ints(batch)?, dur.ints(batch)?);
                let ts_end = ts_end.ints(batch)?;
                keep(rows, |row| {
                    if let Some(dur) = dur.get(row) {
                        return *min <= dur && dur <= *max;
                    }
                    let known = match ts_end.get(row) {
                        Some(_) if *is_paired => 0,
                        Some(end) => end - ts.at(row),
                        None if *is_paired => ends.known_until(ts.at(row)) - ts.at(row),
                        None => ends.recording_end() - ts.at(row),
                    };
                    *max == Ns::MAX && *min <= known
                });
            }
        }
        Ok(())
    }
}

impl Clause {
    /// The data that decides whether each of these rows passes.
    fn judge<'j>(
        &'j self,
        verdicts: &'j mut Verdicts,
        batch: &'j RecordBatch,
        rows: &[u32],
    ) -> Result<Judged<'j>, AnalysisError> {
        match self {
            Clause::Text {
                column,
                slot,
                holds,
            } => {
                let texts = column.texts(batch)?;
                if texts.are_null() {
                    return Ok(Judged::No);
                }
                let verdicts = verdicts.0[*slot].of(&texts, Verdict::Open);
                let mut judge = |key: usize| {
                    if verdicts[key] == Verdict::Open {
                        let yes = holds(texts.words.value(key));
                        verdicts[key] = if yes { Verdict::Yes } else { Verdict::No };
                    }
                };
                // Judging all words at once is cheaper than checking for each row whether its word
                // was judged, unless there are fewer rows than words.
                if rows.len() >= texts.words.len() {
                    (0..texts.words.len()).for_each(judge);
                } else {
                    rows.iter()
                        .filter_map(|row| texts.key(*row))
                        .for_each(&mut judge);
                }
                Ok(Judged::Text(texts, verdicts))
            }
            Clause::Number(column, wanted) => Ok(Judged::Number(column.ints(batch)?, wanted)),
        }
    }
}

/// A clause bound to some rows of a batch.
enum Judged<'j> {
    No,
    Text(Texts<'j>, &'j [Verdict]),
    Number(Ints<'j>, &'j [i64]),
}

impl Judged<'_> {
    fn keep(&self, rows: &mut Vec<u32>) {
        match self {
            Judged::No => rows.clear(),
            Judged::Text(texts, verdicts) => keep(rows, |row| is_yes(texts, verdicts, row)),
            Judged::Number(column, wanted) => keep(rows, |row| is_among(column, wanted, row)),
        }
    }

    fn mark(&self, rows: &[u32], passed: &mut [bool]) {
        let rows = rows.iter().zip(passed);
        match self {
            Judged::No => {}
            Judged::Text(texts, verdicts) => {
                rows.for_each(|(row, passed)| *passed |= is_yes(texts, verdicts, *row));
            }
            Judged::Number(column, wanted) => {
                rows.for_each(|(row, passed)| *passed |= is_among(column, wanted, *row));
            }
        }
    }
}

#[inline]
fn is_yes(texts: &Texts<'_>, verdicts: &[Verdict], row: u32) -> bool {
    texts
        .key(row)
        .is_some_and(|key| verdicts[key] == Verdict::Yes)
}

#[inline]
fn is_among(column: &Ints<'_>, wanted: &[i64], row: u32) -> bool {
    column.get(row).is_some_and(|value| wanted.contains(&value))
}

struct Builder<'p> {
    projection: &'p mut Projection,
    tests: Vec<Test>,
    words: usize,
}

impl Builder<'_> {
    fn only(&mut self, only: &[Only]) {
        for only in only {
            let clause = self.text(only.column, Box::new(only.holds));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    fn numbers(&mut self, column: &'static str, wanted: &[i32]) {
        if !wanted.is_empty() {
            let clause = self.number(column, wanted.iter().map(|value| i64::from(*value)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    fn comms(&mut self, globs: &[String]) -> Result<(), AnalysisError> {
        if !globs.is_empty() {
            let set = comm_globs(globs)?;
            let clause = self.text("comm", Box::new(move |comm| set.is_match(comm)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
        Ok(())
    }

    fn threads(&mut self, patterns: &[String]) -> Result<(), AnalysisError> {
        if !patterns.is_empty() {
            let set = regexes(patterns)?;
            let clause = self.text("comm", Box::new(move |comm| set.is_match(comm)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
        Ok(())
    }

    fn ops(&mut self, spec: &Spec, ops: &[String]) {
        if ops.is_empty() {
            return;
        }
        let is_class = |op: &&String| (spec.hooks.is_class)(op);
        let mut classes: Vec<String> = ops.iter().filter(is_class).cloned().collect();
        let names: Vec<String> = ops.iter().filter(|op| !is_class(op)).cloned().collect();
        if classes
            .iter()
            .any(|class| class == "read" || class == "write")
        {
            classes.push("read_write".into());
        }
        let mut clauses = Vec::new();
        if !classes.is_empty() {
            let holds = move |op: &str| classes.iter().any(|class| class == op);
            clauses.push(self.text(spec.class, Box::new(holds)));
        }
        if !names.is_empty() {
            let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
            clauses.push(self.text("name", Box::new(holds)));
        }
        self.tests.push(Test::AnyOf(clauses));
    }

    fn names(&mut self, names: &[String]) {
        if !names.is_empty() {
            let names = names.to_vec();
            let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
            let clause = self.text("name", Box::new(holds));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    fn devices(&mut self, spec: &Spec, devices: &[DeviceRef]) {
        if devices.is_empty() {
            return;
        }
        let mut names = Vec::new();
        let mut numbers = Vec::new();
        for device in devices {
            match device {
                DeviceRef::Name(name) => {
                    names.push(name.strip_prefix("/dev/").unwrap_or(name).to_owned());
                }
                DeviceRef::Number { major, minor } => numbers.push(device_number(*major, *minor)),
            }
        }
        let mut clauses = Vec::new();
        // Some tables with devices have no partitions.
        let has = |column: &&str| spec.table.column(column).is_some();
        for column in ["dev_name", "part_name"].into_iter().filter(has) {
            if !names.is_empty() {
                let names = names.clone();
                let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
                clauses.push(self.text(column, Box::new(holds)));
            }
        }
        for column in ["dev", "part"].into_iter().filter(has) {
            if !numbers.is_empty() {
                clauses.push(self.number(column, numbers.iter().copied()));
            }
        }
        self.tests.push(Test::AnyOf(clauses));
    }

    fn files(&mut self, spec: &Spec, globs: &[String]) -> Result<(), AnalysisError> {
        if !globs.is_empty() {
            let set = PathGlobs::new(globs)?;
            let other = set.clone();
            let mut clauses = vec![self.text("path", Box::new(move |path| set.is_match(path)))];
            if spec.table.column("path2").is_some() {
                clauses.push(self.text("path2", Box::new(move |path| other.is_match(path))));
            }
            self.tests.push(Test::AnyOf(clauses));
        }
        Ok(())
    }

    fn size(&mut self, column: &'static str, filter: &Filter) {
        let Filter {
            size,
            size_min,
            size_max,
            ..
        } = filter;
        if size.is_some() || size_min.is_some() || size_max.is_some() {
            let column = self.projection.need(column);
            self.tests.push(Test::Size {
                column,
                exact: *size,
                min: size_min.unwrap_or(i64::MIN),
                max: size_max.unwrap_or(i64::MAX),
            });
        }
    }

    fn length(
        &mut self,
        spec: &Spec,
        filter: &Filter,
        ends: &Arc<LostEnds>,
    ) -> Result<(), AnalysisError> {
        let (min, max) = (filter.dur_min, filter.dur_max);
        let (min, max) = (min.unwrap_or(Ns::MIN), max.unwrap_or(Ns::MAX));
        if let Some(stage) = &filter.stage {
            let column = self.projection.need(spec.stage(stage)?);
            self.tests.push(Test::Stage { column, min, max });
            return Ok(());
        }
        let columns = ["ts", "dur", "ts_end"].map(|name| self.projection.need(name));
        self.tests.push(Test::Length {
            columns,
            is_paired: spec.table.column("cut").is_some(),
            min,
            max,
            ends: Arc::clone(ends),
        });
        Ok(())
    }

    fn text(&mut self, column: &'static str, holds: TextTest) -> Clause {
        self.words += 1;
        Clause::Text {
            column: self.projection.need(column),
            slot: self.words - 1,
            holds,
        }
    }

    fn number(&mut self, column: &'static str, wanted: impl Iterator<Item = i64>) -> Clause {
        Clause::Number(self.projection.need(column), wanted.collect())
    }
}
