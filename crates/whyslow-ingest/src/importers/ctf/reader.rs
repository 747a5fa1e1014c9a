//! Reads the events of traces in time order.
//!
//! ```no_run
//! use whyslow_ingest::importers::ctf::consumer::Consumer;
//! use whyslow_ingest::importers::ctf::reader::CtfReader;
//!
//! fn read(consumer: &mut impl Consumer) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut reader = CtfReader::open("lttng-traces/auto-20260101".as_ref())?;
//!     for trace in reader.traces() {
//!         println!("{} {:?}", trace.layout, trace.domain);
//!     }
//!     let summary = reader.read(consumer)?;
//!     println!("{} events, {} skipped", summary.events_read, summary.events_skipped);
//!     Ok(())
//! }
//! ```

use std::cell::OnceCell;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use whyslow_model::stat::{self, Stat};

use super::assemble::assemble;
use super::class::EnvironmentValue;
use super::consumer::{ClassRef, Consumer, Domain, Trace};
use super::decode::Output;
use super::decoded::DecodedEvent;
use super::error::CtfError;
use super::layout::{TraceFolder, find_traces};
use super::merge::Merge;
use super::metadata::parse_metadata;
use super::schema::Schema;
use super::stream::{Plans, Report, Shared, StreamFile, StreamReader};
use super::tally::{Anomaly, Tally};
use super::want::{FieldName, Want};
use crate::archive::{self, Unpacked};

/// Memory for the windows of all streams together, unless single events need more.
const WINDOWS_BYTES: usize = 64 << 20;
/// Larger ones cost more in page faults than they save in calls.
const WINDOW_BYTES_DEFAULT: usize = 64 << 10;
const WINDOW_BYTES_MIN: usize = 16 << 10;

/// A stream: the output of one tracer buffer, in one file or several.
#[derive(Debug)]
pub struct Stream {
    /// Index into [`CtfReader::traces`], of the first file.
    pub trace: usize,
    /// In the order in which they are read.
    pub paths: Vec<PathBuf>,
    files: Vec<StreamFile>,
}

/// Open traces.
pub struct CtfReader {
    traces: Vec<Trace>,
    schemas: Vec<Schema>,
    /// Trace, stream class and event class of each class.
    classes: Vec<(usize, usize, usize)>,
    streams: Vec<Stream>,
    bytes_total: u64,
    tally: Tally,
    /// Deleted when the reader is dropped.
    unpacked: Vec<Unpacked>,
}

/// Counts of all records.
#[derive(Debug)]
pub struct Summary {
    /// Sum of the following.
    pub events_read: u64,
    /// Delivered to the consumer.
    pub events_delivered: u64,
    /// Decoded, of classes that the consumer did not request.
    pub events_unwanted: u64,
    /// Not decodable; each is also counted in `anomalies`.
    pub events_skipped: u64,
    /// Packets with a readable header.
    pub packets_read: u64,
    /// By class, delivered and unwanted.
    pub events_by_class: Vec<u64>,
    /// Found since the traces were opened.
    pub anomalies: Vec<Anomaly>,
    /// The consumer stopped.
    pub is_stopped: bool,
}

impl CtfReader {
    /// Opens all traces in a directory, an archive (tar, also compressed, or zip), or the trace of
    /// a `metadata` file.
    pub fn open(path: &Path) -> Result<CtfReader, CtfError> {
        let watch = &mut |_, _| ControlFlow::Continue(());
        CtfReader::open_sources(&[(0, path, 0)], watch)
    }

    /// Opens the traces of several sources, to be merged: number, path, and nanoseconds to add to
    /// all times. `watch` receives the progress of unpacking archives.
    pub fn open_sources(
        sources: &[(usize, &Path, i64)],
        watch: &mut archive::Watch<'_>,
    ) -> Result<CtfReader, CtfError> {
        let mut reader = CtfReader {
            traces: Vec::new(),
            schemas: Vec::new(),
            classes: Vec::new(),
            streams: Vec::new(),
            bytes_total: 0,
            tally: Tally::default(),
            unpacked: Vec::new(),
        };
        let mut files = Vec::new();
        for source in sources {
            let folder = reader.folder_of(source.1, watch)?;
            reader.open_source(*source, &folder, &mut files)?;
        }
        for files in assemble(
            &reader.traces,
            &mut reader.schemas,
            files,
            &mut reader.tally,
        )? {
            reader.streams.push(Stream {
                trace: files[0].trace,
                paths: files.iter().map(|file| file.path.clone()).collect(),
                files,
            });
        }
        Ok(reader)
    }

    fn open_source(
        &mut self,
        (source, path, shift_ns): (usize, &Path, i64),
        folder: &Path,
        files: &mut Vec<StreamFile>,
    ) -> Result<(), CtfError> {
        let folders = find_traces(folder)?;
        if folders.is_empty() {
            return Err(CtfError::NoTrace {
                path: path.to_owned(),
            });
        }
        let (before, mut refused) = (self.traces.len(), None);
        for folder in folders {
            match self.open_trace(&folder, source, shift_ns) {
                Ok(()) => self.stat_streams(&folder, files)?,
                Err(error) => {
                    let text = || error.to_string();
                    let stat = &stat::METADATA_DAMAGED;
                    self.tally.add_with(stat, &folder.metadata(), 0, text);
                    refused = refused.or(Some(error));
                }
            }
        }
        match refused {
            Some(error) if self.traces.len() == before => Err(error),
            _ => Ok(()),
        }
    }

    /// Directory of the traces of a source, unpacked if necessary.
    fn folder_of(
        &mut self,
        path: &Path,
        watch: &mut archive::Watch<'_>,
    ) -> Result<PathBuf, CtfError> {
        let about = fs::metadata(path).map_err(|error| CtfError::open(path, error))?;
        if about.is_dir() {
            return Ok(path.to_owned());
        }
        if path.file_name().is_some_and(|name| name == "metadata") {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            return Ok(folder.unwrap_or(Path::new(".")).to_owned());
        }
        let unpacked = archive::unpack_watched(path, watch)?;
        let folder = unpacked.path().to_owned();
        self.unpacked.push(unpacked);
        Ok(folder)
    }

    /// All traces, in the order in which they were found.
    pub fn traces(&self) -> &[Trace] {
        &self.traces
    }

    /// All streams of all traces.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// All event classes of all traces, by index.
    pub fn classes(&self) -> impl Iterator<Item = ClassRef<'_>> {
        (0..self.classes.len()).map(|index| self.class(index))
    }

    /// # Panics
    /// If there is no class with this index.
    pub fn class(&self, index: usize) -> ClassRef<'_> {
        let (trace_index, stream, event) = self.classes[index];
        let trace = &self.traces[trace_index];
        let stream = &trace.class.streams[stream];
        ClassRef {
            index,
            trace_index,
            trace,
            stream,
            event: &stream.events[event],
        }
    }

    /// Names of the slots that [`Want::Everything`] produces for a class.
    pub fn fields(&self, class: usize) -> Vec<FieldName> {
        let (trace, stream, event) = self.classes[class];
        let names = self.schemas[trace].field_names(&self.traces[trace].class, (stream, event));
        names.unwrap_or_default()
    }

    /// Anomalies found when the traces were opened.
    pub fn anomalies(&self) -> Vec<Anomaly> {
        self.tally.anomalies()
    }

    /// Reads all events from the start.
    pub fn read<C: Consumer + ?Sized>(&mut self, consumer: &mut C) -> Result<Summary, CtfError> {
        let plans = self.plans(consumer);
        let mut report = Report {
            counts: vec![0; self.classes.len()],
            ..Report::default()
        };
        let mut output = Output::default();
        let window_bytes = (WINDOWS_BYTES / self.streams.len().max(1))
            .clamp(WINDOW_BYTES_MIN, WINDOW_BYTES_DEFAULT);
        let streams = self.streams.iter().enumerate();
        let readers: Vec<StreamReader> = streams
            .map(|(index, stream)| StreamReader::new(index, stream.files.clone(), window_bytes))
            .collect();
        let shared = Shared {
            plans: &plans,
            output: &mut output,
            report: &mut report,
        };
        let mut merge = Merge::new(readers, shared, self.bytes_total);
        let flow = merge.run(consumer)?;
        let delivered = merge.delivered();
        Ok(self.summary(report, delivered, flow.is_break()))
    }

    fn plans<C: Consumer + ?Sized>(&self, consumer: &mut C) -> Plans<'_> {
        let wants: Vec<Want> = self.classes().map(|class| consumer.wants(&class)).collect();
        Plans {
            schemas: &self.schemas,
            traces: &self.traces,
            places: &self.classes,
            classes: wants.iter().map(|_| OnceCell::new()).collect(),
            wants,
        }
    }

    fn summary(&self, report: Report, delivered: u64, is_stopped: bool) -> Summary {
        let skips: u64 = [&stat::EVENT_UNDECODABLE, &stat::EVENT_UNKNOWN_ID]
            .into_iter()
            .map(|stat: &'static Stat| report.tally.count(stat))
            .sum();
        let decoded: u64 = report.counts.iter().sum();
        let mut tally = Tally::default();
        tally.merge(&self.tally);
        tally.merge(&report.tally);
        Summary {
            events_read: decoded + skips,
            events_delivered: delivered,
            events_unwanted: decoded - delivered,
            events_skipped: skips,
            packets_read: report.packets,
            events_by_class: report.counts,
            anomalies: tally.anomalies(),
            is_stopped,
        }
    }

    fn open_trace(
        &mut self,
        folder: &TraceFolder,
        source: usize,
        shift_ns: i64,
    ) -> Result<(), CtfError> {
        let path = folder.metadata();
        let bytes = fs::read(&path).map_err(|error| CtfError::open(&path, error))?;
        let parsed = parse_metadata(&bytes).map_err(|source| CtfError::Metadata {
            path: path.clone(),
            source,
        })?;
        for anomaly in &parsed.anomalies {
            let text = || anomaly.text.clone();
            self.tally
                .add_with(anomaly.stat, &path, anomaly.byte_offset, text);
        }
        let mut class = parsed.trace;
        for clock in &mut class.clocks {
            crate::clock::shift(clock, shift_ns);
        }
        let schema =
            Schema::new(&class, self.classes.len()).map_err(|source| CtfError::Packets {
                path: path.clone(),
                source,
            })?;
        let index = self.traces.len();
        for (stream_index, stream) in class.streams.iter().enumerate() {
            let events = 0..stream.events.len();
            self.classes
                .extend(events.map(|event| (index, stream_index, event)));
        }
        let same = |trace: &&Trace| class.uuid.is_some() && trace.class.uuid == class.uuid;
        let identity = self
            .traces
            .iter()
            .find(same)
            .map_or(index, |trace| trace.identity);
        let mut trace = Trace {
            class,
            path: folder.path.clone(),
            layout: folder.layout.clone(),
            domain: Domain::Unknown,
            source,
            shift_ns,
            identity,
        };
        trace.domain = domain(&trace);
        self.traces.push(trace);
        self.schemas.push(schema);
        Ok(())
    }

    fn stat_streams(
        &mut self,
        folder: &TraceFolder,
        files: &mut Vec<StreamFile>,
    ) -> Result<(), CtfError> {
        let trace = self.traces.len() - 1;
        for path in &folder.streams {
            let about = fs::metadata(path).map_err(|error| CtfError::open(path, error))?;
            self.bytes_total += about.len();
            files.push(StreamFile {
                path: path.clone(),
                trace,
                bytes: about.len(),
            });
        }
        Ok(())
    }
}

fn domain(trace: &Trace) -> Domain {
    match trace.environment("domain") {
        Some(EnvironmentValue::Text(name)) if name == "kernel" => Domain::Kernel,
        Some(EnvironmentValue::Text(name)) if name == "ust" => Domain::User,
        _ => Domain::Unknown,
    }
}

/// Decodes every field of every event and counts them: the cost of decoding alone.
pub fn decode_all(path: &Path) -> Result<Summary, CtfError> {
    CtfReader::open(path)?.read(&mut DecodeAll)
}

/// Requests every field and ignores it.
pub struct DecodeAll;

impl Consumer for DecodeAll {
    fn wants(&mut self, _: &ClassRef<'_>) -> Want {
        Want::Everything
    }

    fn event(&mut self, _: &DecodedEvent<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
