//! Calls that programs wait in, and how long consecutive samples of threads are below each.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::row::Row;
use whyslow_model::tables::{CallsiteRow, FrameRow, StackSampleRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use super::load::actor;
use crate::report::Actor;
use crate::window_slice::columns::{Result, rows};

/// Samples of one call are at most this many times their own duration apart …
const APART_MAX: i64 = 2;
/// … or this, if their duration is very short.
const APART: Ns = 50_000_000;
/// Maximum number of frames of a stack that are examined.
const DEPTH_MAX: usize = 512;

/// What a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Waits {
    /// A DNS lookup.
    Lookup,
    /// A connection.
    Connect,
    /// A lock, a condition or work in a queue; which of these is not known.
    LockOrQueue,
    /// Data from a peer: a reply, or the next request.
    Receive,
}

/// The functions, the most specific first: a lookup receives, too.
const CALLS: &[(Waits, &[&str])] = &[
    (
        Waits::Lookup,
        &[
            "getaddrinfo",
            "gethostbyname",
            "gethostbyname_r",
            "gethostbyname2",
            "gethostbyname2_r",
            "gethostbyname_ex",
            "gethostbyaddr",
            "getnameinfo",
            // Of Ruby, the JVM and Go.
            "getaddress",
            "getaddresses",
            "lookupAllHostAddr",
            "lookupIPAddr",
        ],
    ),
    (
        Waits::Connect,
        &[
            "connect",
            "connect_nonblock",
            "connect_internal",
            "create_connection",
        ],
    ),
    (
        Waits::LockOrQueue,
        &[
            "acquire",
            "synchronize",
            "lock",
            "pthread_mutex_lock",
            "wait",
            "pop",
            "join",
        ],
    ),
    (
        Waits::Receive,
        &[
            "recv",
            "recv_into",
            "recvfrom",
            "recvmsg",
            "readpartial",
            "sysread",
            "readinto",
            "accept",
        ],
    ),
];

impl Waits {
    /// By the name of a function: `Addrinfo.getaddrinfo`, `net.(*Resolver).lookupIPAddr`,
    /// `__getaddrinfo`.
    pub(super) fn of(function: &str) -> Option<Self> {
        // Methods of C++ and Rust classes belong to the program.
        if function.contains("::") {
            return None;
        }
        let name = plain(function);
        let of = CALLS.iter().find(|(_, names)| names.contains(&name));
        of.map(|(waits, _)| *waits)
    }
}

/// The name of a function without its class, its module and the C library's prefixes and suffixes.
pub(super) fn plain(function: &str) -> &str {
    let name = function.split('@').next().unwrap_or(function);
    let name = name.rsplit(['.', '#', ':']).next().unwrap_or(name);
    let name = name.trim_start_matches('_');
    name.strip_prefix("GI_")
        .unwrap_or(name)
        .trim_start_matches('_')
}

/// Frames of a stack, the outermost first.
#[derive(Debug, Clone, Default)]
pub(super) struct Stack {
    pub(super) names: Vec<String>,
    /// Whether a frame is native code, or belongs to a language's own library.
    pub(super) is_foreign: Vec<bool>,
    /// The call that it waits in: its index, and what it waits for.
    pub(super) call: Option<(usize, Waits)>,
    /// The frame of the caller with its line, which stays the same during a call.
    caller: i64,
}

/// The fields of a sample that are needed here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) utid: i32,
    pub(super) callsite: i64,
}

/// What a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Waits(Waits),
    /// No call that is known to wait: usually a C function that the profiler cannot name.
    Unnamed,
}

/// A time in which all samples of a thread are below one call.
#[derive(Debug, Clone)]
pub(super) struct Stretch {
    pub(super) utid: i32,
    pub(super) begin: Ns,
    pub(super) end: Ns,
    pub(super) call_kind: CallKind,
    /// Index of the call in its stack.
    pub(super) place: usize,
    pub(super) callsite: i64,
    pub(super) samples: u64,
    /// Time in it without any samples.
    pub(super) silent: Ns,
}

impl Stretch {
    pub(super) fn dur(&self) -> Ns {
        self.end - self.begin
    }
}

#[derive(Debug, Default)]
pub(super) struct Sampled {
    /// By thread and time.
    pub(super) samples: Vec<Sample>,
    pub(super) stacks: FxHashMap<i64, Stack>,
    pub(super) threads: FxHashMap<i32, Actor>,
    /// All samples are of threads in code of a language's runtime.
    pub(super) is_of_runtime: bool,
}

impl Sampled {
    pub(super) fn read(tables: &dyn Tables, window: Option<Window>) -> Result<Self> {
        let mut sampled = Self {
            is_of_runtime: true,
            ..Self::default()
        };
        let mut wanted: FxHashSet<i64> = FxHashSet::default();
        let ints = ["ts", "ts_end", "utid", "tid", "pid", "callsite_id"];
        let columns = (&ints[..], &["kind", "comm"][..]);
        rows(
            tables,
            StackSampleRow::TABLE,
            columns,
            window,
            |cells, row| {
                let (Some(end), Some(utid), Some(callsite)) =
                    (cells.int(1, row), cells.small(2, row), cells.int(5, row))
                else {
                    return;
                };
                // Off-CPU stacks come with kernel events, which show more.
                if cells.text(0, row) == "offcpu" {
                    return;
                }
                sampled.is_of_runtime &= cells.text(0, row) == "execution";
                let (tid, pid) = (cells.small(3, row), cells.small(4, row));
                let name = cells.text(1, row);
                sampled
                    .threads
                    .entry(utid)
                    .or_insert_with(|| actor(name, pid, tid));
                wanted.insert(callsite);
                sampled.samples.push(Sample {
                    begin: cells.ints[0].at(row),
                    end,
                    utid,
                    callsite,
                });
            },
        )?;
        sampled
            .samples
            .sort_by_key(|sample| (sample.utid, sample.begin, sample.end, sample.callsite));
        sampled.stacks = stacks(tables, &wanted)?;
        Ok(sampled)
    }

    /// Stretches of all threads.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let mut found: Vec<Stretch> = Vec::new();
        let mut open: Option<(Stretch, i64)> = None;
        for sample in &self.samples {
            let stack = self.stacks.get(&sample.callsite);
            let call = stack.and_then(|stack| {
                let (place, waits) = stack.call?;
                Some((place, waits, stack.caller))
            });
            let goes_on = open.as_ref().is_some_and(|(stretch, caller)| {
                stretch.utid == sample.utid
                    && call.map(|(_, waits, caller)| (CallKind::Waits(waits), caller))
                        == Some((stretch.call_kind, *caller))
                    && sample.begin - stretch.end <= apart(sample)
            });
            if let (true, Some((stretch, _))) = (goes_on, &mut open) {
                stretch.end = stretch.end.max(sample.end);
                stretch.samples += 1;
                continue;
            }
            found.extend(open.take().map(|(stretch, _)| stretch));
            open = call.map(|(place, waits, caller)| {
                let stretch = Stretch {
                    utid: sample.utid,
                    begin: sample.begin,
                    end: sample.end,
                    call_kind: CallKind::Waits(waits),
                    place,
                    callsite: sample.callsite,
                    samples: 1,
                    silent: 0,
                };
                (stretch, caller)
            });
        }
        found.extend(open.map(|(stretch, _)| stretch));
        found
    }
}

/// Whether any stack has a lookup or a connect.
pub(super) fn are_called(tables: &dyn Tables) -> Result<bool> {
    let mut found = false;
    let columns = (&["id"][..], &["function"][..]);
    rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
        let waits = Waits::of(cells.text(0, row));
        found |= matches!(waits, Some(Waits::Lookup | Waits::Connect));
    })?;
    Ok(found)
}

/// Maximum distance of a sample from the one before, for both to belong to one stretch.
pub(super) fn apart(sample: &Sample) -> Ns {
    (APART_MAX * (sample.end - sample.begin)).max(APART)
}

fn stacks(tables: &dyn Tables, wanted: &FxHashSet<i64>) -> Result<FxHashMap<i64, Stack>> {
    let mut parents: FxHashMap<i64, (Option<i64>, i64)> = FxHashMap::default();
    let columns = (&["id", "parent_id", "frame_id"][..], &[][..]);
    rows(tables, CallsiteRow::TABLE, columns, None, |cells, row| {
        let frame = cells.ints[2].at(row);
        parents.insert(cells.ints[0].at(row), (cells.int(1, row), frame));
    })?;
    let mut frames: FxHashMap<i64, (String, bool)> = FxHashMap::default();
    let columns = (&["id"][..], &["function", "module", "kind"][..]);
    rows(tables, FrameRow::TABLE, columns, None, |cells, row| {
        let function = cells.text(0, row).to_owned();
        let is_foreign =
            cells.text(2, row) != "managed" || is_library(&function, cells.text(1, row));
        frames.insert(cells.ints[0].at(row), (function, is_foreign));
    })?;
    let mut stacks = FxHashMap::default();
    for &callsite in wanted {
        let (mut at, mut sites) = (Some(callsite), Vec::new());
        // Callers have smaller ids, so this ends.
        while let Some(site) = at.filter(|_| sites.len() < DEPTH_MAX) {
            let Some((parent, frame)) = parents.get(&site) else {
                break;
            };
            sites.push((site, *frame));
            at = parent.filter(|parent| *parent < site);
        }
        sites.reverse();
        stacks.insert(callsite, stack(&sites, &frames));
    }
    Ok(stacks)
}

fn stack(sites: &[(i64, i64)], frames: &FxHashMap<i64, (String, bool)>) -> Stack {
    let mut stack = Stack::default();
    for (_, frame) in sites {
        let (mut name, mut is_foreign) = frames.get(frame).cloned().unwrap_or_default();
        // A root frame with the thread name is not a function, and differs between threads.
        if stack.names.is_empty() && name.starts_with("thread (") {
            name.clear();
            is_foreign = true;
        }
        stack.names.push(name);
        stack.is_foreign.push(is_foreign);
    }
    // A function that runs code of the program is not a waiting call, whatever its name is.
    let calls = stack.names.iter().enumerate().rev();
    let calls = calls.take_while(|(place, _)| stack.is_foreign[*place]);
    let calls = calls.filter_map(|(place, name)| Some((place, Waits::of(name)?)));
    // The most specific; of these the innermost.
    stack.call = calls.min_by_key(|(place, waits)| (*waits, std::cmp::Reverse(*place)));
    if let Some((place, _)) = stack.call {
        stack.caller = place.checked_sub(1).map_or(-1, |caller| sites[caller].0);
    }
    stack
}

/// Files that come with a language.
fn is_library(function: &str, module: &str) -> bool {
    const PACKAGES: &[&str] = &["java.", "javax.", "jdk.", "sun.", "com.sun."];
    const FILES: &[&str] = &[
        "threading.py",
        "socket.py",
        "socketserver.py",
        "queue.py",
        "server.py",
        "selectors.py",
        "thread.py",
    ];
    FILES.contains(&module)
        || PACKAGES.iter().any(|package| function.starts_with(package))
        || module.starts_with('<')
        || ["/lib/python", "/lib/ruby", "/rubygems/"]
            .iter()
            .any(|part| module.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_that_runs_code_of_the_program_is_no_call() {
        let of = |frames: &[(&str, bool)]| {
            let sites: Vec<(i64, i64)> = (0..frames.len() as i64).map(|id| (id, id)).collect();
            let known = frames
                .iter()
                .enumerate()
                .map(|(id, (name, is_foreign))| (id as i64, ((*name).to_owned(), *is_foreign)));
            stack(&sites, &known.collect()).call
        };
        let (own, foreign) = (false, true);
        let call = of(&[
            ("work", own),
            ("connect", foreign),
            ("getaddrinfo", foreign),
            ("poll", foreign),
        ]);
        assert_eq!(call, Some((2, Waits::Lookup)));
        assert_eq!(of(&[("work", own), ("connect", own)]), None);
        assert_eq!(of(&[("connect", foreign), ("handshake", own)]), None);
        assert_eq!(
            of(&[("work", own), ("create_connection", foreign)]),
            Some((1, Waits::Connect))
        );
    }

    #[test]
    fn calls_are_known_in_all_languages() {
        for (function, waits) in [
            ("getaddrinfo", Some(Waits::Lookup)),
            ("__GI_getaddrinfo", Some(Waits::Lookup)),
            ("Addrinfo.getaddrinfo", Some(Waits::Lookup)),
            ("net.(*Resolver).lookupIPAddr", Some(Waits::Lookup)),
            (
                "java.net.Inet4AddressImpl.lookupAllHostAddr",
                Some(Waits::Lookup),
            ),
            ("__connect", Some(Waits::Connect)),
            ("Condition.wait", Some(Waits::LockOrQueue)),
            ("connect_database", None),
            ("Client::connect", None),
            ("", None),
        ] {
            assert_eq!(Waits::of(function), waits, "{function}");
        }
    }
}
