//! The commands of lttng-analyses: their options, their tables as text, and LAMI 1.0 for Trace
//! Compass. The figures come from our own queries; `docs/lttng-analyses-differences.md` explains
//! where and why they differ from those of the original tools.

mod analysis;
mod args;
mod cpu;
mod io;
mod irq;
mod lami;
mod mem;
mod sched;
mod syscalls;
mod text;
mod usage;

use crate::tool::Tool;

pub(crate) static TOOLS: &[&Tool] = &[
    &io::USAGE,
    &io::STATS,
    &io::TOP,
    &io::FREQ,
    &io::LOG,
    &cpu::TOP,
    &sched::STATS,
    &sched::TOP,
    &sched::FREQ,
    &sched::LOG,
    &irq::STATS,
    &irq::FREQ,
    &irq::LOG,
    &syscalls::STATS,
    &mem::TOP,
];
