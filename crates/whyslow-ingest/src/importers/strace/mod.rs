//! Logs of strace: `strace -f -ttt -T -y -o LOG`, and logs written with other flags.
//!
//! A line is a call with its result, a call that was interrupted in the log (`<unfinished ...>`,
//! later `<... read resumed>`), a signal (`--- SIGCHLD …`), or an exit (`+++ exited with 0 +++`).
//! Depending on the flags it is prefixed with thread and time. Arguments are in the order of the
//! call's parameters, so the table of system calls defines the meaning of each.
//!
//! Each line becomes lines of the text format ([`super::text`]), which are merged with other
//! sources and tracked in the same way. Rejected: a separate reader up to the trackers; it would be
//! a second queue for the same purpose, and logs are small compared with traces.
//!
//! Information missing from a log is reported once for the whole log ([`Lacks`]): without `-T` the
//! end of a call is known only where it was interrupted, and stays unknown elsewhere; without
//! threads (`-f`) all calls belong to one thread of unknown id.

mod args;
mod call;
mod line;
mod values;

use std::fmt::Write as _;

use rustc_hash::FxHashMap;
use whyslow_model::Ns;

use self::call::{Call, Ended};
use self::line::{Head, Stamp};
use super::Bad;

/// Thread id of the first log without thread ids: greater than any real thread id.
const UNNAMED_TID: i32 = 4_194_305;
const COMM_BYTES: usize = 15;
const DAY_NS: Ns = 24 * 3600 * 1_000_000_000;

/// Information that other flags would have provided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Calls without a known end.
    pub durations: u64,
    /// Lines without a thread.
    pub threads: u64,
    /// Lines with only a time of day, or a time since the previous line.
    pub dates: u64,
    /// Lines without any time, which cannot be used.
    pub times: u64,
}

/// A log in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// Information that was not logged.
    pub lacks: Lacks,
    /// Examples of lines that cannot be parsed, the first ones.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Signals, exits, and lines of `-k`, which are recognised but not used yet.
    pub unused: u64,
}

/// Details of a log that it does not contain itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// From `strace -ff`: the suffix of the file name.
    pub tid: Option<i32>,
    /// Modification time of the log, about the time of its end.
    pub written: Option<Ns>,
    /// Number of earlier logs without thread ids.
    pub unnamed: i32,
}

/// Whether a file starting with `head` is a strace log.
pub fn is_log(head: &str) -> bool {
    let lines = head.lines().filter(|line| !line.trim().is_empty());
    // The last line may be truncated.
    let lines: Vec<&str> = lines.take(8).collect();
    let known = lines.iter().filter(|line| {
        let rest = Head::read(line).rest;
        is_note(rest) || Call::read(rest).is_some_and(|call| call.is_whole())
    });
    let known = known.count();
    known > 0 && known + 1 >= lines.len()
}

/// A signal, an exit, or a message of strace itself.
fn is_note(rest: &str) -> bool {
    rest.starts_with("--- ") && rest.ends_with(" ---")
        || rest.starts_with("+++ ") && rest.ends_with(" +++")
        || rest.starts_with("strace: Process ")
}

/// The table of `-C` after the log: `% time     seconds  usecs/call     calls    errors syscall`,
/// dashed lines, and rows that start with a percentage.
fn is_of_summary(line: &str) -> bool {
    let line = line.trim_start();
    let share = line.split_whitespace().next().unwrap_or_default();
    line.starts_with("% time ")
        || line.starts_with("------ ")
        || share.len() <= 6 && share.contains('.') && share.parse::<f64>().is_ok()
}

/// Translates a whole log. `origin` adds what the log does not contain; at most `bad_max` lines are
/// kept in [`Translated::bad`].
pub fn translate(log: &str, origin: Origin, bad_max: usize) -> Translated {
    let mut translator = Translator {
        origin,
        shift: 0,
        clock: Clock::default(),
        threads: FxHashMap::default(),
        taken_over: 0,
        done: Translated::default(),
    };
    translator.shift = translator.shift_of(log);
    let mut offset = 0;
    for (number, line) in log.split_inclusive('\n').enumerate() {
        if let Err(what) = translator.line(line.trim_end()) {
            translator.done.bad_count += 1;
            if translator.done.bad.len() < bad_max {
                let line = number + 1;
                translator.done.bad.push(Bad { line, offset, what });
            }
        }
        offset += line.len();
    }
    translator.finish()
}

/// Converts timestamps of any form to a continuous time.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    last: Option<Ns>,
    days: Ns,
}

impl Clock {
    fn read(&mut self, stamp: Stamp) -> Ns {
        let at = match stamp {
            Stamp::Epoch(at) => at,
            Stamp::SinceLast(since) => self.last.unwrap_or(0).saturating_add(since),
            Stamp::OfDay(at) => {
                let mut at = at.saturating_add(self.days);
                // Lines of several threads may be slightly out of order; a step of half a day back
                // is midnight.
                if self.last.is_some_and(|last| at < last - DAY_NS / 2) {
                    self.days += DAY_NS;
                    at += DAY_NS;
                }
                at
            }
        };
        self.last = Some(at);
        at
    }
}

#[derive(Debug, Default)]
struct Thread {
    pid: Option<i32>,
    /// An interrupted call: its start time and the text so far.
    open: Option<(Ns, String)>,
    /// Name of the program that it runs.
    comm: Option<String>,
    /// Descriptors with known paths, by number.
    named: FxHashMap<i64, String>,
}

/// Maximum number of descriptor paths that all new processes inherit; beyond it paths are learnt
/// again from the calls.
const TAKEN_OVER_MAX: usize = 1 << 20;

struct Translator {
    origin: Origin,
    /// Offset to days since 1970, for logs with times of day.
    shift: Ns,
    clock: Clock,
    threads: FxHashMap<i32, Thread>,
    taken_over: usize,
    done: Translated,
}

impl Translator {
    /// Times without a date are assumed to end at the modification time of the file, or on that
    /// day.
    fn shift_of(&self, log: &str) -> Ns {
        let mut clock = Clock::default();
        let mut is_dated = false;
        let mut is_of_day = false;
        for line in log.lines() {
            if let Some(stamp) = Head::read(line).stamp {
                is_dated |= matches!(stamp, Stamp::Epoch(_));
                is_of_day |= matches!(stamp, Stamp::OfDay(_));
                clock.read(stamp);
                if is_dated {
                    return 0;
                }
            }
        }
        let (Some(last), Some(written)) = (clock.last, self.origin.written) else {
            return 0;
        };
        if is_of_day {
            // The day on which it ended, in UTC.
            (written - last.rem_euclid(DAY_NS)).div_euclid(DAY_NS) * DAY_NS
                - last.div_euclid(DAY_NS) * DAY_NS
        } else {
            written - last
        }
    }

    fn line(&mut self, line: &str) -> Result<(), String> {
        if line.is_empty() {
            return Ok(());
        }
        let head = Head::read(line);
        // A frame of `-k`, or the table at the end.
        if head.rest.starts_with("> ")
            || head.tid.is_none() && !line.contains('(') && is_of_summary(line)
        {
            self.done.unused += 1;
            return Ok(());
        }
        let is_note = is_note(head.rest);
        let Some(stamp) = head.stamp else {
            if is_note {
                self.done.unused += 1;
                return Ok(());
            }
            self.done.lacks.times += 1;
            return Err("missing timestamp (record with strace -ttt)".to_owned());
        };
        if !matches!(stamp, Stamp::Epoch(_)) {
            self.done.lacks.dates += 1;
        }
        let ts = self.clock.read(stamp).saturating_add(self.shift);
        let tid = head.tid.or(self.origin.tid).unwrap_or_else(|| {
            self.done.lacks.threads += 1;
            UNNAMED_TID.saturating_add(self.origin.unnamed)
        });
        if is_note {
            return self.note(ts, tid, head.rest);
        }
        self.call(ts, tid, head.rest)
    }

    fn note(&mut self, ts: Ns, tid: i32, rest: &str) -> Result<(), String> {
        if !(rest.starts_with("+++ exited") || rest.starts_with("+++ killed")) {
            self.done.unused += 1;
            return Ok(());
        }
        let thread = self.threads.get_mut(&tid);
        let begun = thread.and_then(|thread| thread.open.take());
        let result = begun.map_or(Ok(()), |begun| self.never_ended(tid, begun));
        self.emit(ts, tid, format_args!("exit tid={tid}"));
        self.threads.remove(&tid);
        result
    }

    /// A call whose end is not in the log.
    fn never_ended(&mut self, tid: i32, (ts, begun): (Ns, String)) -> Result<(), String> {
        let call = Call::read(&begun).ok_or("the unfinished call before it is invalid")?;
        self.begin(ts, tid, &call);
        Ok(())
    }

    fn call(&mut self, ts: Ns, tid: i32, rest: &str) -> Result<(), String> {
        let thread = self.threads.entry(tid).or_default();
        if let Some((name, more)) = resumed(rest) {
            let Some((begin, before)) = thread.open.take() else {
                return Err(format!("`{name}` is resumed but was not started"));
            };
            let whole = format!("{before}{more}");
            let call = Call::read(&whole).filter(|call| call.is_whole() && call.name == name);
            let call =
                call.ok_or_else(|| format!("`{name}` is resumed but another call was started"))?;
            self.begin(begin, tid, &call);
            self.end((begin, Some(ts)), tid, &call);
            return Ok(());
        }
        for sign in ["<unfinished ...>", "<detached ...>"] {
            if let Some(begun) = rest.strip_suffix(sign) {
                let before = thread.open.replace((ts, begun.trim_end().to_owned()));
                return before.map_or(Ok(()), |before| self.never_ended(tid, before));
            }
        }
        let call = Call::read(rest).ok_or("not a system call")?;
        if !call.is_whole() {
            return Err(format!("`{}` has no result", call.name));
        }
        self.begin(ts, tid, &call);
        self.end((ts, None), tid, &call);
        Ok(())
    }

    fn begin(&mut self, ts: Ns, tid: i32, call: &Call<'_>) {
        for (fd, path) in call.named() {
            self.name_descriptor(ts, tid, fd, path);
        }
        let fields = call.entry_fields();
        self.emit(
            ts,
            tid,
            format_args!("syscall_enter name={}{fields}", call.name),
        );
    }

    /// Reports the path of a descriptor once until it changes.
    fn name_descriptor(&mut self, ts: Ns, tid: i32, fd: i64, path: &str) {
        let owner = self.owner(tid);
        let thread = self.threads.entry(owner).or_default();
        if thread
            .named
            .get(&fd)
            .is_some_and(|previous| previous == path)
        {
            return;
        }
        thread.named.insert(fd, path.to_owned());
        let path = quoted(path.as_bytes());
        self.emit(
            ts,
            tid,
            format_args!("state_fd pid={owner} fd={fd} path={path}"),
        );
    }

    /// The process of a thread; its own id if unknown.
    fn owner(&self, tid: i32) -> i32 {
        let thread = self.threads.get(&tid);
        thread.and_then(|thread| thread.pid).unwrap_or(tid)
    }

    fn end(&mut self, (begin, seen): (Ns, Option<Ns>), tid: i32, call: &Call<'_>) {
        let Some(Ended {
            ret, dur, fd_path, ..
        }) = &call.ended
        else {
            return;
        };
        let (ret, dur) = (*ret, *dur);
        let end = dur.map(|dur| begin.saturating_add(dur)).or(seen);
        if let (Some(child), true) = (ret, call.makes_task()) {
            self.fork(begin, tid, child, call.makes_thread());
        }
        if call.name.starts_with("execve") && ret == Some(0) {
            self.exec(end.unwrap_or(begin), tid, call);
        }
        if call.never_returns() {
            return;
        }
        let mut fields = call.exit_fields();
        if let Some(ret) = ret {
            let _ = write!(fields, " ret={ret}");
        }
        if end.is_none() {
            self.done.lacks.durations += 1;
            fields.push_str(" untimed=1");
        }
        let at = end.unwrap_or(begin);
        self.emit(
            at,
            tid,
            format_args!("syscall_exit name={}{fields}", call.name),
        );
        if let (Some(fd), Some(path)) = (ret, fd_path) {
            // Opened by this return: no separate event is needed.
            let owner = self.owner(tid);
            let thread = self.threads.entry(owner).or_default();
            thread.named.insert(fd, (*path).to_owned());
        }
        if call.name == "close" && ret == Some(0) {
            let owner = self.owner(tid);
            if let (Some(fd), Some(thread)) = (call.first_number(), self.threads.get_mut(&owner)) {
                thread.named.remove(&fd);
            }
        }
    }

    fn fork(&mut self, ts: Ns, tid: i32, child: i64, is_thread: bool) {
        let Some(child) = i32::try_from(child).ok().filter(|child| *child > 0) else {
            return;
        };
        let owner = self.owner(tid);
        let pid = if is_thread { owner } else { child };
        let inherited = self.threads.get(&owner).map(|of| &of.named);
        let inherited =
            inherited.filter(|of| !is_thread && self.taken_over + of.len() <= TAKEN_OVER_MAX);
        let named = inherited.cloned().unwrap_or_default();
        self.taken_over += named.len();
        let comm = self.threads.get(&tid).and_then(|of| of.comm.clone());
        let comm_field = comm.as_ref().map(|comm| quoted(comm.as_bytes()));
        let comm_field = comm_field.map_or_else(String::new, |comm| format!(" child_comm={comm}"));
        let created = self.threads.entry(child).or_default();
        created.pid = Some(pid);
        created.named = named;
        // Lines of the child may precede the return of the call that created it.
        created.comm = created.comm.take().or(comm);
        self.emit(
            ts,
            tid,
            format_args!(
                "fork parent={tid} child={child} parent_pid={owner} child_pid={pid}{comm_field}"
            ),
        );
    }

    fn exec(&mut self, ts: Ns, tid: i32, call: &Call<'_>) {
        let path = call.first_path();
        let thread = self.threads.entry(tid).or_default();
        thread.pid.get_or_insert(tid);
        thread.comm = path.as_deref().map(program);
        if let Some(path) = path {
            let path = quoted(&path);
            self.emit(ts, tid, format_args!("exec filename={path}"));
        }
    }

    fn emit(&mut self, ts: Ns, tid: i32, what: std::fmt::Arguments<'_>) {
        let pid = self.threads.get(&tid).and_then(|thread| thread.pid);
        let text = &mut self.done.text;
        let (sign, size) = if ts < 0 {
            ("-", ts.unsigned_abs())
        } else {
            ("", ts as u64)
        };
        let (seconds, rest) = (size / 1_000_000_000, size % 1_000_000_000);
        let _ = write!(text, "{sign}{seconds}.{rest:09} [-] (tid={tid}");
        if let Some(pid) = pid {
            let _ = write!(text, " pid={pid}");
        }
        let _ = writeln!(text, ") {what}");
    }

    /// Adds the calls that did not end in the log.
    fn finish(mut self) -> Translated {
        let mut open: Vec<(i32, (Ns, String))> = self
            .threads
            .iter_mut()
            .filter_map(|(tid, thread)| Some((*tid, thread.open.take()?)))
            .collect();
        open.sort_unstable_by_key(|(tid, (ts, _))| (*ts, *tid));
        for (tid, begun) in open {
            if self.never_ended(tid, begun).is_err() {
                self.done.bad_count += 1;
            }
        }
        self.done
    }
}

/// `<... read resumed>"abc", 3) = 3`: the name, and the remaining text.
fn resumed(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix("<... ")?;
    let (name, more) = rest.split_once(" resumed>")?;
    // Older versions print ` resumed> `.
    Some((name, more))
}

/// The thread name after executing this file.
fn program(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(&name[..name.len().min(COMM_BYTES)]).into_owned()
}

/// A value of the text format with arbitrary bytes.
fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => {
                let _ = write!(out, "\\x{byte:02x}");
            }
            byte => out.push(char::from(*byte)),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
