//! What a recording cannot show.

use whyslow_store::Tables;

use crate::report::Report;

/// Why there is no finding.
pub(super) fn nothing_found(tables: &dyn Tables) -> &'static str {
    let has = |name| crate::detectors::counters::has(tables, name);
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
        "no operation took much longer than similar ones"
    } else if has("counter") {
        "slow operations unavailable: this recording has only averages from another tool (record waits and their causes with `whyslow record`)"
    } else {
        "slow operations unavailable: no operations recorded (`whyslow info` lists the contents of this recording)"
    }
}

/// What an excerpt of a recording cannot show.
pub(super) fn add_excerpt(tables: &dyn Tables, report: &mut Report) {
    let info = tables.info();
    if info.cut.is_none() {
        return;
    }
    report
        .caveats
        .push("this is an excerpt of a longer recording: baselines cover the excerpt only".into());
    let (whole, begin) = (info.whole().begin, info.begin_ns);
    for finding in &mut report.findings {
        if finding.target.begin_ns < begin && begin > whole {
            let missing = begin - finding.target.begin_ns;
            finding.caveats.push(format!(
                "its first {:.3} s are not part of this excerpt",
                missing as f64 / 1e9
            ));
        }
    }
}
