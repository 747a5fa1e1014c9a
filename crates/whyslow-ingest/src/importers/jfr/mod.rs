//! Recordings of the Java Flight Recorder and of async-profiler.
//!
//! A file consists of chunks, each with a header, events, the types that describe their layout, and
//! the constants (threads, stacks, names) that they refer to. Chunks are independent: keys of one
//! are invalid in the next, except those of async-profiler, which persist.
//!
//! Nothing in a file is trusted: lengths are checked before memory is allocated, and a chunk with a
//! wrong header (it is written at the end of the chunk, and never if the program is killed) is
//! scanned for its contents. What is lost is counted ([`Damage`]).

mod bytes;
mod chunk;
mod events;
mod interval;
mod keyed;
mod metadata;
mod pools;
mod runtime;
mod stacks;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use rustc_hash::FxHashSet;
use whyslow_model::Ns;

use self::bytes::Cursor;
use self::chunk::{Chunk, HEADER_BYTES, MAGIC};
use self::events::{Fields, Meaning, Plans, Role, SampleFields};
use self::metadata::Types;
use self::pools::{Constants, Pools};
use self::stacks::{Carried, ResolvedConstants, StateWord};
use crate::profile::{Point, Profile, SampleKind, SampledState};

/// Whether a file starting with `head` is a JFR recording.
pub fn is_recording(head: &[u8]) -> bool {
    head.starts_with(MAGIC)
}

/// Parts of a file that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Damage {
    /// Unfinished chunks, and the number of events found in each.
    pub unfinished: Vec<Place>,
    /// Bytes that belong to no chunk or event.
    pub lost: Vec<Place>,
    /// Chunks without a readable type description.
    pub unreadable: Vec<Place>,
    /// Constants that could not be read completely.
    pub constants: u64,
    /// Threads, stacks and methods without a definition.
    pub unresolved: u64,
    /// Stacks that were truncated when they were sampled.
    pub truncated: u64,
    /// Samples without a thread.
    pub no_thread: u64,
    /// Thread dumps without a text, or with a text beyond the memory limit.
    pub dumps: u64,
}

/// Location and size of a damaged part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Byte offset of the first one in the file.
    pub offset: usize,
    /// Number of bytes, or of events.
    pub count: u64,
}

/// Result of reading a file.
#[derive(Debug, Default)]
pub struct Read {
    /// Threads, stacks, samples and runtime events.
    pub profile: Profile,
    /// What could not be read.
    pub damage: Damage,
    /// Events by name, used or not.
    pub counts: BTreeMap<String, u64>,
    /// Texts of thread dumps.
    pub dumps: Vec<(Ns, String)>,
}

/// Reads a whole file.
pub fn read(bytes: &[u8]) -> Read {
    let mut reader = Reader::default();
    let (chunks, strays) = chunk::chunks(bytes);
    for stray in strays {
        reader.lose(&bytes[stray.begin..stray.end], stray.begin);
    }
    for chunk in &chunks {
        reader.chunk(&bytes[chunk.begin..chunk.end], chunk);
    }
    reader.finish()
}

/// The same for a file of this size, holding one chunk at a time in memory. None if a chunk does
/// not match its header: then all bytes must be scanned.
pub fn read_chunks(file: &File, bytes: u64) -> std::io::Result<Option<Read>> {
    let Some(chunks) = chunk::whole_chunks(file, bytes)? else {
        return Ok(None);
    };
    let mut reader = Reader::default();
    let mut buffer = Vec::new();
    for chunk in &chunks {
        buffer.resize(chunk.end - chunk.begin, 0);
        file.read_exact_at(&mut buffer, chunk.begin as u64)?;
        reader.chunk(&buffer, chunk);
    }
    Ok(Some(reader.finish()))
}

#[derive(Default)]
struct Reader {
    out: Read,
    /// Types of the previous chunk, with its version: a truncated chunk may have none.
    types: Option<((u16, u16), Types)>,
    carried: Carried,
    /// Settings of the recording, by event and name.
    settings: BTreeMap<String, Arc<str>>,
    /// async-profiler's own settings.
    own_settings: BTreeMap<String, Arc<str>>,
    /// Texts referred to by events, each stored once: a few bytes can repeat a long one.
    texts: FxHashSet<Arc<str>>,
    /// Bytes of thread dumps that may still be stored.
    dump_budget: usize,
    is_wall: bool,
    /// async-profiler distinguished wall-clock from CPU samples, by event or by thread state.
    is_kind_known: bool,
    /// There are batches without a duration.
    is_spanless: bool,
}

/// Result of scanning all events of a chunk.
#[derive(Default)]
struct Walk {
    metadata: Vec<usize>,
    checkpoints: Vec<usize>,
}

impl Reader {
    fn lose(&mut self, bytes: &[u8], offset: usize) {
        // A preallocated file ends with zeros.
        let count = bytes
            .iter()
            .rposition(|byte| *byte != 0)
            .map_or(0, |last| last + 1);
        if count > 0 {
            let count = count as u64;
            self.out.damage.lost.push(Place { offset, count });
        }
    }

    fn chunk(&mut self, bytes: &[u8], chunk: &Chunk) {
        let version = (chunk.header.major, chunk.header.minor);
        let mut walk = None;
        let types = chunk_types(bytes, chunk, &mut walk).or_else(|| {
            let before = self.types.take();
            before.and_then(|(of, types)| (of == version).then_some(types))
        });
        let Some(types) = types.filter(|_| chunk.header.is_compressed) else {
            let count = bytes.len() as u64;
            self.out.damage.unreadable.push(Place {
                offset: chunk.begin,
                count,
            });
            return;
        };
        let pools = chunk_pools(bytes, chunk, &types, &mut walk);
        let constants = Constants {
            bytes,
            types: &types,
            pools: &pools,
        };
        let is_async = types
            .classes
            .iter()
            .any(|class| class.name.starts_with("profiler."));
        // Upper limit of the total text size of the dumps in the chunk, in any encoding.
        let dumps_max = bytes.len().saturating_mul(3);
        self.dump_budget = self.dump_budget.saturating_add(dumps_max);
        let mut resolved = ResolvedConstants::new(constants, is_async);
        if is_async && !chunk.is_whole {
            resolved.carry(&self.carried);
        }
        let events = self.events(chunk, bytes, is_async, &mut resolved);
        self.out.profile.sort_points();
        if is_async {
            resolved.store_carried(&mut self.carried);
        }
        if !chunk.is_whole {
            let place = Place {
                offset: chunk.begin,
                count: events,
            };
            self.out.damage.unfinished.push(place);
        }
        self.out.damage.unresolved += resolved.unresolved;
        self.out.damage.truncated += resolved.truncated;
        self.out.damage.constants += pools.damaged;
        self.types = Some((version, types));
    }

    /// Reads all events of a chunk; returns their number.
    fn events(
        &mut self,
        chunk: &Chunk,
        bytes: &[u8],
        is_async: bool,
        resolved: &mut ResolvedConstants<'_>,
    ) -> u64 {
        let types = resolved.constants().types;
        let plans = Plans::new(types);
        let mut fields = Fields::new();
        let mut counts: rustc_hash::FxHashMap<i64, u64> = rustc_hash::FxHashMap::default();
        let (mut at, mut events) = (HEADER_BYTES, 0);
        let mut last = (i64::MIN, 0_u64);
        while let Some((id, body, next)) = event_at(bytes, at) {
            if id == last.0 {
                last.1 += 1;
            } else {
                *counts.entry(last.0).or_default() += last.1;
                last = (id, 1);
            }
            if let Some(plan) = plans.get(id) {
                // Fields cannot extend beyond the event.
                let mut cursor = Cursor::new(&bytes[..next], body);
                let read = if let Meaning::Sample(kind) = plan.meaning {
                    let read = plan.read_sample(types, &mut cursor);
                    read.map(|fields| {
                        let kind = if is_async { SampleKind::Wall } else { kind };
                        self.sample(chunk, (kind, is_async, plan.has_span), &fields, resolved);
                    })
                } else {
                    let read = plan.read(types, &mut cursor, &mut fields);
                    read.map(|()| self.other(chunk, plan.meaning, &fields, resolved))
                };
                if read.is_none() {
                    let place = Place {
                        offset: chunk.begin + at,
                        count: (next - at) as u64,
                    };
                    self.out.damage.lost.push(place);
                }
            }
            at = next;
            events += 1;
        }
        *counts.entry(last.0).or_default() += last.1;
        self.lose(&bytes[at..], chunk.begin + at);
        for (id, count) in counts {
            if count > 0 && id > 1 {
                let name = types.class(id).map(|class| class.name.clone());
                let name = name.unwrap_or_else(|| format!("unknown type {id}"));
                *self.out.counts.entry(name).or_default() += count;
            }
        }
        events
    }

    #[inline]
    fn sample(
        &mut self,
        chunk: &Chunk,
        (kind, is_async, has_span): (SampleKind, bool, bool),
        fields: &SampleFields,
        resolved: &mut ResolvedConstants<'_>,
    ) {
        let profile = &mut self.out.profile;
        let Some(thread) = resolved.thread(fields.number(Role::Thread), profile) else {
            self.out.damage.no_thread += 1;
            return;
        };
        let word = resolved.state(fields.number(Role::State));
        let credits = if has_span {
            fields.number(Role::Samples).clamp(1, 1 << 30)
        } else {
            1
        };
        let span = chunk.header.span(fields.number(Role::Span)).max(0);
        let kind = match word {
            // async-profiler samples CPU usage: no thread sleeps.
            StateWord::Default if is_async => SampleKind::Cpu,
            _ => kind,
        };
        self.is_wall |= is_async && kind == SampleKind::Wall;
        self.is_kind_known |= has_span || kind == SampleKind::Cpu;
        self.is_spanless |= credits > 1 && span == 0;
        let point = Point {
            ts: chunk.header.time(fields.number(Role::Start)),
            span,
            thread,
            stack: resolved.stack(fields.number(Role::Stack), profile),
            credits: credits as u32,
            kind,
            state: match word {
                StateWord::Sleeping => SampledState::Sleeping,
                StateWord::Runnable | StateWord::Default => SampledState::Running,
                StateWord::Other => SampledState::Unknown,
            },
            is_assumed: credits > 1,
        };
        profile.points.push(point);
    }

    fn finish(mut self) -> Read {
        let is_cpu = self.is_of_cpu();
        let profile = &mut self.out.profile;
        if is_cpu {
            self.is_wall = false;
            for point in &mut profile.points {
                if point.kind == SampleKind::Wall {
                    point.kind = SampleKind::Cpu;
                }
            }
        }
        let (interval, reported_by) = interval::find(&self.settings, self.is_wall, &profile.points);
        profile.interval = interval;
        if interval.is_some() {
            let fact = (
                "sample_interval_reported_by".to_owned(),
                reported_by.to_owned(),
            );
            profile.facts.push(fact);
        }
        if self.is_spanless {
            let interval = profile.interval.unwrap_or(0);
            for point in &mut profile.points {
                // Until 4.2 the count had no duration.
                if point.credits > 1 && point.span == 0 {
                    point.span = interval.saturating_mul(i64::from(point.credits));
                }
            }
        }
        for (name, value) in self.own_settings {
            let fact = (format!("setting.{name}"), value.to_string());
            profile.facts.push(fact);
        }
        if self.is_spanless || is_cpu {
            profile.sort();
        } else {
            profile.sort_rest();
        }
        self.out
    }
}

/// Layout of a chunk's events: from the offset in its header, else its start, else by a scan.
fn chunk_types(bytes: &[u8], chunk: &Chunk, walk: &mut Option<Walk>) -> Option<Types> {
    let stated = usize::try_from(chunk.header.metadata_at).ok();
    let stated = stated.filter(|at| *at >= HEADER_BYTES);
    let mut first = stated.into_iter().chain([HEADER_BYTES]);
    first.find_map(|at| Types::read(bytes, at)).or_else(|| {
        let walk = walk.get_or_insert_with(|| scan_events(bytes));
        let mut last = walk.metadata.iter().rev();
        last.find_map(|at| Types::read(bytes, *at))
    })
}

fn chunk_pools(bytes: &[u8], chunk: &Chunk, types: &Types, walk: &mut Option<Walk>) -> Pools {
    let mut pools = Pools::default();
    let stated = usize::try_from(chunk.header.pools_at).ok();
    let stated = stated.filter(|at| *at >= HEADER_BYTES && chunk.is_whole);
    if let Some(last) = stated
        && pools.add_chain(bytes, last, types).is_some()
    {
        return pools;
    }
    let walk = walk.get_or_insert_with(|| scan_events(bytes));
    for at in &walk.checkpoints {
        if pools.add(bytes, *at, types).is_none() {
            pools.damaged += 1;
        }
    }
    pools
}

fn scan_events(bytes: &[u8]) -> Walk {
    let mut walk = Walk::default();
    let mut at = HEADER_BYTES;
    while let Some((id, _, next)) = event_at(bytes, at) {
        match id {
            0 => walk.metadata.push(at),
            1 => walk.checkpoints.push(at),
            _ => {}
        }
        at = next;
    }
    walk
}

/// The type of the event at `at`, the start of its fields, and of the next event.
#[inline]
fn event_at(bytes: &[u8], at: usize) -> Option<(i64, usize, usize)> {
    let mut cursor = Cursor::new(bytes, at);
    let size = usize::try_from(cursor.varint()?).ok()?;
    let next = at.checked_add(size).filter(|next| *next <= bytes.len())?;
    let id = cursor.varint()?;
    (cursor.at() <= next).then_some((id, cursor.at(), next))
}
