//! How to record where the kernel takes no eBPF programs: with a tracer whose traces can be
//! imported.

/// Commands, and what a recording made of their trace answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instead {
    /// Command line, to be typed as it is.
    pub command: &'static str,
    /// What is known because of it.
    pub tells: &'static str,
    /// Kinds of questions that it gives answers to.
    pub answers: &'static str,
}

/// In the order in which they are typed.
pub fn instead() -> &'static [Instead] {
    STEPS
}

const fn step(command: &'static str, tells: &'static str, answers: &'static str) -> Instead {
    Instead {
        command,
        tells,
        answers,
    }
}

static STEPS: &[Instead] = &[
    step(
        "sudo lttng create slow --output=/tmp/slow",
        "the trace goes to this folder",
        "",
    ),
    step(
        "sudo lttng enable-channel --kernel all --subbuf-size=8M --num-subbuf=4",
        "so that little is lost; what is, is told",
        "",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all --syscall --all",
        "system calls with arguments and paths",
        "io, files, syscalls, net by process",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'sched_*,task_rename,lttng_statedump_*'",
        "who ran, waited and woke whom; names of threads and of open files",
        "threads, states, sched, cpu, use",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'block_*'",
        "requests to disks and who made them",
        "block, block outliers, as iostat",
    ),
    step(
        "sudo lttng enable-event --kernel --channel=all 'irq_*,timer_hrtimer_expire_*,net_*,mm_vmscan_*'",
        "interrupts, packets, reclaim; leave it out if the trace grows too fast",
        "irq, net by interface, mem",
    ),
    step(
        "sudo lttng start; sleep 30; sudo lttng stop; sudo lttng destroy",
        "half a minute",
        "",
    ),
    step(
        "sudo whyslow import /tmp/slow -o slow.wsl",
        "the recording",
        "every question",
    ),
];
