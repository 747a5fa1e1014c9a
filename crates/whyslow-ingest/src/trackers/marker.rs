//! Markers added by users, and events of user-space tracepoints, as text.

use whyslow_model::event::Body;
use whyslow_model::tables::{EmitAll, MarkerRow};

use super::identity::{Here, Output};

#[derive(Debug, Default)]
pub(super) struct MarkerTracker {
    next_id: i64,
}

impl MarkerTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        body: &Body<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let Body::Marker { name, text } = *body else {
            return;
        };
        let thread = here.thread;
        out.sink.emit(MarkerRow {
            id: self.next_id,
            ts: here.ts,
            cpu: here.cpu,
            utid: thread.map(|thread| thread.utid),
            upid: thread.and_then(|thread| thread.upid),
            tid: thread.map(|thread| thread.tid),
            pid: thread.and_then(|thread| thread.pid),
            comm: thread.and_then(|thread| thread.comm),
            name: out.symbols.intern(name),
            text: out.symbols.intern(text),
        });
        self.next_id += 1;
    }
}
