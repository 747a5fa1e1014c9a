//! User-space locks: arguments of futex calls.

use whyslow_model::tables::{EmitAll, FutexCallRow, SyscallRow};
use whyslow_model::{Sym, Symbols};

use super::super::identity::Output;
use super::Pending;

/// Flag of the command: the futex is private to the process.
const FUTEX_PRIVATE_FLAG: i64 = 128;
/// Flag of the command: the timeout is on CLOCK_REALTIME.
const FUTEX_CLOCK_REALTIME: i64 = 256;

/// Writes the `futex_call` row of a call, in addition to its `syscall` row.
pub(super) fn row<S: EmitAll>(
    pending: &Pending,
    row: &SyscallRow,
    out: &mut Output<'_, S>,
) -> Option<FutexCallRow> {
    let numbers = &pending.numbers;
    let (op, has_second) = match out.symbols.get(row.name) {
        "futex" | "futex_time64" => of_command(row.flags),
        "futex_wait" => ("wait", false),
        "futex_wake" => ("wake", false),
        "futex_waitv" => ("wait", false),
        "futex_requeue" => ("requeue", false),
        _ => return None,
    };
    let is_cut = row.dur.is_none() && row.ts_end.is_some();
    let op = if is_cut { "unknown" } else { op };
    let returned = row.ret.filter(|ret| *ret >= 0);
    Some(FutexCallRow {
        id: row.id,
        ts: row.ts,
        dur: row.dur,
        ts_end: row.ts_end,
        op: out.symbols.intern_static(op),
        // Calls with several futexes specify this for each of them in memory.
        private: row
            .flags
            .filter(|_| numbers.address.is_some())
            .map(|flags| flags & FUTEX_PRIVATE_FLAG != 0),
        address: numbers.address.map(|address| hex(address, out.symbols)),
        value: numbers
            .value
            .filter(|_| op == "wait" && numbers.address.is_some()),
        address2: numbers
            .address2
            .filter(|_| has_second)
            .map(|address| hex(address, out.symbols)),
        ret: row.ret,
        errno: row.errno,
        woken: match op {
            "wake" => returned,
            // It counts requeued threads, too, and wakes as many as allowed before it requeues any.
            "requeue" => returned.and_then(|ret| Some(ret.min(numbers.value?))),
            _ => None,
        },
        has_timeout: numbers
            .timeout
            .filter(|_| op == "wait")
            .map(|address| address != 0),
        utid: row.utid,
        upid: row.upid,
        tid: row.tid,
        pid: row.pid,
        comm: row.comm,
        cut: row.cut,
    })
}

/// Operation by command number of `linux/futex.h`, and whether it uses a second address.
fn of_command(command: Option<i64>) -> (&'static str, bool) {
    let command = command.map(|command| command & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME));
    match command {
        // FUTEX_WAIT, LOCK_PI, WAIT_BITSET, LOCK_PI2
        Some(0 | 6 | 9 | 13) => ("wait", false),
        // FUTEX_WAIT_REQUEUE_PI
        Some(11) => ("wait", true),
        // FUTEX_WAKE, WAKE_BITSET
        Some(1 | 10) => ("wake", false),
        // FUTEX_WAKE_OP
        Some(5) => ("wake", true),
        // FUTEX_REQUEUE, CMP_REQUEUE, CMP_REQUEUE_PI
        Some(3 | 4 | 12) => ("requeue", true),
        Some(7) => ("unlock", false),
        _ => ("other", false),
    }
}

/// Hexadecimal text, without allocating a string per call.
fn hex(address: u64, symbols: &mut Symbols) -> Sym {
    let mut digits = [0; 16];
    let mut first = digits.len();
    let mut left = address;
    while first == digits.len() || left != 0 {
        first -= 1;
        digits[first] = b"0123456789abcdef"[(left & 15) as usize];
        left >>= 4;
    }
    symbols.intern_bytes(&digits[first..])
}
