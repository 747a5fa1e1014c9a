//! What a recording cannot tell.

use whyslow_store::Tables;

use crate::report::Report;

/// Why there is no story.
pub(super) fn nothing_found(tables: &dyn Tables) -> &'static str {
    let has = |name| crate::detectors::told::has(tables, name);
    let timed = [
        "syscall",
        "thread_state",
        "block_io",
        "stack_sample",
        "runtime_event",
        "dns_lookup",
        "function_call",
        "net_packet",
        "irq",
        "lock_wait",
        "sample_gap",
        "reclaim",
        "kernel_work",
        "work_item",
        "tcp_connection",
        "usdt_event",
    ];
    if timed.into_iter().any(has) {
        "no operation took much longer than others like it"
    } else if has("counter") {
        "cannot tell whether any operation was slow, and why: this recording has only means that another tool counted; `whyslow record --what sched,syscalls,block` has who waited, for whom and for what"
    } else {
        "cannot tell whether any operation was slow: this recording holds none; `whyslow info` says what it holds"
    }
}

/// What a part of a recording cannot tell.
pub(super) fn say_cut(tables: &dyn Tables, report: &mut Report) {
    let info = tables.info();
    if info.cut.is_none() {
        return;
    }
    report
        .caveats
        .push("this is a part of a longer recording: what is usual is what was usual in it".into());
    let (whole, begin) = (info.whole().begin, info.begin_ns);
    for story in &mut report.stories {
        if story.target.begin_ns < begin && begin > whole {
            let missing = begin - story.target.begin_ns;
            story.caveats.push(format!(
                "what happened in its first {:.3} s was not kept in this part of the recording",
                missing as f64 / 1e9
            ));
        }
    }
}
