//! Threads, processes and stacks that the kept rows refer to, found by column names.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::{Ns, Row, Shape, Sink, Sym, Table, Unit, Window};

#[derive(Debug, Default)]
pub(super) struct Named {
    pub(super) threads: FxHashSet<i32>,
    pub(super) processes: FxHashSet<i32>,
    pub(super) callsites: FxHashSet<i64>,
    /// Threads whose last call so far has no end, with its `ts` and id.
    pub(super) unfinished: FxHashMap<i32, (Ns, i64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    End,
    Thread,
    Process,
    Callsite,
}

/// References and end time of a row.
pub(super) struct RowRefs {
    roles: Vec<Option<Role>>,
    shape: Shape,
    ts_end: Option<Ns>,
    things: Vec<(Role, i64)>,
}

impl RowRefs {
    pub(super) fn new(table: &Table) -> Self {
        let role = |name: &str| match name {
            "ts_end" => Some(Role::End),
            "callsite_id" => Some(Role::Callsite),
            name if name.ends_with("utid") => Some(Role::Thread),
            name if name.ends_with("upid") => Some(Role::Process),
            _ => None,
        };
        Self {
            roles: table
                .columns
                .iter()
                .map(|column| role(column.name))
                .collect(),
            shape: table.shape,
            ts_end: None,
            things: Vec::new(),
        }
    }

    pub(super) fn read<R: Row>(&mut self, row: &R) {
        self.ts_end = None;
        self.things.clear();
        row.put(self);
    }

    pub(super) fn ts_end(&self) -> Option<Ns> {
        self.ts_end
    }

    pub(super) fn overlaps(&self, ts: Ns, window: Window) -> bool {
        match self.shape {
            Shape::Interval => window.overlaps(ts, self.ts_end),
            Shape::Point => window.contains(ts),
            Shape::Entity => true,
        }
    }

    /// Whether it is completely within the window.
    pub(super) fn lies_in(&self, ts: Ns, window: Window) -> bool {
        window.contains(ts) && self.ts_end.is_some_and(|end| end < window.end)
    }
}

impl Sink for RowRefs {
    fn i64(&mut self, column: usize, value: Option<i64>) {
        match (self.roles[column], value) {
            (Some(Role::End), end) => self.ts_end = end,
            (Some(role), Some(value)) => self.things.push((role, value)),
            _ => {}
        }
    }
    fn i32(&mut self, column: usize, value: Option<i32>) {
        self.i64(column, value.map(i64::from));
    }
    fn f64(&mut self, _: usize, _: Option<f64>) {}
    fn bool(&mut self, _: usize, _: Option<bool>) {}
    fn sym(&mut self, _: usize, _: Option<Sym>) {}
}

impl Named {
    pub(super) fn take(&mut self, refs: &RowRefs) {
        for (role, id) in &refs.things {
            match role {
                Role::Thread => {
                    self.threads.insert(*id as i32);
                }
                Role::Process => {
                    self.processes.insert(*id as i32);
                }
                Role::Callsite => {
                    self.callsites.insert(*id);
                }
                Role::End => {}
            }
        }
    }

    /// Notes whether a call, identified by `ts` and id, has an end; calls come in order.
    pub(super) fn note_end(&mut self, refs: &RowRefs, key: (Ns, i64)) {
        let of_thread = |(role, id): &(Role, i64)| (*role == Role::Thread).then_some(*id as i32);
        if let Some(utid) = refs.things.iter().find_map(of_thread) {
            match refs.ts_end {
                Some(_) => self.unfinished.remove(&utid),
                None => self.unfinished.insert(utid, key),
            };
        }
    }

    /// Adds the ancestors of all referenced ones.
    pub(super) fn add_parents(&mut self, all: impl Iterator<Item = (i32, Option<i32>)>) {
        let parents: FxHashMap<i32, Option<i32>> = all.collect();
        let mut next: Vec<i32> = self.processes.iter().copied().collect();
        while let Some(upid) = next.pop() {
            if let Some(Some(parent)) = parents.get(&upid)
                && self.processes.insert(*parent)
            {
                next.push(*parent);
            }
        }
    }
}

/// Which columns of a table are non-zero in any row.
pub(super) struct Counting {
    table: &'static Table,
    counted: Vec<bool>,
}

impl Counting {
    pub(super) fn new(table: &'static Table) -> Self {
        Self {
            table,
            counted: vec![false; table.columns.len()],
        }
    }

    pub(super) fn columns(self) -> impl Iterator<Item = String> {
        let columns = self.table.columns.iter().zip(self.counted);
        let counted = columns.filter(|(column, counted)| *counted && column.unit == Unit::Count);
        counted.map(|(column, _)| column.name.to_owned())
    }
}

impl Sink for Counting {
    fn i64(&mut self, column: usize, value: Option<i64>) {
        self.counted[column] |= value.is_some_and(|value| value != 0);
    }
    fn i32(&mut self, column: usize, value: Option<i32>) {
        self.i64(column, value.map(i64::from));
    }
    fn f64(&mut self, _: usize, _: Option<f64>) {}
    fn bool(&mut self, _: usize, _: Option<bool>) {}
    fn sym(&mut self, _: usize, _: Option<Sym>) {}
}
