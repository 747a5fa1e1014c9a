//! `threads dump --every`: takes a series of thread dumps of a running JVM and imports them as a
//! recording.
//!
//! Dumps are requested by `jcmd`, never by a signal: SIGQUIT would terminate a process that is not
//! a JVM, and a JVM would print to its own log. Each dump stops all threads at their next
//! safepoint. The cost is measured: the duration of each dump here, and the time at safepoints by
//! the JVM's own counters.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::private_folder::PrivateFolder;
use whyslow_base::progress::ProgressReporter;
use whyslow_base::{interrupt, talk};
use whyslow_ingest::ImportOptions;
use whyslow_model::Ns;
use whyslow_model::text::shown;
use whyslow_sources::recording;

use super::jvm::is_jvm;
use super::processes::check_processes;
use crate::cli::QueryArgs;

/// A JVM that does not respond within this time is considered stuck.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Polling interval of waits.
const POLL: Duration = Duration::from_millis(10);
/// Limit of the total size of dumps, so that they do not fill the disk.
const BYTES_MAX: u64 = 2 << 30;
const COUNTERS_MAX: u64 = 4 << 20;
const PREFIX: &str = "whyslow-dumps-";
const EVERY_MIN: Ns = 50_000_000;

pub(super) fn run(
    args: &QueryArgs,
    (every, lasting): (Ns, Option<Ns>),
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let &[pid] = args.filter.pid.as_slice() else {
        return Err(Failure::usage(
            "cannot dump threads with --every: it takes exactly one process",
        )
        .hint("name the JVM with -p PID"));
    };
    let Some(output) = &args.output.output else {
        return Err(
            Failure::usage("cannot dump threads with --every: the recording has no name")
                .hint("name it with -o dumps.wsl"),
        );
    };
    if every < EVERY_MIN {
        return Err(Failure::usage(
            "cannot dump threads that often: the JVM would be stopped most of the time",
        )
        .hint("use --every 50ms or longer"));
    }
    if !args.positional.is_empty() {
        return Err(Failure::usage(
            "cannot dump threads of a recording with --every: it is for a running JVM",
        )
        .hint("remove the recording; -o names the new one"));
    }
    if output.exists() {
        let name = shown(&output.display().to_string(), false).into_owned();
        return Err(Failure::usage(format!("cannot write `{name}`: it exists"))
            .hint("choose another name with -o"));
    }
    check_processes(&[pid])?;
    if !is_jvm(pid) {
        return Err(Failure::usage(format!(
            "cannot use process {pid}: it is not a JVM (libjvm.so is not mapped)"
        ))
        .hint(format!(
            "record its stacks: sudo whyslow record --stacks wall:10ms -p {pid} -o NAME.wsl"
        )));
    }
    let cancel = interrupt::flag()?;
    let folder = PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?;
    let dumps = Series {
        pid,
        every: Duration::from_nanos(every.unsigned_abs()),
        end: lasting.map(|ns| Instant::now() + Duration::from_nanos(ns.unsigned_abs())),
        folder: folder.path(),
        cancel: &cancel,
        quiet: talk.quiet,
    }
    .make()?;
    let options = ImportOptions {
        // Ctrl-C ends the series of dumps, but not their import.
        cancel: Arc::new(AtomicBool::new(false)),
        ..ImportOptions::new(output)
    };
    let mut progress = ProgressReporter::new(talk);
    let result = whyslow_ingest::import(&dumps, &options, &mut |at| progress.show(at));
    progress.end();
    let report = result?;
    recording::remember(output);
    if !talk.quiet {
        super::import::summarise(&report, output);
    }
    Ok(())
}

/// A series of dumps.
struct Series<'s> {
    pid: i32,
    every: Duration,
    end: Option<Instant>,
    folder: &'s Path,
    cancel: &'s AtomicBool,
    quiet: bool,
}

impl Series<'_> {
    fn make(&self) -> Result<Vec<PathBuf>, Failure> {
        let before = Safepoints::of(self.pid, self.folder);
        let begin = Instant::now();
        let mut made: Vec<PathBuf> = Vec::new();
        let (mut took, mut longest, mut late) = (Duration::ZERO, Duration::ZERO, 0_u32);
        let mut bytes = 0;
        let mut next = begin;
        loop {
            let start = Instant::now();
            let path = self.folder.join(format!("dump-{}.txt", now_ms()));
            let done = jcmd(self.pid, &["Thread.print", "-l"], &path);
            if let Err(error) = done {
                let _ = std::fs::remove_file(&path);
                if made.is_empty() {
                    return Err(error);
                }
                talk::line(&format!("note: stopped taking dumps: {}", error.message()));
                break;
            }
            took += start.elapsed();
            longest = longest.max(start.elapsed());
            bytes += std::fs::metadata(&path).map_or(0, |file| file.len());
            made.push(path);
            if bytes > BYTES_MAX {
                talk::line("note: stopped taking dumps: they reached 2 GiB");
                break;
            }
            next += self.every;
            while next < Instant::now() {
                next += self.every;
                late += 1;
            }
            if self.rests_until(next) {
                break;
            }
        }
        if !self.quiet {
            Self::print_summary((made.len(), late), (took, longest), begin.elapsed());
            if let (Some(before), Some(after)) = (before, Safepoints::of(self.pid, self.folder)) {
                talk::line(&after.since(&before));
            }
        }
        Ok(made)
    }

    /// Waits until `next`; returns whether the series is over.
    fn rests_until(&self, next: Instant) -> bool {
        let until = self.end.map_or(next, |end| end.min(next));
        while Instant::now() < until && !self.cancel.load(Ordering::Relaxed) {
            std::thread::sleep(POLL.min(until.saturating_duration_since(Instant::now())));
        }
        self.cancel.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn print_summary(
        (made, late): (usize, u32),
        (took, longest): (Duration, Duration),
        all: Duration,
    ) {
        let mean = took.as_secs_f64() * 1e3 / made.max(1) as f64;
        let mut text = format!(
            "{made} dumps in {:.1} s, {mean:.0} ms each, the longest {:.0} ms",
            all.as_secs_f64(),
            longest.as_secs_f64() * 1e3
        );
        if late > 0 {
            let _ = write!(text, "; {late} skipped because others took too long");
        }
        talk::line(&text);
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// Safepoint counters of a JVM since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Safepoints {
    count: i64,
    stopped: i64,
    /// Time until all threads had stopped.
    reaching: i64,
    per_second: i64,
}

impl Safepoints {
    /// `None` if the JVM does not report them.
    fn of(pid: i32, folder: &Path) -> Option<Self> {
        let path = folder.join("counters");
        jcmd(pid, &["PerfCounter.print"], &path).ok()?;
        let mut text = String::new();
        let file = File::open(&path).ok()?;
        file.take(COUNTERS_MAX).read_to_string(&mut text).ok()?;
        let _ = std::fs::remove_file(&path);
        Self::parse(&text)
    }

    fn parse(text: &str) -> Option<Self> {
        let of = |name: &str| -> Option<i64> {
            let mut lines = text.lines();
            let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
            value.trim().parse().ok()
        };
        Some(Self {
            count: of("sun.rt.safepoints")?,
            stopped: of("sun.rt.safepointTime")?,
            reaching: of("sun.rt.safepointSyncTime")?,
            per_second: of("sun.os.hrt.frequency").filter(|ticks| *ticks > 0)?,
        })
    }

    fn since(&self, before: &Self) -> String {
        let ms = |ticks: i64| ticks as f64 * 1e3 / self.per_second as f64;
        format!(
            "the JVM had {} safepoints in that time: {:.1} ms stopped, {:.1} ms to reach them (including \
             those of the dumps)",
            self.count - before.count,
            ms(self.stopped - before.stopped),
            ms(self.reaching - before.reaching)
        )
    }
}

/// Runs jcmd with a timeout, in a process group that Ctrl-C does not reach. The output goes to a
/// file: a pipe would block once it is full.
fn jcmd(pid: i32, words: &[&str], into: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new("cannot run `jcmd`").caused_by(&error);
    let file = File::create(into).map_err(failed)?;
    let mut child = Command::new("jcmd")
        .arg(pid.to_string())
        .args(words)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error).hint("add the bin directory of the JDK to PATH"))?;
    let deadline = Instant::now() + TIMEOUT;
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(Failure::new(format!("cannot run `jcmd {pid}`: {status}"))
                    .hint("run whyslow as the user of the JVM"));
            }
            None if Instant::now() >= deadline => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::new(format!("JVM {pid} does not respond")));
            }
            None => std::thread::sleep(POLL),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_safepoints_are_read() {
        let text = "4711:\nsun.os.hrt.frequency=1000000000\nsun.rt.safepointSyncTime=2000000\n\
                    sun.rt.safepointTime=15000000\nsun.rt.safepoints=12\n";
        let found = Safepoints::parse(text).expect("counters");
        let text = found.since(&Safepoints {
            count: 10,
            stopped: 5_000_000,
            reaching: 500_000,
            per_second: 1_000_000_000,
        });
        assert!(
            text.contains("2 safepoints")
                && text.contains("10.0 ms stopped")
                && text.contains("1.5 ms to reach"),
            "{text}"
        );
        assert_eq!(Safepoints::parse("sun.rt.safepoints=12\n"), None);
    }
}
