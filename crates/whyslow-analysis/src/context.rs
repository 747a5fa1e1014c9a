//! State shared by the parts of one query.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use rayon::iter::{IndexedParallelIterator, IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashSet;
use whyslow_model::answer::AnswerTable;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::filter::{Kept, Selector};
use crate::grouping::{Grouping, Object};
use crate::idle_sleeps::IdleSleeps;
use crate::keys::Key;
use crate::lost_ends::LostEnds;
use crate::pass::{Ids, Pass};
use crate::query::{Filter, Query, Verb};
use crate::scan::Projection;
use crate::spec::Spec;
use crate::stack_choice::StackChoice;
use crate::threads::Names;
use crate::{AnalysisError, arrange, interval, uncertain};

pub(crate) struct Context<'q> {
    pub(crate) tables: &'q dyn Tables,
    pub(crate) query: &'q Query,
    pub(crate) names: Arc<Names>,
    /// The effective window: the window clipped to the recording and to the operation of
    /// `--overlaps`.
    pub(crate) span: Window,
    /// Width of the requested intervals. An interval longer than the window is clipped to it, so
    /// that no sum of widths can overflow.
    pub(crate) interval: Option<Ns>,
    /// Rows must overlap this; `None` if the query covers the whole recording.
    selected: Option<Window>,
    pub(crate) lost_ends: Arc<LostEnds>,
    /// Stacks that pass the filter.
    stacks: Option<Arc<StackChoice>>,
    /// Sleeps that are waits for work, if the query leaves them out.
    pub(crate) sleeps: Arc<IdleSleeps>,
    /// The operation of `--overlaps` does not overlap itself.
    excluded: Option<(&'static str, i64)>,
    /// Caveats found while answering.
    notes: RefCell<Vec<String>>,
}

/// Rows that a pass includes even if the query leaves them out.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Included {
    /// Waits for work.
    pub(crate) waits: bool,
    /// Rows whose end may belong to another start.
    pub(crate) uncertain: bool,
}

impl Included {
    pub(crate) const WAITS: Self = Self {
        waits: true,
        uncertain: false,
    };
    pub(crate) const UNCERTAIN: Self = Self {
        waits: false,
        uncertain: true,
    };
    pub(crate) const ALL: Self = Self {
        waits: true,
        uncertain: true,
    };
}

impl<'q> Context<'q> {
    pub(crate) fn new(tables: &'q dyn Tables, query: &'q Query) -> Result<Self, AnalysisError> {
        let recording = Window::new(tables.info().begin_ns, tables.info().end_ns);
        let mut selected = query.window;
        let mut excluded = None;
        if let Some((table, id)) = &query.overlaps {
            let (table, around) = interval::interval_of(tables, table, *id)?;
            excluded = Some((table, *id));
            selected = Some(match selected {
                None => around,
                Some(window) => {
                    Window::new(window.begin.max(around.begin), window.end.min(around.end))
                }
            });
        }
        let span = selected.map_or(recording, |window| {
            let begin = window.begin.clamp(recording.begin, recording.end);
            Window::new(begin, window.end.clamp(begin, recording.end))
        });
        if let Some(interval) = query.interval {
            check_interval(interval, span)?;
        }
        let longest = span.length().max(1);
        let sleeps = if IdleSleeps::are_left_out(query) {
            // That view compares with rows outside of the window.
            let window = selected.filter(|_| query.verb != Verb::Differs);
            IdleSleeps::read(tables, window)?
        } else {
            IdleSleeps::default()
        };
        let notes = sleeps.note().into_iter().collect();
        Ok(Self {
            tables,
            query,
            names: Arc::new(Names::read(tables)?),
            span,
            interval: query.interval.map(|interval| interval.min(longest)),
            selected,
            lost_ends: Arc::new(LostEnds::read(tables)?),
            stacks: StackChoice::of(tables, &query.filter)?.map(Arc::new),
            sleeps: Arc::new(sleeps),
            excluded,
            notes: RefCell::new(notes),
        })
    }

    /// The window that rows must overlap; `None` if the query covers the whole recording.
    pub(crate) fn selected(&self) -> Option<Window> {
        self.selected
    }

    /// Adds a caveat to the answer.
    pub(crate) fn note(&self, caveat: String) {
        let mut notes = self.notes.borrow_mut();
        if !notes.contains(&caveat) {
            notes.push(caveat);
        }
    }

    /// Computes two parts of an answer concurrently: while one thread sorts its results, another
    /// can read. Caveats are kept in order, and so is the first error.
    pub(crate) fn both<A: Send, B: Send>(
        &self,
        first: impl FnOnce(&Context<'_>) -> Result<A, AnalysisError> + Send,
        second: impl FnOnce(&Context<'_>) -> Result<B, AnalysisError> + Send,
    ) -> Result<(A, B), AnalysisError> {
        let (ours, theirs) = (self.fork(), self.fork());
        let run_first = move || (first(&ours), ours.take_notes());
        let run_second = move || (second(&theirs), theirs.take_notes());
        let ((a, notes_a), (b, notes_b)) = rayon::join(run_first, run_second);
        let notes = notes_a.into_iter().chain(notes_b);
        notes.for_each(|note| self.note(note));
        Ok((a?, b?))
    }

    /// The same for several parts that are computed in the same way.
    pub(crate) fn each<T: Send, A: Send>(
        &self,
        parts: Vec<T>,
        make: impl Fn(&Context<'_>, T) -> Result<A, AnalysisError> + Sync,
    ) -> Result<Vec<A>, AnalysisError> {
        let parts: Vec<_> = parts.into_iter().map(|part| (self.fork(), part)).collect();
        let made: Vec<_> = parts
            .into_par_iter()
            .with_max_len(1)
            .map(|(context, part)| (make(&context, part), context.take_notes()))
            .collect();
        let noted = made.into_iter().map(|(made, notes)| {
            for note in notes {
                self.note(note);
            }
            made
        });
        noted.collect()
    }

    /// The same query, with separate caveats.
    fn fork(&self) -> Self {
        Self {
            tables: self.tables,
            query: self.query,
            names: Arc::clone(&self.names),
            span: self.span,
            interval: self.interval,
            selected: self.selected,
            lost_ends: Arc::clone(&self.lost_ends),
            stacks: self.stacks.clone(),
            sleeps: Arc::clone(&self.sleeps),
            excluded: self.excluded,
            notes: RefCell::default(),
        }
    }

    pub(crate) fn take_notes(&self) -> Vec<String> {
        self.notes.take()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.span.length() as f64 / 1e9
    }

    /// End of operations without an end.
    pub(crate) fn recording_end(&self) -> Ns {
        self.tables.info().whole().end
    }

    /// Whether the table has any row; for a slice of a recording, whether the whole recording does.
    pub(crate) fn has(&self, table: &str) -> bool {
        self.tables.info().rows_of_whole(table) > 0
    }

    /// Rows of the query, grouped by `keys`, and by interval if it has one.
    pub(crate) fn pass(&self, spec: &'static Spec, keys: &[Key]) -> Result<Pass, AnalysisError> {
        self.pass_of(spec, keys, &self.query.filter)
    }

    /// The same for calls with two objects, grouped by the second one.
    pub(crate) fn pass_second(
        &self,
        spec: &'static Spec,
        keys: &[Key],
    ) -> Result<Pass, AnalysisError> {
        let mut pass = self.pass(spec.of_second(), &[])?;
        pass.selector.only_read_write(&mut pass.projection);
        pass.grouping = Grouping::new(
            spec,
            (keys, Object::Second),
            &self.names,
            &mut pass.projection,
        );
        Ok(pass)
    }

    pub(crate) fn pass_of(
        &self,
        spec: &'static Spec,
        keys: &[Key],
        filter: &Filter,
    ) -> Result<Pass, AnalysisError> {
        let mut pass = self.pass_with_cut(spec, keys, filter)?;
        self.drop_unended(spec, &mut pass);
        Ok(pass)
    }

    /// Waits for work among the rows of the query.
    pub(crate) fn pass_of_waits(
        &self,
        spec: &'static Spec,
        keys: &[Key],
    ) -> Result<Pass, AnalysisError> {
        let filter = &self.query.filter;
        let mut pass = self.pass_including(Included::WAITS, spec, keys, filter, self.selected)?;
        self.drop_excluded(spec, &mut pass);
        self.drop_unended(spec, &mut pass);
        self.keep(Kept::Waits, spec, &mut pass);
        Ok(pass)
    }

    fn drop_unended(&self, spec: &Spec, pass: &mut Pass) {
        if self.query.counts_ended {
            pass.selector.only_ended(spec, &mut pass.projection);
        }
    }

    fn drop_excluded(&self, spec: &Spec, pass: &mut Pass) {
        if let Some((table, id)) = self.excluded
            && table == spec.table.name
        {
            pass.selector.exclude(id, &mut pass.projection);
        }
    }

    /// The same, including rows cut by the end of the recording even if they count in the next one:
    /// for measures of time, and for operations in progress.
    pub(crate) fn pass_with_cut(
        &self,
        spec: &'static Spec,
        keys: &[Key],
        filter: &Filter,
    ) -> Result<Pass, AnalysisError> {
        let mut pass = self.pass_in(spec, keys, filter, self.selected)?;
        self.drop_excluded(spec, &mut pass);
        Ok(pass)
    }

    /// Whether rows of our own recorder are left out: in lists of the longest operations, unless some
    /// threads are selected. Sums contain them, since they took that time.
    pub(crate) fn leaves_recorder_out(&self) -> bool {
        let filter = &self.query.filter;
        let selects_threads = !(filter.pids.is_empty()
            && filter.tids.is_empty()
            && filter.comms.is_empty()
            && filter.threads.is_empty());
        self.names.has_recorder && self.query.verb == Verb::Top && !selects_threads
    }

    /// Rows that overlap another window than that of the query.
    pub(crate) fn pass_in(
        &self,
        spec: &'static Spec,
        keys: &[Key],
        filter: &Filter,
        window: Option<Window>,
    ) -> Result<Pass, AnalysisError> {
        self.pass_including(Included::default(), spec, keys, filter, window)
    }

    /// The same, including rows that the query leaves out.
    pub(crate) fn pass_including(
        &self,
        included: Included,
        spec: &'static Spec,
        keys: &[Key],
        filter: &Filter,
        window: Option<Window>,
    ) -> Result<Pass, AnalysisError> {
        let (mut filter, wholes) = self.split(spec, filter)?;
        if self.leaves_recorder_out() {
            filter.to_mut().no_tracer = true;
        }
        let filter = &*filter;
        let mut projection = Projection::new(spec.table);
        let tracers = &self.names.tracers;
        let ends = &self.lost_ends;
        let mut selector = Selector::new(spec, filter, window, (tracers, ends), &mut projection)?;
        if let Some(duplicates) = spec.hooks.duplicates
            && !(duplicates.count)(self.query, keys)
        {
            selector.only_unknown(duplicates.column, &mut projection);
        }
        if let Some((column, ids)) = wholes {
            selector.only_among(column, ids, &mut projection);
        }
        if !filter.cgroups.is_empty() {
            let upids = self.names.of_cgroups(&filter.cgroups)?;
            selector.only_among("upid", upids, &mut projection);
        }
        if let Some(stacks) = self.stacks.as_ref().filter(|_| filter.is_of_stacks()) {
            selector.only_stacks(Arc::clone(stacks), &mut projection);
        }
        let grouping = Grouping::new(spec, (keys, Object::First), &self.names, &mut projection);
        if !included.uncertain && uncertain::are_left_out(self, spec)? {
            selector.leave_uncertain_out(&mut projection);
        }
        let mut pass = Pass {
            projection,
            selector,
            grouping,
            selected: window,
        };
        if !included.waits && self.leaves_waits_out(spec) {
            self.keep(Kept::Others, spec, &mut pass);
        }
        Ok(pass)
    }

    /// Splits a filter. Rows that are parts of others are also selected by the rest of it, through
    /// the column with the id of the whole; returns the ids that pass.
    #[expect(
        clippy::type_complexity,
        reason = "one caller, which takes it apart at once"
    )]
    fn split<'f>(
        &self,
        spec: &Spec,
        filter: &'f Filter,
    ) -> Result<(Cow<'f, Filter>, Option<(&'static str, FxHashSet<i64>)>), AnalysisError> {
        let Some(part_of) = spec.hooks.part_of else {
            return Ok((Cow::Borrowed(filter), None));
        };
        let (parts, wholes) = (part_of.split)(filter);
        let ids = if wholes == Filter::default() {
            None
        } else {
            Some((part_of.column, self.ids(part_of.whole, &wholes)?))
        };
        Ok((Cow::Owned(parts), ids))
    }

    /// Ids of the rows that pass a filter, at any time.
    fn ids(&self, spec: &'static Spec, filter: &Filter) -> Result<FxHashSet<i64>, AnalysisError> {
        let mut pass = self.pass_in(spec, &[], filter, None)?;
        let ids = Ids(pass.projection.need("id"));
        let found = pass.run(self.tables, &ids)?;
        Ok(found.into_values().flatten().collect())
    }

    /// The column of the latency that the query measures.
    pub(crate) fn latency(&self, spec: &Spec) -> Result<&'static str, AnalysisError> {
        let stage = self.query.filter.stage.as_deref();
        stage.map_or(Ok("dur"), |stage| spec.stage(stage))
    }

    /// Row limit of the query for a table that shows `default` rows.
    pub(crate) fn limit(&self, default: usize) -> usize {
        match self.query.limit.unwrap_or(default) {
            0 => usize::MAX,
            limit => limit,
        }
    }

    /// Sorts as requested, or keeps the verb's order, and truncates to `limit` rows.
    pub(crate) fn finish(&self, table: &mut AnswerTable, limit: usize) {
        if let Some(sort) = &self.query.sort {
            arrange::sort(table, sort);
        }
        let rows = table.rows.len();
        arrange::truncate(table, limit);
        self.note_cut(table, rows);
    }

    /// Adds a caveat about rows that the default limit removed from a table with `rows` rows.
    pub(crate) fn note_cut(&self, table: &AnswerTable, rows: usize) {
        let more = rows.saturating_sub(table.rows.len());
        if more > 0 && self.query.limit.is_none() {
            let word = if more == 1 { "row" } else { "rows" };
            self.note(format!(
                "{more} more {word} of `{}` not shown (-n 0 shows all)",
                table.title
            ));
        }
    }

    /// The same for a table with a block of rows per interval, whose first column is its start: the
    /// limit applies to each block, unless they are sorted together.
    pub(crate) fn finish_blocks(&self, table: &mut AnswerTable, limit: usize) {
        if self.interval.is_some() && self.query.sort.is_none() {
            let rows = table.rows.len();
            arrange::truncate_blocks(table, limit);
            self.note_cut(table, rows);
        } else {
            self.finish(table, limit);
        }
    }
}

/// Maximum number of intervals: more indicate a wrong unit.
const INTERVALS_MAX: i64 = 100_000;

fn check_interval(interval: Ns, span: Window) -> Result<(), AnalysisError> {
    if interval <= 0 {
        return Err(AnalysisError::query(
            "the interval must be positive",
            "specify it with a unit, such as `1s` or `100ms`",
        ));
    }
    if span.length() / interval >= INTERVALS_MAX {
        return Err(AnalysisError::query(
            format!("the window has more than {INTERVALS_MAX} intervals"),
            "use a longer interval, or a shorter window with -w",
        ));
    }
    Ok(())
}
