//! Calls and block requests in progress when a recording continues in the next spool: the next
//! spool repeats their records, including the data that the arguments of calls point at.

mod functions;
mod requests;

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use whyslow_model::spool::{Encoder, Kind};

use crate::raw::Raw;
use functions::FunctionCalls;
use requests::Requests;

/// No call has more arguments than this.
const TEXTS_MAX: usize = 8;
/// Above this size everything is dropped: calls whose return was lost would stay forever.
const BYTES_MAX: usize = 4 << 20;

/// Sees every record; must be fast.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// Data that arguments point at, until the call returns: records by thread.
    texts: FxHashMap<i32, Vec<Box<[u8]>>>,
    /// Added since the last count.
    bytes: usize,
    /// How often everything was dropped.
    forgotten: u64,
    rotation: Option<Rotation>,
    functions: FunctionCalls,
    requests: Requests,
}

/// Calls around a rotation.
#[derive(Debug, Default)]
struct Rotation {
    /// The last entry of each thread.
    entries: FxHashMap<i32, Box<[u8]>>,
    /// When the last call of each thread ended; earlier calls have ended as well.
    ended: FxHashMap<i32, u64>,
    began: u64,
}

impl InFlight {
    #[inline]
    pub(crate) fn see(&mut self, record: &[u8]) {
        const SYSCALL: u16 = Kind::Syscall as u16;
        const ENTER: u16 = Kind::SyscallEnter as u16;
        const TEXT: u16 = Kind::Text as u16;
        const BYTES: u16 = Kind::Bytes as u16;
        const EXIT: u16 = Kind::Exit as u16;
        const FUNCTION_BEGIN: u16 = Kind::FunctionBegin as u16;
        const FUNCTION_END: u16 = Kind::FunctionEnd as u16;
        const BIO_QUEUE: u16 = Kind::BioQueue as u16;
        const RQ_COMPLETE: u16 = Kind::RqComplete as u16;
        let raw = Raw(record);
        match raw.kind() {
            SYSCALL => {
                if !self.texts.is_empty() {
                    self.forget(&raw);
                }
                if let Some(rotation) = &mut self.rotation {
                    let ended = rotation.ended.entry(raw.tid()).or_default();
                    *ended = raw.ts().max(*ended);
                }
            }
            TEXT | BYTES => {
                let texts = self.texts.entry(raw.tid()).or_default();
                if texts.len() >= TEXTS_MAX {
                    texts.clear();
                }
                texts.push(record.into());
                self.bytes += record.len();
                if self.bytes > BYTES_MAX {
                    self.count();
                }
            }
            ENTER => {
                if let Some(rotation) = &mut self.rotation {
                    rotation.enter(&raw);
                }
            }
            EXIT => {
                self.texts.remove(&raw.tid());
                self.functions.exit(raw.tid());
            }
            FUNCTION_BEGIN => self.functions.begin(raw),
            FUNCTION_END => self.functions.end(raw),
            BIO_QUEUE..=RQ_COMPLETE => self.requests.see(record),
            _ => {}
        }
    }

    /// Drops everything if the limit is exceeded.
    fn count(&mut self) {
        let all = self.texts.values().flatten();
        self.bytes = all.map(|text| text.len()).sum();
        // At half the limit, counting would soon take all of the time.
        if self.bytes > BYTES_MAX / 2 {
            self.texts.clear();
            self.bytes = 0;
            self.forgotten += 1;
        }
    }

    /// A call has returned. Records of a later call may have arrived earlier, through another ring.
    fn forget(&mut self, call: &Raw<'_>) {
        if let Entry::Occupied(mut texts) = self.texts.entry(call.tid()) {
            texts.get_mut().retain(|text| Raw(text).ts() > call.ts());
            if texts.get().is_empty() {
                texts.remove();
            }
        }
    }

    /// All records before this time have arrived.
    pub(crate) fn settle(&mut self, until: u64) {
        self.requests.settle(until);
    }

    /// How often each kind was dropped since the last rotation.
    pub(crate) fn take_forgotten(&mut self) -> [(&'static str, u64); 2] {
        [
            ("paths_forgotten", std::mem::take(&mut self.forgotten)),
            (
                "requests_forgotten",
                std::mem::take(&mut self.requests.forgotten),
            ),
        ]
    }

    /// Records were lost: requests may have ended unseen.
    pub(crate) fn lose(&mut self) {
        self.requests.forget();
    }

    /// From now on calls in the kernel's list are stored.
    pub(crate) fn begin_rotation(&mut self, now: u64) {
        self.rotation = Some(Rotation {
            began: now,
            ..Rotation::default()
        });
    }

    /// Writes the calls and requests in progress to the next spool, which starts at `now`; returns
    /// the number of such calls.
    pub(crate) fn end_rotation(&mut self, now: u64, encoder: &mut Encoder) -> usize {
        let Some(rotation) = self.rotation.take() else {
            return 0;
        };
        self.functions.write(encoder);
        self.requests.write(now, encoder);
        let mut written = 0;
        for (tid, texts) in &self.texts {
            // Calls that started after the list had passed their thread are not in it.
            let from = rotation
                .current_call(*tid)
                .map_or(rotation.began, Raw::entered);
            for text in texts {
                let ts = Raw(text).ts();
                if ts >= from && !rotation.has_ended(*tid, ts) {
                    encoder.copy(text);
                }
            }
        }
        for tid in rotation.entries.keys() {
            if let Some(entry) = rotation.current_call(*tid) {
                encoder.copy(entry.0);
                written += 1;
            }
        }
        written
    }
}

impl Rotation {
    fn enter(&mut self, entry: &Raw<'_>) {
        let known = self.entries.get(&entry.tid());
        if known.is_none_or(|known| Raw(known).entered() <= entry.entered()) {
            self.entries.insert(entry.tid(), entry.0.into());
        }
    }

    /// The call of a thread in the list, unless it has ended meanwhile.
    fn current_call(&self, tid: i32) -> Option<Raw<'_>> {
        let entry = Raw(self.entries.get(&tid)?);
        (!self.has_ended(tid, entry.entered())).then_some(entry)
    }

    /// Whether the call of a thread at that time has ended.
    fn has_ended(&self, tid: i32, ts: u64) -> bool {
        self.ended.get(&tid).is_some_and(|ended| ts < *ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::{Record, records};

    fn one(make: impl FnOnce(&mut Encoder)) -> Vec<u8> {
        let mut encoder = Encoder::default();
        make(&mut encoder);
        encoder.payload().to_vec()
    }

    fn text(tid: i32, ts: u64, text: &[u8]) -> Vec<u8> {
        one(|encoder| {
            encoder
                .begin(Kind::Text, ts, (tid, tid))
                .u32(2)
                .text(text)
                .end();
        })
    }

    fn call(kind: Kind, tid: i32, ts: u64, entered: u64) -> Vec<u8> {
        one(|encoder| {
            let record = encoder.begin(kind, ts, (tid, tid));
            record.u64(entered).u64(0).u32(257).u32(0).end();
        })
    }

    fn written(in_flight: &mut InFlight) -> Vec<(i32, String)> {
        let mut encoder = Encoder::default();
        in_flight.end_rotation(30, &mut encoder);
        let written = records(encoder.payload()).map(|(_, record)| match record.unwrap() {
            (head, Record::Text(text)) => {
                (head.tid, String::from_utf8(text.bytes.to_vec()).unwrap())
            }
            (head, Record::SyscallEnter(call)) => (head.tid, call.entered.to_string()),
            other => panic!("{other:?}"),
        });
        let mut written: Vec<_> = written.collect();
        written.sort_by_key(|(tid, _)| *tid);
        written
    }

    #[test]
    fn calls_that_have_not_returned_are_told_again_with_their_texts() {
        let mut in_flight = InFlight::default();
        in_flight.see(&text(1, 11, b"/slow"));
        in_flight.see(&call(Kind::SyscallEnter, 1, 15, 10));
        in_flight.see(&text(2, 12, b"/done"));
        in_flight.see(&call(Kind::Syscall, 2, 14, 12));
        // Before the return of the previous call, which arrived through another ring.
        in_flight.see(&text(6, 17, b"/moved"));
        in_flight.see(&call(Kind::Syscall, 6, 16, 13));
        in_flight.begin_rotation(20);
        in_flight.see(&call(Kind::SyscallEnter, 6, 21, 17));
        in_flight.see(&call(Kind::SyscallEnter, 1, 21, 10));
        in_flight.see(&call(Kind::SyscallEnter, 2, 21, 18));
        // The call in the list has returned, and another one started.
        in_flight.see(&call(Kind::SyscallEnter, 7, 21, 19));
        in_flight.see(&call(Kind::Syscall, 7, 23, 19));
        in_flight.see(&text(7, 24, b"/later"));
        // Returns that arrived through other rings, before and after.
        in_flight.see(&call(Kind::Syscall, 3, 23, 22));
        in_flight.see(&call(Kind::SyscallEnter, 3, 23, 22));
        in_flight.see(&call(Kind::SyscallEnter, 4, 22, 9));
        in_flight.see(&call(Kind::Syscall, 4, 23, 9));
        in_flight.see(&text(5, 24, b"/next"));
        let expected = [
            (1, "/slow"),
            (1, "10"),
            (2, "18"),
            (5, "/next"),
            (6, "/moved"),
            (6, "17"),
            (7, "/later"),
        ];
        let expected: Vec<_> = expected.map(|(tid, text)| (tid, text.to_owned())).into();
        assert_eq!(written(&mut in_flight), expected);
    }

    #[test]
    fn what_an_older_call_pointed_at_is_not_said_of_a_newer_one() {
        let mut in_flight = InFlight::default();
        in_flight.see(&call(Kind::Syscall, 1, 13, 10));
        // Late, through another ring.
        in_flight.see(&text(1, 11, b"/old"));
        in_flight.begin_rotation(20);
        in_flight.see(&call(Kind::SyscallEnter, 1, 21, 15));
        assert_eq!(written(&mut in_flight), [(1, "15".to_owned())]);
        assert!(written(&mut in_flight).is_empty());
    }

    #[test]
    fn calls_whose_return_never_comes_are_forgotten() {
        let mut in_flight = InFlight::default();
        let path = [b'x'; 4000];
        for tid in 1..5_000 {
            in_flight.see(&text(tid, 1, &path));
            if tid % 2 == 0 {
                in_flight.see(&call(Kind::Syscall, tid, 2, 1));
            }
            let kept: usize = in_flight
                .texts
                .values()
                .flatten()
                .map(|text| text.len())
                .sum();
            assert!(kept <= BYTES_MAX + 5000);
        }
        assert!(in_flight.forgotten > 0);
    }

    #[test]
    fn records_cut_short_do_no_harm() {
        let mut in_flight = InFlight::default();
        in_flight.begin_rotation(0);
        let whole = call(Kind::SyscallEnter, 1, 21, 15);
        for end in 0..whole.len() {
            in_flight.see(&whole[..end]);
        }
    }
}
