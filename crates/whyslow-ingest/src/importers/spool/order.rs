//! Sorts the records of several blocks by time.

use std::collections::VecDeque;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;
use whyslow_model::event::Event;
use whyslow_model::spool::{ENTRY_RECORDED, Head, Kind, Record, SyscallRecord, records};

use super::calls::{Calls, PendingCall};
use super::clocks::{Clocks, Reading};
use super::leave_out::{Fate, LeaveOut};
use super::probes::{Probes, Values};

/// How far back a record may reach: the recorder checks for long calls twenty times a second.
pub(super) const REACH_NS: u64 = 150_000_000;
/// Maximum number of pending records: a spool that is never marked complete must not exhaust
/// memory.
pub(super) const WAITING_MAX: usize = 4_000_000;
/// Number of new records before it is worth checking for those that are ready.
const BATCH: usize = 64 << 10;

/// Memory contents behind the arguments of a call, by argument number from 1 on.
pub(crate) type Pointed = Vec<Points>;
pub(super) type Points = (u32, Box<[u8]>);

/// A record in time order.
#[derive(Debug)]
pub(crate) struct Ordered {
    pub(crate) ts: u64,
    number: u64,
    part: Part,
    tid: i32,
    /// Entry time of a call.
    entered: u64,
    pub(crate) pointed: Option<Box<Pointed>>,
    block: u64,
    at: u32,
}

/// Part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Entry,
    Return,
    Other,
}

impl Ordered {
    /// Whether this is the entry of the record's call rather than its return.
    pub(crate) fn is_entry(&self) -> bool {
        self.part == Part::Entry
    }
}

/// Number of records by kind.
#[derive(Debug)]
pub(crate) struct KindCounts([u64; 256]);

impl Default for KindCounts {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl KindCounts {
    fn add(&mut self, kind: Kind) {
        self.0[kind as usize & 0xff] += 1;
    }

    /// The kinds that occurred.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Kind, u64)> {
        let counts = Kind::ALL
            .iter()
            .map(|kind| (*kind, self.0[*kind as usize & 0xff]));
        counts.filter(|(_, count)| *count > 0)
    }
}

/// Blocks with pending records.
#[derive(Debug, Default)]
pub(crate) struct Window {
    blocks: VecDeque<Rc<[u8]>>,
    /// Number of the first one.
    first: u64,
    waiting: Vec<Ordered>,
    next_number: u64,
    /// Number of records still pending after the last call of `ready`.
    kept: usize,
    /// Records were passed on since blocks were last dropped.
    may_forget: bool,
    /// Calls whose arguments may still follow.
    calls: Calls,
    complete_until: u64,
    /// Entry time of the call that a thread is in.
    inside: FxHashMap<i32, u64>,
    /// All records before this time were passed on.
    passed_until: u64,
    /// Records that could not be parsed.
    pub(crate) damaged: u64,
    pub(crate) read: u64,
    pub(crate) kinds: KindCounts,
    pub(crate) clocks: Clocks,
    /// Defined as soon as their block is read, independent of record order.
    pub(super) probes: Probes,
    /// Records of undefined probes.
    pub(crate) probes_unknown: u64,
    /// Sampling rounds that were missed.
    pub(crate) rounds_missed: u64,
    pub(crate) leave_out: LeaveOut,
    /// Records that were dropped on purpose: time and CPU.
    pub(crate) lost: Vec<(u64, u16)>,
    /// The architecture, which determines system call names.
    pub(crate) architecture: Option<Box<[u8]>>,
}

impl Window {
    /// Adds a block; [`Self::ready`] then returns the records in order.
    pub(crate) fn add(&mut self, payload: Vec<u8>, complete_until: u64) {
        let block = self.first + self.blocks.len() as u64;
        for (at, record) in records(&payload) {
            self.read += 1;
            let Ok((head, record)) = record else {
                self.damaged += 1;
                continue;
            };
            match self.leave_out.fate(&head) {
                Fate::Kept => {}
                Fate::LeftOut => continue,
                Fate::Lost => {
                    self.lost.push((head.ts, head.cpu));
                    continue;
                }
            }
            self.kinds.add(head.kind);
            match record {
                Record::Clock { boot, real } => self.clocks.add(Reading {
                    monotonic: head.ts,
                    boot,
                    real,
                }),
                Record::Fact {
                    name: b"architecture",
                    value,
                } => self.architecture = Some(value.into()),
                Record::Probe(ref probe) => self.probes.learn(probe),
                _ => {}
            }
            self.put(&head, &record, (block, at as u32));
        }
        self.blocks.push_back(payload.into());
        self.complete_until = self.complete_until.max(complete_until);
    }

    fn put(&mut self, head: &Head, record: &Record<'_>, (block, at): (u64, u32)) {
        let mut add_call = |entered, is_entry, is_return| {
            self.calls.add(PendingCall {
                ts: head.ts,
                tid: head.tid,
                entered,
                is_entry,
                is_return,
                number: self.next_number,
                block,
                at,
            });
        };
        match record {
            Record::Text(text) | Record::Bytes(text) => {
                let points = (text.arg, text.bytes.into());
                self.calls.point(head.tid, head.ts, points);
            }
            &Record::SyscallEnter(SyscallRecord { entered, .. }) => add_call(entered, true, false),
            &Record::Syscall(SyscallRecord { entered, .. }) => {
                add_call(entered, head.flags & ENTRY_RECORDED == 0, true);
            }
            _ => self.waiting.push(Ordered {
                ts: head.ts,
                number: self.next_number,
                part: Part::Other,
                tid: head.tid,
                entered: 0,
                pointed: None,
                block,
                at,
            }),
        }
        // Each of the two parts of a call has a number.
        self.next_number += 2;
    }

    /// Queues calls whose arguments are complete.
    fn place_calls(&mut self, until: u64) {
        for (call, pointed) in self.calls.complete(until) {
            let mut add = |part, ts, number, pointed: Option<Pointed>| {
                self.waiting.push(Ordered {
                    ts,
                    number,
                    part,
                    tid: call.tid,
                    entered: call.entered,
                    pointed: pointed.map(Box::new),
                    block: call.block,
                    at: call.at,
                });
            };
            if call.is_entry && call.is_return {
                add(Part::Entry, call.entered, call.number, pointed.clone());
            } else if call.is_entry {
                add(Part::Entry, call.entered, call.number, pointed);
                continue;
            }
            add(Part::Return, call.ts, call.number + 1, pointed);
        }
    }

    /// Records that no later record can precede, in order; all records if `at_end`.
    pub(crate) fn ready(&mut self, at_end: bool) -> Vec<Ordered> {
        // Sorting touches all pending records: it pays off once their number has doubled.
        let is_last = at_end || self.complete_until == u64::MAX;
        let enough = (2 * self.kept).clamp(BATCH, WAITING_MAX);
        if !is_last && self.waiting.len() + self.calls.waiting() < enough {
            return Vec::new();
        }
        self.may_forget = true;
        self.place_calls(if at_end {
            u64::MAX
        } else {
            self.complete_until
        });
        // Nearly sorted already: runs are merged.
        self.waiting
            .sort_by_key(|ordered| (ordered.ts, ordered.number));
        let until = self.complete_until.saturating_sub(REACH_NS);
        let count = if is_last {
            self.waiting.len()
        } else {
            let due = self.waiting.partition_point(|ordered| ordered.ts < until);
            due.max(self.waiting.len().saturating_sub(WAITING_MAX))
        };
        let rest = self.waiting.split_off(count);
        self.kept = rest.len() + self.calls.waiting();
        let due = std::mem::replace(&mut self.waiting, rest);
        let paired = self.pair(due);
        if let Some(last) = paired.last() {
            self.passed_until = last.ts;
        }
        paired
    }

    /// A call has one entry: entries repeated because another spool started meanwhile are dropped,
    /// and an entry that only an older spool has is derived from the return.
    fn pair(&mut self, due: Vec<Ordered>) -> Vec<Ordered> {
        let mut paired = Vec::with_capacity(due.len());
        let mut has_late = false;
        for ordered in due {
            match ordered.part {
                Part::Other => {}
                Part::Entry => {
                    if self.inside.insert(ordered.tid, ordered.entered) == Some(ordered.entered) {
                        continue;
                    }
                }
                Part::Return => {
                    let is_known = self.inside.remove(&ordered.tid) == Some(ordered.entered);
                    // An entry before records that were already passed on cannot be inserted: the
                    // start of the call stays unknown.
                    if !is_known && ordered.entered >= self.passed_until {
                        has_late = true;
                        paired.push(Ordered {
                            ts: ordered.entered,
                            part: Part::Entry,
                            pointed: None,
                            ..ordered
                        });
                    }
                }
            }
            paired.push(ordered);
        }
        if has_late {
            paired.sort_by_key(|ordered| (ordered.ts, ordered.number));
        }
        paired
    }

    /// The record of an entry returned by `ready`.
    pub(crate) fn record(&self, ordered: &Ordered) -> Option<(Head, Record<'_>)> {
        let block = self.blocks.get((ordered.block - self.first) as usize)?;
        let (_, record) = records(block.get(ordered.at as usize..)?).next()?;
        record.ok()
    }

    /// The event of a probe record.
    pub(crate) fn probe<'a>(
        &'a self,
        head: &Head,
        record: &Record<'a>,
        ts: Ns,
        values: &'a mut Values,
    ) -> Option<Event<'a>> {
        self.probes.event(head, record, ts, values)
    }

    /// Drops blocks without pending records.
    pub(crate) fn forget(&mut self) {
        if !std::mem::take(&mut self.may_forget) {
            return;
        }
        let of_waiting = self.waiting.iter().map(|ordered| ordered.block).min();
        let needed = of_waiting.into_iter().chain(self.calls.block()).min();
        let end = self.first + self.blocks.len() as u64;
        let needed = needed.unwrap_or(end);
        while self.first < needed {
            self.blocks.pop_front();
            self.first += 1;
        }
    }
}
