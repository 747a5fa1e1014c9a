//! Files of trace-cmd (`trace.dat`), versions 6 and 7: the pages of the kernel's ring buffers, one
//! list per CPU, with the metadata required to read them before and after.
//!
//! Pages are read one at a time, and the lists of all CPUs and instances are merged by time, so
//! memory does not grow with the file.

mod field_reader;
mod head;
mod meta;
mod packed;
mod page;
mod pages;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::Path;

use whyslow_model::Ns;
use whyslow_model::event::{Body, Context, Event, Loss, LossKind};
use whyslow_model::stat;

use super::streamed::{Item, Note, Streamed, Summary};
use super::task_state;
use super::tracepoint::raw::{RawClass, number};
use super::tracepoint::{Facts, abi_of};
pub use head::is_trace_dat;
use meta::{Buffer, Layout, Meta, Span};
use page::{Cursor, Missed, Record};
use pages::{Damage, Packing, Pages};

/// Clocks that do not count nanoseconds.
const COUNTERS: [&str; 3] = ["counter", "uptime", "x86-tsc"];
/// Number of last pages, or page chunks, that are searched for the last event.
const LAST_PAGES: [u64; 3] = [1, 16, 256];
const ID_BYTES: usize = 2;
/// Default offset of the tid in an event.
const TID_AT: usize = 4;

/// Reason why a trace.dat file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum TraceDatError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The header is inconsistent or of an unknown form.
    #[error("{what} at byte {at}")]
    Strange {
        /// Offset in the file.
        at: u64,
        /// The problem found there.
        what: &'static str,
    },
    /// The header is truncated.
    #[error(
        "the header is truncated at byte {at}: trace-cmd did not finish the file, or the copy is incomplete"
    )]
    Cut {
        /// Offset in the file.
        at: u64,
    },
}

/// A trace.dat file, read as a stream in time order.
pub struct TraceDatSource {
    file: File,
    len: u64,
    meta: Meta,
    cpus: Vec<Cpu>,
    /// The next event of each CPU.
    heap: BinaryHeap<Reverse<(Ns, usize)>>,
    /// Index of the class by event id, and the classes.
    places: HashMap<u16, usize>,
    classes: Vec<Class>,
    clock: Clock,
    /// Threads whose name is known, from an event or from the saved command lines.
    named: HashSet<i32>,
    counts: Counts,
}

struct Class {
    raw: RawClass,
    tid_at: usize,
    count: u64,
}

#[derive(Debug, Default)]
struct Counts {
    records: u64,
    unknown: u64,
    cut: u64,
    unused: u64,
    broken_pages: (u64, Option<u64>),
    lost: u64,
}

/// One CPU of one instance.
struct Cpu {
    number: i32,
    pages: Pages,
    cursor: Option<Cursor>,
    next: Option<Record>,
    /// Time of the previous event, and the events lost since.
    before: Option<Ns>,
    missed: Option<Missed>,
}

/// Conversion of file timestamps to wall-clock time.
#[derive(Debug, Clone, Copy, Default)]
struct Clock {
    tsc: Option<(u32, u32)>,
    offset: Ns,
    is_known: bool,
}

impl Clock {
    fn time(self, ts: u64) -> Ns {
        let ns = match self.tsc {
            Some((factor, shift)) => {
                let ns = (u128::from(ts) * u128::from(factor)) >> shift.min(127);
                Ns::try_from(ns).unwrap_or(Ns::MAX)
            }
            None => Ns::try_from(ts).unwrap_or(Ns::MAX),
        };
        ns.saturating_add(self.offset)
    }
}

impl TraceDatSource {
    /// `written` is the modification time of the file, in ns since 1970.
    pub fn open(path: &Path, written: Option<Ns>, shift: Ns) -> Result<Self, TraceDatError> {
        let file = File::open(path)?;
        let meta = head::read(&file)?;
        check_spans(&meta, file.metadata()?.len())?;
        let (places, classes) = classes(&meta);
        let mut source = Self {
            len: file.metadata()?.len(),
            cpus: Vec::new(),
            heap: BinaryHeap::new(),
            places,
            classes,
            clock: Clock {
                tsc: meta.options.tsc,
                offset: meta.options.offset_ns,
                is_known: meta.options.date_ns.is_some(),
            },
            named: HashSet::new(),
            counts: Counts::default(),
            file,
            meta,
        };
        let date = match (source.meta.options.date_ns, written) {
            (Some(date), _) => date,
            (None, Some(written)) => written.saturating_sub(source.last_ts()?),
            (None, None) => 0,
        };
        let offset = &mut source.clock.offset;
        *offset = offset.saturating_add(date).saturating_add(shift);
        let cpus = source
            .spans()
            .map(|(buffer, span)| source.open_cpu(buffer, span));
        source.cpus = cpus.collect::<io::Result<_>>()?;
        for place in 0..source.cpus.len() {
            source.advance(place)?;
        }
        Ok(source)
    }

    fn spans(&self) -> impl Iterator<Item = (&Buffer, Span)> {
        let buffers = self.meta.buffers.iter();
        let spans = buffers.flat_map(|buffer| buffer.cpus.iter().map(move |span| (buffer, *span)));
        spans.filter(|(_, span)| span.size > 0)
    }

    fn open_cpu(&self, buffer: &Buffer, span: Span) -> io::Result<Cpu> {
        let packing = Packing {
            compression: self.meta.compression,
            is_big_endian: self.meta.layout.is_big_endian,
            cpus: self.spans().count(),
        };
        Ok(Cpu {
            number: span.cpu,
            pages: Pages::new(&self.file, buffer, span, packing)?,
            cursor: None,
            next: None,
            before: None,
            missed: None,
        })
    }

    /// Time of the last event, in the clock of the file.
    fn last_ts(&self) -> io::Result<Ns> {
        let mut last = 0;
        for (buffer, span) in self.spans() {
            // The last pages may be empty.
            for back in LAST_PAGES {
                let mut cpu = self.open_cpu(buffer, span)?;
                cpu.pages.seek_last(&self.file, back)?;
                let mut found = None;
                let mut broken = (0, None);
                while cpu.fill(&self.file, self.meta.layout, &mut broken)? {
                    found = cpu.next.map(|record| self.clock.time(record.ts));
                }
                if let Some(found) = found {
                    last = last.max(found);
                    break;
                }
            }
        }
        Ok(last)
    }

    /// Reads ahead to the next event of a CPU.
    fn advance(&mut self, place: usize) -> io::Result<()> {
        let cpu = &mut self.cpus[place];
        let layout = self.meta.layout;
        if cpu.fill(&self.file, layout, &mut self.counts.broken_pages)?
            && let Some(next) = cpu.next
        {
            self.heap.push(Reverse((self.clock.time(next.ts), place)));
        }
        Ok(())
    }

    fn record(&mut self, place: usize, ts: Ns, take: &mut dyn FnMut(Item<'_>)) {
        let cpu = &mut self.cpus[place];
        let Some(record) = cpu.next else { return };
        self.counts.records += 1;
        if let Some(Missed(missed)) = cpu.missed.take() {
            self.counts.lost = self.counts.lost.saturating_add(missed.unwrap_or(0));
            take(Item::Loss(Loss {
                ts: cpu.before.unwrap_or(ts).min(ts),
                ts_end: Some(ts),
                cpu: Some(cpu.number),
                stream: "trace-cmd",
                kind: LossKind::Events,
                count: missed.map(|count| i64::try_from(count).unwrap_or(i64::MAX)),
            }));
        }
        cpu.before = Some(ts);
        let raw = &cpu.pages.page[record.begin..record.end];
        let is_big_endian = self.meta.layout.is_big_endian;
        let id = raw
            .get(..ID_BYTES)
            .and_then(|bytes| number(bytes, false, is_big_endian));
        let found = id.and_then(|id| self.places.get(&(id as u16)));
        let Some(class) = found.map(|found| &mut self.classes[*found]) else {
            self.counts.unknown += 1;
            return;
        };
        class.count += 1;
        let tid = raw
            .get(class.tid_at..class.tid_at + 4)
            .and_then(|bytes| number(bytes, true, is_big_endian))
            .map(|tid| tid as i32)
            .filter(|tid| *tid >= 0);
        let (mut arrays, mut args) = Default::default();
        let Some(body) = class.raw.body(raw, &mut arrays, &mut args) else {
            self.counts.cut += 1;
            return;
        };
        if class.raw.is_unused() {
            self.counts.unused += 1;
        }
        names_of(&body, &mut self.named);
        let comm = tid
            .filter(|tid| self.named.insert(*tid))
            .and_then(|tid| self.meta.comms.get(&tid));
        let context = Context {
            tid,
            comm: comm.map(Vec::as_slice),
            interrupt: class.raw.interrupt(raw),
            ..Context::default()
        };
        take(Item::Event(Event {
            ts,
            cpu: Some(cpu.number),
            context,
            body,
        }));
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        let options = &self.meta.options;
        let mut facts = vec![("trace_cmd_file_version", self.meta.version.to_string())];
        if let Some(uname) = &options.uname {
            let mut words = uname.split(' ');
            let _system = words.next();
            facts.extend(words.next().map(|host| ("hostname", host.to_owned())));
            let release = words.next();
            facts.extend(release.map(|release| ("kernel_release", release.to_owned())));
            let arch = words.next_back();
            facts.extend(arch.map(|arch| ("architecture", arch.to_owned())));
        }
        let texts = [
            ("trace_cmd_version", &options.version),
            ("trace_clock", &options.clock),
        ];
        let texts = texts.into_iter();
        facts.extend(texts.filter_map(|(key, text)| Some((key, text.clone()?))));
        facts
    }

    fn damage(&self) -> Damage {
        let mut all = Damage::default();
        for cpu in &self.cpus {
            all.bytes += cpu.pages.damage.bytes;
            all.offset = all.offset.or(cpu.pages.damage.offset);
        }
        all
    }

    fn notes(&self) -> Vec<Note> {
        let (counts, options) = (&self.counts, &self.meta.options);
        let damage = self.damage();
        let lost = Note::new(&stat::TRACEDAT_LOST_BYTES, damage.bytes);
        let (parts, offset) = self.meta.damaged;
        let (pages, page) = counts.broken_pages;
        let clock = options.clock.as_deref().unwrap_or("local");
        let is_counter = COUNTERS.contains(&clock) && options.tsc.is_none();
        let clocks = Note::new(&stat::TRACEDAT_CLOCK_COUNTS, u64::from(is_counter));
        let is_guessed = !self.clock.is_known && counts.records > 0;
        let uncounted = options.discarded.saturating_sub(counts.lost);
        vec![
            lost.at(damage.offset, format!("{} bytes", damage.bytes)),
            Note::new(&stat::TRACEDAT_PART_DAMAGED, parts).at(offset, String::new()),
            Note::new(&stat::TRACEDAT_PAGE_DAMAGED, pages).at(page, String::new()),
            Note::new(&stat::EVENT_UNKNOWN_ID, counts.unknown),
            Note::new(&stat::EVENT_FIELD_MISSING, counts.cut),
            Note::new(&stat::EVENT_NOT_USED, counts.unused),
            Note::new(&stat::TRACEDAT_OVERRUN, uncounted),
            Note::new(&stat::TRACEDAT_GUEST, u64::from(options.has_time_shift)),
            Note::new(&stat::TRACEDAT_CLOCK_GUESSED, u64::from(is_guessed)),
            clocks.at(None, format!("clock {clock}")),
        ]
    }
}

impl Cpu {
    /// Finds the next event, on this or a following page.
    fn fill(
        &mut self,
        file: &File,
        layout: Layout,
        broken: &mut (u64, Option<u64>),
    ) -> io::Result<bool> {
        let mut spoilt = |at| {
            broken.0 += 1;
            broken.1.get_or_insert(at);
        };
        loop {
            if let Some(cursor) = &mut self.cursor {
                match cursor.next(&self.pages.page, layout) {
                    Ok(Some(record)) => {
                        self.next = Some(record);
                        return Ok(true);
                    }
                    Ok(None) => {}
                    Err(_) => spoilt(self.pages.page_at),
                }
            }
            self.cursor = None;
            self.next = None;
            if !self.pages.next(file)? {
                return Ok(false);
            }
            match Cursor::new(&self.pages.page, layout) {
                Ok(cursor) => {
                    self.missed = self.missed.or(cursor.missed);
                    self.cursor = Some(cursor);
                }
                Err(_) => spoilt(self.pages.page_at),
            }
        }
    }
}

impl Streamed for TraceDatSource {
    fn next_ts(&mut self) -> io::Result<Option<Ns>> {
        Ok(self.heap.peek().map(|Reverse((ts, _))| *ts))
    }

    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool> {
        let Some(Reverse((ts, place))) = self.heap.pop() else {
            return Ok(false);
        };
        self.record(place, ts, take);
        self.advance(place)?;
        Ok(true)
    }

    fn progress(&self) -> (u64, u64) {
        let left: u64 = self.cpus.iter().map(|cpu| cpu.pages.left()).sum();
        (self.len.saturating_sub(left), self.len)
    }

    fn summary(&self) -> Summary {
        let mut counts = BTreeMap::new();
        for class in self.classes.iter().filter(|class| class.count > 0) {
            *counts.entry(class.raw.name.clone()).or_default() += class.count;
        }
        Summary {
            facts: self.facts(),
            counts,
            records: self.counts.records,
            skipped: self.counts.unknown + self.counts.cut,
            notes: self.notes(),
        }
    }
}

/// Data of different CPUs does not overlap, so the buffered pages are not larger than the file.
fn check_spans(meta: &Meta, len: u64) -> Result<(), TraceDatError> {
    let spans = meta.buffers.iter().flat_map(|buffer| &buffer.cpus);
    let sizes = spans.map(|span| {
        let end = span.offset.saturating_add(span.size).min(len);
        end - span.offset.min(end)
    });
    if sizes.fold(0, u64::saturating_add) > len {
        let what = "overlapping data of different CPUs";
        return Err(TraceDatError::Strange { at: 0, what });
    }
    Ok(())
}

/// Definitions of the events by id.
fn classes(meta: &Meta) -> (HashMap<u16, usize>, Vec<Class>) {
    let uname = meta.options.uname.as_deref().unwrap_or_default();
    let facts = Facts {
        kernel: uname.split(' ').nth(2).and_then(task_state::kernel_version),
        abi: uname.split(' ').next_back().and_then(abi_of),
        prio_base: 0,
        pids_are_tids: true,
    };
    let names: HashSet<&str> = meta
        .formats
        .iter()
        .map(|format| format.name.as_str())
        .collect();
    let (mut places, mut classes) = (HashMap::new(), Vec::new());
    for format in &meta.formats {
        let Ok(id) = u16::try_from(format.id) else {
            continue;
        };
        let is_big_endian = meta.layout.is_big_endian;
        let raw = RawClass::new(format, facts, is_big_endian, |name| names.contains(name));
        // The tracers' own events may have the names of other events.
        let raw = if format.system == "ftrace" {
            raw.unused()
        } else {
            raw
        };
        places.insert(id, classes.len());
        classes.push(Class {
            raw,
            tid_at: format
                .field("common_pid")
                .map_or(TID_AT, |field| field.offset),
            count: 0,
        });
    }
    (places, classes)
}

/// Threads that are named in an event; the saved command lines contain the last names only.
fn names_of(body: &Body<'_>, named: &mut HashSet<i32>) {
    match body {
        Body::SchedSwitch {
            prev_tid, next_tid, ..
        } => {
            named.insert(*prev_tid);
            named.insert(*next_tid);
        }
        Body::SchedWakeup { tid, .. } | Body::CommChange { tid, .. } => {
            named.insert(*tid);
        }
        Body::Fork { child_tid, .. } => {
            named.insert(*child_tid);
        }
        _ => {}
    }
}
