//! Finds the row of the operation that met the condition: by its thread and its start. Both come
//! from the same record as the row, so they agree up to the conversion of clocks.

use whyslow_analysis::AnalysisError;
use whyslow_model::row::Row;
use whyslow_model::tables::{
    BlockIoRow, DnsLookupRow, LockWaitRow, LostEventsRow, RequestRow, SyscallRow, ThreadRow,
};
use whyslow_model::trigger::{TriggerFacts, TriggerKind};
use whyslow_model::{Ns, Symbols, Window};
use whyslow_store::{Tables, each_row};

/// Maximum difference between the start of the operation and of its row.
const TOLERANCE: Ns = 1_000_000;

/// The operation that met the condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FoundRow {
    /// Table and id.
    Row(&'static str, i64),
    /// A wait of a thread (`utid`, kernel id), which needs no row.
    Thread(i32, i32, Window),
}

impl FoundRow {
    /// Its id for other commands.
    pub(super) fn name(self) -> Option<String> {
        let Self::Row(table, id) = self else {
            return None;
        };
        let prefix = match table {
            "syscall" => "op",
            "block_io" => "block",
            "dns_lookup" => "dns",
            "lock_wait" => "lock",
            table => table,
        };
        Some(format!("{prefix}:{id}"))
    }
}

/// Why no row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotFound {
    /// The save was requested: there is no operation.
    Requested,
    /// The condition concerns the state of the machine.
    NoOperation,
    /// An earlier version recorded it.
    Old,
    /// The operation began before the recording.
    Cut,
    /// It is outside of this excerpt.
    Excerpt,
    /// Events of that time were lost.
    Lost,
    /// The recording has no rows of this table.
    Empty(&'static str),
    /// None of the above.
    Unknown,
}

impl NotFound {
    /// `None` if nothing is missing.
    pub(super) fn sentence(self) -> Option<String> {
        let reason = match self {
            Self::Requested => return None,
            Self::NoOperation => {
                "pressure concerns the whole machine; the findings are about all operations".into()
            }
            Self::Old => "this version of the recorder did not store its thread and start".into(),
            Self::Cut => {
                "it began before the recording (increase --ring or --ring-memory)".to_owned()
            }
            Self::Excerpt => "it is outside of this excerpt of the recording".into(),
            Self::Lost => {
                "events were lost while it was in progress (increase --buffer)".to_owned()
            }
            Self::Empty(table) => format!("the recording has no rows of table {table}"),
            Self::Unknown => "no row of its thread starts at that time".into(),
        };
        Some(format!("operation of the trigger unavailable: {reason}"))
    }
}

/// The row with the nearest start.
#[derive(Debug, Default)]
struct Nearest(Option<((bool, Ns), i64)>);

impl Nearest {
    /// Rows of the same thread or process take precedence.
    fn add(&mut self, (id, ts): (i64, Ns), begin: Ns, is_same: bool) {
        let distance = (ts - begin).abs();
        let rank = (!is_same, distance);
        if distance <= TOLERANCE && self.0.is_none_or(|(best, _)| rank < best) {
            self.0 = Some((rank, id));
        }
    }
}

/// Finds the operation of a trigger.
pub(crate) fn find(
    tables: &dyn Tables,
    facts: &TriggerFacts,
) -> Result<Result<FoundRow, NotFound>, AnalysisError> {
    if facts.condition.is_none() {
        return Ok(Err(NotFound::Requested));
    }
    let (Some(kind), Some(ts)) = (facts.kind, facts.ts) else {
        return Ok(Err(NotFound::Old));
    };
    if kind == TriggerKind::Pressure {
        return Ok(Err(NotFound::NoOperation));
    }
    let (Some(begin), Some(tid)) = (facts.begin(), facts.tid) else {
        return Ok(Err(NotFound::Old));
    };
    if kind == TriggerKind::Sched {
        let window = Window::new(begin, ts.max(begin + 1));
        let utid = thread_at(tables, tid, window)?;
        let found = utid.map(|utid| FoundRow::Thread(utid, tid, window));
        return Ok(match found {
            Some(found) => Ok(found),
            None => Err(why_missing(tables, ThreadRow::TABLE.name, (begin, ts))?),
        });
    }
    let (table, id) = nearest(tables, facts, kind, begin)?;
    match id {
        Some(id) => Ok(Ok(FoundRow::Row(table, id))),
        None => Ok(Err(why_missing(tables, table, (begin, ts))?)),
    }
}

fn nearest(
    tables: &dyn Tables,
    facts: &TriggerFacts,
    kind: TriggerKind,
    begin: Ns,
) -> Result<(&'static str, Option<i64>), AnalysisError> {
    let near = Some(Window::new(begin - TOLERANCE, begin + TOLERANCE + 1));
    let mut symbols = Symbols::new();
    let mut nearest = Nearest::default();
    let tid = facts.tid;
    let table = match kind {
        TriggerKind::Request => {
            each_row::<RequestRow>(tables, near, &mut symbols, |row, symbols| {
                // A server's thread may write the response to a request that another one read.
                if symbols.get(row.role) != "client" {
                    nearest.add((row.id, row.ts), begin, row.pid == facts.pid);
                }
                Ok(())
            })?;
            RequestRow::TABLE
        }
        TriggerKind::Block => {
            let place = facts.name.as_deref().and_then(device_and_sector);
            each_row::<BlockIoRow>(tables, near, &mut symbols, |row, _| {
                if place == Some((row.dev, row.sector)) {
                    nearest.add((row.id, row.ts), begin, true);
                }
                Ok(())
            })?;
            BlockIoRow::TABLE
        }
        TriggerKind::Lookup => {
            each_row::<DnsLookupRow>(tables, near, &mut symbols, |row, _| {
                if row.tid == tid {
                    nearest.add((row.id, row.ts), begin, true);
                }
                Ok(())
            })?;
            DnsLookupRow::TABLE
        }
        TriggerKind::Lock => {
            each_row::<LockWaitRow>(tables, near, &mut symbols, |row, _| {
                if row.tid == tid {
                    nearest.add((row.id, row.ts), begin, true);
                }
                Ok(())
            })?;
            LockWaitRow::TABLE
        }
        TriggerKind::Call | TriggerKind::Sched | TriggerKind::Pressure => {
            each_row::<SyscallRow>(tables, near, &mut symbols, |row, _| {
                if row.tid == tid {
                    nearest.add((row.id, row.ts), begin, true);
                }
                Ok(())
            })?;
            SyscallRow::TABLE
        }
    };
    Ok((table.name, nearest.0.map(|(_, id)| id)))
}

/// `8:0+2048`: the device as the kernel numbers it, and the sector.
fn device_and_sector(name: &str) -> Option<(i64, i64)> {
    let (device, sector) = name.split_once('+')?;
    let (major, minor) = device.split_once(':')?;
    let (major, minor): (i64, i64) = (major.parse().ok()?, minor.parse().ok()?);
    Some(((major << 20) | minor, sector.parse().ok()?))
}

/// The thread with this kernel id at that time.
pub(crate) fn thread_at(
    tables: &dyn Tables,
    tid: i32,
    window: Window,
) -> Result<Option<i32>, AnalysisError> {
    let mut symbols = Symbols::new();
    let mut found: Option<(Ns, i32)> = None;
    each_row::<ThreadRow>(tables, None, &mut symbols, |row, _| {
        let had_begun = row.ts_start.is_none_or(|start| start < window.end);
        let had_ended = row.ts_exit.is_some_and(|exit| exit <= window.begin);
        if row.tid == tid && had_begun && !had_ended {
            // Of several, the last: ids are reused.
            found = found.max(Some((row.ts_start.unwrap_or(Ns::MIN), row.utid)));
        }
        Ok(())
    })?;
    Ok(found.map(|(_, utid)| utid))
}

fn why_missing(
    tables: &dyn Tables,
    table: &'static str,
    (begin, end): (Ns, Ns),
) -> Result<NotFound, AnalysisError> {
    let info = tables.info();
    let whole = info.whole();
    if begin < whole.begin {
        return Ok(NotFound::Cut);
    }
    if info.cut.is_some() && (begin < info.begin_ns || begin > info.end_ns) {
        return Ok(NotFound::Excerpt);
    }
    let during = Window::new(begin, end.max(begin + 1));
    let mut is_lossy = false;
    each_row::<LostEventsRow>(tables, Some(during), &mut Symbols::new(), |row, _| {
        is_lossy |= during.overlaps(row.ts, row.ts_end);
        Ok(())
    })?;
    let is_empty = info.tables.get(table).is_some_and(|table| table.rows == 0);
    Ok(if is_lossy {
        NotFound::Lost
    } else if is_empty {
        NotFound::Empty(table)
    } else {
        NotFound::Unknown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_row_of_the_same_process_is_found() {
        let mut nearest = Nearest::default();
        nearest.add((1, 5_000_000), 1_000_000, true);
        assert_eq!(nearest.0, None);
        nearest.add((2, 1_000_000), 1_000_000, false);
        nearest.add((3, 1_000_400), 1_000_000, true);
        nearest.add((4, 1_000_300), 1_000_000, true);
        nearest.add((5, 1_000_000), 1_000_000, false);
        assert_eq!(nearest.0.map(|(_, id)| id), Some(4));
    }

    #[test]
    fn devices_have_the_number_of_the_kernel() {
        assert_eq!(device_and_sector("8:16+64"), Some(((8 << 20) | 16, 64)));
        for name in ["", "8:16", "8+64", "a:b+c"] {
            assert_eq!(device_and_sector(name), None);
        }
    }

    #[test]
    fn rows_are_named_as_commands_take_them() {
        let name = |table, id| FoundRow::Row(table, id).name();
        assert_eq!(name("syscall", 17).as_deref(), Some("op:17"));
        assert_eq!(name("request", 5).as_deref(), Some("request:5"));
        assert_eq!(name("block_io", 3).as_deref(), Some("block:3"));
    }
}
