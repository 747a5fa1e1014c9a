//! Loads tables that usually have few rows in a window.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Window;
use whyslow_model::event::Hidden;
use whyslow_model::row::Row;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{
    CallsiteRow, DeviceRow, DnsQueryRow, FrameRow, FutexCallRow, KernelWorkRow, LostEventsRow,
    MountRow, NetPacketRow, ReclaimRow, SignalRow, SyscallRow,
};
use whyslow_store::Tables;

use super::columns::{Result, rows};
use super::{
    Futex, Interner, Loss, Packet, Reclaim, Signal, TextId, Unanswered, WindowSlice, Work, Write,
};
use crate::addresses::plain;

/// Age at which dirty pages are written back (`dirty_expire_centisecs`).
const DIRTY_NS: i64 = 30_000_000_000;

fn address_of(text: &str, interner: &mut Interner) -> Option<TextId> {
    (!text.is_empty()).then(|| interner.intern(&plain(text)))
}

impl WindowSlice {
    pub(super) fn load_work(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "id", "utid", "dev"];
        let columns = (&ints[..], &["kind", "dev_name"][..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let (interner, found) = (&mut self.interner, &mut self.work_of);
        rows(
            tables,
            KernelWorkRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(kind) = cells.text_id(0, row, interner) else {
                    return;
                };
                let Some(utid) = cells.small(3, row) else {
                    return;
                };
                found.entry(utid).or_default().push(Work {
                    id: cells.ints[2].at(row),
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    kind,
                    dev: cells.int(4, row),
                    dev_name: cells.text_id(1, row, interner),
                });
            },
        )?;
        self.has_work = !self.work_of.is_empty();
        Ok(())
    }

    pub(super) fn load_others(&mut self, tables: &dyn Tables) -> Result<()> {
        self.load_reclaims(tables)?;
        self.load_signals(tables)?;
        self.load_unanswered(tables)?;
        self.load_packets(tables)?;
        self.load_futexes(tables)?;
        self.load_losses(tables)
    }

    pub(super) fn load_reclaims(&mut self, tables: &dyn Tables) -> Result<()> {
        let (end, window) = (self.recording_end, Some(self.window()));
        let interner = &mut self.interner;
        let found = &mut self.reclaims_of;
        let columns = (&["ts", "ts_end", "utid"][..], &["kind"][..]);
        rows(tables, ReclaimRow::TABLE, columns, window, |cells, row| {
            let Some(kind) = cells.text_id(0, row, interner) else {
                return;
            };
            let Some(utid) = cells.small(2, row) else {
                return;
            };
            found.entry(utid).or_default().push(Reclaim {
                begin: cells.ints[0].at(row),
                end: cells.int(1, row).unwrap_or(end),
                kind,
            });
        })
    }

    pub(super) fn load_signals(&mut self, tables: &dyn Tables) -> Result<()> {
        let window = Some(self.window());
        let interner = &mut self.interner;
        let found = &mut self.signals;
        let columns = (
            &["ts", "ts_end", "pid", "sender_utid"][..],
            &["action", "signal"][..],
        );
        rows(tables, SignalRow::TABLE, columns, window, |cells, row| {
            let Some(action) = cells.text_id(0, row, interner) else {
                return;
            };
            let Some(name) = cells.text_id(1, row, interner) else {
                return;
            };
            found.push(Signal {
                ts: cells.ints[0].at(row),
                action,
                name,
                pid: cells.small(2, row).unwrap_or(-1),
                sender: cells.small(3, row),
            });
        })
    }

    pub(super) fn load_unanswered(&mut self, tables: &dyn Tables) -> Result<()> {
        let window = Some(self.window());
        let interner = &mut self.interner;
        let found = &mut self.unanswered;
        let columns = (
            &["ts", "ts_end", "upid", "lookup"][..],
            &["outcome", "server"][..],
        );
        rows(tables, DnsQueryRow::TABLE, columns, window, |cells, row| {
            let is_answered =
                |outcome: TextId, interner: &Interner| interner.text(outcome) == "answered";
            let outcome = cells.text_id(0, row, interner);
            let is_over = outcome.is_some_and(|outcome| !is_answered(outcome, interner));
            let (Some(end), Some(upid), None) = (
                cells.int(1, row).filter(|_| is_over),
                cells.small(2, row),
                cells.int(3, row),
            ) else {
                return;
            };
            let Some(server) = cells.text_id(1, row, interner) else {
                return;
            };
            found.push(Unanswered {
                begin: cells.ints[0].at(row),
                end,
                upid,
                server,
            });
        })
    }

    pub(super) fn load_packets(&mut self, tables: &dyn Tables) -> Result<()> {
        let window = Some(self.window());
        let interner = &mut self.interner;
        let (found, resent) = (&mut self.packets, &mut self.resent);
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
                let id = cells.ints[1].at(row);
                let packet = Packet {
                    ts: cells.ints[0].at(row),
                    utid: cells.small(2, row),
                    // Packets and sockets report IPv4 addresses in different forms.
                    source: address_of(cells.text(1, row), interner),
                    destination: address_of(cells.text(2, row), interner),
                };
                if matches!(cells.text(0, row), "retransmit" | "retransmit_synack") {
                    resent.push(packet);
                }
                found.insert(id, packet);
            },
        )
    }

    pub(super) fn load_futexes(&mut self, tables: &dyn Tables) -> Result<()> {
        let ints = ["ts", "ts_end", "utid", "upid", "ret", "value"];
        let columns = (&ints[..], &["op", "address"][..]);
        let (end, window) = (self.recording_end, Some(self.window()));
        let interner = &mut self.interner;
        let (waits, wakes) = (&mut self.futex_waits, &mut self.futex_wakes);
        let vain = &mut self.vain_futex_wakes;
        rows(
            tables,
            FutexCallRow::TABLE,
            columns,
            window,
            |cells, row| {
                let Some(utid) = cells.small(2, row) else {
                    return;
                };
                let Some(address) = cells.text_id(1, row, interner) else {
                    return;
                };
                let futex = Futex {
                    utid,
                    upid: cells.small(3, row),
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    address,
                    value: cells.int(5, row),
                };
                let woken = cells.int(4, row).unwrap_or(0);
                match cells.text(0, row) {
                    "wait" => waits.entry(utid).or_default().push(futex),
                    // FUTEX_UNLOCK_PI does not return the number of woken threads.
                    "wake" | "requeue" if woken == 0 => {
                        vain.entry((futex.upid, address)).or_default().push(futex);
                    }
                    "wake" | "requeue" | "unlock" => {
                        wakes.entry((futex.upid, address)).or_default().push(futex);
                    }
                    _ => {}
                }
            },
        )
    }

    pub(super) fn load_losses(&mut self, tables: &dyn Tables) -> Result<()> {
        let (end, window) = (self.recording_end, Some(self.window()));
        let found = &mut self.losses;
        let columns = (&["ts", "ts_end", "cpu"][..], &["stream"][..]);
        rows(
            tables,
            LostEventsRow::TABLE,
            columns,
            window,
            |cells, row| {
                // Only these make states of threads unknown.
                if !Hidden::of_stream(cells.text(0, row)).may_be(Hidden::Threads) {
                    return;
                }
                found.push(Loss {
                    begin: cells.ints[0].at(row),
                    end: cells.int(1, row).unwrap_or(end),
                    cpu: cells.small(2, row),
                });
            },
        )
    }

    /// Loads writes to files, also some time before the window: kernel workers write pages back
    /// later.
    pub(super) fn load_writers(&mut self, tables: &dyn Tables) -> Result<()> {
        let holds_back = |function: &TextId| self.text(*function) == "balance_dirty_pages";
        let is_needed = self.has_work
            || !self.reclaims_of.is_empty()
            || self.frames.values().flatten().any(holds_back)
            || self
                .requests
                .iter()
                .filter(|request| request.end > self.begin)
                .any(|request| {
                    request
                        .utid
                        .is_some_and(|utid| self.thread_table.is_kernel(utid))
                });
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
            .index_sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        let (interner, found) = (&mut self.interner, &mut self.writes);
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
                let Some(path) = cells.text_id(1, row, interner) else {
                    return;
                };
                found.push(Write { utid, bytes, path });
            },
        )
    }

    /// Loads functions of the stacks in the window. Both tables have one row per distinct stack,
    /// which are few.
    pub(super) fn load_frames(&mut self, tables: &dyn Tables) -> Result<()> {
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
        let mut names: FxHashMap<i64, TextId> = FxHashMap::default();
        let interner = &mut self.interner;
        let columns = (&["id"][..], &["function", "kind"][..]);
        rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
            if cells.text(1, row) == "kernel"
                && let Some(function) = cells.text_id(0, row, interner)
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
