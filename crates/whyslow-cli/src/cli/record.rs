//! Arguments of `record`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use whyslow_base::path_parser;
use whyslow_base::time::{parse_duration, parse_size};
use whyslow_model::Ns;
use whyslow_record::{ProbeSpec, WALL_MIN};

use super::fleet::PushArgs;
use super::flight::FlightArgs;
use super::topics::{TopicChange, TopicParser};

pub(super) const EXAMPLES: &str = "\
Examples:
  sudo whyslow record -o web.wsl              all default topics, until Ctrl-C
  sudo whyslow record --for 30s               stop after 30 s
  sudo whyslow record -- ./slow.sh            while a command runs; system calls of that command only
  sudo whyslow record -p 1234 --for 10s       system calls of one process and its children
  sudo whyslow record --jvm -p 1234 --for 30s a JVM, with Java stacks and locks (async-profiler)
  sudo whyslow record --comm 'php-fpm*'       system calls of processes of that name, and new ones
  sudo whyslow record --cgroup system.slice/nginx.service
  sudo whyslow record --light --for 1h        long and blocking system calls, and block I/O
  sudo whyslow record --what +net,-dns        the default topics and packets, without DNS lookups
  sudo whyslow record --function libssl.so.3:SSL_read --function libssl.so.3:SSL_write
  sudo whyslow record --sample 99 --for 10s   also on-CPU stacks, 99 times a second
  sudo whyslow record --stacks wall:10ms -p 1234 --for 10s
                                              stacks of all threads every 10 ms, on or off CPU
  sudo whyslow record --ring 60s --when 'open>200ms | block>100ms'
                                              flight recorder: saves the last 60 s on a slow call";

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Write the recording to NAME.wsl [default: named after the current time]
    #[arg(short, long, value_name = "NAME.wsl", value_parser = path_parser())]
    pub(crate) output: Option<PathBuf>,
    /// Replace an existing recording
    #[arg(long)]
    pub(crate) force: bool,
    /// Stop after DURATION [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) length: Option<Ns>,
    /// Record system calls only of process PID and its children; may be repeated
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Vec<i32>,
    /// Record system calls only of processes with a thread named NAME (or `NAME*`) and children
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) comm: Vec<String>,
    /// Record system calls only of processes in the cgroup PATH or below
    ///
    /// PATH is the directory of the cgroup in /sys/fs/cgroup, or its path in the hierarchy:
    /// system.slice/nginx.service
    #[arg(long, value_name = "PATH")]
    pub(crate) cgroup: Option<PathBuf>,
    /// With COMMAND, record system calls of all processes, not only of COMMAND
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Record TOPICS instead of the default ones; `+TOPIC` adds one to them, `-TOPIC` removes one
    /// [default: syscalls,sched,block,locks,dns,mem,fs,tcp]
    ///
    /// `--what +net,-dns` changes the default topics, `--what syscalls,sched` replaces them.
    #[arg(
        long,
        value_name = "TOPICS",
        value_delimiter = ',',
        allow_hyphen_values = true,
        value_parser = TopicParser,
    )]
    pub(crate) what: Vec<TopicChange>,
    /// Record only system calls that last at least DURATION or block
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) min: Option<Ns>,
    /// Record only block I/O and system calls that last at least 1 ms or block
    #[arg(long, conflicts_with_all = ["what", "full"])]
    pub(crate) light: bool,
    /// Record stacks of threads off CPU for at least DURATION; `off` disables [default: 1ms]
    ///
    /// Records the kernel stack and, if the thread waited in a system call, the user stack. Off by
    /// default with --light, and if --what does not include sched. `wall:10ms` samples the state
    /// and stack of every thread every 10 ms, on or off CPU (see WALL CLOCK in `whyslow man
    /// record`). Both can be combined: 1ms,wall:10ms
    #[arg(long, value_name = "DURATION", value_delimiter = ',', value_parser = parse_stacks)]
    pub(crate) stacks: Vec<Stacks>,
    /// Sample on-CPU stacks at HZ on each CPU
    #[arg(long, value_name = "HZ", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) sample: Option<u32>,
    /// Record calls of FUNCTION in the program or library FILE (uprobe); may be repeated
    ///
    /// Arguments and the return value are recorded, too. Examples: libssl.so.3:SSL_read,
    /// 'mysqld:*dispatch_command*', 'libc.so.6:fopen#str,str=ptr' (see FUNCTIONS in `whyslow man
    /// record`)
    #[arg(long, visible_alias = "uprobe", value_name = "FILE:FUNCTION", value_parser = ProbeSpec::function)]
    pub(crate) function: Vec<ProbeSpec>,
    /// Record hits of the USDT probe PROVIDER:NAME in FILE; may be repeated
    ///
    /// Arguments are recorded, too. Examples: libstdc++.so.6:libstdcxx:throw,
    /// 'python3:python:import*#str' (see FUNCTIONS in `whyslow man record`)
    #[arg(long, value_name = "FILE:PROVIDER:NAME", value_parser = ProbeSpec::usdt)]
    pub(crate) usdt: Vec<ProbeSpec>,
    /// Record all topics
    #[arg(long, conflicts_with = "what")]
    pub(crate) full: bool,
    /// Use an event buffer of SIZE [default: 64MiB, or what --max-memory leaves]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) buffer: Option<i64>,
    /// Limit the memory of the recorder, user space and kernel, to SIZE (see MEMORY)
    /// [default: 64MiB + --buffer + 2 × --ring-memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_memory: Option<i64>,
    /// Stop when the spool reaches SIZE
    #[arg(long, value_name = "SIZE", default_value = "16GiB", value_parser = parse_size)]
    pub(crate) max_size: i64,
    /// Keep the spool without importing it; run `whyslow import` on it later, on any machine
    #[arg(long, conflicts_with = "ring")]
    pub(crate) no_import: bool,
    /// Do not try BPF programs of FORM, as on kernels that refuse them
    #[arg(long, hide = true, value_name = "FORM", value_delimiter = ',')]
    pub(crate) refuse: Vec<FormArg>,
    /// Profile the JVM of -p with async-profiler while recording
    ///
    /// PATH is asprof or libasyncProfiler.so (which needs the JDK's jcmd) [default: the installed
    /// one]. The recording will contain the threads, locks and stacks of the profile.
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
    /// Also import FILE, which another tool writes while recording; may be repeated
    ///
    /// FILE is an async-profiler profile, an strace log, perf.data, …
    #[arg(long, value_name = "FILE", conflicts_with_all = ["ring", "no_import"])]
    pub(crate) with: Vec<PathBuf>,
    /// Keep the spool after importing it
    #[arg(long)]
    pub(crate) keep_spool: bool,
    #[command(flatten)]
    pub(crate) push: PushArgs,
    #[command(flatten)]
    pub(crate) flight: FlightArgs,
    /// Record while COMMAND runs; its exit status becomes that of `record`
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// When stacks are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stacks {
    Off,
    /// After off-CPU intervals of at least this length.
    From(Ns),
    /// Of all threads, at this interval.
    Wall(Ns),
}

fn parse_stacks(text: &str) -> Result<Stacks, String> {
    match text.trim() {
        "off" => Ok(Stacks::Off),
        text if text.starts_with("wall") => {
            let interval = text
                .strip_prefix("wall:")
                .ok_or("`wall` needs an interval: wall:10ms")?;
            let interval = parse_duration(interval)?;
            let (min, max) = (WALL_MIN.as_nanos() as Ns, 1_000_000_000);
            if (min..=max).contains(&interval) {
                Ok(Stacks::Wall(interval))
            } else {
                Err("the interval of `wall` must be between 1ms and 1s".into())
            }
        }
        text => parse_duration(text).map(Stacks::From),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormArg {
    /// Typed tracepoints (BTF)
    Typed,
    /// Raw tracepoints
    Raw,
    /// Classic tracepoints (tracefs)
    Classic,
    /// Task iterators
    Iterator,
}

/// Stops until the recorder resumes it, then executes the command.
#[derive(Debug, Args)]
pub(crate) struct HeldArgs {
    /// Process id of the recorder
    pub(crate) recorder: i32,
    /// File to create with the error number if the command cannot be executed
    pub(crate) report: PathBuf,
    #[arg(required = true, last = true)]
    pub(crate) command: Vec<OsString>,
}
