//! Locks of programs: what a call said of the address that it was about.

use whyslow_model::tables::{EmitAll, FutexCallRow, SyscallRow};

use super::super::identity::Output;
use super::Pending;

/// The bit of the command that says that only this process knows the lock.
const FUTEX_PRIVATE_FLAG: i64 = 128;
/// The bit that says by which clock a time is meant.
const FUTEX_CLOCK_REALTIME: i64 = 256;

/// Writes the row of a call about a futex, beside that of the call.
pub(super) fn emit<S: EmitAll>(pending: &Pending, row: &SyscallRow, out: &mut Output<'_, S>) {
    let Some(address) = pending.numbers.address else {
        return;
    };
    let name = out.symbols.get(row.name);
    let op = match name {
        "futex" | "futex_time64" => of_command(row.flags),
        "futex_wait" => "wait",
        "futex_wake" => "wake",
        "futex_requeue" => "requeue",
        _ => return,
    };
    let row = FutexCallRow {
        id: row.id,
        ts: row.ts,
        dur: row.dur,
        ts_end: row.ts_end,
        op: out.symbols.intern_static(op),
        private: row.flags.map(|flags| flags & FUTEX_PRIVATE_FLAG != 0),
        address: out.symbols.intern(&format!("{address:x}")),
        ret: row.ret,
        errno: row.errno,
        utid: row.utid,
        upid: row.upid,
        tid: row.tid,
        pid: row.pid,
        comm: row.comm,
    };
    out.sink.emit(row);
}

/// Commands by number, as `linux/futex.h` has them.
fn of_command(command: Option<i64>) -> &'static str {
    let command = command.map(|command| command & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME));
    match command {
        // FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2
        Some(0 | 6 | 9 | 11 | 13) => "wait",
        // FUTEX_WAKE, WAKE_OP, WAKE_BITSET
        Some(1 | 5 | 10) => "wake",
        // FUTEX_REQUEUE, CMP_REQUEUE, CMP_REQUEUE_PI
        Some(3 | 4 | 12) => "requeue",
        Some(7) => "unlock",
        _ => "other",
    }
}
