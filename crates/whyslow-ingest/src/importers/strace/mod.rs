//! Logs of strace: `strace -f -ttt -T -y -o LOG`, and what people have instead.
//!
//! A line is a call with its result, a call that others interrupted in the log (`<unfinished ...>`, later
//! `<... read resumed>`), a signal (`--- SIGCHLD …`), or an end (`+++ exited with 0 +++`). Before it stand,
//! as the flags were, whose it is and when. Arguments stand in the order of the call's parameters, so the
//! table of calls tells what each means.
//!
//! Each line becomes lines of the text format ([`super::text`]), which are merged with other sources and
//! tracked like those of any other. Rejected: a reader of its own up to the trackers; it would be a second
//! queue for the same purpose, and logs are small beside traces.
//!
//! What a log does not tell is told once for all of it ([`Lacks`]): without `-T` the end of a call is
//! known only where the log was interrupted, and is left unknown elsewhere; without threads (`-f`) there
//! is one of unknown number.

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

/// Shown for the thread of the first log that names none: greater than the number of any thread.
const UNNAMED_TID: i32 = 4_194_305;
const COMM_BYTES: usize = 15;
const DAY_NS: Ns = 24 * 3600 * 1_000_000_000;

/// What the log could have told with other flags.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lacks {
    /// Calls whose end is unknown.
    pub durations: u64,
    /// Lines without a thread.
    pub threads: u64,
    /// Lines with a time of day only, or with times since the line before.
    pub dates: u64,
    /// Lines without any time: they cannot be used.
    pub times: u64,
}

/// A log in the text format.
#[derive(Debug, Default)]
pub struct Translated {
    /// Its lines, for [`super::text`].
    pub text: String,
    /// What its flags left out.
    pub lacks: Lacks,
    /// The first lines that are not understood.
    pub bad: Vec<Bad>,
    /// Number of all such lines.
    pub bad_count: u64,
    /// Signals, ends, and lines of `-k` that are known and of no use yet.
    pub unused: u64,
}

/// Where a log comes from, for what it does not say itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin {
    /// Of `strace -ff`: the name of the file ends with it.
    pub tid: Option<i32>,
    /// When the log was last written: it ends about then.
    pub written: Option<Ns>,
    /// Logs before it that name no thread.
    pub unnamed: i32,
}

/// Whether these first lines are of such a log.
pub fn is_log(head: &str) -> bool {
    let lines = head.lines().filter(|line| !line.trim().is_empty());
    // The last one may be cut.
    let lines: Vec<&str> = lines.take(8).collect();
    let known = lines.iter().filter(|line| {
        let rest = Head::read(line).rest;
        is_note(rest) || Call::read(rest).is_some_and(|call| call.is_whole())
    });
    let known = known.count();
    known > 0 && known + 1 >= lines.len()
}

/// A signal, an end, what strace says of itself.
fn is_note(rest: &str) -> bool {
    rest.starts_with("--- ") && rest.ends_with(" ---")
        || rest.starts_with("+++ ") && rest.ends_with(" +++")
        || rest.starts_with("strace: Process ")
}

/// The table of `-C` behind the log: `% time     seconds  usecs/call     calls    errors syscall`, rules of
/// hyphens, and rows that begin with a share.
fn is_of_summary(line: &str) -> bool {
    let line = line.trim_start();
    let share = line.split_whitespace().next().unwrap_or_default();
    line.starts_with("% time ")
        || line.starts_with("------ ")
        || share.len() <= 6 && share.contains('.') && share.parse::<f64>().is_ok()
}

/// Translates a whole log. `origin` completes what the log does not say; at most `bad_max` lines
/// are kept in [`Translated::bad`].
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

/// From stamps of any kind to one time that goes on.
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
                // Lines of several threads may stand a little out of order; half a day is midnight.
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
    /// A call that goes on: when it began, and what stood in the line.
    open: Option<(Ns, String)>,
    /// That of the program it runs.
    comm: Option<String>,
    /// Descriptors whose names were told, by number.
    named: FxHashMap<i64, String>,
}

/// Names of descriptors that new processes take over, of all together. Of more they are told anew as soon as
/// a call shows them.
const TAKEN_OVER_MAX: usize = 1 << 20;

struct Translator {
    origin: Origin,
    /// To days since 1970, where the log has times of day.
    shift: Ns,
    clock: Clock,
    threads: FxHashMap<i32, Thread>,
    taken_over: usize,
    done: Translated,
}

impl Translator {
    /// Times without a date end when the file was last written, or on that day.
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
            // The day on which it ended, as the calendar of Greenwich has it.
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
        // A frame of `-k`, and the table at the end.
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
            return Err("no time stands in the line: strace -ttt".to_owned());
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
        let said = begun.map_or(Ok(()), |begun| self.never_ended(tid, begun));
        self.say(ts, tid, format_args!("exit tid={tid}"));
        self.threads.remove(&tid);
        said
    }

    /// A call whose end the log does not have.
    fn never_ended(&mut self, tid: i32, (ts, begun): (Ns, String)) -> Result<(), String> {
        let call = Call::read(&begun).ok_or("what began before it is no call")?;
        self.begin(ts, tid, &call);
        Ok(())
    }

    fn call(&mut self, ts: Ns, tid: i32, rest: &str) -> Result<(), String> {
        let thread = self.threads.entry(tid).or_default();
        if let Some((name, more)) = resumed(rest) {
            let Some((begin, before)) = thread.open.take() else {
                return Err(format!("`{name}` goes on, and nothing tells that it began"));
            };
            let whole = format!("{before}{more}");
            let call = Call::read(&whole).filter(|call| call.is_whole() && call.name == name);
            let call = call.ok_or_else(|| format!("`{name}` does not go on with what began"))?;
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
        let call = Call::read(rest).ok_or("this is no call")?;
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
        self.say(
            ts,
            tid,
            format_args!("syscall_enter name={}{fields}", call.name),
        );
    }

    /// What a descriptor is, told once until it is another.
    fn name_descriptor(&mut self, ts: Ns, tid: i32, fd: i64, path: &str) {
        let owner = self.owner(tid);
        let thread = self.threads.entry(owner).or_default();
        if thread.named.get(&fd).is_some_and(|known| known == path) {
            return;
        }
        thread.named.insert(fd, path.to_owned());
        let path = quoted(path.as_bytes());
        self.say(
            ts,
            tid,
            format_args!("state_fd pid={owner} fd={fd} path={path}"),
        );
    }

    /// The process of a thread; its own number if nothing tells.
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
        self.say(
            at,
            tid,
            format_args!("syscall_exit name={}{fields}", call.name),
        );
        if let (Some(fd), Some(path)) = (ret, fd_path) {
            // The return made it: nobody needs to be told.
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
        let known = self.threads.get(&owner).map(|of| &of.named);
        let known = known.filter(|of| !is_thread && self.taken_over + of.len() <= TAKEN_OVER_MAX);
        let named = known.cloned().unwrap_or_default();
        self.taken_over += named.len();
        let comm = self.threads.get(&tid).and_then(|of| of.comm.clone());
        let told = comm.as_ref().map(|comm| quoted(comm.as_bytes()));
        let told = told.map_or_else(String::new, |comm| format!(" child_comm={comm}"));
        let made = self.threads.entry(child).or_default();
        made.pid = Some(pid);
        made.named = named;
        // Its first lines may stand before the call that made it returns.
        made.comm = made.comm.take().or(comm);
        self.say(
            ts,
            tid,
            format_args!(
                "fork parent={tid} child={child} parent_pid={owner} child_pid={pid}{told}"
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
            self.say(ts, tid, format_args!("exec filename={path}"));
        }
    }

    fn say(&mut self, ts: Ns, tid: i32, what: std::fmt::Arguments<'_>) {
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

    /// Calls that never ended in the log.
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

/// `<... read resumed>"abc", 3) = 3`: the name, and what goes on.
fn resumed(rest: &str) -> Option<(&str, &str)> {
    let rest = rest.strip_prefix("<... ")?;
    let (name, more) = rest.split_once(" resumed>")?;
    // Older ones wrote ` resumed> `.
    Some((name, more))
}

/// What the kernel calls a thread that runs this file.
fn program(path: &[u8]) -> String {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    String::from_utf8_lossy(&name[..name.len().min(COMM_BYTES)]).into_owned()
}

/// A value of the text format, whatever its bytes are.
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
