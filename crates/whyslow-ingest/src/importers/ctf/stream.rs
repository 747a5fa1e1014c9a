//! The events of one stream, packet by packet, file by file.
//!
//! A stream is a list of files (several if the tracer rotated them). Only a window of the file is
//! in memory. If the window ends inside an event, it moves to the start of that event, and grows if
//! the event is larger.
//!
//! After a damaged packet the reader searches for the signature of the trace's packets. The bytes
//! before it count as lost, because their number of events is unknown.

mod boundary;
mod discarded;

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use whyslow_model::stat::{self, Stat};

use super::consumer::{Domain, Loss, LossKind, Trace};
use super::cycles::CyclesToNs;
use super::decode::{Cursor, Output, Stop, decode};
use super::decoded::DecodedEvent;
use super::error::CtfError;
use super::index::PacketIndex;
use super::packet::{Packet, PacketFault, read_packet};
use super::plan::{Plan, PlanError};
use super::resync;
use super::schema::{Schema, StreamSchema};
use super::tally::Tally;
use super::want::Want;
use super::window::{WINDOW_BYTES_MAX, Window, aligned_down};
use discarded::Discarded;

/// Maximum size of a packet header.
const PACKET_HEADER_BYTES_MAX: usize = 64 << 10;
/// Bytes read to check for a packet.
const PROBE_BYTES: usize = 4 << 10;

/// One file of a stream.
#[derive(Debug, Clone)]
pub(super) struct StreamFile {
    pub(super) path: PathBuf,
    /// Index into the schemas.
    pub(super) trace: usize,
    pub(super) bytes: u64,
}

/// Shared by all streams.
pub(super) struct Plans<'a> {
    /// One per trace.
    pub(super) schemas: &'a [Schema],
    pub(super) traces: &'a [Trace],
    /// Trace, stream class and event class of each class.
    pub(super) places: &'a [(usize, usize, usize)],
    /// One per event class of all traces.
    pub(super) wants: Vec<Want>,
    /// Compiled at the first event of a class: most classes of a trace never occur.
    pub(super) classes: Vec<OnceCell<Result<Plan, PlanError>>>,
}

impl Plans<'_> {
    #[inline]
    fn class(&self, class: usize, output: &mut Output) -> Result<&Plan, &PlanError> {
        match self.classes[class].get() {
            Some(plan) => plan.as_ref(),
            None => self.compile(class, output),
        }
    }

    #[cold]
    fn compile(&self, class: usize, output: &mut Output) -> Result<&Plan, &PlanError> {
        let (trace, stream, event) = self.places[class];
        let plan = self.classes[class].get_or_init(|| {
            let place = (stream, event);
            self.schemas[trace].plan(&self.traces[trace].class, place, &self.wants[class])
        });
        if let Ok(plan) = plan {
            output.reserve(plan);
        }
        plan.as_ref()
    }
}

/// State of the reader that a stream needs.
pub(super) struct Shared<'a> {
    pub(super) plans: &'a Plans<'a>,
    pub(super) output: &'a mut Output,
    pub(super) report: &'a mut Report,
}

/// What streams report in addition to events.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) tally: Tally,
    pub(super) losses: Vec<Loss>,
    /// There are losses or progress since this was set to false.
    pub(super) is_changed: bool,
    pub(super) bytes_done: u64,
    pub(super) packets: u64,
    /// Number of decoded events by class.
    pub(super) counts: Vec<u64>,
}

/// The current event of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Head {
    ts: i64,
    class: usize,
    /// Bit offset of its header in the window.
    begin: usize,
    /// Bit offset of its contexts and payload.
    body: usize,
}

pub(super) struct StreamReader {
    /// Index among all streams.
    index: usize,
    files: Vec<StreamFile>,
    file: usize,
    /// File offset where the next packet should start.
    next: u64,
    window: Window,
    window_bytes: usize,
    cursor: Cursor,
    packet: Option<Packet>,
    clock: Option<CyclesToNs>,
    /// `end_cycles` of the packet, if plausible; otherwise the maximum.
    believed_end: u64,
    ts_last: i64,
    /// Set while the packet is one in which the tracer discarded events.
    discarded: Option<Discarded>,
    past: Past,
    packet_index: Option<PacketIndex>,
    head: Head,
}

/// State from the previous packet.
#[derive(Debug, Default)]
struct Past {
    discarded: Option<u64>,
    sequence: Option<u64>,
    /// The later of its declared end and its last event.
    end: Option<i64>,
    /// Latest start of a packet in cycles, and the same in the previous files.
    begin: Option<u64>,
    files_begin: Option<u64>,
}

impl StreamReader {
    pub(super) fn new(index: usize, files: Vec<StreamFile>, window_bytes: usize) -> StreamReader {
        let window = Window::new(files.first().map_or(Path::new(""), |file| &file.path));
        StreamReader {
            index,
            files,
            file: 0,
            next: 0,
            window,
            window_bytes,
            cursor: Cursor::default(),
            packet: None,
            clock: None,
            believed_end: u64::MAX,
            ts_last: i64::MIN,
            discarded: None,
            past: Past::default(),
            packet_index: None,
            head: Head::default(),
        }
    }

    /// Time of the event at which [`Self::advance`] stopped.
    pub(super) fn ts(&self) -> i64 {
        self.head.ts
    }

    /// Advances to the next requested event; others are skipped and counted. False at the end of
    /// the stream.
    pub(super) fn advance(&mut self, shared: &mut Shared<'_>) -> Result<bool, CtfError> {
        loop {
            let Some(packet) = &self.packet else {
                if !self.open_packet(shared)? {
                    return Ok(false);
                }
                continue;
            };
            let stream_class = packet.stream_class;
            let trace = self.files[self.file].trace;
            let stream = &shared.plans.schemas[trace].streams[stream_class];
            if self.cursor.at >= self.cursor.end {
                if self.slide(self.cursor.at)?.is_none() {
                    self.close_packet(shared.report);
                }
                continue;
            }
            let begin = self.cursor.at;
            let cycles = self.cursor.cycles;
            self.cursor.event_id = stream.default_id;
            if let Err(stop) = self.decode_header(stream, shared.output) {
                self.cursor.cycles = cycles;
                self.cursor.at = begin;
                if stop == Stop::Invalid || self.slide(begin)?.is_none() {
                    self.give_up(begin, &stat::EVENT_UNDECODABLE, shared.report);
                }
                continue;
            }
            let Some(class) = stream.class(self.cursor.event_id) else {
                self.give_up(begin, &stat::EVENT_UNKNOWN_ID, shared.report);
                continue;
            };
            let ts = stream
                .clock
                .as_ref()
                .map_or(0, |clock| clock.ns(self.cursor.cycles));
            let body = self.cursor.at;
            self.head = Head {
                ts,
                class,
                begin,
                body,
            };
            self.check_time(ts, begin, shared.report);
            if shared.plans.wants[class] != Want::Nothing {
                return Ok(true);
            }
            self.decode_body(shared)?;
        }
    }

    #[inline]
    fn decode_header(&mut self, stream: &StreamSchema, output: &mut Output) -> Result<(), Stop> {
        let bytes = self.window.bytes();
        if let Some(header) = &stream.two_forms {
            return header.decode(bytes, &mut self.cursor).ok_or(Stop::Short);
        }
        match &stream.event_header {
            Some(plan) => decode(plan, bytes, &mut self.cursor, output),
            None => Ok(()),
        }
    }

    /// Decodes the fields of the event that [`Self::advance`] found. False if they could not be
    /// decoded: then the event is counted as such and the rest of its packet is skipped.
    pub(super) fn decode_body(&mut self, shared: &mut Shared<'_>) -> Result<bool, CtfError> {
        let class = self.head.class;
        let Ok(plan) = shared.plans.class(class, shared.output) else {
            self.give_up(self.head.begin, &stat::EVENT_UNDECODABLE, shared.report);
            return Ok(false);
        };
        loop {
            let bytes = self.window.bytes();
            match decode(plan, bytes, &mut self.cursor, shared.output) {
                Ok(()) if self.cursor.at > self.head.begin => {
                    shared.report.counts[class] += 1;
                    return Ok(true);
                }
                Err(Stop::Short) => {
                    if let Some(moved) = self.slide(self.head.begin)? {
                        self.head.begin -= moved;
                        self.head.body -= moved;
                        self.cursor.at = self.head.body;
                        continue;
                    }
                }
                // An event without any bit would repeat forever.
                Ok(()) | Err(Stop::Invalid) => {}
            }
            self.give_up(self.head.begin, &stat::EVENT_UNDECODABLE, shared.report);
            return Ok(false);
        }
    }

    /// The current event, after its body was decoded.
    #[inline]
    pub(super) fn event<'a>(&'a self, shared: &'a Shared<'_>) -> DecodedEvent<'a> {
        let head = &self.head;
        let plan = shared.plans.classes[head.class].get();
        let slots = plan
            .and_then(|plan| plan.as_ref().ok())
            .map_or(0, |plan| plan.slots);
        DecodedEvent {
            ts: head.ts,
            cpu: self.packet.as_ref().and_then(|packet| packet.cpu),
            class: head.class,
            trace: self.files[self.file].trace,
            stream: self.index,
            offset: self.window.begin() + (head.begin / 8) as u64,
            slots: &shared.output.slots[..slots],
            window: self.window.bytes(),
            columns: &shared.output.columns,
            reader: self,
            plans: shared.plans,
            body: head.body,
        }
    }

    /// End of the packet's part in the window, in bits.
    pub(super) fn end(&self) -> usize {
        self.cursor.end
    }

    /// Lengths and selectors as last decoded.
    pub(super) fn registers(&self) -> &[u64] {
        &self.cursor.registers
    }

    #[inline]
    fn check_time(&mut self, ts: i64, begin: usize, report: &mut Report) {
        if ts < self.ts_last {
            let place = self.window.begin() + (begin / 8) as u64;
            let ts_last = self.ts_last;
            report
                .tally
                .add_with(&stat::TIME_BACKWARDS, self.window.path(), place, || {
                    format!("{} ns earlier", ts_last.saturating_sub(ts))
                });
        }
        if self.cursor.cycles > self.believed_end {
            let place = self.window.begin() + (begin / 8) as u64;
            report
                .tally
                .add(&stat::EVENT_AFTER_PACKET_END, self.window.path(), place);
        }
        if let (Some(discarded), Some(packet)) = (&mut self.discarded, &self.packet) {
            let bits = (self.window.begin() - packet.begin) * 8;
            discarded.event(bits + begin as u64, ts);
        }
        self.ts_last = ts;
    }

    /// Moves the window to start at or shortly before bit `keep`, or enlarges it. Returns the
    /// number of bits moved; none if it already ends with the packet's content.
    fn slide(&mut self, keep: usize) -> Result<Option<usize>, CtfError> {
        let Some(packet) = &self.packet else {
            return Ok(None);
        };
        let begin = self.window.begin() - packet.begin;
        let content_end = packet.content_bits.div_ceil(8);
        let end = begin + self.window.len() as u64;
        if end >= content_end {
            return Ok(None);
        }
        let new_begin = begin + aligned_down((keep / 8) as u64);
        let mut len = self.window_bytes;
        if new_begin == begin {
            len = (self.window.len() * 2).clamp(self.window_bytes, WINDOW_BYTES_MAX);
            if len <= self.window.len() {
                return Ok(None);
            }
        }
        let len_max = (content_end - new_begin).min(len as u64) as usize;
        let packet_begin = packet.begin;
        self.fill(packet_begin + new_begin, len_max)?;
        if new_begin + (self.window.len() as u64) <= end {
            // The file was truncated after it was opened.
            return Ok(None);
        }
        self.limit_cursor();
        let moved = (new_begin - begin) as usize * 8;
        self.cursor.at -= moved.min(self.cursor.at);
        Ok(Some(moved))
    }

    fn fill(&mut self, begin: u64, len: usize) -> Result<(), CtfError> {
        self.window
            .fill(begin, len)
            .map_err(|error| CtfError::read(self.window.path(), error))
    }

    /// The cursor's end is that of the window or of the packet's content.
    fn limit_cursor(&mut self) {
        let Some(packet) = &self.packet else { return };
        let window_begin = (self.window.begin() - packet.begin) * 8;
        let content = packet.content_bits.saturating_sub(window_begin);
        self.cursor.end = content.min(self.window.len() as u64 * 8) as usize;
    }

    /// Counts an undecodable part and leaves the packet.
    fn give_up(&mut self, begin: usize, stat: &'static Stat, report: &mut Report) {
        let Some(packet) = &self.packet else { return };
        let place = self.window.begin() + (begin / 8) as u64;
        let id = self.cursor.event_id;
        report
            .tally
            .add_with(stat, self.window.path(), place, || format!("event id {id}"));
        let lost = (packet.begin + packet.content_bits.div_ceil(8)).saturating_sub(place);
        let end = self.declared_end(packet).unwrap_or(self.ts_last);
        self.lose(
            LossKind::Bytes(lost),
            (self.ts_last, end.max(self.ts_last)),
            report,
        );
        self.close_packet(report);
    }
}
