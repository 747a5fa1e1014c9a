//! Raw files of rbspy: a line `rbspy02`, a line of JSON about the recording, then one sample per
//! line.
//!
//! ```text
//! {"sample_rate":100,"rbspy_version":"0.55.0","start_time":{"secs_since_epoch":1795572036,"nanos_since_epoch":5}}
//! {"trace":[{"name":"getaddrinfo [c function]","relative_path":"web.rb","absolute_path":null,"lineno":null}],
//!  "pid":7,"thread_id":140679174716800,"time":{"secs_since_epoch":1795572037,"nanos_since_epoch":2},"on_cpu":false}
//! ```
//!
//! Each tick has one sample, of the thread that last held the interpreter lock: waits of other
//! threads are not recorded. Threads are identified by the address of their `pthread`, which is not
//! a tid.

use rustc_hash::FxHashMap;
use serde::Deserialize;
use whyslow_model::Ns;

use super::Read;
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, Profile, SampleKind, SampledState, SampledThread,
};

const MAGIC: &str = "rbspy";
/// Supported version.
const VERSION: &str = "02";
const C_FUNCTION: &str = " [c function]";
/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;

#[derive(Deserialize)]
struct Header {
    sample_rate: Option<u32>,
    rbspy_version: Option<String>,
}

#[derive(Deserialize)]
struct Sample {
    trace: Vec<Frame>,
    pid: Option<i32>,
    thread_id: Option<u64>,
    time: Option<Time>,
    on_cpu: Option<bool>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
    relative_path: String,
    lineno: Option<i64>,
}

#[derive(Deserialize)]
struct Time {
    secs_since_epoch: i64,
    nanos_since_epoch: i64,
}

impl Time {
    fn ns(&self) -> Option<Ns> {
        let seconds = self.secs_since_epoch.checked_mul(1_000_000_000)?;
        seconds
            .checked_add(self.nanos_since_epoch)
            .filter(|ns| *ns >= 0)
    }
}

pub(super) fn is_raw(head: &str) -> bool {
    let line = head.lines().next().unwrap_or("");
    line.strip_prefix(MAGIC)
        .is_some_and(|version| version.len() == 2 && version.bytes().all(|b| b.is_ascii_digit()))
}

pub(super) fn read(text: &str, written: Option<Ns>) -> Result<Read, String> {
    let mut lines = text.lines().enumerate();
    let version = lines.next().map_or("", |(_, line)| line);
    let version = version.strip_prefix(MAGIC).unwrap_or("");
    if version != VERSION {
        return Err(format!(
            "line 1: unsupported version `{version}` of rbspy's raw format (supported: {VERSION}); convert with \
             `rbspy report -f speedscope`"
        ));
    }
    let header = lines.next().map_or("", |(_, line)| line);
    let header: Header =
        serde_json::from_str(header).map_err(|error| format!("line 2: {error}"))?;
    let mut read = Read::default();
    let rate = header.sample_rate.filter(|rate| *rate > 0);
    read.profile.interval = rate.map(|rate| 1_000_000_000 / Ns::from(rate));
    let version = header.rbspy_version.map(|text| ("rbspy".to_owned(), text));
    read.profile.facts.extend(version);
    let mut threads: FxHashMap<u64, u32> = FxHashMap::default();
    for (number, line) in lines.filter(|(_, line)| !line.is_empty()) {
        let sample: Sample = match serde_json::from_str(line) {
            Ok(sample) => sample,
            Err(error) => {
                read.bad(|| format!("line {}: {error}", number + 1));
                continue;
            }
        };
        add(&sample, written, &mut threads, &mut read);
    }
    read.lacks.addresses = threads.len() as u64;
    read.lacks.one_thread = read.samples > 0;
    Ok(read)
}

fn add(sample: &Sample, written: Option<Ns>, threads: &mut FxHashMap<u64, u32>, read: &mut Read) {
    let profile = &mut read.profile;
    profile.pid = profile.pid.or(sample.pid);
    let address = sample.thread_id.unwrap_or(0);
    let number = threads.len() as i64 + 1;
    let thread = *threads.entry(address).or_insert_with(|| {
        profile.thread(SampledThread {
            tid: None,
            runtime_id: Some(number),
            name: Some(format!("0x{address:x}")),
        })
    });
    let stack = stack(&sample.trace, profile);
    let ts = sample.time.as_ref().and_then(Time::ns);
    read.lacks.times += u64::from(ts.is_none());
    // A thread that runs no program code has no frames.
    if stack == NO_STACK {
        return;
    }
    read.samples += 1;
    read.profile.points.push(Point {
        ts: ts.or(written).unwrap_or(0),
        span: 0,
        thread,
        stack,
        credits: 1,
        kind: SampleKind::Execution,
        state: match sample.on_cpu {
            Some(true) => SampledState::Running,
            Some(false) => SampledState::Sleeping,
            None => SampledState::Unknown,
        },
        is_assumed: false,
    });
}

/// The innermost frame comes first.
fn stack(trace: &[Frame], profile: &mut Profile) -> u32 {
    let frames: Vec<u32> = trace
        .iter()
        .take(FRAMES_MAX)
        .map(|frame| {
            let native = frame.name.strip_suffix(C_FUNCTION);
            profile.frame(CodeFrame {
                kind: native.map_or(CodeKind::Managed, |_| CodeKind::User),
                function: native.unwrap_or(&frame.name).to_owned(),
                module: Some(frame.relative_path.clone()).filter(|path| path != "(unknown)"),
                line: frame.lineno.and_then(|line| i32::try_from(line).ok()),
            })
        })
        .collect();
    profile.stack(&frames)
}
