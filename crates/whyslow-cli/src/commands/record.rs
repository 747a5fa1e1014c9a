//! `record`: records this machine and imports the spool.

mod child;
mod counters;
mod spool;
mod summary;

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt::Stop;
use whyslow_base::talk;
use whyslow_record::{
    ControlGroup, Form, Memory, MemoryWish, NAMES_MAX, Names, Options, Progress, Step, Summary,
    TooLittleMemory, Topic,
};

use super::jvm::Profiler;
use super::processes::check_processes;
use crate::cli::{FormArg, RecordArgs, Stacks, topics};
pub(super) use child::{Held, exit_code, hold};
pub(super) use counters::Counters;
pub(super) use summary::{print_lost, print_memory_short, quoted};

/// Shortest system call of `--light`.
const LIGHT_MIN: Duration = Duration::from_millis(1);

pub(super) fn run(args: &RecordArgs, talk: &TalkArgs) -> Result<ExitCode, Failure> {
    let output = match &args.output {
        Some(output) => output.clone(),
        None => PathBuf::from(name_of_now()),
    };
    if output.exists() && !args.force {
        return Err(
            Failure::usage(format!("cannot write `{}`: it exists", output.display()))
                .hint("replace it with --force, or choose another name with -o"),
        );
    }
    let spool = spool_of(&output);
    if spool.exists() {
        return Err(Failure::usage(format!(
            "cannot record: the spool `{}` of an earlier recording exists",
            spool.display()
        ))
        .hint(format!(
            "import it, then delete it: whyslow import {}",
            quoted(&spool)
        )));
    }
    check_processes(&args.pid)?;
    let memory = memory(args)?;
    let (names, groups) = selected(args)?;
    let mut options = options(args, &spool)?;
    (options.memory_bytes_max, options.buffer_bytes) = (memory.max, memory.buffer);
    options.only_pids |= !names.is_empty() || !groups.is_empty();
    (options.names, options.groups) = (names, groups);
    let stop = Stop::new()?;
    let mut child = Held::start(&args.command)?;
    restrict(&mut options, args, child.as_ref());
    let started = Cell::new(None);
    let profilers = profilers(args)?;
    let summary = record(args, talk, &options, (&mut child, &stop, &started));
    let profiles = finished(profilers, &spool);
    let status = match child.map(|child| child.end(started.get().is_some(), talk)) {
        Some(Err(failure)) => {
            // Nothing ran.
            discard(&spool, &profiles);
            return Err(failure);
        }
        Some(Ok(status)) => status,
        None => None,
    };
    let summary = summary?;
    if !talk.quiet {
        summary::print(&summary);
    }
    if args.no_import {
        if !talk.quiet {
            summary::print_spool(&spool, &output);
        }
        return Ok(child::exit_code(status));
    }
    let cancel = stop.next_step();
    spool::import((&spool, &output), &profiles, args, cancel, talk)?;
    #[cfg(feature = "fleet")]
    super::fleet::push_recorded(&output, &args.push, talk)?;
    if !args.keep_spool {
        for path in &profiles {
            // Created by this program; it may already be deleted.
            let _ = fs::remove_file(path);
        }
    }
    if !talk.quiet {
        summary::print_next(&output);
    }
    Ok(child::exit_code(status))
}

/// Removes a recording without content.
fn discard(spool: &Path, profiles: &[PathBuf]) {
    let _ = fs::remove_dir_all(spool);
    for path in profiles {
        let _ = fs::remove_file(path);
    }
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
        Failure::usage("cannot record: the memory limit is too low").hint(format!(
            "set --max-memory to at least {min}MiB, or reduce --buffer or --ring-memory"
        ))
    })
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
            Failure::usage(format!(
                "cannot record cgroup `{}`: no such cgroup",
                path.display()
            ))
            .hint("list all cgroups with systemd-cgls, or that of a process: cat /proc/PID/cgroup")
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

pub(super) fn name_of_now() -> String {
    let now = jiff::Zoned::now();
    format!("{}.wsl", now.strftime("%Y%m%d-%H%M%S"))
}

/// Everything but the processes to record.
pub(super) fn options(args: &RecordArgs, spool: &Path) -> Result<Options, Failure> {
    let mut options = Options::new(spool);
    if args.light {
        options.topics = [Topic::Syscalls, Topic::Block].into();
        options.call_min = LIGHT_MIN;
        options.stack_min = None;
    } else if args.full {
        options.topics = Topic::ALL.iter().copied().collect();
    } else if !args.what.is_empty() {
        options.topics = topics(&args.what)?;
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
    Ok(options)
}

/// Restricts system calls to processes by id, and to the command.
pub(super) fn restrict(options: &mut Options, args: &RecordArgs, command: Option<&Held>) {
    options.pids.clone_from(&args.pid);
    if !args.all {
        options.pids.extend(command.map(Held::pid));
    }
    options.only_pids |= !options.pids.is_empty();
}

fn record(
    args: &RecordArgs,
    talk: &TalkArgs,
    options: &Options,
    (child, stop, started): (&mut Option<Held>, &Stop, &Cell<Option<Instant>>),
) -> Result<Summary, Failure> {
    let length = args.length.map(|ns| Duration::from_nanos(ns.max(0) as u64));
    let held = child.as_ref().map(Held::pid);
    let ready = |ready: &whyslow_record::Ready<'_>| {
        print_unavailable(ready);
        if !talk.quiet {
            talk::line(started_text(held.is_some(), length));
        }
        started.set(Some(Instant::now()));
        if let Some(pid) = held {
            Held::resume(pid);
        }
    };
    let mut has_warned = false;
    let mut counters = Counters::new(talk, held.is_some(), "spool");
    let each = |progress: &Progress| {
        warn_often(progress, &mut has_warned);
        counters.show(progress);
        let since = started.get().map(|started| started.elapsed());
        let is_over = length.is_some_and(|length| since.is_some_and(|since| since >= length));
        let is_done = child.as_mut().is_some_and(Held::has_ended);
        if is_over || is_done || stop.is_requested() {
            Step::End
        } else {
            Step::GoOn
        }
    };
    let summary = whyslow_record::record(options, ready, each).map_err(Failure::from);
    counters.end();
    summary
}

/// Printed when everything is recorded from now on.
pub(super) fn started_text(has_command: bool, length: Option<Duration>) -> &'static str {
    match (has_command, length) {
        (true, _) => "recording started",
        (false, Some(_)) => "recording started; press Ctrl-C to stop early",
        (false, None) => "recording started; press Ctrl-C to stop",
    }
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
