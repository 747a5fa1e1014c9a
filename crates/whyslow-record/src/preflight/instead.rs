//! Instructions for kernels that reject eBPF programs: record with LTTng and import the trace.

/// A command, and what the resulting recording can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instead {
    /// Command line, ready to paste.
    pub command: &'static str,
    /// What it records.
    pub provides: &'static str,
    /// Kinds of queries that it enables.
    pub answers: &'static str,
}

/// In the order to run them.
pub fn instead() -> &'static [Instead] {
    STEPS
}

const fn step(command: &'static str, provides: &'static str, answers: &'static str) -> Instead {
    Instead {
        command,
        provides,
        answers,
    }
}

static STEPS: &[Instead] = &[
    step(
        "sudo lttng create slow --output=/tmp/slow",
        "writes the trace to this directory",
        "",
    ),
    step(
        "sudo lttng enable-channel --kernel all --subbuf-size=8M --num-subbuf=4",
        "larger buffers, fewer lost events; losses are reported",
        "",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all --syscall --all",
        "system calls with arguments and paths",
        "io, files, syscalls, net by process",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'sched_*,task_rename,lttng_statedump_*'",
        "context switches and wakeups; names of threads and open files",
        "threads, states, sched, cpu, use",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'block_*'",
        "block requests with their threads",
        "block, block outliers, as iostat",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'irq_*,timer_hrtimer_expire_*,net_*,mm_vmscan_*'",
        "interrupts, packets, reclaim; omit if the trace grows too fast",
        "irq, net by interface, mem",
    ),
    step(
        "sudo lttng start; sleep 30; sudo lttng stop; sudo lttng destroy",
        "records for 30 seconds",
        "",
    ),
    step(
        "sudo whyslow import /tmp/slow -o slow.wsl",
        "imports the trace",
        "all queries",
    ),
];
