//! Generated rows of the scheduler, interrupts and memory.

use whyslow_model::tables::{
    EmitAll, IrqRow, PageCountRow, ReclaimRow, SchedSliceRow, ThreadStateRow,
};

use super::made::{Maker, Owner, THREADS};

const STATES: [&str; 6] = [
    "running",
    "runnable",
    "runnable",
    "sleeping",
    "uninterruptible",
    "stopped",
];
const RECLAIM: [&str; 5] = ["direct", "cgroup", "cgroup_soft", "node", "kswapd"];
const HANDLERS: [(&str, i32, &str); 4] = [
    ("hard", 30, "ahci"),
    ("hard", 31, "eth0"),
    ("soft", 3, "NET_RX"),
    ("hrtimer", 0, "hrtimer_wakeup"),
];
const CPUS: u64 = 3;

impl Maker<'_> {
    /// A state, a slice, a handler and page counts around the same time.
    pub(crate) fn scheduling<S: EmitAll>(&mut self, id: i64, ts: i64, step: i64, sink: &mut S) {
        let last = id + 1 == self.amount.states as i64;
        let owner = self.owner();
        let dur = (!last).then(|| self.dice.below(4 * step as u64) as i64);
        self.state((id, ts, dur), &owner, sink);
        self.slice((id, ts, dur), &owner, sink);
        self.handler((id, ts), &owner, sink);
        if self.dice.one_in(3) {
            sink.emit(PageCountRow {
                id,
                // Counted per second.
                ts: ts - ts.rem_euclid(1_000_000_000),
                utid: owner.utid,
                upid: owner.upid,
                tid: owner.tid,
                pid: owner.pid,
                comm: owner.comm,
                allocated: self.dice.below(300) as i64,
                freed: self.dice.below(200) as i64,
                faults_user: self.dice.below(50) as i64,
                faults_kernel: self.dice.below(5) as i64,
                cache_added: self.dice.below(20) as i64,
                cache_removed: 0,
                reclaim_written: 0,
                kswapd_wakeups: self.dice.below(2) as i64,
            });
        }
        if self.dice.one_in(4) {
            self.reclaim((id, ts), sink);
        }
    }

    fn reclaim<S: EmitAll>(&mut self, (id, ts): (i64, i64), sink: &mut S) {
        let owner = self.owner();
        let dur = (!self.dice.one_in(40)).then(|| 200 * self.dice.duration());
        let kind = *self.dice.pick(&RECLAIM);
        sink.emit(ReclaimRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            kind: self.symbols.intern(kind),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            cpu: Some(self.dice.below(CPUS) as i32),
            alloc_order: Some(self.dice.below(4) as i32),
            node: (kind == "kswapd").then_some(0),
            pages: dur.map(|_| self.dice.below(64) as i64),
        });
    }

    fn state<S: EmitAll>(
        &mut self,
        (id, ts, dur): (i64, i64, Option<i64>),
        owner: &Owner,
        sink: &mut S,
    ) {
        let state = *self.dice.pick(&STATES);
        let reason = *self.dice.pick(&["woken", "preempted", "created"]);
        let is_known = state == "runnable" && !self.dice.one_in(9);
        let woken = state != "running" && !self.dice.one_in(3);
        let waker = self.dice.below(THREADS) as i32;
        sink.emit(ThreadStateRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            state: self.symbols.intern(state),
            reason: is_known.then(|| self.symbols.intern(reason)),
            prio: (!self.dice.one_in(5)).then(|| *self.dice.pick(&[98, 100, 120, 139])),
            cpu: Some(self.dice.below(CPUS) as i32),
            wakeup_id: woken.then_some(id),
            waker_utid: woken.then_some(waker),
            wake_context: woken.then(|| self.symbols.intern("task")),
            wake_cause: (woken && id % 7 == 0).then(|| {
                let causes = ["block_io", "worker", "packet", "received"];
                self.symbols.intern(causes[id as usize % causes.len()])
            }),
            wake_cause_id: (woken && id % 7 == 0).then_some(id / 7),
        });
    }

    fn slice<S: EmitAll>(
        &mut self,
        (id, ts, dur): (i64, i64, Option<i64>),
        owner: &Owner,
        sink: &mut S,
    ) {
        // Short enough that CPUs are also idle.
        let dur = dur.map(|dur| dur / 6);
        let part = dur.unwrap_or(0) as u64 / 4;
        sink.emit(SchedSliceRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            cpu: self.dice.below(CPUS) as i32,
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            prio: (!self.dice.one_in(5)).then(|| *self.dice.pick(&[98, 120, 130])),
            system_ns: self.dice.below(2 * part + 1) as i64,
            hardirq_ns: self.dice.below(part + 1) as i64,
            softirq_ns: self.dice.below(part + 1) as i64,
            migrations: self.dice.below(3) as i32,
            end_state: self.sometimes(4, "S"),
        });
    }

    fn handler<S: EmitAll>(&mut self, (id, ts): (i64, i64), owner: &Owner, sink: &mut S) {
        let (kind, nr, name) = *self.dice.pick(&HANDLERS);
        let dur = (!self.dice.one_in(30)).then(|| self.dice.duration() % 400_000);
        let raise = (kind == "soft" && !self.dice.one_in(4)).then(|| self.dice.duration() % 90_000);
        sink.emit(IrqRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            cpu: self.dice.below(CPUS) as i32,
            kind: self.symbols.intern(kind),
            nr,
            name: Some(self.symbols.intern(name)),
            ts_raise: raise.map(|raise| ts - raise),
            raise_ns: raise,
            ret: (kind == "hard").then_some(1),
            self_ns: dur.map(|dur| dur - dur / 3),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
        });
    }
}
