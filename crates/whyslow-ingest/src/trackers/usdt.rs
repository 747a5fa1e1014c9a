//! Hits of USDT probes.

use whyslow_model::event::UsdtHit;
use whyslow_model::tables::{EmitAll, UsdtEventRow};

use super::identity::{Here, Output};

#[derive(Debug, Default)]
pub(super) struct UsdtTracker {
    next_id: i64,
}

impl UsdtTracker {
    pub(super) fn event<S: EmitAll>(
        &mut self,
        hit: &UsdtHit<'_>,
        here: &Here,
        out: &mut Output<'_, S>,
    ) {
        let arg = |number: usize| hit.args.get(number - 1).copied().flatten();
        let [text, text2] = hit.texts.map(|text| text.map(|text| out.intern(text)));
        let row = UsdtEventRow {
            id: self.next_id,
            ts: here.ts,
            provider: out.intern(hit.provider),
            name: out.intern(hit.name),
            module: out.intern(hit.module),
            arg1: arg(1),
            arg2: arg(2),
            arg3: arg(3),
            arg4: arg(4),
            arg5: arg(5),
            arg6: arg(6),
            arg7: arg(7),
            arg8: arg(8),
            arg9: arg(9),
            arg10: arg(10),
            arg11: arg(11),
            arg12: arg(12),
            text,
            text2,
            utid: here.thread.map(|thread| thread.utid),
            upid: here.thread.and_then(|thread| thread.upid),
            tid: here.thread.map(|thread| thread.tid),
            pid: here.thread.and_then(|thread| thread.pid),
            comm: here.thread.and_then(|thread| thread.comm),
            cpu: here.cpu,
        };
        self.next_id += 1;
        out.sink.emit(row);
    }
}
