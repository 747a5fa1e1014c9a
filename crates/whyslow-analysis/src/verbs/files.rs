//! `files top`, `tree` and `open`: files by path, pattern or directory, and processes that have
//! them open.
//!
//! Operations are from system calls; creations, deletions and lifetimes from `file_life`.
//! Everything is aggregated by path first, so that a pattern or a directory has the number of its
//! files.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;

use arrow_array::{Array, RecordBatch};
use whyslow_model::answer::{AnswerColumn, AnswerTable, Form, Measure, Value};
use whyslow_model::sort::IndexSort;
use whyslow_model::syscall::Op;
use whyslow_model::{Ns, Window};

use super::page_cache_fill::{self, FillSum};
use super::sharers;
use super::top::row_table;
use crate::AnalysisError;
use crate::context::Context;
use crate::creation::Creation;
use crate::facts;
use crate::fold::Spot;
use crate::fold::in_order;
use crate::grouping::Object;
use crate::keys::{Key, KeyValue, dir_of};
use crate::kinds::{DESCRIPTORS, FILES, LIVES};
use crate::pass::{Pass, Summing};
use crate::pattern::Common;
use crate::query::Filter;
use crate::rows::Cells;
use crate::scan::{ColumnRef, Ints, Texts, per_word};
use whyslow_model::histogram::Histogram;

const ROWS: usize = 20;

/// System calls that open a file by name.
const OPENERS: [&str; 5] = ["open", "openat", "openat2", "creat", "open_by_handle_at"];

pub(crate) fn top(context: &Context<'_>, keys: &[Key]) -> Result<AnswerTable, AnalysisError> {
    let files = by_path(context, keys)?;
    let mut groups: BTreeMap<Vec<KeyValue>, (FileSum, Common)> = BTreeMap::new();
    for (group, sum) in files {
        let path = keys
            .iter()
            .zip(&group)
            .find_map(|(key, value)| match value {
                KeyValue::Text(path) if *key == Key::Pattern => Some(path.clone()),
                _ => None,
            });
        let derived = keys.iter().zip(group).map(|(key, value)| match value {
            KeyValue::Text(path) if key.is_object() => KeyValue::Text(key.of_path(&path).into()),
            value => value,
        });
        let (all, common) = groups.entry(derived.collect()).or_default();
        all.merge(sum);
        if let Some(path) = path {
            common.add(&path);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.index_sort_by(|(group_a, (a, _)), (group_b, (b, _))| {
        b.weight()
            .cmp(&a.weight())
            .then_with(|| group_a.cmp(group_b))
    });
    let found = groups.len();
    let limit = context.limit(ROWS);
    if context.query.sort.is_none() {
        groups.truncate(limit);
    }
    let shown: Vec<&[KeyValue]> = groups.iter().map(|(group, _)| group.as_slice()).collect();
    let users = users(context, keys, &shown)?;

    let mut table = AnswerTable::new("files", "files", columns(keys));
    facts::push(&mut table, "found", "found", Measure::Count, found as i64);
    for ((group, (sum, common)), users) in groups.iter().zip(users) {
        let mut row = Vec::with_capacity(table.columns.len());
        for (key, value) in keys.iter().zip(group) {
            match value {
                KeyValue::Text(pattern) if *key == Key::Pattern => {
                    row.push(common.shown(pattern).into_owned().into());
                }
                value => row.extend(key.cells(value, &context.names)),
            }
        }
        sum.cells(&mut row);
        row.push(Value::List(users.into_iter().map(Value::Text).collect()));
        table.rows.push(row);
    }
    context.finish(&mut table, limit);
    context.note_cut(&table, found);
    Ok(table)
}

/// The users of each group: all processes with their descriptors in wide answers, otherwise the
/// process with the most calls.
fn users(
    context: &Context<'_>,
    keys: &[Key],
    groups: &[&[KeyValue]],
) -> Result<Vec<Vec<String>>, AnalysisError> {
    let roles = &[Object::First, Object::Second];
    if context.query.wide {
        return sharers::of(
            context,
            &FILES,
            (keys, &[Key::Process, Key::Fd]),
            roles,
            groups,
        );
    }
    let mut users = sharers::of(context, &FILES, (keys, &[Key::Process]), roles, groups)?;
    for users in &mut users {
        let others = users.len().saturating_sub(1);
        users.truncate(1);
        if let Some(first) = users.first_mut()
            && others > 0
        {
            let _ = write!(first, " and {others} more");
        }
    }
    Ok(users)
}

fn columns(keys: &[Key]) -> Vec<AnswerColumn> {
    let column = AnswerColumn::new;
    let mut columns: Vec<_> = keys.iter().flat_map(|key| key.answer_columns()).collect();
    columns.extend([
        column("files", "files", Measure::Count).priority(2),
        column("life_p50_ns", "life p50", Measure::Duration).priority(3),
        column("opens", "opens", Measure::Count).priority(1),
        column("writes", "writes", Measure::Count).priority(2),
        column("write_bytes", "written", Measure::Bytes),
        column("reads", "reads", Measure::Count).priority(2),
        column("read_bytes", "read", Measure::Bytes),
    ]);
    columns.extend(page_cache_fill::columns());
    columns.extend([
        column("created", "created", Measure::Count).priority(3),
        column("deleted", "deleted", Measure::Count).priority(2),
        column("other_calls", "other calls", Measure::Count).priority(5),
        column("time_ns", "time in calls", Measure::Duration).priority(4),
        column("by", "by", Measure::Text),
    ]);
    columns
}

/// A directory of the tree with everything below it.
pub(crate) fn tree(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let mut nodes: BTreeMap<String, FileSum> = BTreeMap::new();
    for (group, sum) in by_path(context, &[Key::File])? {
        let [KeyValue::Text(path)] = group.as_slice() else {
            continue;
        };
        if context.query.wide {
            nodes
                .entry(path.to_string())
                .or_default()
                .merge(sum.clone());
        }
        let mut dir = dir_of(path);
        loop {
            nodes.entry(dir.to_owned()).or_default().merge(sum.clone());
            match dir.strip_suffix('/').filter(|rest| !rest.is_empty()) {
                Some(rest) => dir = dir_of(rest),
                None => break,
            }
        }
    }
    // A directory weighs at least as much as its contents, so the heaviest nodes form a tree.
    let mut heaviest: Vec<(String, FileSum)> = nodes.into_iter().collect();
    heaviest.index_sort_by(|(path_a, a), (path_b, b)| {
        let depth = depth_of(path_a).cmp(&depth_of(path_b));
        b.weight()
            .cmp(&a.weight())
            .then(depth)
            .then_with(|| path_a.cmp(path_b))
    });
    heaviest.truncate(context.limit(TREE_ROWS));
    let column = AnswerColumn::new;
    let mut columns = vec![
        column("path", "path", Measure::Path),
        column("depth", "depth", Measure::Count).priority(9),
    ];
    columns.extend(
        self::columns(&[])
            .into_iter()
            .filter(|column| column.name != "by"),
    );
    let mut table = AnswerTable::new("tree", "files by directory", columns);
    table.form = Form::Tree;
    for place in in_tree_order(&heaviest) {
        let (path, sum) = &heaviest[place];
        let mut row = vec![path.as_str().into(), depth_of(path).into()];
        sum.cells(&mut row);
        table.rows.push(row);
    }
    Ok(table)
}

const TREE_ROWS: usize = 40;

/// Number of parent directories.
fn depth_of(path: &str) -> i64 {
    let inside = path.trim_matches('/');
    if inside.is_empty() {
        0
    } else {
        inside.matches('/').count() as i64 + 1
    }
}

/// Parents before children, children in list order.
fn in_tree_order(nodes: &[(String, FileSum)]) -> Vec<usize> {
    let places: BTreeMap<&str, usize> = nodes
        .iter()
        .enumerate()
        .map(|(place, (path, _))| (path.as_str(), place))
        .collect();
    let mut children: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut stack = Vec::new();
    for (place, (path, _)) in nodes.iter().enumerate() {
        let parent = dir_of(path.strip_suffix('/').unwrap_or(path));
        match places.get(parent) {
            Some(parent) if *parent != place => children.entry(*parent).or_default().push(place),
            _ => stack.push(place),
        }
    }
    stack.reverse();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(place) = stack.pop() {
        order.push(place);
        if let Some(children) = children.get(&place) {
            stack.extend(children.iter().rev());
        }
    }
    order
}

/// File descriptors open at a point in time, like lsof.
pub(crate) fn open(context: &Context<'_>) -> Result<AnswerTable, AnalysisError> {
    let at = context.query.at.unwrap_or(context.span.end);
    let moment = Window::new(at, at.saturating_add(1));
    let filter = &context.query.filter;
    let mut pass = context.pass_in(&DESCRIPTORS, &[], filter, Some(moment))?;
    let cells = Cells::new(
        &DESCRIPTORS,
        DESCRIPTORS.fields,
        &context.names,
        &mut pass.projection,
    );
    let projection = &mut pass.projection;
    let [pid, upid, fd, id] = ["pid", "upid", "fd", "id"].map(|name| projection.need(name));
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    let mut found = Vec::new();
    in_order(
        context.tables,
        &pass.projection.scan(Some(moment)),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (pid, upid) = (pid.ints(batch)?, upid.ints(batch)?);
            let (fd, id) = (fd.ints(batch)?, id.ints(batch)?);
            for (row, cells) in selected.iter().copied().zip(cells.read(batch, &selected)?) {
                found.push(((pid.get(row), upid.at(row), fd.at(row), id.at(row)), cells));
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    found.index_sort_by_key(|(order, _)| *order);
    let mut table = row_table(&DESCRIPTORS, "open", DESCRIPTORS.rows);
    facts::push(&mut table, "at_ns", "at", Measure::Time, at);
    table.rows = found.into_iter().map(|(_, cells)| cells).collect();
    context.finish(&mut table, context.limit(0));
    Ok(table)
}

/// Sums by path and the other keys.
type Files = BTreeMap<Vec<KeyValue>, FileSum>;

/// Sums by path (and the other keys), with the lifetimes of the paths.
fn by_path(context: &Context<'_>, keys: &[Key]) -> Result<Files, AnalysisError> {
    let keys: Vec<Key> = keys
        .iter()
        .map(|key| if key.is_object() { Key::File } else { *key })
        .collect();
    let mut pass = context.pass(&FILES, &keys)?;
    let first = FileCalls::new(&mut pass, Object::First);
    let mut files = Files::new();
    files.extend(pass.run(context.tables, &first)?);
    let mut pass = context.pass_second(&FILES, &keys)?;
    let second = FileCalls::new(&mut pass, Object::Second);
    for (group, sum) in pass.run(context.tables, &second)? {
        files.entry(group).or_default().merge(sum);
    }
    if let Some(fills) = page_cache_fill::of(context, &keys)? {
        for (group, fills) in fills {
            if fills.has_come() || files.contains_key(&group) {
                files.entry(group).or_default().fills = Some(fills);
            }
        }
        for sum in files.values_mut() {
            sum.fills.get_or_insert_default();
        }
    }
    let object = keys.iter().position(|key| *key == Key::File);
    files.retain(|group, sum| {
        let path = object.and_then(|place| group.get(place));
        sum.files = 1;
        object.is_none() || matches!(path, Some(KeyValue::Text(path)) if path.starts_with('/'))
    });
    if keys == [Key::File] {
        add_lives(context, &mut files)?;
        note_inferred(context, &files);
    }
    Ok(files)
}

/// Adds a caveat if creations are inferred.
fn note_inferred(context: &Context<'_>, files: &Files) {
    let sum = |of: fn(&FileSum) -> i64| files.values().map(of).sum::<i64>();
    let (inferred, created) = (sum(|file| file.inferred), sum(|file| file.created));
    if inferred > 0 {
        context.note(format!(
            "{inferred} of {created} creations are inferred: the files were opened with O_CREAT and \
             written to, but may have existed before"
        ));
    }
}

/// Creations, deletions and lifetimes of the paths found.
fn add_lives(context: &Context<'_>, files: &mut Files) -> Result<(), AnalysisError> {
    let filter = Filter {
        files: context.query.filter.files.clone(),
        ..Filter::default()
    };
    let mut pass = context.pass_of(&LIVES, &[], &filter)?;
    let projection = &mut pass.projection;
    let [ts, ts_end, dur] = ["ts", "ts_end", "dur"].map(|name| projection.need(name));
    let [created, deleted] = ["created", "deleted"].map(|name| projection.need(name));
    let (path, written) = (projection.need("path"), projection.need("bytes_written"));
    let mut verdicts = pass.selector.verdicts();
    let mut selected = Vec::new();
    let inside = |ts: Ns| {
        context
            .query
            .window
            .is_none_or(|window| window.contains(ts))
    };
    in_order(
        context.tables,
        &pass.projection.scan(pass.selected),
        |batch| {
            pass.selector.select(&mut verdicts, batch, &mut selected)?;
            let (ts, ts_end, dur) = (ts.ints(batch)?, ts_end.ints(batch)?, dur.ints(batch)?);
            let (created, deleted) = (created.bools(batch)?, deleted.bools(batch)?);
            let (path, written) = (path.texts(batch)?, written.ints(batch)?);
            for row in selected.iter().copied() {
                let key = vec![KeyValue::Text(path.get(row).unwrap_or_default().into())];
                let Some(sum) = files.get_mut(&key) else {
                    continue;
                };
                let known = created.is_valid(row as usize);
                let created = known.then(|| created.value(row as usize));
                let creation = Creation::of(created, written.at(row));
                let is_created = creation != Creation::NotShown;
                sum.created += i64::from(is_created && inside(ts.at(row)));
                let is_inferred = creation == Creation::Inferred;
                sum.inferred += i64::from(is_inferred && inside(ts.at(row)));
                let gone = ts_end.get(row).filter(|_| deleted.value(row as usize));
                sum.deleted += i64::from(gone.is_some_and(inside));
                if let (true, Some(_), Some(life)) = (is_created, gone, dur.get(row)) {
                    sum.lives.add(life);
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )
}

struct FileCalls {
    object: Object,
    op: ColumnRef,
    name: ColumnRef,
    errno: ColumnRef,
    bytes: ColumnRef,
    dur: ColumnRef,
}

#[derive(Debug, Default, Clone)]
struct FileSum {
    files: i64,
    opens: i64,
    reads: i64,
    writes: i64,
    others: i64,
    bytes_read: i64,
    bytes_written: i64,
    created: i64,
    /// Of these, those that are inferred.
    inferred: i64,
    deleted: i64,
    time: Ns,
    lives: Histogram,
    /// `None` if unknown.
    fills: Option<FillSum>,
}

impl FileSum {
    /// Bytes first, then calls.
    fn weight(&self) -> (i64, i64) {
        let calls = self.opens + self.reads + self.writes + self.others;
        let mapped = self.fills.map_or(0, |sum| sum.mapped);
        (self.bytes_read + self.bytes_written + mapped, calls)
    }

    fn merge(&mut self, other: FileSum) {
        self.files += other.files;
        self.opens += other.opens;
        self.reads += other.reads;
        self.writes += other.writes;
        self.others += other.others;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        self.created += other.created;
        self.inferred += other.inferred;
        self.deleted += other.deleted;
        self.time += other.time;
        self.lives.merge(&other.lives);
        match (&mut self.fills, other.fills) {
            (Some(sum), Some(more)) => sum.merge(more),
            (sum, more) => *sum = sum.or(more),
        }
    }

    fn cells(&self, row: &mut Vec<Value>) {
        row.extend([
            self.files.into(),
            Value::from(self.lives.percentile(500)),
            self.opens.into(),
            self.writes.into(),
            self.bytes_written.into(),
            self.reads.into(),
            self.bytes_read.into(),
        ]);
        row.extend(page_cache_fill::cells(self.fills.as_ref()));
        row.extend([
            self.created.into(),
            self.deleted.into(),
            self.others.into(),
            self.time.into(),
        ]);
    }
}

/// What a call does to the file of the row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Open,
    Read,
    Write,
    Other,
}

impl FileCalls {
    fn new(pass: &mut Pass, object: Object) -> Self {
        let projection = &mut pass.projection;
        Self {
            object,
            op: projection.need("op"),
            name: projection.need("name"),
            errno: projection.need("errno"),
            bytes: projection.need("bytes"),
            dur: projection.need("dur"),
        }
    }
}

struct FileColumns<'b> {
    op: Texts<'b>,
    ops: Vec<Option<Op>>,
    name: Texts<'b>,
    openers: Vec<bool>,
    errno: Ints<'b>,
    bytes: Ints<'b>,
    dur: Ints<'b>,
}

impl Summing for FileCalls {
    type Columns<'b> = FileColumns<'b>;
    type Sum = FileSum;

    fn columns<'b>(
        &self,
        batch: &'b RecordBatch,
        _: Spot,
    ) -> Result<FileColumns<'b>, AnalysisError> {
        let (op, name) = (self.op.texts(batch)?, self.name.texts(batch)?);
        Ok(FileColumns {
            ops: per_word(&op, Op::by_name),
            openers: per_word(&name, |name| OPENERS.contains(&name)),
            op,
            name,
            errno: self.errno.ints(batch)?,
            bytes: self.bytes.ints(batch)?,
            dur: self.dur.ints(batch)?,
        })
    }

    #[inline]
    fn add(&self, sum: &mut FileSum, columns: &FileColumns<'_>, row: u32) {
        let op = columns.op.key(row).and_then(|key| columns.ops[key]);
        let opens = || {
            let opener = columns
                .name
                .key(row)
                .is_some_and(|key| columns.openers[key]);
            opener && columns.errno.get(row).is_none()
        };
        let does = match (op, self.object) {
            (Some(Op::Open), _) if opens() => Does::Open,
            (Some(Op::Read), _) | (Some(Op::ReadWrite), Object::First) => Does::Read,
            (Some(Op::Write), _) | (Some(Op::ReadWrite), Object::Second) => Does::Write,
            _ => Does::Other,
        };
        let bytes = columns.bytes.get(row).unwrap_or(0);
        match does {
            Does::Open => sum.opens += 1,
            Does::Read => {
                sum.reads += 1;
                sum.bytes_read += bytes;
            }
            Does::Write => {
                sum.writes += 1;
                sum.bytes_written += bytes;
            }
            Does::Other => sum.others += 1,
        }
        sum.time += columns.dur.get(row).unwrap_or(0);
    }

    fn merge(&self, sum: &mut FileSum, other: FileSum) {
        sum.merge(other);
    }
}
