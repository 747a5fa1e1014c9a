//! Profiles of pprof: one protocol-buffers message, usually compressed.
//!
//! A message is a sequence of fields: number and wire type as a varint, then a number, or a length
//! and as many bytes. Fields of a profile that are read: 1 sample types (type, unit), 2 samples (1
//! locations, the innermost first; 2 values, one per sample type; 3 labels), 3 mappings (1 id, 5
//! file name), 4 locations (1 id, 2 mapping, 3 address, 4 lines, the innermost inlined function
//! first; none without symbols), 5 functions (1 id, 2 name, 4 file), 6 strings, which all others
//! refer to by index, 9 time, 10 duration, 14 the default sample type.
//!
//! Samples have no timestamp, and a thread only if a label names it.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::Read;
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, Profile, SampleKind, SampledState, SampledThread,
};

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;
/// Maximum number of frames of all stacks per byte of the file: few bytes can encode long stacks.
const FRAMES_A_BYTE: usize = 16;
/// Labels that some writers use for threads.
const THREAD_NAMES: &[&str] = &["thread", "thread_name", "thread name", "comm"];
const THREAD_IDS: &[&str] = &["tid", "thread_id", "thread id"];

/// Whether all fields are valid, the first is one that writers start with, and a sample type is
/// among them.
pub(super) fn is_profile(head: &[u8]) -> bool {
    let (mut has_measure, mut is_first) = (false, true);
    let is_measure = |body| {
        let mut parts = Fields::new(body).peekable();
        parts.peek().is_some() && parts.all(|part| matches!(part, Ok((1..=2, Content::Number(_)))))
    };
    for field in Fields::new(head) {
        let is_sound = match field {
            Ok((1, Content::Bytes(body))) => {
                has_measure = true;
                is_measure(body)
            }
            // Go writes the time first.
            Ok((9..=10 | 12, Content::Number(_)) | (11, Content::Bytes(_))) => true,
            Ok((2..=6, Content::Bytes(_)) | (7..=8 | 13..=15, Content::Number(_))) => !is_first,
            Ok((13, Content::Bytes(_))) => !is_first,
            Ok(_) => false,
            // `head` may end within a field.
            Err(wrong) => wrong.is_end,
        };
        if !is_sound {
            return false;
        }
        is_first = false;
    }
    has_measure
}

#[derive(Debug, Clone, Copy)]
enum Content<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

impl Content<'_> {
    fn number(self) -> u64 {
        match self {
            Self::Number(number) => number,
            Self::Bytes(_) => 0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Wrong {
    at: usize,
    /// The bytes end too early.
    is_end: bool,
}

/// The fields of a message, up to the first invalid one.
struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Fields<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn varint(&mut self) -> Result<u64, Wrong> {
        let mut number = 0;
        for place in 0..10 {
            let Some(byte) = self.bytes.get(self.at) else {
                return Err(self.wrong(true));
            };
            self.at += 1;
            number |= u64::from(byte & 0x7f).checked_shl(7 * place).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(self.wrong(false))
    }

    fn wrong(&self, is_end: bool) -> Wrong {
        Wrong {
            at: self.at,
            is_end,
        }
    }

    fn take(&mut self, count: u64) -> Result<&'b [u8], Wrong> {
        let left = &self.bytes[self.at.min(self.bytes.len())..];
        let count = usize::try_from(count)
            .ok()
            .filter(|count| *count <= left.len());
        let Some(count) = count else {
            return Err(self.wrong(true));
        };
        self.at += count;
        Ok(&left[..count])
    }

    fn field(&mut self) -> Result<(u64, Content<'b>), Wrong> {
        let key = self.varint()?;
        let content = match key & 7 {
            0 => Content::Number(self.varint()?),
            1 => Content::Bytes(self.take(8)?),
            2 => {
                let count = self.varint()?;
                Content::Bytes(self.take(count)?)
            }
            5 => Content::Bytes(self.take(4)?),
            _ => return Err(self.wrong(false)),
        };
        Ok((key >> 3, content))
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<(u64, Content<'b>), Wrong>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

/// Numbers of a repeated field, packed or not.
fn numbers(content: Content<'_>, into: &mut Vec<u64>) {
    match content {
        Content::Number(number) => into.push(number),
        Content::Bytes(bytes) => {
            let mut packed = Fields::new(bytes);
            while packed.at < bytes.len() {
                let Ok(number) = packed.varint() else { return };
                into.push(number);
            }
        }
    }
}

/// A code location.
struct Place {
    file: u64,
    address: u64,
    /// Function and line, the innermost first.
    lines: Vec<(u64, i64)>,
}

/// Parts of the file that are referred to by id.
#[derive(Default)]
struct Parts<'b> {
    texts: Vec<&'b [u8]>,
    measures: Vec<(u64, u64)>,
    samples: Vec<(usize, &'b [u8])>,
    places: FxHashMap<u64, Place>,
    /// Names of mapped files.
    files: FxHashMap<u64, u64>,
    functions: FxHashMap<u64, (u64, u64)>,
    time: i64,
    duration: i64,
    shown: u64,
}

impl<'b> Parts<'b> {
    fn text(&self, number: u64) -> String {
        let bytes = usize::try_from(number)
            .ok()
            .and_then(|place| self.texts.get(place));
        String::from_utf8_lossy(bytes.map_or(&[], |bytes| bytes)).into_owned()
    }

    fn take(&mut self, (number, content): (u64, Content<'b>), at: usize) {
        match (number, content) {
            (1, Content::Bytes(bytes)) => {
                let [kind, unit] = some(bytes, [1, 2]);
                self.measures.push((kind, unit));
            }
            (2, Content::Bytes(bytes)) => self.samples.push((at, bytes)),
            (4, Content::Bytes(bytes)) => {
                let [id, file, address] = some(bytes, [1, 2, 3]);
                let lines = Fields::new(bytes)
                    .flatten()
                    .filter_map(|field| match field {
                        (4, Content::Bytes(line)) => {
                            let [function, line] = some(line, [1, 2]);
                            Some((function, line as i64))
                        }
                        _ => None,
                    });
                let place = Place {
                    file,
                    address,
                    lines: lines.take(FRAMES_MAX).collect(),
                };
                self.places.insert(id, place);
            }
            (3, Content::Bytes(bytes)) => {
                let [id, name] = some(bytes, [1, 5]);
                self.files.insert(id, name);
            }
            (5, Content::Bytes(bytes)) => {
                let [id, name, file] = some(bytes, [1, 2, 4]);
                self.functions.insert(id, (name, file));
            }
            (6, Content::Bytes(bytes)) => self.texts.push(bytes),
            (9, content) => self.time = content.number() as i64,
            (10, content) => self.duration = content.number() as i64,
            (14, content) => self.shown = content.number(),
            _ => {}
        }
    }
}

/// The last values of these fields, 0 if missing.
fn some<const N: usize>(bytes: &[u8], wanted: [u64; N]) -> [u64; N] {
    let mut found = [0; N];
    for (number, content) in Fields::new(bytes).flatten() {
        if let Some(place) = wanted.iter().position(|wanted| *wanted == number) {
            found[place] = content.number();
        }
    }
    found
}

/// The sample value in use, and the amount that one sample stands for.
struct Measure {
    place: usize,
    unit: f64,
    is_time: bool,
    words: String,
}

impl Measure {
    /// The default sample type, or the last one. Sample counts are equivalent to CPU time.
    fn of(parts: &Parts<'_>) -> Option<Self> {
        let named: Vec<(String, String)> = parts
            .measures
            .iter()
            .map(|(kind, unit)| (parts.text(*kind), parts.text(*unit)))
            .collect();
        let shown = parts.text(parts.shown);
        let wanted = named
            .iter()
            .position(|(kind, _)| !shown.is_empty() && *kind == shown);
        let place = wanted.or(named.len().checked_sub(1))?;
        let (kind, unit) = &named[place];
        let samples = named
            .iter()
            .position(|(kind, unit)| kind == "samples" && unit == "count");
        if let Some(samples) = samples.filter(|_| unit == "nanoseconds") {
            return Some(Self {
                place: samples,
                unit: 1.0,
                is_time: true,
                words: format!("{kind}, as samples"),
            });
        }
        let (unit, words, is_time) = match unit.as_str() {
            "nanoseconds" => (1e3, "microseconds", true),
            "microseconds" => (1.0, "microseconds", true),
            "milliseconds" => (1e-3, "microseconds", true),
            "seconds" => (1e-6, "microseconds", true),
            "bytes" => (1024.0, "KiB", false),
            // Goroutines, contentions, objects.
            other => (1.0, other, false),
        };
        Some(Self {
            place,
            unit,
            is_time,
            words: format!("{kind}, {words}"),
        })
    }
}

pub(super) fn read(bytes: &[u8], written: Option<Ns>) -> Result<Read, String> {
    let mut read = Read::default();
    let mut parts = Parts::default();
    let mut fields = Fields::new(bytes);
    loop {
        let at = fields.at;
        match fields.next() {
            None => break,
            Some(Ok(field)) => parts.take(field, at),
            Some(Err(wrong)) => {
                let left = bytes.len() - at;
                let place = wrong.at;
                read.bad(|| format!("byte {place}: not a pprof field; {left} bytes skipped"));
            }
        }
    }
    let Some(measure) = Measure::of(&parts) else {
        return Err("byte 0: the profile has no sample types".to_owned());
    };
    let fact = ("pprof_measure".to_owned(), measure.words.clone());
    read.profile.facts.push(fact);
    read.lacks.not_time = !measure.is_time;
    let end = parts.time.saturating_add(parts.duration.max(0));
    let ts = if parts.time > 0 {
        end
    } else {
        written.unwrap_or(0)
    };
    let mut reading = Reading {
        parts: &parts,
        measure: &measure,
        ts,
        frames_left: bytes.len().saturating_mul(FRAMES_A_BYTE),
        threads: FxHashMap::default(),
        unnamed: FxHashSet::default(),
        cut: 0,
    };
    for (at, sample) in &parts.samples {
        if !reading.sample(sample, &mut read) {
            let at = *at;
            read.bad(|| format!("byte {at}: sample without resolvable frames or value"));
        }
    }
    read.lacks.times = read.samples;
    (read.lacks.unnamed, read.lacks.cut) = (reading.unnamed.len() as u64, reading.cut);
    Ok(read)
}

struct Reading<'p> {
    parts: &'p Parts<'p>,
    measure: &'p Measure,
    ts: Ns,
    /// Number of frames that may still be stored.
    frames_left: usize,
    /// Numbers of threads without one, by name.
    threads: FxHashMap<String, i64>,
    /// Locations without a symbol.
    unnamed: FxHashSet<u64>,
    /// Stacks truncated to the innermost frames.
    cut: u64,
}

impl Reading<'_> {
    /// False if the sample is invalid.
    fn sample(&mut self, sample: &[u8], read: &mut Read) -> bool {
        let (mut places, mut values, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        for field in Fields::new(sample) {
            match field {
                Ok((1, content)) => numbers(content, &mut places),
                Ok((2, content)) => numbers(content, &mut values),
                Ok((3, Content::Bytes(label))) => labels.push(some(label, [1, 2, 3])),
                Ok(_) => {}
                Err(_) => return false,
            }
        }
        let Some(value) = values.get(self.measure.place).map(|value| *value as i64) else {
            return false;
        };
        let credits = (value as f64 / self.measure.unit).round();
        // Freed memory, or a negligible amount.
        if value <= 0 || credits < 1.0 {
            return true;
        }
        let stack = self.stack(&places, &mut read.profile);
        if stack == NO_STACK {
            return false;
        }
        let thread = self.thread(&labels);
        let thread = read.profile.thread(thread);
        let credits = read.weigh(credits as u64);
        read.profile.points.push(Point {
            ts: self.ts,
            span: 0,
            thread,
            stack,
            credits,
            kind: SampleKind::Cpu,
            state: SampledState::Unknown,
            is_assumed: false,
        });
        true
    }

    fn stack(&mut self, places: &[u64], profile: &mut Profile) -> u32 {
        let limit = FRAMES_MAX.min(self.frames_left);
        let mut frames = Vec::new();
        for id in places {
            let Some(place) = self.parts.places.get(id) else {
                continue;
            };
            let begin = frames.len();
            let code = place.lines.iter().filter_map(|line| self.code(*line));
            // One more shows that the stack is longer.
            let left = (limit + 1).saturating_sub(begin);
            frames.extend(code.take(left).map(|code| profile.frame(code)));
            if frames.len() == begin && left > 0 {
                self.unnamed.insert(*id);
                frames.push(profile.frame(self.address(place)));
            }
        }
        self.cut += u64::from(frames.len() > limit);
        frames.truncate(limit);
        self.frames_left -= frames.len();
        profile.stack(&frames)
    }

    fn code(&self, (function, line): (u64, i64)) -> Option<CodeFrame> {
        let (name, file) = self.parts.functions.get(&function)?;
        let file = self.parts.text(*file);
        Some(CodeFrame {
            kind: CodeKind::User,
            function: self.parts.text(*name),
            module: Some(file).filter(|file| !file.is_empty()),
            line: i32::try_from(line).ok().filter(|line| *line > 0),
        })
    }

    /// Frame for code without a symbol: if it were left out, its time would be attributed to the
    /// caller.
    fn address(&self, place: &Place) -> CodeFrame {
        let file = self.parts.files.get(&place.file);
        let file = file.map(|file| self.parts.text(*file));
        CodeFrame {
            kind: CodeKind::User,
            function: format!("0x{:x}", place.address),
            module: file.filter(|file| !file.is_empty()),
            line: None,
        }
    }

    /// From the labels: name and id of a thread, else all labels.
    fn thread(&mut self, labels: &[[u64; 3]]) -> SampledThread {
        let mut thread = SampledThread::default();
        let mut others: Vec<String> = Vec::new();
        for [key, text, number] in labels {
            let (key, text) = (self.parts.text(*key), self.parts.text(*text));
            if THREAD_NAMES.contains(&key.as_str()) && !text.is_empty() {
                thread.name = Some(text);
            } else if THREAD_IDS.contains(&key.as_str()) {
                let tid = if text.is_empty() {
                    i32::try_from(*number).ok()
                } else {
                    text.parse().ok()
                };
                thread.tid = tid.filter(|tid| *tid > 0);
            } else if !text.is_empty() {
                others.push(format!("{key}={text}"));
            }
        }
        if thread.name.is_none() {
            others.index_sort();
            thread.name = Some(others.join(" ")).filter(|name| !name.is_empty());
        }
        if thread.tid.is_none() {
            let name = thread.name.get_or_insert_with(|| "all".to_owned());
            let next = self.threads.len() as i64 + 1;
            thread.runtime_id = Some(*self.threads.entry(name.clone()).or_insert(next));
        }
        thread
    }
}
