//! Traces in Chrome's format: calls with start and end per thread, times in microseconds.

use rustc_hash::FxHashMap;
use serde::Deserialize;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::spans::Spans;
use super::{Read, frame, times};
use crate::profile::SampledThread;

#[derive(Deserialize)]
#[serde(untagged)]
enum File {
    Object {
        #[serde(rename = "traceEvents")]
        events: Vec<One>,
    },
    Array(Vec<One>),
}

#[derive(Deserialize)]
struct One {
    ph: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    ts: f64,
    #[serde(default)]
    dur: f64,
    #[serde(default)]
    pid: Number,
    #[serde(default)]
    tid: Number,
    #[serde(default)]
    args: Args,
}

/// Some writers quote numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Default)]
#[serde(untagged)]
enum Number {
    Int(i64),
    Text(String),
    #[default]
    None,
}

#[derive(Deserialize, Default)]
struct Args {
    name: Option<String>,
    filename: Option<String>,
    line: Option<i32>,
}

impl Number {
    fn int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            Self::Text(text) => text.parse().ok(),
            Self::None => None,
        }
    }
}

fn ns(us: f64) -> Ns {
    times::ns(us, 1e3)
}

/// Start or end of a call, in the order of the thread.
struct Edge<'e> {
    ts: Ns,
    /// At the same time, ends of short calls come before starts of long ones.
    order: (u8, Ns),
    event: &'e One,
    is_begin: bool,
}

/// Process and thread.
type Key = (Option<i64>, Option<i64>);

/// Calls of one thread.
struct OfThread<'e> {
    key: Key,
    edges: Vec<Edge<'e>>,
}

pub(super) fn read(text: &str, written: Option<Ns>) -> Result<Read, String> {
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let (File::Object { events } | File::Array(events)) = file;
    let mut read = Read::default();
    let (names, threads) = by_thread(&events);
    let (mut begin, mut end) = (Ns::MAX, 0);
    let mut spans = Spans::within(text.len());
    for OfThread { key, mut edges } in threads {
        edges.index_sort_by_ints(|edge| [edge.ts, i64::from(edge.order.0), edge.order.1]);
        let thread = of_thread(key, names.get(&key), &edges);
        let thread = read.profile.thread(thread);
        begin = edges.first().map_or(begin, |edge| begin.min(edge.ts));
        end = end.max(stacks(&edges, thread, (&mut spans, &mut read)));
    }
    read.lacks.cut = spans.cut;
    let (shift, is_dated) = times::shift((begin, end), written);
    for point in &mut read.profile.points {
        point.ts = point.ts.saturating_add(shift);
    }
    read.lacks.dates = end > 0 && !is_dated;
    Ok(read)
}

/// Thread names, and the calls of each thread.
fn by_thread(events: &[One]) -> (FxHashMap<Key, String>, Vec<OfThread<'_>>) {
    let mut names: FxHashMap<Key, String> = FxHashMap::default();
    let mut threads: Vec<OfThread<'_>> = Vec::new();
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    for event in events {
        let key = (event.pid.int(), event.tid.int());
        if event.ph == "M" && event.name == "thread_name" {
            names.extend(event.args.name.clone().map(|name| (key, name)));
            continue;
        }
        let place = *places.entry(key).or_insert_with(|| {
            threads.push(OfThread {
                key,
                edges: Vec::new(),
            });
            threads.len() - 1
        });
        let edges = &mut threads[place].edges;
        let (ts, dur) = (ns(event.ts), ns(event.dur));
        let mut add = |ts, order, is_begin| {
            edges.push(Edge {
                ts,
                order,
                event,
                is_begin,
            });
        };
        match event.ph.as_str() {
            "B" => add(ts, (1, 0), true),
            "E" => add(ts, (1, 0), false),
            "X" if dur > 0 => {
                add(ts, (2, -dur), true);
                add(ts.saturating_add(dur), (0, dur), false);
            }
            _ => {}
        }
    }
    (names, threads)
}

/// Splits the calls into spans with one stack each; returns the end of the last one.
fn stacks(edges: &[Edge<'_>], thread: u32, (spans, read): (&mut Spans, &mut Read)) -> Ns {
    let mut last = 0;
    for edge in edges {
        last = edge.ts;
        let is_fine = if edge.is_begin {
            read.samples += 1;
            let mut code = frame::frame(&edge.event.name);
            let args = &edge.event.args;
            code.module = code.module.or_else(|| args.filename.clone());
            code.line = code.line.or(args.line);
            let frame = read.profile.frame(code);
            spans.begin(edge.ts, frame, thread, &mut read.profile)
        } else {
            spans.end(edge.ts, thread, &mut read.profile)
        };
        read.lacks.unpaired += u64::from(!is_fine);
    }
    read.lacks.unpaired += spans.finish(last, thread, &mut read.profile);
    last
}

/// py-spy puts the tid into the outermost call, and an address into the thread id.
fn of_thread((_, tid): Key, name: Option<&String>, edges: &[Edge<'_>]) -> SampledThread {
    let outermost = edges
        .first()
        .and_then(|edge| frame::thread(&edge.event.name));
    if let Some(thread) = outermost {
        return thread;
    }
    let os_tid = tid
        .and_then(|tid| i32::try_from(tid).ok())
        .filter(|tid| *tid > 0);
    SampledThread {
        tid: os_tid,
        runtime_id: os_tid
            .is_none()
            .then(|| tid.unwrap_or(0).rem_euclid(100_000_000)),
        name: name.cloned(),
    }
}
