//! Generated DNS lookups, lock waits and stacks.

use whyslow_model::tables::{DnsLookupRow, EmitAll, LockWaitRow, StackSampleRow};

use super::made::{BEGIN, Maker};

const LOOKUPS: [(Option<&str>, &str); 4] = [
    (Some("db.example"), "ok"),
    (Some("db.example"), "EAI_AGAIN"),
    (Some("cache.example"), "ok"),
    (None, "ok"),
];
const LOCKS: [(&str, Option<&str>); 5] = [
    ("monitor", None),
    ("mutex", None),
    ("rwsem", Some("read")),
    ("rwsem", Some("write")),
    ("spin", None),
];
const STACKS: [(&str, Option<&str>); 3] = [
    ("offcpu", Some("sleeping")),
    ("offcpu", Some("uninterruptible")),
    ("sample", None),
];

impl Maker<'_> {
    /// As many of each as states, over the same time.
    pub(crate) fn waits<S: EmitAll>(&mut self, step: i64, sink: &mut S) {
        for id in 0..self.amount.states as i64 {
            let ts = BEGIN + id * step;
            self.lookup((id, ts), sink);
            self.lock((id, ts), sink);
            self.stack((id, ts), sink);
        }
    }

    fn lookup<S: EmitAll>(&mut self, (id, ts): (i64, i64), sink: &mut S) {
        let owner = self.owner();
        let dur = (!self.dice.one_in(30)).then(|| self.dice.duration());
        let (host, result) = *self.dice.pick(&LOOKUPS);
        sink.emit(DnsLookupRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            host: host.map(|host| self.symbols.intern(host)),
            service: None,
            function: self.symbols.intern("getaddrinfo"),
            result: dur.map(|_| self.symbols.intern(result)),
            code: None,
            address: None,
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            cpu: Some(self.dice.below(3) as i32),
        });
    }

    fn lock<S: EmitAll>(&mut self, (id, ts): (i64, i64), sink: &mut S) {
        let owner = self.owner();
        let dur = (!self.dice.one_in(30)).then(|| self.dice.duration());
        let (kind, mode) = *self.dice.pick(&LOCKS);
        let is_program = kind == "monitor";
        sink.emit(LockWaitRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            kind: self.symbols.intern(kind),
            mode: mode.map(|mode| self.symbols.intern(mode)),
            slept: kind != "spin",
            lock: self.symbols.intern("ffff8881"),
            ret: 0,
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            cpu: Some(self.dice.below(3) as i32),
            function: self.sometimes(2, "do_truncate"),
            callsite_id: None,
            reported_by: is_program.then(|| self.symbols.intern("event")),
            object: is_program.then(|| self.symbols.intern("a.Ledger")),
            holder_utid: owner.utid.filter(|_| is_program),
            holder_tid: owner.tid.filter(|_| is_program),
            holder_comm: owner.comm.filter(|_| is_program),
            held: dur.filter(|_| is_program),
            confidence: is_program.then(|| self.symbols.intern("low")),
            holder_function: self.sometimes(2, "force0").filter(|_| is_program),
            holder_callsite_id: None,
            holder_gap_id: None,
        });
    }

    fn stack<S: EmitAll>(&mut self, (id, ts): (i64, i64), sink: &mut S) {
        let owner = self.owner();
        let (kind, state) = *self.dice.pick(&STACKS);
        let dur = Some(self.dice.duration());
        sink.emit(StackSampleRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            kind: self.symbols.intern(kind),
            state: state.map(|state| self.symbols.intern(state)),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            cpu: Some(self.dice.below(3) as i32),
            function: self.sometimes(2, "io_schedule"),
            user_function: self.sometimes(3, "main"),
            ..StackSampleRow::default()
        });
    }
}
