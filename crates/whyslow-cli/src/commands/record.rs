//! `record`: records this machine and imports the spool.

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, Signal, WaitOptions, getppid, kill_process, set_parent_process_death_signal, waitpid,
};
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::progress::ProgressReporter;
use whyslow_base::{interrupt, talk};
use whyslow_ingest::ImportOptions;
use whyslow_model::text::shown;
use whyslow_record::{
    ControlGroup, Form, Memory, MemoryWish, NAMES_MAX, Names, Options, Progress, Step, Summary,
    TooLittleMemory, Topic,
};
use whyslow_sources::recording;
use whyslow_store::Existing;

use super::jvm::Profiler;
use super::processes::check_processes;
use crate::cli::{FormArg, HeldArgs, RecordArgs, Stacks, TopicArg};

/// Shortest system call of `--light`.
const LIGHT_MIN: Duration = Duration::from_millis(1);

pub(super) fn run(args: &RecordArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => PathBuf::from(name_of_now()),
    };
    if output.exists() && !args.force {
        return Err(Failure::usage(format!("`{}` exists", output.display()))
            .hint("replace it with --force, or choose another name with -o"));
    }
    let spool = spool_of(&output);
    if spool.exists() {
        return Err(Failure::usage(format!(
            "the spool `{}` of an earlier recording exists",
            spool.display()
        ))
        .hint(format!(
            "import it, then delete it: whyslow import {}",
            spool.display()
        )));
    }
    check_processes(&args.pid)?;
    let memory = memory(args)?;
    let (names, groups) = selected(args)?;
    let stop = interrupt::flag()?;
    let mut child = Held::start(&args.command)?;
    let mut options = options(args, &spool, child.as_ref().map(Held::pid));
    (options.memory_bytes_max, options.buffer_bytes) = (memory.max, memory.buffer);
    options.only_pids |= !names.is_empty() || !groups.is_empty();
    (options.names, options.groups) = (names, groups);
    let started = Cell::new(false);
    let profilers = profilers(args)?;
    let summary = record(args, talk, &options, (&mut child, &stop, &started));
    let profiles = finished(profilers, &spool);
    if let Some(child) = child {
        child.leave(started.get(), talk);
    }
    let summary = summary?;
    print_cost(&summary, &output, talk);
    if args.no_import {
        talk::line(&format!(
            "next: whyslow import {} -o {}",
            shown(&spool.display().to_string(), false),
            shown(&output.display().to_string(), false)
        ));
        return Ok(());
    }
    import(&spool, &output, &profiles, args, talk)?;
    #[cfg(feature = "fleet")]
    super::fleet::push_recorded(&output, &args.push, talk)?;
    if !args.keep_spool {
        for path in &profiles {
            // Created by this program; it may already be deleted.
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Starts a profiler in each recorded JVM.
fn profilers(args: &RecordArgs) -> Result<Vec<(i32, Profiler)>, Failure> {
    let Some(named) = &args.jvm else {
        return Ok(Vec::new());
    };
    let started = args
        .pid
        .iter()
        .map(|pid| Ok((*pid, Profiler::start(named, *pid)?)));
    started.collect()
}

/// Stops the profilers and copies their profiles next to the spool.
fn finished(profilers: Vec<(i32, Profiler)>, spool: &Path) -> Vec<PathBuf> {
    let mut profiles = Vec::new();
    for (pid, profiler) in profilers {
        let mut path = spool.as_os_str().to_owned();
        path.push(format!(".{pid}.jfr"));
        let path = PathBuf::from(path);
        match profiler.finish(&path) {
            Ok(()) => profiles.push(path),
            Err(error) => talk::line(&format!("note: {}", error.message())),
        }
    }
    profiles
}

/// The memory limit of the recording and its division.
pub(super) fn memory(args: &RecordArgs) -> Result<Memory, Failure> {
    let bytes = |size: Option<i64>| size.map(|size| size.max(0) as u64);
    let wish = MemoryWish {
        max: bytes(args.max_memory),
        buffer: bytes(args.buffer),
        kept: bytes(args.flight.ring_memory),
        is_flight: args.flight.ring.is_some(),
    };
    Memory::share(&wish).map_err(|TooLittleMemory { least }| {
        let min = least.div_ceil(1 << 20);
        Failure::usage("the memory limit is too low to record").hint(format!(
            "set --max-memory to at least {min}MiB, or reduce --buffer or --ring-memory"
        ))
    })
}

/// Prints the memory used.
pub(super) fn print_memory(progress: &Progress) {
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    talk::line(&format!(
        "memory: at most {:.1} MiB used, limit {:.1} MiB (--max-memory)",
        mib(progress.memory),
        mib(progress.memory_max),
    ));
    if progress.memory_short > 0 {
        talk::line(&format!(
            "note: the memory limit was exceeded {} times: tables of function names and kept data were dropped",
            progress.memory_short
        ));
    }
}

/// Processes by name and cgroup.
pub(super) fn selected(args: &RecordArgs) -> Result<(Vec<Names>, Vec<ControlGroup>), Failure> {
    let name = |name: &String| {
        Names::parse(name).ok_or_else(|| {
            Failure::usage(format!("`{name}` is not a thread name"))
                .hint("write at most 15 bytes; NAME* matches all names with that prefix")
        })
    };
    if args.comm.len() > NAMES_MAX {
        return Err(Failure::usage(format!(
            "--comm accepts at most {NAMES_MAX} names"
        )));
    }
    let group = |path: &PathBuf| {
        ControlGroup::find(path).ok_or_else(|| {
            Failure::usage(format!("no cgroup `{}`", path.display())).hint(
                "list all cgroups with systemd-cgls, or that of a process: cat /proc/PID/cgroup",
            )
        })
    };
    let names = args.comm.iter().map(name).collect::<Result<_, _>>()?;
    let groups = args.cgroup.iter().map(group).collect::<Result<_, _>>()?;
    Ok((names, groups))
}

/// `web.wsl` → `web.wsl.spool`
fn spool_of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".spool");
    PathBuf::from(name)
}

fn name_of_now() -> String {
    let now = jiff::Zoned::now();
    format!("{}.wsl", now.strftime("%Y%m%d-%H%M%S"))
}

pub(super) fn options(args: &RecordArgs, spool: &Path, command: Option<i32>) -> Options {
    let mut options = Options::new(spool);
    let topic = |topic: &TopicArg| match topic {
        TopicArg::Syscalls => Topic::Syscalls,
        TopicArg::Sched => Topic::Sched,
        TopicArg::Block => Topic::Block,
        TopicArg::Irq => Topic::Irq,
        TopicArg::Ipi => Topic::Ipi,
        TopicArg::Locks => Topic::Locks,
        TopicArg::Dns => Topic::Dns,
        TopicArg::Mem => Topic::Mem,
        TopicArg::Fs => Topic::Fs,
        TopicArg::Work => Topic::Work,
        TopicArg::Tcp => Topic::Tcp,
        TopicArg::Net => Topic::Net,
        TopicArg::Pages => Topic::Pages,
    };
    if args.light {
        options.topics = [Topic::Syscalls, Topic::Block].into();
        options.call_min = LIGHT_MIN;
        options.stack_min = None;
    } else if args.full {
        options.topics = Topic::ALL.iter().copied().collect();
    } else if !args.what.is_empty() {
        options.topics = args.what.iter().map(topic).collect();
        // A limited choice of topics gets no stacks unless scheduling is one of them.
        if !options.topics.contains(&Topic::Sched) {
            options.stack_min = None;
        }
    }
    if let Some(min) = args.min {
        options.call_min = Duration::from_nanos(min.max(0) as u64);
    }
    let duration = |ns: whyslow_model::Ns| Duration::from_nanos(ns.max(0) as u64);
    for stacks in &args.stacks {
        match stacks {
            Stacks::Off => options.stack_min = None,
            Stacks::From(min) => options.stack_min = Some(duration(*min)),
            Stacks::Wall(interval) => options.wall = Some(duration(*interval)),
        }
    }
    options.sample_hz = args.sample.unwrap_or(0);
    options.pids.clone_from(&args.pid);
    if !args.all {
        options.pids.extend(command);
    }
    options.only_pids = !options.pids.is_empty();
    let form = |form: &FormArg| match form {
        FormArg::Typed => Form::Typed,
        FormArg::Raw => Form::Raw,
        FormArg::Classic => Form::Classic,
        FormArg::Iterator => Form::Iterator,
    };
    options.refuse = args.refuse.iter().map(form).collect();
    let probes = args.function.iter().chain(&args.usdt);
    options.probes = probes.cloned().collect();
    options.spool_bytes_max = args.max_size.max(0) as u64;
    options
}

fn record(
    args: &RecordArgs,
    talk: &TalkArgs,
    options: &Options,
    (child, stop, started): (&mut Option<Held>, &Arc<AtomicBool>, &Cell<bool>),
) -> Result<Summary, Failure> {
    let start = Instant::now();
    let length = args.length.map(|ns| Duration::from_nanos(ns.max(0) as u64));
    let held = child.as_ref().map(Held::pid);
    let ready = |ready: &whyslow_record::Ready<'_>| {
        print_unavailable(ready);
        started.set(true);
        if let Some(pid) = held {
            Held::resume(pid);
        } else if !talk.quiet {
            talk::line(match length {
                Some(_) => "recording; press Ctrl-C to stop early",
                None => "recording; press Ctrl-C to stop",
            });
        }
    };
    let mut has_warned = false;
    let each = |progress: &Progress| {
        warn_often(progress, &mut has_warned);
        let is_over = length.is_some_and(|length| start.elapsed() >= length);
        let is_done = child.as_mut().is_some_and(Held::has_ended);
        if is_over || is_done || stop.load(Ordering::Relaxed) {
            Step::End
        } else {
            Step::GoOn
        }
    };
    whyslow_record::record(options, ready, each).map_err(Failure::from)
}

/// This many function calls per second take a considerable part of a CPU.
const CALLS_MANY: u64 = 10_000;

/// Warns once if the probed functions are called so frequently that their overhead is considerable.
/// Returns whether it did.
pub(super) fn warn_often(progress: &Progress, has_warned: &mut bool) -> bool {
    let calls = progress.calls_per_second;
    if calls < CALLS_MANY || std::mem::replace(has_warned, true) {
        return false;
    }
    talk::line(&format!(
        "note: the probes of --function and --usdt are hit {} times a second; each hit adds some microseconds",
        talk::grouped(calls)
    ));
    true
}

/// Prints what this kernel cannot record.
pub(super) fn print_unavailable(ready: &whyslow_record::Ready<'_>) {
    for off in ready.off {
        talk::line(&format!(
            "note: not recorded: {} ({}: {})",
            off.provides, off.program, off.reason
        ));
    }
}

fn print_cost(summary: &Summary, output: &Path, talk: &TalkArgs) {
    if talk.quiet {
        return;
    }
    let Progress {
        records,
        spool_bytes,
        lost,
        elapsed,
        own_cpu,
        ..
    } = summary.progress;
    let seconds = elapsed.as_secs_f64().max(1e-3);
    talk::line(&format!(
        "{}: {} records in {seconds:.1} s; the recorder used {:.1} % of a CPU and wrote {:.1} MiB ({:.1} MiB/s)",
        shown(&output.display().to_string(), false),
        talk::grouped(records),
        own_cpu.as_secs_f64() * 100.0 / seconds,
        spool_bytes as f64 / 1024.0 / 1024.0,
        spool_bytes as f64 / 1024.0 / 1024.0 / seconds,
    ));
    print_memory(&summary.progress);
    if lost > 0 {
        talk::line(&format!(
            "note: {} records were lost because the buffer was full (increase --buffer)",
            talk::grouped(lost)
        ));
    }
    let missed = summary.progress.missed;
    if missed > 0 {
        talk::line(&format!(
            "note: the kernel skipped {} runs of the recorder's BPF programs, which would have interrupted themselves",
            talk::grouped(missed)
        ));
    }
    if let Some(unwritten) = summary.unwritten {
        talk::line(&format!(
            "note: stopped because the spool reached --max-size: {} records of the last {:.1} s were not written",
            talk::grouped(unwritten.records),
            unwritten.length.as_secs_f64()
        ));
    }
}

fn import(
    spool: &Path,
    output: &Path,
    profiles: &[PathBuf],
    args: &RecordArgs,
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let options = ImportOptions {
        existing: if args.force {
            Existing::Replace
        } else {
            Existing::Refuse
        },
        ..ImportOptions::new(output)
    };
    let mut progress = ProgressReporter::new(talk);
    let (with, missing) = other_sources(args);
    for path in missing {
        talk::line(&format!(
            "note: `{}` (--with) does not exist and was not imported",
            shown(&path.display().to_string(), false)
        ));
    }
    let sources: Vec<PathBuf> = std::iter::once(spool.to_owned())
        .chain(with)
        .chain(profiles.iter().cloned())
        .collect();
    let result = whyslow_ingest::import(&sources, &options, &mut |at| progress.show(at));
    progress.end();
    let report = result.map_err(|error| {
        Failure::from(error).hint(format!(
            "import the spool, which was kept: whyslow import {} -o {}",
            sources
                .iter()
                .map(|source| source.display().to_string())
                .collect::<Vec<_>>()
                .join(" "),
            output.display()
        ))
    })?;
    recording::remember(output);
    if !talk.quiet {
        super::import::summarise(&report, output);
    }
    if !args.keep_spool
        && let Err(error) = fs::remove_dir_all(spool)
    {
        talk::line(&format!(
            "note: cannot delete the spool `{}`: {error}",
            spool.display()
        ));
    }
    Ok(())
}

/// Files of `--with`: those that exist, and those that do not.
fn other_sources(args: &RecordArgs) -> (Vec<PathBuf>, Vec<PathBuf>) {
    args.with.iter().cloned().partition(|path| path.exists())
}

/// A command that is stopped until the recorder resumes it.
pub(super) struct Held {
    child: Child,
    has_ended: bool,
}

impl Held {
    /// `None` if there is no command.
    pub(super) fn start(command: &[OsString]) -> Result<Option<Self>, Failure> {
        if command.is_empty() {
            return Ok(None);
        }
        let failed = |error: std::io::Error| {
            let name = command[0].to_string_lossy();
            Failure::new(format!("cannot start `{}`", shown(&name, false))).caused_by(&error)
        };
        let child = Command::new("/proc/self/exe")
            .arg("held")
            .arg(std::process::id().to_string())
            .arg("--")
            .args(command)
            .spawn()
            .map_err(failed)?;
        let held = Self {
            child,
            has_ended: false,
        };
        if let Some(pid) = Pid::from_raw(held.pid()) {
            waitpid(Some(pid), WaitOptions::UNTRACED).map_err(|error| failed(error.into()))?;
        }
        Ok(Some(held))
    }

    pub(super) fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub(super) fn resume(pid: i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            // Fails if it has exited, which `has_ended` detects.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.has_ended = self.has_ended || !matches!(self.child.try_wait(), Ok(None));
        self.has_ended
    }

    /// Kills a command that was never resumed; one that outlives the recording is left running.
    pub(super) fn leave(mut self, has_started: bool, talk: &TalkArgs) {
        if !has_started {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return;
        }
        let note = match self.child.try_wait() {
            Ok(Some(status)) if status.success() => return,
            Ok(Some(status)) => format!("note: the command exited with {status}"),
            _ => format!("note: the command is still running (pid {})", self.pid()),
        };
        if !talk.quiet {
            talk::line(&note);
        }
    }
}

/// The hidden command `held`: stops itself, and executes the command when it is resumed.
pub(super) fn hold(args: &HeldArgs) -> Result<(), Failure> {
    // If the recorder is killed before, nothing would resume it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|pid| pid.as_raw_pid() != args.recorder) {
        return Err(Failure::new("the recorder has exited"));
    }
    if let Some(pid) = Pid::from_raw(std::process::id() as i32) {
        let _ = kill_process(pid, Signal::STOP);
    }
    let _ = set_parent_process_death_signal(None);
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    let name = args.command[0].to_string_lossy();
    Err(Failure::new(format!("cannot run `{}`", shown(&name, false))).caused_by(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_calls_are_warned_of_once() {
        let mut has_warned = false;
        let mut warn = |calls_per_second| {
            let progress = Progress {
                calls_per_second,
                ..Progress::default()
            };
            warn_often(&progress, &mut has_warned)
        };
        assert!(!warn(CALLS_MANY - 1));
        assert!(warn(CALLS_MANY));
        assert!(!warn(2 * CALLS_MANY));
    }
}
