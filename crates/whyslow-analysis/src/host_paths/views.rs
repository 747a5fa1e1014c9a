//! Mount namespace and root directory of each process over time.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{ProcessRow, ProcessViewRow};
use whyslow_model::{Ns, Symbols};
use whyslow_store::{StoreError, Tables, rows};

/// Maximum number of ancestors that are followed.
const GENERATIONS_MAX: usize = 1_000;

/// Mount namespace and root directory of a process.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct View {
    /// `None` if unknown.
    pub(super) mount_ns: Option<i64>,
    /// Path in the namespace, without a trailing slash: empty for the root of the namespace.
    pub(super) root: String,
}

/// The distinct views of all processes, numbered.
#[derive(Debug, Default)]
pub(super) struct Views {
    pub(super) all: Vec<View>,
    numbers: BTreeMap<View, usize>,
    /// The view of a process from each time on, in time order.
    of: FxHashMap<i64, Vec<(Ns, usize)>>,
}

/// A process and its changes.
#[derive(Default)]
struct Life {
    parent: Option<i64>,
    ts_start: Option<Ns>,
    mount_ns: Option<i64>,
    changes: Vec<ProcessViewRow>,
}

impl Views {
    pub(super) fn read(tables: &dyn Tables) -> Result<Self, StoreError> {
        let mut symbols = Symbols::new();
        let mut lives: BTreeMap<i64, Life> = BTreeMap::new();
        for row in rows::<ProcessRow>(tables, &mut symbols)? {
            let life = Life {
                parent: row.parent_upid.map(i64::from),
                ts_start: row.ts_start,
                mount_ns: row.mount_ns,
                changes: Vec::new(),
            };
            lives.insert(row.upid.into(), life);
        }
        for row in rows::<ProcessViewRow>(tables, &mut symbols)? {
            if let Some(life) = lives.get_mut(&i64::from(row.upid)) {
                life.changes.push(row);
            }
        }
        for life in lives.values_mut() {
            life.changes.index_sort_by_ints(|row| [row.ts, row.id, 0]);
        }
        let mut views = Self::default();
        for upid in lives.keys() {
            views.follow(*upid, &lives, &symbols);
        }
        Ok(views)
    }

    /// Computes the views of a process, after those of its ancestors.
    fn follow(&mut self, upid: i64, lives: &BTreeMap<i64, Life>, symbols: &Symbols) {
        let mut line = vec![upid];
        while let Some(parent) = line.last().and_then(|last| lives.get(last)?.parent) {
            if self.of.contains_key(&parent) || line.len() >= GENERATIONS_MAX {
                break;
            }
            line.push(parent);
        }
        while let Some(upid) = line.pop() {
            if let (Some(life), false) = (lives.get(&upid), self.of.contains_key(&upid)) {
                let seen = self.life(life, symbols);
                self.of.insert(upid, seen);
            }
        }
    }

    fn life(&mut self, life: &Life, symbols: &Symbols) -> Vec<(Ns, usize)> {
        let born = life.parent.zip(life.ts_start);
        let inherited = born.and_then(|(parent, ts)| self.at(parent, ts));
        let mut view = inherited.map_or_else(View::default, |number| self.all[number].clone());
        if view.mount_ns.is_none() {
            let first_ns = life.changes.iter().find_map(|row| row.mount_ns);
            view.mount_ns = first_ns.or(life.mount_ns);
        }
        let mut seen = vec![(Ns::MIN, self.number(&view))];
        // A snapshot of an older process also applies to the time before it, up to the first
        // change.
        let (mut is_before, mut known) = (born.is_none(), (false, false));
        for row in &life.changes {
            let is_again = row.mount_ns.is_some() && known.0 || row.root.is_some() && known.1;
            is_before &= !row.is_below && !is_again;
            known = (
                known.0 || row.mount_ns.is_some(),
                known.1 || row.root.is_some(),
            );
            view.mount_ns = row.mount_ns.or(view.mount_ns);
            if let Some(root) = row.root {
                let root = symbols.get(root).trim_end_matches('/');
                view.root = if row.is_below {
                    format!("{}{root}", view.root)
                } else {
                    root.to_owned()
                };
            }
            let from = if is_before { Ns::MIN } else { row.ts };
            seen.push((from, self.number(&view)));
        }
        seen
    }

    fn number(&mut self, view: &View) -> usize {
        *self.numbers.entry(view.clone()).or_insert_with(|| {
            self.all.push(view.clone());
            self.all.len() - 1
        })
    }

    /// The view of a process at a time.
    pub(super) fn at(&self, upid: i64, ts: Ns) -> Option<usize> {
        let seen = self.of.get(&upid)?;
        let after = seen.partition_point(|(from, _)| *from <= ts);
        seen.get(after.checked_sub(1)?).map(|(_, number)| *number)
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::Sym;

    use super::*;

    fn row(ts: Ns, mount_ns: Option<i64>, root: Option<Sym>, is_below: bool) -> ProcessViewRow {
        ProcessViewRow {
            id: ts,
            ts,
            upid: 0,
            mount_ns,
            root,
            is_below,
        }
    }

    #[test]
    fn a_process_sees_what_its_parent_saw_until_that_changes() {
        let mut symbols = Symbols::new();
        let mut root = |path: &str| Some(symbols.intern(path));
        let (jail, below, top) = (root("/srv/jail"), root("/in"), root("/"));
        let mut lives = BTreeMap::new();
        // An older process that a snapshot at 50 reports.
        lives.insert(
            1,
            Life {
                mount_ns: Some(7),
                changes: vec![
                    row(50, Some(6), None, false),
                    row(51, None, jail, false),
                    row(80, None, below, true),
                    row(90, Some(7), top, false),
                ],
                ..Life::default()
            },
        );
        let born = |ts: Ns| Life {
            parent: Some(1),
            ts_start: Some(ts),
            ..Life::default()
        };
        lives.insert(2, born(85));
        lives.insert(3, born(10));
        let mut views = Views::default();
        // A child may have a smaller id than its parent.
        for upid in [3, 2, 1] {
            views.follow(upid, &lives, &symbols);
        }
        let check = |upid: i64, ts: Ns, expected: Option<(i64, &str)>| {
            let found = views.at(upid, ts).map(|number| &views.all[number]);
            let found = found.map(|view| (view.mount_ns.unwrap_or(0), view.root.as_str()));
            assert_eq!(found, expected, "{upid} at {ts}");
        };
        check(1, 0, Some((6, "/srv/jail")));
        check(1, 79, Some((6, "/srv/jail")));
        check(1, 80, Some((6, "/srv/jail/in")));
        check(1, 90, Some((7, "")));
        check(2, 99, Some((6, "/srv/jail/in")));
        check(3, 99, Some((6, "/srv/jail")));
        check(4, 0, None);
    }
}
