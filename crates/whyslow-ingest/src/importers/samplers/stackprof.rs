//! Results of stackprof, a profiler for Ruby: its dump (a hash in Ruby's Marshal format) or
//! `stackprof --json`.
//!
//! `raw` contains the stacks one after another: number of frames, the frames (outermost first),
//! number of repetitions. `raw_sample_timestamps` and `raw_timestamp_deltas` have one number of
//! microseconds per sample. Without `raw` there are only totals per function. Threads are not
//! recorded: a sample is of the thread that held the interpreter lock.

use rustc_hash::FxHashMap;
use serde_json::Value;
use whyslow_model::Ns;

use super::{Read, marshal};
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, SampleKind, SampledState, SampledThread,
};

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;
/// File of frames of the interpreter's C functions.
const C_FUNCTION: &str = "<cfunc>";

pub(super) fn is_json(head: &str) -> bool {
    ["\"mode\"", "\"interval\"", "\"missed_samples\""]
        .iter()
        .all(|key| head.contains(key))
}

pub(super) fn read_dump(bytes: &[u8], written: Option<Ns>) -> Result<Read, String> {
    read(&marshal::read(bytes)?, written)
}

pub(super) fn read_json(text: &str, written: Option<Ns>) -> Result<Read, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    read(&value, written)
}

/// What a sample stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The time since the previous sample.
    Wall,
    /// This amount of CPU time.
    Cpu(Ns),
    /// Allocated objects, or a custom count.
    Other,
}

fn read(value: &Value, written: Option<Ns>) -> Result<Read, String> {
    let frames = value.get("frames").and_then(Value::as_object);
    let (Some(frames), Some(mode)) = (frames, value.get("mode").and_then(Value::as_str)) else {
        return Err("missing `mode` and `frames` of a stackprof result".to_owned());
    };
    let mut read = Read::default();
    let interval = value.get("interval").and_then(Value::as_i64).unwrap_or(0);
    let interval = interval.clamp(0, 1 << 40) * 1_000;
    let number = |key: &str| value.get(key).and_then(Value::as_u64).unwrap_or(0);
    read.lacks.missed = number("missed_samples");
    read.lacks.one_thread = true;
    let facts = [
        ("stackprof_mode", mode.to_owned()),
        ("stackprof_interval", number("interval").to_string()),
        ("stackprof_gc_samples", number("gc_samples").to_string()),
    ];
    let facts = facts.map(|(key, value)| (key.to_owned(), value));
    read.profile.facts.extend(facts);
    let mode = match mode {
        "wall" => Mode::Wall,
        "cpu" => Mode::Cpu(interval),
        _ => Mode::Other,
    };
    read.lacks.not_time = mode == Mode::Other;
    let thread = read.profile.thread(SampledThread {
        tid: None,
        runtime_id: Some(1),
        name: Some("all".to_owned()),
    });
    let places: FxHashMap<String, u32> = frames
        .iter()
        .map(|(id, frame)| (id.clone(), read.profile.frame(code(frame))))
        .collect();
    let Some(raw) = value.get("raw").and_then(Value::as_array) else {
        sums(frames, thread, written.unwrap_or(0), &mut read);
        return Ok(read);
    };
    let times = Times::of(value);
    let end = stacks(raw, &places, (thread, mode, &times), &mut read);
    if times.ends.is_empty() {
        read.lacks.times = read.samples;
        for point in &mut read.profile.points {
            point.ts = written.unwrap_or(0);
        }
    } else {
        let shift = written.map_or(0, |written| written.saturating_sub(end));
        for point in &mut read.profile.points {
            point.ts = point.ts.saturating_add(shift);
        }
        read.lacks.dates = read.samples > 0;
    }
    Ok(read)
}

fn code(frame: &Value) -> CodeFrame {
    let text = |key: &str| frame.get(key).and_then(Value::as_str);
    let file = text("file");
    let is_native = file == Some(C_FUNCTION);
    CodeFrame {
        kind: if is_native {
            CodeKind::User
        } else {
            CodeKind::Managed
        },
        function: text("name").unwrap_or("?").to_owned(),
        module: file.filter(|_| !is_native).map(str::to_owned),
        line: frame
            .get("line")
            .and_then(Value::as_i64)
            .and_then(|line| i32::try_from(line).ok()),
    }
}

/// Start and end of the interval of each sample; empty if not recorded.
struct Times {
    starts: Vec<Ns>,
    ends: Vec<Ns>,
}

impl Times {
    fn of(value: &Value) -> Self {
        let numbers = |key: &str| -> Vec<Ns> {
            let all = value.get(key).and_then(Value::as_array);
            let all = all.into_iter().flatten();
            // Invalid numbers are clamped.
            all.map(|number| number.as_i64().unwrap_or(0).clamp(0, 1 << 50) * 1_000)
                .collect()
        };
        let deltas = numbers("raw_timestamp_deltas");
        let mut ends = numbers("raw_sample_timestamps");
        if ends.is_empty() {
            // Older versions only record intervals.
            let mut at: Ns = 0;
            ends = deltas
                .iter()
                .map(|delta| {
                    at = at.saturating_add(*delta);
                    at
                })
                .collect();
        }
        let mut before: Option<Ns> = None;
        let starts = ends
            .iter()
            .enumerate()
            .map(|(place, end)| {
                let delta = deltas.get(place).copied();
                let begin = match (delta, before) {
                    (Some(delta), _) => end.saturating_sub(delta),
                    (None, Some(before)) => before.min(*end),
                    (None, None) => *end,
                };
                before = Some(*end);
                begin.max(0)
            })
            .collect();
        Self { starts, ends }
    }
}

/// Adds samples with their stacks; returns the time of the last one.
fn stacks(
    raw: &[Value],
    places: &FxHashMap<String, u32>,
    (thread, mode, times): (u32, Mode, &Times),
    read: &mut Read,
) -> Ns {
    let (mut at, mut sample, mut end) = (0, 0_usize, 0);
    while let Some(length) = raw.get(at) {
        let count_at = length
            .as_u64()
            .and_then(|length| usize::try_from(length).ok())
            .and_then(|length| at.checked_add(length)?.checked_add(1));
        let count = count_at.and_then(|place| raw.get(place)?.as_u64());
        let (Some(count_at), Some(count)) = (count_at, count) else {
            read.bad(|| format!("number {at} of `raw`: stack beyond the end"));
            break;
        };
        let indices = raw[at + 1..count_at].iter().rev().take(FRAMES_MAX);
        let frames: Option<Vec<u32>> = indices
            .map(|id| match id {
                Value::String(text) => places.get(text).copied(),
                other => places.get(&other.to_string()).copied(),
            })
            .collect();
        let first = sample;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        sample = sample.saturating_add(count);
        at = count_at + 1;
        let stack = frames.map(|frames| read.profile.stack(&frames));
        let Some(stack) = stack.filter(|stack| *stack != NO_STACK && count > 0) else {
            let place = at;
            read.bad(|| format!("number {place} of `raw`: stack with undefined frames"));
            continue;
        };
        let credits = read.weigh(count as u64);
        let last = (sample - 1).min(times.ends.len().saturating_sub(1));
        let begin = times.starts.get(first.min(last)).copied().unwrap_or(0);
        let until = times.ends.get(last).copied().unwrap_or(begin).max(begin);
        end = end.max(until);
        let span = match mode {
            Mode::Wall => until - begin,
            Mode::Cpu(interval) => interval.saturating_mul(count as Ns).min(until - begin),
            Mode::Other => 0,
        };
        read.profile.points.push(Point {
            ts: until - span,
            span,
            thread,
            stack,
            credits,
            kind: SampleKind::Execution,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }
    end
}

/// Functions with their own totals, from results without `raw`.
fn sums(frames: &serde_json::Map<String, Value>, thread: u32, ts: Ns, read: &mut Read) {
    for frame in frames.values() {
        let own = frame.get("samples").and_then(Value::as_u64).unwrap_or(0);
        if own == 0 {
            continue;
        }
        let place = read.profile.frame(code(frame));
        let stack = read.profile.stack(&[place]);
        let credits = read.weigh(own);
        read.profile.points.push(Point {
            ts,
            span: 0,
            thread,
            stack,
            credits,
            kind: SampleKind::Execution,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }
    read.lacks.times = read.samples;
    read.lacks.sums = true;
}
