//! Function calls that have not returned: each was recorded at its entry, and is repeated in the
//! next spool.

use rustc_hash::FxHashMap;
use whyslow_model::spool::{Encoder, TAIL};

use crate::raw::Raw;

/// Maximum number of calls kept per thread; the oldest are dropped.
const OPEN_MAX: usize = 256;
/// Returns that arrived through another ring before their entries.
const ENDS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct FunctionCalls(FxHashMap<i32, Thread>);

#[derive(Debug, Default)]
struct Thread {
    /// Records of entries.
    open: Vec<Box<[u8]>>,
    /// Stack pointer, probe, and time.
    ends: Vec<(u64, u32, u64)>,
}

/// Stack pointer and probe of an entry or return.
fn place(raw: Raw<'_>) -> (u64, u32) {
    (raw.u64(0), raw.u32(8))
}

impl FunctionCalls {
    pub(super) fn begin(&mut self, raw: Raw<'_>) {
        let Thread { open, ends } = self.0.entry(raw.tid()).or_default();
        let (sp, probe) = place(raw);
        let is_its = |end: &(u64, u32, u64)| (end.0, end.1) == (sp, probe) && end.2 >= raw.ts();
        if let Some(end) = ends.iter().position(is_its) {
            ends.remove(end);
            return;
        }
        if raw.flags() & TAIL == 0 {
            // Calls with this frame or a deeper one are gone.
            open.retain(|other| Raw(other).u64(0) != sp || Raw(other).ts() > raw.ts());
        }
        if open.len() >= OPEN_MAX {
            open.remove(0);
        }
        open.push(raw.0.into());
    }

    pub(super) fn end(&mut self, raw: Raw<'_>) {
        let Thread { open, ends } = self.0.entry(raw.tid()).or_default();
        let is_its = |other: &[u8]| place(Raw(other)) == place(raw) && Raw(other).ts() <= raw.ts();
        if let Some(call) = open.iter().rposition(|other| is_its(other)) {
            open.remove(call);
            return;
        }
        let (sp, probe) = place(raw);
        if ends.len() >= ENDS_MAX {
            ends.remove(0);
        }
        ends.push((sp, probe, raw.ts()));
    }

    pub(super) fn exit(&mut self, tid: i32) {
        self.0.remove(&tid);
    }

    pub(super) fn write(&self, encoder: &mut Encoder) {
        for record in self.0.values().flat_map(|thread| &thread.open) {
            encoder.copy(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use whyslow_model::spool::{Kind, Record, records};

    fn record(kind: Kind, ts: u64, (sp, probe): (u64, u32), flags: u16) -> Vec<u8> {
        let mut encoder = Encoder::default();
        let record = encoder.begin_on(kind, ts, (7, 7), (0, flags));
        record.u64(sp).u32(probe).u32(0);
        for _ in 0..6 {
            record.u64(0);
        }
        record.end();
        encoder.payload().to_vec()
    }

    fn written(calls: &FunctionCalls) -> Vec<(u64, u32)> {
        let mut encoder = Encoder::default();
        calls.write(&mut encoder);
        let calls = records(encoder.payload()).map(|(_, record)| match record.unwrap() {
            (head, Record::Function(call)) => (head.ts, call.probe),
            other => panic!("{other:?}"),
        });
        calls.collect()
    }

    #[test]
    fn calls_that_have_not_returned_are_told_again() {
        let mut calls = FunctionCalls::default();
        let begin = |ts, probe, sp, flags| record(Kind::FunctionBegin, ts, (sp, probe), flags);
        let end = |ts, probe, sp| record(Kind::FunctionEnd, ts, (sp, probe), 0);
        calls.begin(Raw(&begin(10, 0, 0x700, 0)));
        calls.begin(Raw(&begin(11, 1, 0x600, 0)));
        calls.begin(Raw(&begin(12, 2, 0x600, TAIL)));
        assert_eq!(written(&calls), [(10, 0), (11, 1), (12, 2)]);
        calls.end(Raw(&end(13, 2, 0x600)));
        assert_eq!(written(&calls), [(10, 0), (11, 1)]);
        // A call that was left by a jump: another one has its frame.
        calls.begin(Raw(&begin(14, 3, 0x600, 0)));
        assert_eq!(written(&calls), [(10, 0), (14, 3)]);
        // A return that arrived through another ring before its entry, and one of a later call.
        calls.end(Raw(&end(21, 1, 0x500)));
        calls.begin(Raw(&begin(20, 1, 0x500, 0)));
        assert_eq!(written(&calls), [(10, 0), (14, 3)]);
        calls.exit(7);
        assert_eq!(written(&calls), []);
        for deep in 0..1000 {
            calls.begin(Raw(&begin(30 + deep, 0, 0x9000 - deep, 0)));
        }
        assert_eq!(written(&calls).len(), OPEN_MAX);
    }
}
