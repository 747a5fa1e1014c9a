//! `threads dump --every`: dumps of the threads of a running JVM, one after another, which become a
//! recording in the end.
//!
//! The JVM is asked by `jcmd`, never by a signal: SIGQUIT would end what is no JVM, and prints into
//! somebody's log. Each dump stops all threads at their next safepoint. What that costs is measured: how
//! long each dump took here, and how long the JVM's threads stood still meanwhile, by its own counters.

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
use whyslow_base::progress::Teller;
use whyslow_base::{interrupt, talk};
use whyslow_ingest::ImportOptions;
use whyslow_model::Ns;
use whyslow_model::text::shown;
use whyslow_sources::recording;

use super::jvm::is_jvm;
use super::processes::check_processes;
use crate::cli::AskArgs;

/// A JVM that answers later is stuck.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a wait looks whether it is over.
const LOOK: Duration = Duration::from_millis(10);
/// More dumps than this fill a disk.
const BYTES_MAX: u64 = 2 << 30;
const COUNTERS_MAX: u64 = 4 << 20;
const PREFIX: &str = "whyslow-dumps-";
const EVERY_MIN: Ns = 50_000_000;

pub(super) fn run(
    args: &AskArgs,
    (every, lasting): (Ns, Option<Ns>),
    talk: &TalkArgs,
) -> Result<(), Failure> {
    let &[pid] = args.filter.pid.as_slice() else {
        return Err(Failure::usage("dumps are made of one process").hint("-p PID names it"));
    };
    let Some(output) = &args.output.output else {
        return Err(Failure::usage("the recording has no name").hint("-o dumps.wsl"));
    };
    if every < EVERY_MIN {
        return Err(
            Failure::usage("dumps that often stop the program more than it runs")
                .hint("--every 50ms and longer"),
        );
    }
    if !args.positional.is_empty() {
        return Err(Failure::usage("a running JVM is dumped, not a recording")
            .hint("leave its name out; -o names the one to be made"));
    }
    if output.exists() {
        let name = shown(&output.display().to_string(), false).into_owned();
        return Err(Failure::usage(format!("`{name}` exists already")).hint("name another one: -o"));
    }
    check_processes(&[pid])?;
    if !is_jvm(pid) {
        return Err(Failure::usage(format!("process {pid} is no JVM"))
            .hint("of other programs: sudo whyslow record --stacks -p PID -o NAME.wsl"));
    }
    let cancel = interrupt::flag()?;
    let room = PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?;
    let made = Series {
        pid,
        every: Duration::from_nanos(every.unsigned_abs()),
        end: lasting.map(|ns| Instant::now() + Duration::from_nanos(ns.unsigned_abs())),
        folder: room.path(),
        cancel: &cancel,
        quiet: talk.quiet,
    }
    .make()?;
    let options = ImportOptions {
        // Ctrl-C ended the dumps, not what becomes of them.
        cancel: Arc::new(AtomicBool::new(false)),
        ..ImportOptions::new(output)
    };
    let mut teller = Teller::new(talk);
    let result = whyslow_ingest::import(&made, &options, &mut |at| teller.tell(at));
    teller.end();
    let report = result?;
    recording::remember(output);
    if !talk.quiet {
        super::import::summarise(&report, output);
    }
    Ok(())
}

/// Dumps to be made.
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
                talk::line(&format!("note: dumps end here: {}", error.message()));
                break;
            }
            took += start.elapsed();
            longest = longest.max(start.elapsed());
            bytes += std::fs::metadata(&path).map_or(0, |file| file.len());
            made.push(path);
            if bytes > BYTES_MAX {
                talk::line("note: dumps end here: they take 2 GiB");
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
            Self::tell((made.len(), late), (took, longest), begin.elapsed());
            if let (Some(before), Some(after)) = (before, Safepoints::of(self.pid, self.folder)) {
                talk::line(&after.since(&before));
            }
        }
        Ok(made)
    }

    /// Whether it is over.
    fn rests_until(&self, next: Instant) -> bool {
        let until = self.end.map_or(next, |end| end.min(next));
        while Instant::now() < until && !self.cancel.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK.min(until.saturating_duration_since(Instant::now())));
        }
        self.cancel.load(Ordering::Relaxed) || self.end.is_some_and(|end| Instant::now() >= end)
    }

    fn tell((made, late): (usize, u32), (took, longest): (Duration, Duration), all: Duration) {
        let mean = took.as_secs_f64() * 1e3 / made.max(1) as f64;
        let mut told = format!(
            "{made} dumps in {:.1} s, each took {mean:.0} ms, the longest {:.0} ms",
            all.as_secs_f64(),
            longest.as_secs_f64() * 1e3
        );
        if late > 0 {
            let _ = write!(told, "; {late} were left out because others took so long");
        }
        talk::line(&told);
    }
}

fn now_ms() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

/// What a JVM tells of its safepoints, since it began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Safepoints {
    count: i64,
    stopped: i64,
    /// Until all threads stood still.
    reaching: i64,
    per_second: i64,
}

impl Safepoints {
    /// Nothing where it does not tell.
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
            "the JVM's threads stood still {} times meanwhile, for {:.1} ms in all, after {:.1} ms until each had \
             stopped (its own safepoints too)",
            self.count - before.count,
            ms(self.stopped - before.stopped),
            ms(self.reaching - before.reaching)
        )
    }
}

/// Runs it for a while, into a file: what is more than a pipe holds would wait for a reader. Ctrl-C is not
/// for it.
fn jcmd(pid: i32, words: &[&str], into: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::new("failed to run `jcmd`").caused_by(&error);
    let file = File::create(into).map_err(failed)?;
    let mut child = Command::new("jcmd")
        .arg(pid.to_string())
        .args(words)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(error).hint("it comes with the JDK: is that in PATH?"))?;
    let give_up = Instant::now() + PATIENCE;
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => {
                return Err(Failure::new(format!("`jcmd {pid}` failed: {status}"))
                    .hint("it must run as the user of the JVM"));
            }
            None if Instant::now() >= give_up => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::new(format!("the JVM {pid} does not answer")));
            }
            None => std::thread::sleep(LOOK),
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
        let told = found.since(&Safepoints {
            count: 10,
            stopped: 5_000_000,
            reaching: 500_000,
            per_second: 1_000_000_000,
        });
        assert!(
            told.contains("2 times")
                && told.contains("10.0 ms in all")
                && told.contains("1.5 ms until"),
            "{told}"
        );
        assert_eq!(Safepoints::parse("sun.rt.safepoints=12\n"), None);
    }
}
