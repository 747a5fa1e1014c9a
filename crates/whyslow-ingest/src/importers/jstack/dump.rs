//! Parses the text of a JVM thread dump.
//!
//! ```text
//! 2026-11-24 14:22:33
//! Full thread dump OpenJDK 64-Bit Server VM (17.0.1+12 mixed mode):
//!
//! "handler-3" #18 [4711] prio=5 os_prio=0 cpu=5.06ms elapsed=3.15s tid=0x00007f nid=4711 waiting for monitor entry
//!    java.lang.Thread.State: BLOCKED (on object monitor)
//!     at shop.Ledger.size(Ledger.java:81)
//!     - waiting to lock <0x00000000fd3523b8> (a shop.Ledger)
//!     at java.lang.Thread.run(java.base@17.0.1/Thread.java:840)
//!
//!    Locked ownable synchronizers:
//!     - <0x00000000fc17a608> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
//! ```

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use whyslow_model::Ns;

const HEAD: &str = "Full thread dump";
/// Text after the dump that repeats the deadlocked threads with their stacks.
const TAILS: [&str; 3] = [
    "JNI global ref",
    "Found one Java-level deadlock",
    "Java stack information for",
];
/// Maximum number of threads of a dump, and of frames of a thread.
const THREADS_MAX: usize = 1 << 20;
const FRAMES_MAX: usize = 4096;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Dump {
    /// From the line before it, in the time zone of the machine.
    pub(super) ts: Option<Ns>,
    /// Offset of its first byte.
    pub(super) offset: usize,
    pub(super) threads: Vec<DumpedThread>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DumpedThread {
    pub(super) name: String,
    pub(super) runtime_id: Option<i64>,
    pub(super) tid: Option<i32>,
    /// `BLOCKED`, `RUNNABLE`, …
    pub(super) state: String,
    /// The state refers to a monitor: entering it, or in `Object.wait`.
    pub(super) is_on_monitor: bool,
    /// Innermost first: function and line.
    pub(super) frames: Vec<(String, Option<i32>)>,
    /// Addresses of the held locks.
    pub(super) holds: Vec<u64>,
    pub(super) wants: Option<Wanted>,
    /// The thread is in `Object.wait` on an object that the innermost frame does not name.
    waits_unnamed: bool,
}

/// A lock that a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) address: u64,
    pub(super) class: String,
    /// The thread parks, for a lock of the library or anything else.
    pub(super) parks: bool,
    /// Number of frames above the waiting one.
    pub(super) place: usize,
}

pub(super) fn is_dump(text: &str) -> bool {
    text.lines().any(|line| line.starts_with(HEAD))
}

/// All dumps of a text; text between them is ignored.
pub(super) fn dumps(text: &str) -> Vec<Dump> {
    let mut dumps: Vec<Dump> = Vec::new();
    let (mut offset, mut before) = (0, None);
    let mut is_inside = false;
    for line in text.split_inclusive('\n') {
        let begin = offset;
        offset += line.len();
        let line = line.trim_end();
        if line.starts_with(HEAD) {
            dumps.push(Dump {
                ts: before.take(),
                offset: begin,
                threads: Vec::new(),
            });
            is_inside = true;
        } else if let Some(ts) = stamp(line) {
            before = Some(ts);
            is_inside = false;
        } else if TAILS.iter().any(|tail| line.starts_with(tail)) {
            is_inside = false;
        } else if let (true, Some(dump)) = (is_inside, dumps.last_mut()) {
            dump.line(line);
        }
    }
    dumps
}

impl Dump {
    fn line(&mut self, line: &str) {
        if line.starts_with('"') {
            if self.threads.len() < THREADS_MAX {
                self.threads.extend(DumpedThread::head(line));
            }
            return;
        }
        let Some(thread) = self.threads.last_mut() else {
            return;
        };
        let line = line.trim();
        if let Some(state) = line.strip_prefix("java.lang.Thread.State: ") {
            let (state, about) = state.split_once(' ').unwrap_or((state, ""));
            state.clone_into(&mut thread.state);
            thread.is_on_monitor = about == "(on object monitor)";
        } else if let Some(frame) = line.strip_prefix("at ") {
            if thread.frames.len() < FRAMES_MAX {
                thread.frames.extend(frame_of(frame));
            }
        } else if let Some(note) = line.strip_prefix("- ") {
            thread.note(note);
        }
    }
}

impl DumpedThread {
    /// `"name" #18 [4711] daemon prio=5 … nid=0x1a03 runnable`; a name may contain quotes.
    fn head(line: &str) -> Option<Self> {
        let end = line.rfind("\" ")?;
        let name = line.get(1..end)?.to_owned();
        let mut thread = Self {
            name,
            ..Self::default()
        };
        for word in line[end + 2..].split_ascii_whitespace() {
            if let Some(number) = word.strip_prefix('#') {
                thread.runtime_id = number.parse().ok();
            } else if let Some(number) = word.strip_prefix("nid=") {
                // Hexadecimal until JDK 20.
                thread.tid = match number.strip_prefix("0x") {
                    Some(digits) => i32::from_str_radix(digits, 16).ok(),
                    None => number.parse().ok(),
                };
            }
        }
        Some(thread)
    }

    fn note(&mut self, note: &str) {
        let about = |words: &str| note.strip_prefix(words);
        if let Some((address, class)) = about("locked ").and_then(object) {
            self.locked(address, class);
        } else if let Some((address, _)) = object(note) {
            // An owned synchronizer.
            self.hold(address);
        } else if let Some((address, class)) = about("waiting to lock ").and_then(object) {
            self.want(address, class, false);
        } else if let Some((address, class)) = about("parking to wait for ").and_then(object) {
            self.want(address, class, true);
        } else if let Some(what) = about("waiting to re-lock in wait() ") {
            self.waits(what);
        } else if let Some(what) = about("waiting on ") {
            self.waits(what);
        }
    }

    /// In `Object.wait`. JDK 9 to 13 print for all threads in there that they wait to re-lock; that
    /// is true only after the notification, when their state is BLOCKED.
    fn waits(&mut self, what: &str) {
        match object(what) {
            Some((address, class)) => self.released(address, class),
            None => self.waits_unnamed = true,
        }
    }

    /// A `locked` line of a frame; since JDK 14 also printed for a monitor released for a wait.
    fn locked(&mut self, address: u64, class: &str) {
        // Without a named object, the thread waits on the one that the next frame locked.
        if std::mem::take(&mut self.waits_unnamed) {
            self.released(address, class);
        }
        let wants = self.wants.as_ref().map(|wanted| wanted.address);
        if wants != Some(address) {
            self.hold(address);
        }
    }

    fn hold(&mut self, address: u64) {
        // A recursively locked object is recorded once.
        if self.holds.last() != Some(&address) {
            self.holds.push(address);
        }
    }

    /// `locked` lines of outer frames refer to the time before the wait.
    fn released(&mut self, address: u64, class: &str) {
        self.waits_unnamed = false;
        if self.state == "BLOCKED" {
            return self.want(address, class, false);
        }
        self.wants.get_or_insert(Wanted {
            address,
            class: String::new(),
            parks: true,
            place: usize::MAX,
        });
    }

    fn want(&mut self, address: u64, class: &str, parks: bool) {
        self.wants = Some(Wanted {
            address,
            class: class.to_owned(),
            parks,
            place: self.frames.len().saturating_sub(1),
        });
    }
}

/// `<0x00000000fd3523b8> (a shop.Ledger)`.
fn object(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start().strip_prefix("<0x")?;
    let (digits, rest) = text.split_once('>')?;
    let address = u64::from_str_radix(digits, 16).ok()?;
    let class = rest.trim_start().strip_prefix("(a ").unwrap_or("");
    Some((address, class.trim_end_matches(')')))
}

/// `shop.Ledger.size(java.base@17/Ledger.java:81)`.
fn frame_of(text: &str) -> Option<(String, Option<i32>)> {
    let (function, rest) = text.split_once('(')?;
    // Loader and module may precede it: `app//shop.Ledger`; hidden classes contain a slash:
    // `shop.Ledger$$Lambda$14/0x00007fb8`.
    let function = match function.split_once('/') {
        Some((before, rest)) if !before.contains("$$") => rest.rsplit('/').next().unwrap_or(rest),
        _ => function,
    };
    let line = rest
        .trim_end_matches(')')
        .rsplit_once(':')
        .and_then(|(_, line)| line.parse().ok());
    (!function.is_empty()).then(|| (function.to_owned(), line))
}

/// `2026-11-24 14:22:33` in local time of an unknown zone.
fn stamp(line: &str) -> Option<Ns> {
    const LEN: usize = 19;
    let is_stamp = line.len() == LEN && line.as_bytes()[10] == b' ';
    let civil: DateTime = line.parse().ok().filter(|_| is_stamp)?;
    let at = civil.to_zoned(TimeZone::UTC).ok()?.timestamp();
    at.as_second().checked_mul(1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "2026-11-24 14:22:33\nFull thread dump OpenJDK 64-Bit Server VM (17):\n\n\
        \"a \"quoted\" name\" #18 [4711] daemon prio=5 tid=0x00007f nid=4711 waiting for monitor entry  [0x0]\n\
        \x20  java.lang.Thread.State: BLOCKED (on object monitor)\n\
        \tat shop.Ledger.size(Ledger.java:81)\n\
        \t- waiting to lock <0x00000000fd3523b8> (a shop.Ledger)\n\
        \tat java.lang.Thread.run(java.base@17.0.1/Thread.java:840)\n\n\
        \x20  Locked ownable synchronizers:\n\t- <0x00000000fc17a608> (a java.util.X)\n\n\
        \"waiter\" #19 prio=5 nid=0x10 in Object.wait()  [0x0]\n\
        \x20  java.lang.Thread.State: WAITING (on object monitor)\n\
        \tat java.lang.Object.wait(java.base@17/Native Method)\n\
        \t- waiting on <0x00000000000000aa> (a x.Y)\n\
        \tat x.Y.z(Y.java)\n\t- locked <0x00000000000000aa> (a x.Y)\n\
        \t- locked <0x00000000000000bb> (a x.Z)\n\n\
        \"VM Thread\" os_prio=0 tid=0x00007f nid=0x11 runnable\n\nJNI global refs: 15\n\n\n\
        Found one Java-level deadlock:\n=============================\n\"waiter\":\n\
        \x20 waiting to lock monitor 0x00007f (object 0x00000000000000cc, a x.W),\n\n\
        Java stack information for the threads listed above:\n\
        =================================================\n\"waiter\":\n\
        \tat x.W.v(W.java:3)\n\t- waiting to lock <0x00000000000000cc> (a x.W)\n\
        \t- locked <0x00000000000000dd> (a x.V)\n\nFound 1 deadlock.\n";

    #[test]
    fn a_dump_is_taken_apart() {
        let dumps = dumps(TEXT);
        assert_eq!(dumps.len(), 1);
        assert_eq!(dumps[0].ts, Some(1_795_530_153_000_000_000));
        let [blocked, waiter, vm] = &dumps[0].threads[..] else {
            panic!("{dumps:?}");
        };
        assert_eq!(blocked.name, "a \"quoted\" name");
        assert_eq!((blocked.runtime_id, blocked.tid), (Some(18), Some(4711)));
        assert_eq!(blocked.state, "BLOCKED");
        assert_eq!(blocked.frames[0], ("shop.Ledger.size".to_owned(), Some(81)));
        let wanted = blocked.wants.as_ref().expect("a lock");
        assert_eq!(
            (wanted.address, wanted.class.as_str()),
            (0xfd35_23b8, "shop.Ledger")
        );
        assert_eq!((wanted.parks, wanted.place), (false, 0));
        assert_eq!(blocked.holds, [0xfc17_a608]);
        assert_eq!(
            (waiter.tid, waiter.holds.as_slice()),
            (Some(16), &[0xbb][..])
        );
        assert_eq!((vm.name.as_str(), vm.frames.len()), ("VM Thread", 0));
    }

    #[test]
    fn stamps_are_those_of_the_calendar() {
        assert_eq!(stamp("1970-01-01 00:00:01"), Some(1_000_000_000));
        assert_eq!(stamp("2000-03-01 00:00:00"), Some(951_868_800_000_000_000));
        for text in [
            "",
            "2026-11-24",
            "2026-13-01 00:00:00",
            "2026-11-24 1:00:00",
            "a-b-c d:e:f",
        ] {
            assert_eq!(stamp(text), None, "{text}");
        }
    }
}
