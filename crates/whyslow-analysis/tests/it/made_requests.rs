//! Generated requests, their phases, and the threads that worked on them.

use whyslow_model::tables::{EmitAll, RequestPhaseRow, RequestRow, RequestThreadRow};

use super::made::{BEGIN, Maker, THREADS};

const ENDPOINTS: [Option<&str>; 4] = [Some("/"), Some("/api/users"), Some("/api/orders"), None];
const OUTCOMES: [(&str, Option<i32>); 6] = [
    ("ok", Some(200)),
    ("ok", Some(304)),
    ("error", Some(503)),
    ("timeout", None),
    ("cut", None),
    ("unknown", None),
];
const CLIENTS: [Option<&str>; 4] = [Some("10.0.0.1"), Some("10.0.0.2"), Some("10.0.0.3"), None];

impl Maker<'_> {
    /// As many as states, over the same time.
    pub(crate) fn requests<S: EmitAll>(&mut self, step: i64, sink: &mut S) {
        for id in 0..self.amount.states as i64 {
            let ts = BEGIN + id * step;
            let row = self.request(id, ts);
            self.phases(&row, sink);
            self.worker(&row, sink);
            sink.emit(row);
        }
    }

    // tidy: long because it is one row
    fn request(&mut self, id: i64, ts: i64) -> RequestRow {
        let owner = self.owner();
        let dur = (!self.dice.one_in(30)).then(|| self.dice.duration());
        let (outcome, status) = *self.dice.pick(&OUTCOMES);
        let endpoint = *self.dice.pick(&ENDPOINTS);
        let client = *self.dice.pick(&CLIENTS);
        let role = *self.dice.pick(&["client", "server", "server"]);
        let wait_ns = dur.filter(|_| self.dice.one_in(2)).map(|dur| dur / 2);
        RequestRow {
            id,
            ts,
            dur,
            ts_end: dur.map(|dur| ts + dur),
            role: self.symbols.intern(role),
            source: self.symbols.intern("load"),
            protocol: Some(self.symbols.intern("HTTP/1.1")),
            method: self.sometimes(2, "GET"),
            host: self.sometimes(2, "web:8080"),
            endpoint: endpoint.map(|endpoint| self.symbols.intern(endpoint)),
            status,
            outcome: self.symbols.intern(outcome),
            client: client.map(|client| self.symbols.intern(client)),
            connection: Some(self.dice.below(5) as i64),
            is_reused: Some(self.dice.one_in(2)),
            peer: self.sometimes(2, "10.0.0.9:4711"),
            worker: Some(self.dice.below(3) as i32),
            seq: Some(id),
            bytes_sent: Some(self.dice.below(1000) as i64),
            wait_ns,
            server_request: self.dice.one_in(9).then_some(id / 2),
            utid: owner.utid,
            upid: owner.upid,
            tid: owner.tid,
            pid: owner.pid,
            comm: owner.comm,
            ..RequestRow::default()
        }
    }

    fn phases<S: EmitAll>(&mut self, of: &RequestRow, sink: &mut S) {
        let Some(dur) = of.dur else { return };
        for (place, phase) in ["send", "wait"].into_iter().enumerate() {
            let place = place as i64;
            let ts = of.ts + place * (dur / 2);
            sink.emit(RequestPhaseRow {
                id: 2 * of.id + place,
                ts,
                dur: Some(dur / 2),
                ts_end: Some(ts + dur / 2),
                request: of.id,
                phase: self.symbols.intern(phase),
                endpoint: of.endpoint,
                client: of.client,
            });
        }
    }

    fn worker<S: EmitAll>(&mut self, of: &RequestRow, sink: &mut S) {
        let utid = self.dice.below(THREADS) as i32 + 1;
        let is_shared = self.dice.one_in(4);
        sink.emit(RequestThreadRow {
            id: of.id,
            ts: of.ts,
            dur: of.dur,
            ts_end: of.ts_end,
            request: of.id,
            received_by: self.symbols.intern("read"),
            is_shared,
            utid,
            tid: 1500 + utid,
            ..RequestThreadRow::default()
        });
    }
}
