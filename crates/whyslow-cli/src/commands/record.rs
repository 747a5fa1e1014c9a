//! `record`: the machine becomes a recording.

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
use whyslow_base::progress::Teller;
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

/// Calls that a light recording holds.
const LIGHT_MIN: Duration = Duration::from_millis(1);

pub(super) fn run(args: &RecordArgs, talk: &TalkArgs) -> Result<(), Failure> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => PathBuf::from(name_of_now()),
    };
    if output.exists() && !args.force {
        return Err(Failure::usage(format!("`{}` exists", output.display()))
            .hint("name another one with -o, or replace it with --force"));
    }
    let spool = spool_of(&output);
    if spool.exists() {
        return Err(Failure::usage(format!(
            "`{}` is left from an earlier recording",
            spool.display()
        ))
        .hint(format!(
            "whyslow import {} turns it into a recording; delete it then",
            spool.display()
        )));
    }
    check_processes(&args.pid)?;
    let memory = memory(args)?;
    let (names, groups) = chosen(args)?;
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
    tell_cost(&summary, &output, talk);
    if args.no_import {
        talk::line(&format!(
            "whyslow import {} -o {} makes a recording of it",
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
            // It was made by us, or is gone.
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

/// Profilers in the JVMs that are recorded.
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

/// Their profiles, beside the spool.
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

/// What recording may take of memory, and what of it is for what.
pub(super) fn memory(args: &RecordArgs) -> Result<Memory, Failure> {
    let bytes = |size: Option<i64>| size.map(|size| size.max(0) as u64);
    let wish = MemoryWish {
        max: bytes(args.max_memory),
        buffer: bytes(args.buffer),
        kept: bytes(args.flight.ring_memory),
        is_flight: args.flight.ring.is_some(),
    };
    Memory::share(&wish).map_err(|TooLittleMemory { least }| {
        let least = least.div_ceil(1 << 20);
        Failure::usage("that is too little memory to record with").hint(format!(
            "it takes --max-memory {least}MiB at least, or less --buffer or --ring-memory"
        ))
    })
}

/// How much memory it took.
pub(super) fn tell_memory(progress: &Progress) {
    let mib = |bytes: u64| bytes as f64 / 1024.0 / 1024.0;
    talk::line(&format!(
        "it took at most {:.1} MiB of memory; {:.1} MiB are allowed (--max-memory)",
        mib(progress.memory),
        mib(progress.memory_max),
    ));
    if progress.memory_short > 0 {
        talk::line(&format!(
            "note: {} times that was too much: tables of names were given up, and of what was kept",
            progress.memory_short
        ));
    }
}

/// Processes by name and control group.
pub(super) fn chosen(args: &RecordArgs) -> Result<(Vec<Names>, Vec<ControlGroup>), Failure> {
    let name = |name: &String| {
        Names::parse(name).ok_or_else(|| {
            Failure::usage(format!("`{name}` is no name of threads"))
                .hint("they have 15 bytes at most; NAME* stands for all that begin so")
        })
    };
    if args.comm.len() > NAMES_MAX {
        return Err(Failure::usage(format!(
            "--comm takes {NAMES_MAX} names at most"
        )));
    }
    let group = |path: &PathBuf| {
        ControlGroup::find(path).ok_or_else(|| {
            Failure::usage(format!("there is no control group `{}`", path.display()))
                .hint("`cat /proc/PID/cgroup` tells those of a process, `systemd-cgls` all")
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
        // Whoever asks for little gets little.
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
    let begun = Instant::now();
    let length = args.length.map(|ns| Duration::from_nanos(ns.max(0) as u64));
    let held = child.as_ref().map(Held::pid);
    let ready = |ready: &whyslow_record::Ready<'_>| {
        tell_off(ready);
        started.set(true);
        if let Some(pid) = held {
            Held::let_go(pid);
        } else if !talk.quiet {
            talk::line(match length {
                Some(_) => "recording; Ctrl-C ends it early",
                None => "recording; Ctrl-C ends it",
            });
        }
    };
    let mut has_warned = false;
    let each = |progress: &Progress| {
        warn_often(progress, &mut has_warned);
        let is_over = length.is_some_and(|length| begun.elapsed() >= length);
        let is_done = child.as_mut().is_some_and(Held::has_ended);
        if is_over || is_done || stop.load(Ordering::Relaxed) {
            Step::End
        } else {
            Step::GoOn
        }
    };
    whyslow_record::record(options, ready, each).map_err(Failure::from)
}

/// So many calls of functions a second take a good part of a CPU.
const CALLS_MANY: u64 = 10_000;

/// Once, where what is watched happens so often that it costs more than people think. Tells whether it
/// did.
pub(super) fn warn_often(progress: &Progress, has_warned: &mut bool) -> bool {
    let calls = progress.calls_per_second;
    if calls < CALLS_MANY || std::mem::replace(has_warned, true) {
        return false;
    }
    talk::line(&format!(
        "note: what --function and --usdt watch is called {calls} times a second; each call takes some microseconds longer while it is watched"
    ));
    true
}

/// What is not recorded here.
pub(super) fn tell_off(ready: &whyslow_record::Ready<'_>) {
    for off in ready.off {
        talk::line(&format!(
            "note: not recorded: {} ({}: {})",
            off.tells, off.program, off.reason
        ));
    }
}

fn tell_cost(summary: &Summary, output: &Path, talk: &TalkArgs) {
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
        "{}: {records} records in {seconds:.1} s; the recorder took {:.1} % of a CPU and wrote {:.1} MiB ({:.1} MiB/s)",
        shown(&output.display().to_string(), false),
        own_cpu.as_secs_f64() * 100.0 / seconds,
        spool_bytes as f64 / 1024.0 / 1024.0,
        spool_bytes as f64 / 1024.0 / 1024.0 / seconds,
    ));
    tell_memory(&summary.progress);
    if lost > 0 {
        talk::line(&format!(
            "note: {lost} records were lost because the buffer was full: --buffer makes it larger"
        ));
    }
    let missed = summary.progress.missed;
    if missed > 0 {
        talk::line(&format!(
            "note: the kernel left out {missed} runs of the recorder's programs: they would have interrupted themselves"
        ));
    }
    if let Some(unwritten) = summary.unwritten {
        talk::line(&format!(
            "note: ended because the spool has the size it may have (--max-size): {} records of the last {:.1} s were not written",
            unwritten.records,
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
    let mut teller = Teller::new(talk);
    let (with, missing) = written_beside(args);
    for path in missing {
        talk::line(&format!(
            "note: `{}` was not written, and is no part of the recording (--with)",
            shown(&path.display().to_string(), false)
        ));
    }
    let sources: Vec<PathBuf> = std::iter::once(spool.to_owned())
        .chain(with)
        .chain(profiles.iter().cloned())
        .collect();
    let result = whyslow_ingest::import(&sources, &options, &mut |at| teller.tell(at));
    teller.end();
    let report = result.map_err(|error| {
        Failure::from(error).hint(format!(
            "the spool is kept: whyslow import {} -o {}",
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
            "note: failed to delete the spool `{}`: {error}",
            spool.display()
        ));
    }
    Ok(())
}

/// What others wrote meanwhile, and what they did not write.
fn written_beside(args: &RecordArgs) -> (Vec<PathBuf>, Vec<PathBuf>) {
    args.with.iter().cloned().partition(|path| path.exists())
}

/// A command that waits until it may run.
pub(super) struct Held {
    child: Child,
    has_ended: bool,
}

impl Held {
    /// Nothing if there is no command.
    pub(super) fn start(command: &[OsString]) -> Result<Option<Self>, Failure> {
        if command.is_empty() {
            return Ok(None);
        }
        let failed = |error: std::io::Error| {
            let name = command[0].to_string_lossy();
            Failure::new(format!("failed to start `{}`", shown(&name, false))).caused_by(&error)
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

    pub(super) fn let_go(pid: i32) {
        if let Some(pid) = Pid::from_raw(pid) {
            // Fails if it has ended, which is noticed elsewhere.
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    pub(super) fn has_ended(&mut self) -> bool {
        self.has_ended = self.has_ended || !matches!(self.child.try_wait(), Ok(None));
        self.has_ended
    }

    /// What never began never does; what goes on longer than the recording is left alone.
    pub(super) fn leave(mut self, has_started: bool, talk: &TalkArgs) {
        if !has_started {
            let _ = self.child.kill();
            let _ = self.child.wait();
            return;
        }
        let note = match self.child.try_wait() {
            Ok(Some(status)) if status.success() => return,
            Ok(Some(status)) => format!("note: the command ended with {status}"),
            _ => format!("note: the command goes on as process {}", self.pid()),
        };
        if !talk.quiet {
            talk::line(&note);
        }
    }
}

/// What the hidden command `held` does: stops, and becomes the command when it is let go.
pub(super) fn hold(args: &HeldArgs) -> Result<(), Failure> {
    // Nobody lets it go if the recorder is killed before that.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    if getppid().is_none_or(|pid| pid.as_raw_pid() != args.recorder) {
        return Err(Failure::new("the recorder is gone"));
    }
    if let Some(pid) = Pid::from_raw(std::process::id() as i32) {
        let _ = kill_process(pid, Signal::STOP);
    }
    let _ = set_parent_process_death_signal(None);
    let error = Command::new(&args.command[0])
        .args(&args.command[1..])
        .exec();
    let name = args.command[0].to_string_lossy();
    Err(Failure::new(format!("failed to run `{}`", shown(&name, false))).caused_by(&error))
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
