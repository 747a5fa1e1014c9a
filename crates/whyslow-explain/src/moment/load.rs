//! Reading the rows of a stretch of time.

use std::ops::{ControlFlow, Range};

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{ColumnRef, Ints, Projection, Texts, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{
    BlockIoRow, CallsiteRow, DeviceRow, FrameRow, IrqRow, KernelWorkRow, LockWaitRow,
    LostEventsRow, MountRow, NetPacketRow, ProcessRow, ReclaimRow, SignalRow, StackSampleRow,
    SyscallRow, ThreadRow, ThreadStateRow, WakeupRow,
};
use whyslow_model::{Table, Window};
use whyslow_store::Tables;

use super::{
    Call, Cause, Context, Handler, LockWait, Loss, Moment, Packet, People, Person, Reclaim,
    Recorded, Request, Segment, Signal, Stack, State, Utid, Wake, Word, Words, Work, Write,
};

/// Pages are written back when they are so old (`dirty_expire_centisecs`).
const DIRTY_NS: i64 = 30_000_000_000;

type Result<T> = std::result::Result<T, AnalysisError>;

/// Columns of one batch, in the order they were asked for.
struct Cells<'b> {
    ints: Vec<Ints<'b>>,
    texts: Vec<Texts<'b>>,
}

impl Cells<'_> {
    fn int(&self, place: usize, row: u32) -> Option<i64> {
        self.ints[place].get(row)
    }

    fn small(&self, place: usize, row: u32) -> Option<i32> {
        self.int(place, row).map(|value| value as i32)
    }

    fn word(&self, place: usize, row: u32, words: &mut Words) -> Option<Word> {
        self.texts[place].get(row).map(|text| words.intern(text))
    }

    fn text(&self, place: usize, row: u32) -> &str {
        self.texts[place].get(row).unwrap_or("")
    }
}

/// Shows every row of a table that touches the window. Of intervals the first two of the columns of
/// numbers are `ts` and `ts_end`; of points only the first is.
fn rows(
    tables: &dyn Tables,
    table: &'static Table,
    (ints, texts): (&[&'static str], &[&'static str]),
    window: Option<Window>,
    mut each: impl FnMut(&Cells<'_>, u32),
) -> Result<()> {
    let is_there = tables.info().tables.get(table.name);
    if is_there.is_none_or(|table| table.rows == 0) {
        return Ok(());
    }
    let mut projection = Projection::new(table);
    let ints: Vec<ColumnRef> = ints.iter().map(|name| projection.need(name)).collect();
    let texts: Vec<ColumnRef> = texts.iter().map(|name| projection.need(name)).collect();
    let has_end = projection.has("ts_end");
    in_order(tables, &projection.scan(window), |batch| {
        let cells = Cells {
            ints: ints
                .iter()
                .map(|column| column.ints(batch))
                .collect::<Result<_>>()?,
            texts: texts
                .iter()
                .map(|column| column.texts(batch))
                .collect::<Result<_>>()?,
        };
        for row in 0..batch.num_rows() as u32 {
            let is_inside = window.is_none_or(|window| {
                let ts = cells.ints[0].at(row);
                if has_end {
                    window.overlaps(ts, cells.int(1, row))
                } else {
                    window.contains(ts)
                }
            });
            if is_inside {
                each(&cells, row);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Where each group of ordered rows is.
fn ranges<T, K: std::hash::Hash + Eq + Copy>(
    rows: &[T],
    key: impl Fn(&T) -> K,
) -> FxHashMap<K, Range<usize>> {
    let mut found = FxHashMap::default();
    let mut begin = 0;
    for group in rows.chunk_by(|a, b| key(a) == key(b)) {
        found.insert(key(&group[0]), begin..begin + group.len());
        begin += group.len();
    }
    found
}

impl Moment {
    /// All that happened in the window.
    pub(crate) fn load(tables: &dyn Tables, window: Window) -> Result<Self> {
        let info = tables.info();
        let has = |name: &str| info.tables.get(name).is_some_and(|table| table.rows > 0);
        let recorded = Recorded {
            sched: has("thread_state"),
            calls: has("syscall"),
            requests: has("block_io"),
            locks: has("lock_wait"),
            stacks: has("stack_sample"),
            work: has("kernel_work"),
        };
        let mut moment = Self {
            begin: window.begin,
            end: window.end,
            recording_end: info.end_ns,
            recorded,
            ..Self::default()
        };
        moment.people = People::load(tables)?;
        moment.load_states(tables)?;
        moment.load_wakes(tables)?;
        moment.load_calls(tables)?;
        moment.load_requests(tables)?;
        moment.load_locks(tables)?;
        moment.load_stacks(tables)?;
        moment.load_handlers(tables)?;
        moment.load_work(tables)?;
        moment.load_others(tables)?;
        moment.load_frames(tables)?;
        moment.load_writers(tables)?;
        Ok(moment)
    }

    fn load_states(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = [
            "ts",
            "ts_end",
            "utid",
            "cpu",
            "wakeup_id",
            "waker_utid",
            "wake_cause_id",
        ];
        let texts = ["state", "reason", "wake_context", "wake_cause"];
        let columns = (&ints[..], &texts[..]);
        let (end, mut found) = (self.recording_end, Vec::new());
        let window = Some(self.window());
        rows(
            tables,
            ThreadStateRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(utid) = cells.small(2, row) else {
                    return;
                };
                let ended = cells.int(1, row);
                found.push(Segment {
                    utid,
                    begin: cells.ints[0].at(row),
                    end: ended.unwrap_or(end),
                    state: state_of(cells.text(0, row), cells.text(1, row)),
                    is_open: ended.is_none(),
                    cpu: cells.small(3, row),
                    wakeup: cells.int(4, row),
                    waker: cells.small(5, row),
                    context: context_of(cells.text(2, row)),
                    cause: cause_of(cells.text(3, row), cells.int(6, row)),
                });
            },
        )?;
        found.sort_by_key(|row| (row.utid, row.begin, row.end));
        self.segments_of = ranges(&found, |row| row.utid);
        let mut ran: Vec<u32> = (0..found.len() as u32).collect();
        let running = |row: &u32| {
            found[*row as usize]
                .cpu
                .filter(|_| found[*row as usize].state == State::Running)
        };
        ran.retain(|row| running(row).is_some());
        ran.sort_by_key(|row| (running(row), found[*row as usize].begin));
        self.ran_on = ranges(&ran, |row| found[*row as usize].cpu.unwrap_or(-1));
        self.ran = ran;
        self.segments = found;
        Ok(())
    }

    fn load_wakes(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (&["ts", "id", "cpu", "context_nr"][..], &[][..]);
        let found = &mut self.wakes;
        let window = Some(Window::new(self.begin, self.end));
        rows(tables, WakeupRow::TABLE, columns, window, |cells, row| {
            let id = cells.ints[1].at(row);
            let wake = Wake {
                ts: cells.ints[0].at(row),
                cpu: cells.small(2, row),
                vector: cells.small(3, row),
            };
            found.insert(id, wake);
        })
    }

    fn load_calls(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "ret", "errno"];
        let texts = ["name", "path", "fd_class"];
        let columns = (&ints[..], &texts[..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let (words, mut found) = (&mut self.words, Vec::new());
        rows(tables, SyscallRow::TABLE, columns, window, |cells, row| {
            let Some(utid) = cells.small(3, row) else {
                return;
            };
            let ended = cells.int(1, row);
            let Some(name) = cells.word(0, row, words) else {
                return;
            };
            found.push(Call {
                id: cells.ints[2].at(row),
                utid,
                begin: cells.ints[0].at(row),
                end: ended.unwrap_or(end),
                is_open: ended.is_none(),
                name,
                path: cells.word(1, row, words),
                fd_class: cells.word(2, row, words),
                ret: cells.int(4, row),
                errno: cells.small(5, row),
            });
        })?;
        found.sort_by_key(|row| (row.utid, row.begin, row.end));
        self.calls_of = ranges(&found, |row| row.utid);
        self.calls = found;
        Ok(())
    }

    fn load_requests(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "ts_issue", "dev", "bytes", "utid"];
        let texts = ["dev_name", "op", "submitter_source", "layer"];
        let columns = (&ints[..], &texts[..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let (words, mut found) = (&mut self.words, Vec::new());
        rows(tables, BlockIoRow::TABLE, columns, window, |cells, row| {
            // What lies on top of other devices is served by their requests.
            if cells.text(3, row) == "bio" {
                return;
            }
            let ended = cells.int(1, row);
            let dev_name = cells
                .word(0, row, words)
                .unwrap_or_else(|| words.intern("?"));
            let op = cells.word(1, row, words).unwrap_or(dev_name);
            found.push(Request {
                id: cells.ints[2].at(row),
                begin: cells.ints[0].at(row),
                end: ended.unwrap_or(end),
                is_open: ended.is_none(),
                issue: cells.int(3, row),
                dev: cells.ints[4].at(row),
                dev_name,
                bytes: cells.ints[5].at(row),
                op,
                utid: cells.small(6, row),
                is_owner_guessed: matches!(cells.text(2, row), "issue" | "insert"),
            });
        })?;
        let places = found.iter().enumerate();
        self.request_of = places.map(|(place, row)| (row.id, place)).collect();
        let mut done: Vec<u32> = (0..found.len() as u32).collect();
        let key = |row: &u32| {
            let request = &found[*row as usize];
            (request.dev, request.end, request.id)
        };
        done.sort_by_key(key);
        self.done_on = ranges(&done, |row| found[*row as usize].dev);
        self.done = done;
        self.requests = found;
        Ok(())
    }

    fn load_locks(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "callsite_id"];
        let columns = (&ints[..], &["lock"][..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let (words, mut found) = (&mut self.words, Vec::new());
        rows(tables, LockWaitRow::TABLE, columns, window, |cells, row| {
            let Some(utid) = cells.small(3, row) else {
                return;
            };
            let Some(lock) = cells.word(0, row, words) else {
                return;
            };
            found.push(LockWait {
                id: cells.ints[2].at(row),
                utid,
                begin: cells.ints[0].at(row),
                end: cells.int(1, row).unwrap_or(end),
                lock,
                callsite: cells.int(4, row),
            });
        })?;
        found.sort_by_key(|row| (row.begin, row.id));
        for (place, row) in found.iter().enumerate() {
            self.locks_of
                .entry(row.utid)
                .or_default()
                .push(place as u32);
            self.waits_for
                .entry(row.lock)
                .or_default()
                .push(place as u32);
        }
        self.locks = found;
        Ok(())
    }

    fn load_stacks(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (
            &["ts", "ts_end", "id", "utid", "callsite_id"][..],
            &["kind"][..],
        );
        let (end, window) = (self.recording_end, Some(self.window()));
        let mut found = Vec::new();
        rows(
            tables,
            StackSampleRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(utid) = cells.small(3, row) else {
                    return;
                };
                if cells.text(0, row) != "offcpu" {
                    return;
                }
                found.push(Stack {
                    id: cells.ints[2].at(row),
                    utid,
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    callsite: cells.int(4, row),
                });
            },
        )?;
        found.sort_by_key(|row| (row.utid, row.begin, row.end));
        self.stacks_of = ranges(&found, |row| row.utid);
        self.stacks = found;
        Ok(())
    }

    fn load_handlers(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (&["ts", "ts_end", "cpu"][..], &["kind", "name"][..]);
        let window = Some(self.window());
        let (words, mut found) = (&mut self.words, Vec::new());
        rows(tables, IrqRow::TABLE, columns, window, |cells, row| {
            // Without an end nobody knows how long it lasted.
            let Some(end) = cells.int(1, row) else { return };
            let Some(kind) = cells.word(0, row, words) else {
                return;
            };
            let handler = Handler {
                begin: cells.ints[0].at(row),
                end,
                kind,
                name: cells.word(1, row, words),
            };
            found.push((cells.small(2, row).unwrap_or(-1), handler));
        })?;
        found.sort_by_key(|(cpu, row)| (*cpu, row.begin, std::cmp::Reverse(row.end)));
        self.handlers_on = ranges(&found, |(cpu, _)| *cpu);
        self.handlers = found.into_iter().map(|(_, row)| row).collect();
        Ok(())
    }

    fn load_work(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "dev"];
        let columns = (&ints[..], &["kind", "dev_name"][..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let (words, found) = (&mut self.words, &mut self.work);
        rows(
            tables,
            KernelWorkRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(kind) = cells.word(0, row, words) else {
                    return;
                };
                found.push(Work {
                    id: cells.ints[2].at(row),
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    kind,
                    dev: cells.int(4, row),
                    dev_name: cells.word(1, row, words),
                    utid: cells.small(3, row),
                });
            },
        )
    }

    fn load_others(&mut self, tables: &dyn Tables) -> Result<()> {
        let (end, window) = (self.recording_end, Some(self.window()));
        let words = &mut self.words;
        let found = &mut self.reclaims;
        let columns = (&["ts", "ts_end", "utid"][..], &["kind"][..]);
        rows(tables, ReclaimRow::TABLE, columns, window, |cells, row| {
            let Some(kind) = cells.word(0, row, words) else {
                return;
            };
            found.push(Reclaim {
                begin: cells.ints[0].at(row),
                end: cells.int(1, row).unwrap_or(end),
                kind,
                utid: cells.small(2, row),
            });
        })?;
        let found = &mut self.signals;
        let columns = (
            &["ts", "ts_end", "pid", "sender_utid"][..],
            &["action", "signal"][..],
        );
        rows(tables, SignalRow::TABLE, columns, window, |cells, row| {
            let Some(action) = cells.word(0, row, words) else {
                return;
            };
            let Some(name) = cells.word(1, row, words) else {
                return;
            };
            found.push(Signal {
                ts: cells.ints[0].at(row),
                action,
                name,
                pid: cells.small(2, row).unwrap_or(-1),
                sender: cells.small(3, row),
            });
        })?;
        let found = &mut self.packets;
        let columns = (
            &["ts", "id", "utid"][..],
            &["kind", "source", "destination"][..],
        );
        rows(
            tables,
            NetPacketRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(kind) = cells.word(0, row, words) else {
                    return;
                };
                let id = cells.ints[1].at(row);
                let packet = Packet {
                    ts: cells.ints[0].at(row),
                    kind,
                    utid: cells.small(2, row),
                    source: cells.word(1, row, words),
                    destination: cells.word(2, row, words),
                };
                found.insert(id, packet);
            },
        )?;
        let found = &mut self.losses;
        let columns = (&["ts", "ts_end", "cpu"][..], &[][..]);
        rows(
            tables,
            LostEventsRow::TABLE,
            columns,
            window,
            |cells, row| {
                found.push(Loss {
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    cpu: cells.small(2, row),
                });
            },
        )
    }

    /// Who wrote to files, also some time before: pages are written back later, on nobody's account.
    fn load_writers(&mut self, tables: &dyn Tables) -> Result<()> {
        let is_needed = !self.work.is_empty()
            || self
                .requests
                .iter()
                .any(|request| request.utid.is_some_and(|utid| self.people.is_kernel(utid)));
        if !is_needed {
            return Ok(());
        }
        let columns = (&["dev"][..], &["mount_point"][..]);
        let mounts = &mut self.mounts;
        rows(tables, MountRow::TABLE, columns, None, |cells, row| {
            let path = cells.text(0, row);
            if let Some(dev) = cells.int(0, row).filter(|_| !path.is_empty()) {
                mounts.push((dev, path.to_owned()));
            }
        })?;
        let disks = &mut self.disks;
        let columns = (&["dev", "parent"][..], &[][..]);
        rows(tables, DeviceRow::TABLE, columns, None, |cells, row| {
            if let Some(parent) = cells.int(1, row) {
                disks.insert(cells.ints[0].at(row), parent);
            }
        })?;
        self.mounts
            .sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        let (words, found) = (&mut self.words, &mut self.writes);
        let window = Window::new(self.begin - DIRTY_NS, self.end);
        let columns = (
            &["ts", "ts_end", "utid", "bytes"][..],
            &["op", "path", "fd_class"][..],
        );
        rows(
            tables,
            SyscallRow::TABLE,
            columns,
            Some(window),
            |cells, row| {
                if cells.text(0, row) != "write" || cells.text(2, row) != "file" {
                    return;
                }
                let (Some(utid), Some(bytes)) = (cells.small(2, row), cells.int(3, row)) else {
                    return;
                };
                let Some(path) = cells.word(1, row, words) else {
                    return;
                };
                found.push(Write { utid, bytes, path });
            },
        )
    }

    /// Functions of the stacks that occur here. Both tables have as many rows as there are different
    /// stacks, which is few.
    fn load_frames(&mut self, tables: &dyn Tables) -> Result<()> {
        let of_stacks = self.stacks.iter().filter_map(|row| row.callsite);
        let of_locks = self.locks.iter().filter_map(|row| row.callsite);
        let wanted: FxHashSet<i64> = of_stacks.chain(of_locks).collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let mut parents: FxHashMap<i64, (Option<i64>, i64)> = FxHashMap::default();
        let columns = (&["id", "parent_id", "frame_id"][..], &[][..]);
        rows(tables, CallsiteRow::TABLE, columns, None, |cells, row| {
            let (id, frame) = (cells.ints[0].at(row), cells.ints[2].at(row));
            parents.insert(id, (cells.int(1, row), frame));
        })?;
        let mut names: FxHashMap<i64, Word> = FxHashMap::default();
        let words = &mut self.words;
        let columns = (&["id"][..], &["function", "kind"][..]);
        rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
            if cells.text(1, row) == "kernel"
                && let Some(function) = cells.word(0, row, words)
            {
                names.insert(cells.ints[0].at(row), function);
            }
        })?;
        for callsite in wanted {
            let (mut at, mut functions) = (Some(callsite), Vec::new());
            // Callers have smaller ids, so this ends.
            while let Some((parent, frame)) = at.and_then(|at| parents.get(&at)) {
                functions.extend(names.get(frame).copied());
                at = parent.filter(|parent| Some(*parent) < at);
            }
            self.frames.insert(callsite, functions);
        }
        Ok(())
    }
}

impl People {
    fn load(tables: &dyn Tables) -> Result<Self> {
        let mut people = Self::default();
        let columns = (&["upid"][..], &["comm"][..]);
        let processes = &mut people.processes;
        rows(tables, ProcessRow::TABLE, columns, None, |cells, row| {
            let upid = cells.ints[0].at(row) as i32;
            processes.insert(upid, cells.text(0, row).to_owned());
        })?;
        let mut projection = Projection::new(ThreadRow::TABLE);
        let ints = ["utid", "tid", "pid", "upid"].map(|name| projection.need(name));
        let comm = projection.need("comm");
        let flags = ["is_kernel", "is_tracer"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(None), |batch| {
            let [utid, tid, pid, upid] = ints;
            let (utid, tid) = (utid.ints(batch)?, tid.ints(batch)?);
            let (pid, upid) = (pid.ints(batch)?, upid.ints(batch)?);
            let (comm, kernel, tracer) = (
                comm.texts(batch)?,
                flags[0].bools(batch)?,
                flags[1].bools(batch)?,
            );
            for row in 0..batch.num_rows() {
                let at = row as u32;
                let is = |column: &arrow_array::BooleanArray| {
                    !arrow_array::Array::is_null(column, row) && column.value(row)
                };
                let upid = upid.get(at).map(|upid| upid as i32);
                let person = Person {
                    tid: tid.at(at) as i32,
                    pid: pid.get(at).map(|pid| pid as i32),
                    upid,
                    comm: comm.get(at).unwrap_or("").to_owned(),
                    is_kernel: is(kernel),
                    is_tracer: is(tracer),
                };
                people.by_utid.insert(utid.at(at) as Utid, person);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(people)
    }
}

fn state_of(state: &str, reason: &str) -> State {
    match state {
        "running" => State::Running,
        "runnable" => State::Runnable {
            preempted: reason == "preempted",
        },
        "sleeping" => State::Sleeping,
        "uninterruptible" => State::Uninterruptible,
        "stopped" | "traced" | "parked" => State::Stopped,
        "idle" => State::Idle,
        "dead" => State::Dead,
        _ => State::Unknown,
    }
}

fn context_of(context: &str) -> Context {
    match context {
        "task" => Context::Task,
        "irq" => Context::Irq,
        "softirq" => Context::Softirq,
        "timer" => Context::Timer,
        _ => Context::Unknown,
    }
}

fn cause_of(cause: &str, id: Option<i64>) -> Cause {
    match (cause, id) {
        ("block_io", Some(id)) => Cause::Request(id),
        ("worker", Some(id)) => Cause::Worker(id),
        ("packet", Some(id)) => Cause::Packet(id),
        ("received", Some(id)) => Cause::Received(id),
        _ => Cause::None,
    }
}
