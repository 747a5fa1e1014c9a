//! speedscope files: shared frames, and profiles of weighted samples or of calls with start and
//! end.

use serde::Deserialize;
use whyslow_model::Ns;

use super::spans::Spans;
use super::{Read, frame, times};
use crate::profile::{NO_STACK, Point, SampleKind, SampledState, SampledThread};

#[derive(Deserialize)]
struct File {
    shared: Shared,
    #[serde(default)]
    profiles: Vec<OneProfile>,
}

#[derive(Deserialize)]
struct Shared {
    #[serde(default)]
    frames: Vec<SharedFrame>,
}

#[derive(Deserialize)]
struct SharedFrame {
    name: String,
    file: Option<String>,
    line: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OneProfile {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    name: String,
    #[serde(default)]
    unit: String,
    #[serde(default)]
    start_value: f64,
    #[serde(default)]
    samples: Vec<Vec<usize>>,
    #[serde(default)]
    weights: Vec<f64>,
    #[serde(default)]
    events: Vec<OneEvent>,
}

#[derive(Deserialize)]
struct OneEvent {
    #[serde(rename = "type")]
    kind: String,
    at: f64,
    frame: usize,
}

/// Nanoseconds per unit; none for units other than time.
fn scale(unit: &str) -> Option<f64> {
    match unit {
        "nanoseconds" => Some(1.0),
        "microseconds" => Some(1e3),
        "milliseconds" => Some(1e6),
        "seconds" => Some(1e9),
        _ => None,
    }
}

pub(super) fn read(text: &str, written: Option<Ns>) -> Result<Read, String> {
    if !text.trim_start().starts_with('{') {
        return Err("not a JSON object".to_owned());
    }
    let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut read = Read::default();
    let frames: Vec<u32> = file
        .shared
        .frames
        .iter()
        .map(|shared| {
            let mut code = frame::frame(&shared.name);
            if code.module.is_none() {
                code.module.clone_from(&shared.file);
            }
            if code.line.is_none() {
                code.line = shared.line.map(|line| line as i32).filter(|line| *line > 0);
            }
            if code
                .module
                .as_deref()
                .is_some_and(|file| file.ends_with(".py") || file.ends_with(".rb"))
            {
                code.kind = crate::profile::CodeKind::Managed;
            }
            read.profile.frame(code)
        })
        .collect();
    let (mut begin, mut end) = (Ns::MAX, 0);
    let (mut spans, mut untimed) = (Spans::within(text.len()), Vec::new());
    for (number, profile) in file.profiles.iter().enumerate() {
        let thread = frame::thread(&profile.name).unwrap_or(SampledThread {
            tid: None,
            runtime_id: Some(number as i64 + 1),
            name: Some(profile.name.clone()).filter(|name| !name.is_empty()),
        });
        let thread = read.profile.thread(thread);
        let from = read.profile.points.len();
        let last = match profile.kind.as_str() {
            "sampled" => sampled((number, profile), thread, &frames, &mut read),
            "evented" => evented((number, profile), thread, &frames, (&mut spans, &mut read)),
            kind => {
                read.bad(|| format!("profile {number}: unknown type `{kind}`"));
                0
            }
        };
        end = end.max(last);
        let points = from..read.profile.points.len();
        if scale(&profile.unit).is_none() {
            untimed.push(points);
        } else {
            let of = read.profile.points[points].iter().map(|point| point.ts);
            begin = of.min().map_or(begin, |first| begin.min(first));
        }
    }
    // Samples without a time are put at the end of the others.
    for place in untimed.into_iter().flatten() {
        read.profile.points[place].ts = end;
    }
    read.lacks.cut = spans.cut;
    let (shift, is_dated) = times::shift((begin, end), written);
    for point in &mut read.profile.points {
        point.ts = point.ts.saturating_add(shift);
    }
    read.lacks.dates = end > 0 && !is_dated;
    Ok(read)
}

fn sampled(
    (place, profile): (usize, &OneProfile),
    thread: u32,
    frames: &[u32],
    read: &mut Read,
) -> Ns {
    let scale = scale(&profile.unit);
    let start = scale.map_or(0, |scale| times::ns(profile.start_value, scale));
    // Relative to the start: added to a date, short weights would be lost.
    let mut at = 0.0;
    let mut end = 0;
    for (number, sample) in profile.samples.iter().enumerate() {
        let weight = profile.weights.get(number).copied().unwrap_or(1.0).max(0.0);
        // The outermost frame comes first.
        let indices = sample.iter().rev().map(|place| frames.get(*place).copied());
        let Some(stack) = indices.collect::<Option<Vec<u32>>>() else {
            read.bad(|| format!("profile {place}, sample {number}: undefined frame"));
            continue;
        };
        let stack = read.profile.stack(&stack);
        let (ts, span, credits) = match scale {
            Some(scale) => {
                let ts = start.saturating_add(times::ns(at, scale));
                at += weight;
                end = start.saturating_add(times::ns(at, scale));
                (ts, end.saturating_sub(ts), 1)
            }
            None => (0, 0, weight.max(1.0) as u64),
        };
        // A thread that runs no program code has no frames.
        if stack == NO_STACK {
            continue;
        }
        if scale.is_none() {
            read.lacks.times = read.lacks.times.saturating_add(credits);
        }
        let credits = read.weigh(credits);
        read.profile.points.push(Point {
            ts,
            span,
            thread,
            stack,
            credits,
            kind: SampleKind::Cpu,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }
    end
}

fn evented(
    (place, profile): (usize, &OneProfile),
    thread: u32,
    frames: &[u32],
    (spans, read): (&mut Spans, &mut Read),
) -> Ns {
    let Some(scale) = scale(&profile.unit) else {
        // Start and end in numbers of samples are not times.
        read.lacks.times += profile.events.len() as u64;
        return 0;
    };
    let mut last = 0;
    for (number, event) in profile.events.iter().enumerate() {
        let ts = times::ns(event.at, scale);
        if ts < last {
            let (at, unit) = (event.at, &profile.unit);
            read.bad(|| {
                format!(
                    "profile {place}, event {number}: at {at} {unit}, earlier than the previous one"
                )
            });
            continue;
        }
        last = ts;
        let frame = frames.get(event.frame).copied();
        let is_fine = match (event.kind.as_str(), frame) {
            ("O", Some(frame)) => {
                read.samples += 1;
                spans.begin(ts, frame, thread, &mut read.profile)
            }
            ("C", Some(_)) => spans.end(ts, thread, &mut read.profile),
            _ => false,
        };
        read.lacks.unpaired += u64::from(!is_fine);
    }
    read.lacks.unpaired += spans.finish(last, thread, &mut read.profile);
    last
}
