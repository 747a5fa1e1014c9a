//! Loads the rows of a window.

use rustc_hash::FxHashMap;
use whyslow_analysis::read::LostEnds;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{
    BlockIoRow, BlockShareRow, CUT_UNCERTAIN, IrqRow, LockWaitRow, StackSampleRow, SyscallRow,
    ThreadStateRow, WakeupRow,
};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::frozen::{FIFREEZE, FITHAW};
use crate::polling::lock_files::{CREATES, EEXIST};

use super::bios::Bios;
use super::columns::{Result, ranges, rows};
use super::{
    Call, Cause, Connections, Context, Handler, LockWait, Recorded, Request, RuntimeWait, Segment,
    Stack, State, TextId, ThreadTable, Wake, WindowSlice,
};

/// Requests are read from this time before the window, to see how the device serves them …
const HISTORY_NS: Ns = 10_000_000_000;
/// … or this many requests, if that is shorter.
const HISTORY_ROWS: f64 = 50_000.0;

fn history(tables: &dyn Tables) -> Ns {
    let info = tables.info();
    let rows = info.rows_of_whole(BlockIoRow::TABLE.name).max(1);
    let length = info.whole().length() as f64;
    HISTORY_NS.min((length * HISTORY_ROWS / rows as f64) as Ns)
}

impl WindowSlice {
    /// Loads everything in the window.
    pub(crate) fn load(tables: &dyn Tables, window: Window) -> Result<Self> {
        let info = tables.info();
        let is_recorded = |table: &str| whyslow_analysis::is_recorded(tables, table);
        let recorded = Recorded {
            // Without any state, threads have no time to walk through.
            sched: info.rows_of_whole("thread_state") > 0,
            calls: is_recorded("syscall")?,
            requests: is_recorded("block_io")?,
            locks: is_recorded("lock_wait")?,
            stacks: is_recorded("stack_sample")?,
            work: is_recorded("kernel_work")?,
            handlers: is_recorded("irq")?,
        };
        let mut slice = Self {
            begin: window.begin,
            end: window.end,
            recording_end: info.whole().end,
            recorded,
            ..Self::default()
        };
        slice.thread_table = ThreadTable::load(tables)?;
        slice.load_states(tables)?;
        slice.load_wakes(tables)?;
        slice.load_calls(tables)?;
        slice.load_requests(tables)?;
        slice.load_locks(tables)?;
        slice.load_stacks(tables)?;
        slice.load_handlers(tables)?;
        slice.load_work(tables)?;
        slice.load_others(tables)?;
        slice.connections = Connections::load(tables, slice.window())?;
        slice.load_frames(tables)?;
        slice.load_writers(tables)?;
        Ok(slice)
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
        found.index_sort_by_ints(|row| [row.utid.into(), row.begin, row.end]);
        self.segments_of = ranges(&found, |row| row.utid);
        let mut ran: Vec<u32> = (0..found.len() as u32).collect();
        let running = |row: &u32| {
            found[*row as usize]
                .cpu
                .filter(|_| found[*row as usize].state == State::Running)
        };
        ran.retain(|row| running(row).is_some());
        ran.index_sort_by_ints(|row| {
            let cpu = running(row).map_or(-1, i64::from);
            [cpu, found[*row as usize].begin, 0]
        });
        self.ran_on = ranges(&ran, |row| found[*row as usize].cpu.unwrap_or(-1));
        self.ran = ran;
        self.segments = found;
        Ok(())
    }

    fn load_wakes(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (
            &["ts", "id", "cpu", "context_nr", "waker_utid"][..],
            &[][..],
        );
        let found = &mut self.wakes;
        let window = Some(Window::new(self.begin, self.end));
        rows(tables, WakeupRow::TABLE, columns, window, |cells, row| {
            let id = cells.ints[1].at(row);
            let wake = Wake {
                ts: cells.ints[0].at(row),
                cpu: cells.small(2, row),
                vector: cells.small(3, row),
                running: cells.small(4, row),
            };
            found.insert(id, wake);
        })
    }

    fn load_calls(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "ret", "errno", "flags", "fd"];
        let texts = ["name", "path", "fd_class", "cut"];
        let columns = (&ints[..], &texts[..]);
        let (ends, window) = (LostEnds::read(tables)?, Some(self.window()));
        let (interner, mut found) = (&mut self.interner, Vec::new());
        rows(tables, SyscallRow::TABLE, columns, window, |cells, row| {
            let Some(utid) = cells.small(3, row) else {
                return;
            };
            let ended = cells.int(1, row);
            let Some(name) = cells.text_id(0, row, interner) else {
                return;
            };
            let begin = cells.ints[0].at(row);
            let end = match ended {
                Some(end) if cells.text(3, row) != CUT_UNCERTAIN => end,
                // What the thread did after the loss is not known.
                end => ends.known_until(begin).min(end.unwrap_or(Ns::MAX)),
            };
            found.push(Call {
                id: cells.ints[2].at(row),
                utid,
                begin,
                end,
                is_open: ended.is_none(),
                name,
                path: cells.text_id(1, row, interner),
                fd_class: cells.text_id(2, row, interner),
                ret: cells.int(4, row),
                errno: cells.small(5, row),
                flags: cells.int(6, row),
                fd: cells.small(7, row),
            });
        })?;
        found.index_sort_by_ints(|row| [row.utid.into(), row.begin, row.end]);
        self.calls_of = ranges(&found, |row| row.utid);
        let is_sync = |row: &u32| is_sync(self.interner.text(found[*row as usize].name));
        let mut syncs: Vec<u32> = (0..found.len() as u32).filter(is_sync).collect();
        syncs.index_sort_by_ints(|row| [found[*row as usize].begin, found[*row as usize].id, 0]);
        self.syncs = syncs;
        self.calls = found;
        self.index_files();
        Ok(())
    }

    /// Indexes the calls on files that hold up other threads: locks, and the freezer.
    fn index_files(&mut self) {
        let mut file_locks = FxHashMap::<_, Vec<u32>>::default();
        let (mut freezes, mut fs_freezes) = (Vec::new(), Vec::new());
        for (place, call) in self.calls.iter().enumerate() {
            let Some(path) = call.path else { continue };
            match self.interner.text(call.name) {
                "fcntl" | "flock" => file_locks.entry(path).or_default().push(place as u32),
                "write" if is_freezer(self.interner.text(path)) => freezes.push(place as u32),
                "ioctl" if matches!(call.flags, Some(FIFREEZE | FITHAW)) => {
                    fs_freezes.push(place as u32);
                }
                _ => {}
            }
        }
        let calls = &self.calls;
        let key = |row: &u32| [calls[*row as usize].begin, calls[*row as usize].id, 0];
        for rows in file_locks.values_mut() {
            rows.index_sort_by_ints(key);
        }
        freezes.index_sort_by_ints(key);
        fs_freezes.index_sort_by_ints(key);
        self.file_locks = file_locks;
        (self.freezes, self.fs_freezes) = (freezes, fs_freezes);
        self.creations = self.creations_of_existing();
    }

    /// Calls that create files, of files that another call could not create because they existed.
    fn creations_of_existing(&self) -> FxHashMap<TextId, Vec<u32>> {
        let refused = self.calls.iter().filter(|call| call.errno == Some(EEXIST));
        let mut found: FxHashMap<TextId, Vec<u32>> = refused
            .filter_map(|call| Some((call.path?, Vec::new())))
            .collect();
        if found.is_empty() {
            return found;
        }
        for (place, call) in self.calls.iter().enumerate() {
            if let Some(rows) = call.path.and_then(|path| found.get_mut(&path))
                && CREATES.contains(&self.interner.text(call.name))
            {
                rows.push(place as u32);
            }
        }
        for rows in found.values_mut() {
            rows.index_sort_by_ints(|row| {
                let call = &self.calls[*row as usize];
                [call.begin, call.id, 0]
            });
        }
        found
    }

    fn load_requests(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "ts_issue", "dev", "bytes", "utid"];
        let texts = ["dev_name", "op", "submitter_source", "layer", "cut"];
        let columns = (&ints[..], &texts[..]);
        let (end, ends) = (self.recording_end, LostEnds::read(tables)?);
        let window = Some(Window::new(self.begin - history(tables), self.end));
        let (interner, mut found) = (&mut self.interner, Vec::new());
        let mut bios = Vec::new();
        rows(tables, BlockIoRow::TABLE, columns, window, |cells, row| {
            // What is sent to stacked devices is served by requests to the devices below, and must
            // not count twice.
            let into = match cells.text(3, row) {
                "bio" => &mut bios,
                _ => &mut found,
            };
            let (begin, ended) = (cells.ints[0].at(row), cells.int(1, row));
            let is_end_lost = ended.is_none() && ends.known_until(begin) < end;
            if is_end_lost || cells.text(4, row) == CUT_UNCERTAIN {
                // Until when the device had it is not known.
                return;
            }
            let dev_name = cells
                .text_id(0, row, interner)
                .unwrap_or_else(|| interner.intern("?"));
            let op = cells.text_id(1, row, interner).unwrap_or(dev_name);
            into.push(Request {
                id: cells.ints[2].at(row),
                begin,
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
        self.bios = Bios::of(bios, tables)?;
        let columns = (&["block_io_id", "utid", "sectors"][..], &[][..]);
        let shares = &mut self.shares;
        rows(
            tables,
            BlockShareRow::TABLE,
            columns,
            window,
            |cells, row| {
                let share = (cells.small(1, row), cells.ints[2].at(row));
                shares.entry(cells.ints[0].at(row)).or_default().push(share);
            },
        )?;
        let places = found.iter().enumerate();
        self.request_of = places.map(|(place, row)| (row.id, place)).collect();
        let mut done: Vec<u32> = (0..found.len() as u32).collect();
        let key = |row: &u32| {
            let request = &found[*row as usize];
            [request.dev, request.end, request.id]
        };
        done.index_sort_by_ints(key);
        self.done_on = ranges(&done, |row| found[*row as usize].dev);
        self.done = done;
        self.requests = found;
        Ok(())
    }

    fn load_locks(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "callsite_id", "holder_utid"];
        let columns = (
            &ints[..],
            &["lock", "reported_by", "confidence", "object"][..],
        );
        let (end, window) = (self.recording_end, Some(self.window()));
        let (interner, mut found) = (&mut self.interner, Vec::new());
        let reported = &mut self.runtime_waits;
        rows(tables, LockWaitRow::TABLE, columns, window, |cells, row| {
            let Some(utid) = cells.small(3, row) else {
                return;
            };
            let Some(lock) = cells.text_id(0, row, interner) else {
                return;
            };
            let (id, begin) = (cells.ints[2].at(row), cells.ints[0].at(row));
            let end = cells.int(1, row).unwrap_or(end);
            // A profile's lock waits are no evidence about the kernel.
            match cells.text(1, row) {
                "" => found.push(LockWait {
                    id,
                    utid,
                    begin,
                    end,
                    lock,
                    callsite: cells.int(4, row),
                }),
                "event" => reported.entry(utid).or_default().push(RuntimeWait {
                    id,
                    begin,
                    end,
                    holder: cells.small(5, row),
                    is_sure: matches!(cells.text(2, row), "high" | "medium"),
                    object: cells.text_id(3, row, interner),
                }),
                _ => {}
            }
        })?;
        for waits in self.runtime_waits.values_mut() {
            waits.index_sort_by_ints(|wait| [wait.begin, wait.id, 0]);
        }
        found.index_sort_by_ints(|row| [row.begin, row.id, 0]);
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
        found.index_sort_by_ints(|row| [row.utid.into(), row.begin, row.end]);
        self.stacks_of = ranges(&found, |row| row.utid);
        self.stacks = found;
        Ok(())
    }

    fn load_handlers(&mut self, tables: &dyn Tables) -> Result<()> {
        let columns = (&["ts", "ts_end", "cpu"][..], &["kind", "name"][..]);
        let window = Some(self.window());
        let (interner, mut found) = (&mut self.interner, Vec::new());
        rows(tables, IrqRow::TABLE, columns, window, |cells, row| {
            // Without an end its duration is not known.
            let Some(end) = cells.int(1, row) else { return };
            let Some(kind) = cells.text_id(0, row, interner) else {
                return;
            };
            let handler = Handler {
                begin: cells.ints[0].at(row),
                end,
                kind,
                name: cells.text_id(1, row, interner),
            };
            found.push((cells.small(2, row).unwrap_or(-1), handler));
        })?;
        // If several start at the same time, the longest first.
        found.index_sort_by_ints(|(cpu, row)| [i64::from(*cpu), row.begin, -row.end]);
        self.handlers_on = ranges(&found, |(cpu, _)| *cpu);
        self.handlers = found.into_iter().map(|(_, row)| row).collect();
        Ok(())
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

/// The files of cgroup v2 and v1 that freeze a cgroup.
fn is_freezer(path: &str) -> bool {
    path.ends_with("/cgroup.freeze") || path.ends_with("/freezer.state")
}

/// Calls that return when data has been written back.
fn is_sync(name: &str) -> bool {
    matches!(
        name,
        "sync" | "syncfs" | "fsync" | "fdatasync" | "sync_file_range" | "msync"
    )
}
