//! What can be typed after `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whyslow_base::time::{parse_duration, parse_size};
use whyslow_model::Ns;
use whyslow_record::{ProbeSpec, WALL_MIN};

use super::fleet::PushArgs;
use super::flight::FlightArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo whyslow record -o web.wsl              everything, until Ctrl-C
  sudo whyslow record --for 30s               for half a minute
  sudo whyslow record -- ./slow.sh            while a command runs: its calls, and what else ran
  sudo whyslow record -p 1234 --for 10s       calls of one process and those it starts
  sudo whyslow record --jvm -p 1234 --for 30s a JVM, with its code and locks (async-profiler)
  sudo whyslow record --comm 'php-fpm*'       calls of processes of that name, also later ones
  sudo whyslow record --cgroup system.slice/nginx.service
  sudo whyslow record --light --for 1h        long and blocking calls, and disks
  sudo whyslow record --function libssl.so.3:SSL_read --function libssl.so.3:SSL_write
  sudo whyslow record --sample 99 --for 10s   with stacks of what runs
  sudo whyslow record --stacks wall:10ms -p 1234 --for 10s
                                              what every thread does, each 10 ms, also one that waits
  sudo whyslow record --ring 60s --when 'open>200ms | block>100ms'
                                              runs on; saves the last minute when that happens";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Recording to write [default: named after the time]
    #[arg(short, long, value_name = "NAME.wsl")]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// End after so long
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) length: Option<Ns>,
    /// Calls of this process only, and of those it starts; may be repeated
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Vec<i32>,
    /// Calls of processes with a thread of this name (or `NAME*`: that begins so), and of those they start
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Calls of processes in this control group or below it: its folder, or its path
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// With a command: calls of all processes, not only its own
    #[arg(short, long)]
    pub(crate) all: bool,
    /// What to record [default: syscalls,sched,block,locks,dns,mem,fs]
    #[arg(long, value_name = "TOPICS", value_delimiter = ',')]
    pub(crate) what: Vec<TopicArg>,
    /// Only calls that last so long, or in which the thread gave up the CPU
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) min: Option<Ns>,
    /// Little: calls of 1 ms and more or in which the thread gave up the CPU, and block I/O
    #[arg(long, conflicts_with_all = ["what", "full"])]
    pub(crate) light: bool,
    /// Stacks of threads that were away from the CPU for so long: in the kernel, and in the program
    /// where they waited in a system call; `off` for none [default: 1ms; off with --light, and with --what but
    /// without sched]. `wall:10ms`: every 10 ms, state and stack of every thread, whether it runs or waits
    /// (see WALL CLOCK)
    #[arg(long, value_name = "DURATION", value_delimiter = ',', value_parser = parse_stacks)]
    pub(crate) stacks: Vec<Stacks>,
    /// Stacks of what runs, so many times a second on each CPU
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) sample: Option<u32>,
    /// Calls of a function of a program or library, with arguments and return value:
    /// `libssl.so.3:SSL_read`, 'mysqld:*dispatch_command*', `libc.so.6:fopen#str,str=ptr` (see
    /// FUNCTIONS); may be repeated
    #[arg(long, visible_alias = "uprobe", value_name = "FILE:FUNCTION", value_parser = ProbeSpec::function)]
    pub(crate) function: Vec<ProbeSpec>,
    /// Passes of a static probe of a program or library (USDT), with arguments:
    /// `libstdc++.so.6:libstdcxx:throw`, `python3:python:import*#str` (see FUNCTIONS); may be repeated
    #[arg(long, value_name = "FILE:PROVIDER:NAME", value_parser = ProbeSpec::usdt)]
    pub(crate) usdt: Vec<ProbeSpec>,
    /// All that can be recorded
    #[arg(long, conflicts_with = "what")]
    pub(crate) full: bool,
    /// Memory for events on their way [default: 64MiB, or what --max-memory leaves for it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) buffer: Option<i64>,
    /// Take no more memory than this, in this program and in the kernel, while recording (see MEMORY)
    /// [default: 64MiB, --buffer and twice --ring-memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_memory: Option<i64>,
    /// End when the spool has so many bytes
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_size)]
    pub(crate) max_size: i64,
    /// Make no recording of the spool: `whyslow import` does, also on another machine
    #[arg(long, conflicts_with = "ring")]
    pub(crate) no_import: bool,
    /// Forms of programs that are not tried, as on kernels that refuse them
    #[arg(long, hide = true, value_name = "FORM", value_delimiter = ',')]
    pub(crate) refuse: Vec<FormArg>,
    /// Profile this JVM (-p) meanwhile, with async-profiler, which is installed or in that place (asprof,
    /// or libasyncProfiler.so and the JDK's jcmd): its threads, locks and calls become part of the recording
    #[arg(
        long,
        value_name = "PATH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        requires = "pid",
        conflicts_with_all = ["ring", "no_import"],
    )]
    pub(crate) jvm: Option<OsString>,
    /// What others write meanwhile, to be part of the recording: a profile of async-profiler, a log of
    /// strace, perf.data; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ring", "no_import"])]
    pub(crate) with: Vec<PathBuf>,
    /// Leave the spool, which is deleted otherwise when it has become a recording
    #[arg(long)]
    pub(crate) keep_spool: bool,
    #[command(flatten)]
    pub(crate) push: PushArgs,
    #[command(flatten)]
    pub(crate) flight: FlightArgs,
    /// Record while this command runs
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// For which waits stacks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    Off,
    From(Ns),
    /// Of all threads, each interval.
    Wall(Ns),
}

fn parse_stacks(text: &str) -> Result<Stacks, String> {
    match text.trim() {
        "off" => Ok(Stacks::Off),
        text if text.starts_with("wall") => {
            let interval = text
                .strip_prefix("wall:")
                .ok_or("an interval follows: wall:10ms")?;
            let interval = parse_duration(interval)?;
            let (least, most) = (WALL_MIN.as_nanos() as Ns, 1_000_000_000);
            if (least..=most).contains(&interval) {
                Ok(Stacks::Wall(interval))
            } else {
                Err("all threads can be looked at every 1ms to 1s".into())
            }
        }
        text => parse_duration(text).map(Stacks::From),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// Those whose types the kernel describes
    Typed,
    /// Tracepoints without types
    Raw,
    /// What tracefs shows
    Classic,
    /// Iterators over all threads
    Iterator,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TopicArg {
    /// System calls
    Syscalls,
    /// Who runs, and who wakes whom
    Sched,
    /// Block I/O
    Block,
    /// Interrupt handlers
    Irq,
    /// Interrupts that CPUs send each other
    Ipi,
    /// Contended locks of the kernel
    Locks,
    /// Lookups of host names
    Dns,
    /// Reclaim of memory
    Mem,
    /// Writeback, commits of journals, writers that are held back
    Fs,
    /// Work that the kernel puts off (workqueues)
    Work,
    /// TCP connections: who opened them, how long they lasted, how they ended
    Tcp,
    /// Packets, retransmits and drops
    Net,
    /// Page faults; what comes into the page cache, by file, and what leaves it
    Pages,
}

/// Waits until somebody lets it go on, and becomes the command.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// Who lets it go
    pub(crate) recorder: i32,
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}
