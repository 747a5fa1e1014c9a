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

mod builder;
mod check;
mod clause;
mod condition;
mod keep;
mod values;
mod waits;

use std::sync::Arc;

use arrow_array::RecordBatch;
use rustc_hash::FxHashSet;
use whyslow_model::Window;
use whyslow_model::syscall::Op;
use whyslow_model::syscall::waits::{is_filled_by_others, is_filled_device, is_read, is_wait};
use whyslow_model::tables::CUT_UNCERTAIN;

use self::builder::Builder;
use self::clause::Clause;
pub(crate) use self::clause::Verdicts;
use self::condition::Test;
pub(crate) use self::waits::Kept;
use self::waits::{Calls, States, WaitTest};
use crate::grouping::Object;
use crate::idle_sleeps::{IdleSleeps, SLEEPS};
use crate::keys::{Key, KeyValue, unknown_object};
use crate::lost_ends::LostEnds;
use crate::query::Filter;
use crate::scan::{ColumnRef, Projection};
use crate::spec::Spec;
use crate::stack_choice::StackChoice;
use crate::{AnalysisError, threads::Tracers};

/// A window and a filter, ready to be applied to batches of one projection.
pub(crate) struct Selector {
    window: Option<(Window, ColumnRef, Option<ColumnRef>)>,
    tests: Vec<Test>,
    words: usize,
}

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
        self.build(projection, |builder| {
            builder.text("cut", Box::new(|cut| cut == CUT_UNCERTAIN))
        })
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
        let clauses = self.build(projection, clauses);
        // First, because it rejects more rows than the tests of the query itself.
        self.tests.insert(0, Test::AnyOf(clauses));
    }

    /// Keeps only system calls that wait for work, or only others. The named calls count as others:
    /// they were selected by name.
    pub(crate) fn only_waits_of_calls(
        &mut self,
        named: Vec<String>,
        kept: Kept,
        projection: &mut Projection,
    ) {
        let also_named = named.clone();
        self.add_wait_test(kept, projection, |builder| {
            let waits = move |name: &str| is_wait(name) && !has(&named, name);
            let reads = move |name: &str| is_read(name) && !has(&also_named, name);
            WaitTest::Calls(Calls {
                waits: builder.text("name", Box::new(waits)),
                reads: builder.text("name", Box::new(reads)),
                is_filled: builder.text("fd_class", Box::new(is_filled_by_others)),
                is_device: builder.text("fd_class", Box::new(|class: &str| class == "dev")),
                is_filled_device: builder.text("path", Box::new(is_filled_device)),
            })
        });
    }

    /// Keeps only states in which the thread waits for work, or only others.
    pub(crate) fn only_idle_sleeps(
        &mut self,
        idle: Arc<IdleSleeps>,
        kept: Kept,
        projection: &mut Projection,
    ) {
        self.add_wait_test(kept, projection, |builder| {
            WaitTest::States(States {
                sleeps: builder.text("state", Box::new(|state: &str| SLEEPS.contains(&state))),
                ts: builder.projection.need("ts"),
                utid: builder.projection.need("utid"),
                idle,
            })
        });
    }

    fn add_wait_test(
        &mut self,
        kept: Kept,
        projection: &mut Projection,
        make: impl FnOnce(&mut Builder<'_>) -> WaitTest,
    ) {
        let of = Box::new(self.build(projection, make));
        self.tests.push(Test::Waits { of, kept });
    }

    /// Makes something that may judge words of further dictionaries.
    fn build<T>(
        &mut self,
        projection: &mut Projection,
        make: impl FnOnce(&mut Builder<'_>) -> T,
    ) -> T {
        let mut builder = Builder {
            projection,
            tests: Vec::new(),
            words: self.words,
        };
        let made = make(&mut builder);
        self.words = builder.words;
        made
    }

    pub(crate) fn verdicts(&self) -> Verdicts {
        Verdicts::new(self.words)
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

fn has(named: &[String], name: &str) -> bool {
    named.iter().any(|named| named == name)
}
