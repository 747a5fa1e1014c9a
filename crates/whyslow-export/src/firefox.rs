//! The processed profile format of the Firefox Profiler: stacks as samples weighted with their
//! time, long calls and requests as markers.
//!
//! <https://github.com/firefox-devtools/profiler/blob/main/docs-developer/CHANGELOG-formats.md>

use std::io::Write;
use std::ops::ControlFlow;
use std::time::Duration;

use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags,
    MarkerFieldFormat, MarkerTiming, Profile, ReferenceTimestamp, SamplingInterval,
    StaticSchemaMarker, StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp, WeightType,
};
use rustc_hash::FxHashMap;
use serde_json::Value;
use whyslow_analysis::{Filter, Kind, Query, Verb, each_row};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::ExportError;
use crate::perfetto::samples::gap_label;
use crate::profile::Thread;
use crate::stacks::{About, Callsites, FrameKind, StackQuery, each_sample};

/// Maximum number of markers: a browser keeps all of them in memory.
const MARKERS_MAX: u64 = 200_000;
/// Default minimum duration of markers.
const MARKER_MIN: Ns = 1_000_000;
/// Owner of times in which no thread was sampled.
const ALL_THREADS: &str = "all threads";

/// Writes the stacks of a query, and the long calls and requests; returns what the reader must know
/// about them.
pub fn write_firefox(
    tables: &dyn Tables,
    query: &StackQuery,
    name: &str,
    out: &mut dyn Write,
) -> Result<About, ExportError> {
    let mut made = Made::new(tables, query, name);
    let mut about = made.samples(tables, query)?;
    let wanted = Filter {
        dur_min: Some(query.filter.dur_min.unwrap_or(MARKER_MIN)),
        ..query.filter.clone()
    };
    let mut left = MARKERS_MAX;
    for kind in [Kind::Gaps, Kind::Syscalls, Kind::Block] {
        left = made.markers(tables, (kind, query.window, &wanted), left)?;
    }
    if left == 0 {
        about.caveats.push(format!(
            "only the first {MARKERS_MAX} calls and requests are included (select others with --min or -w)"
        ));
    }
    let document = made.into_json()?;
    serde_json::to_writer(&mut *out, &document)?;
    Ok(about)
}

struct Made {
    profile: Profile,
    begin: Ns,
    threads: FxHashMap<Thread, ThreadHandle>,
    processes: FxHashMap<Option<i64>, fxprof_processed_profile::ProcessHandle>,
    kernel: CategoryHandle,
    user: CategoryHandle,
    calls: CategoryHandle,
    unseen: CategoryHandle,
    /// Time of the samples in ns. The samples' weights are indexes into it for now, because the
    /// library accepts only integers.
    weights: Vec<Ns>,
}

impl Made {
    fn new(tables: &dyn Tables, query: &StackQuery, name: &str) -> Self {
        let begin = query
            .window
            .map_or(tables.info().begin_ns, |window| window.begin);
        let since = Duration::from_nanos(begin.max(0).unsigned_abs());
        let reference = ReferenceTimestamp::from_duration_since_unix_epoch(since);
        let mut profile = Profile::new(name, reference, SamplingInterval::from_millis(1));
        profile.set_os_name("Linux");
        // No symbolication: names come from the recording.
        profile.set_symbolicated(true);
        let kernel = profile.add_category("Kernel", CategoryColor::Orange);
        let user = profile.add_category("User", CategoryColor::Yellow);
        let calls = profile.add_category("Calls", CategoryColor::Blue);
        let unseen = profile.add_category("Not sampled", CategoryColor::Purple);
        Self {
            profile,
            begin,
            threads: FxHashMap::default(),
            processes: FxHashMap::default(),
            kernel,
            user,
            calls,
            unseen,
            weights: Vec::new(),
        }
    }

    fn samples(&mut self, tables: &dyn Tables, query: &StackQuery) -> Result<About, ExportError> {
        let callsites = Callsites::read(tables)?;
        let frames: Vec<(StringHandle, CategoryHandle)> = callsites
            .frames
            .iter()
            .map(|frame| {
                let category = match frame.kind {
                    FrameKind::Kernel => self.kernel,
                    _ => self.user,
                };
                (self.profile.intern_string(&frame.name), category)
            })
            .collect();
        let none = [(
            self.profile.intern_string("[no stack]"),
            CategoryHandle::OTHER,
        )];
        each_sample(tables, query, &mut |sample| {
            let thread = self.thread(sample.comm, sample.pid, sample.tid);
            let mut stack: Vec<_> = callsites
                .stack(sample.place())
                .into_iter()
                .filter_map(|place| frames.get(place).copied())
                .collect();
            if stack.is_empty() {
                stack.extend(none);
            }
            let frames = stack.into_iter().map(|(name, category)| FrameInfo {
                frame: Frame::Label(name),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            });
            let stack = self.profile.intern_stack_frames(thread, frames);
            let at = self.time(sample.begin);
            // More samples are too many for any browser.
            if let Ok(number) = i32::try_from(self.weights.len()) {
                self.weights.push(sample.dur);
                self.profile
                    .add_sample(thread, at, stack, CpuDelta::ZERO, number);
            }
        })
    }

    /// Writes rows of a log as markers; returns the remaining number of allowed markers.
    fn markers(
        &mut self,
        tables: &dyn Tables,
        (kind, window, filter): (Kind, Option<Window>, &Filter),
        mut left: u64,
    ) -> Result<u64, ExportError> {
        let info = tables.info();
        let table = match kind {
            Kind::Block => "block_io",
            Kind::Gaps => "sample_gap",
            _ => "syscall",
        };
        if info.tables.get(table).is_none_or(|table| table.rows == 0) {
            return Ok(left);
        }
        let query = Query {
            window,
            filter: filter.clone(),
            ..Query::new(kind, Verb::Log)
        };
        let columns: [&str; 7] = match kind {
            Kind::Block => ["ts_ns", "dur_ns", "comm", "pid", "tid", "op", "dev"],
            Kind::Gaps => ["ts_ns", "dur_ns", "comm", "pid", "tid", "class", "function"],
            _ => ["ts_ns", "dur_ns", "comm", "pid", "tid", "name", "path"],
        };
        let [ts, dur, comm, pid, tid, what, object] = columns;
        each_row(tables, &query, &columns, &mut |row| {
            let (Some(begin), Some(dur)) = (row.int(ts), row.int(dur)) else {
                return ControlFlow::Continue(());
            };
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            // A stop of the whole process belongs to no thread.
            let comm_or_all = row
                .text(comm)
                .or((kind == Kind::Gaps).then_some(ALL_THREADS));
            let thread = self.thread(comm_or_all, row.int(pid), row.int(tid));
            let what = row.text(what).unwrap_or("?");
            let name = match kind {
                Kind::Block => self.profile.intern_string(&format!("block {what}")),
                Kind::Gaps => self.profile.intern_string(gap_label(what)),
                _ => self.profile.intern_string(what),
            };
            let marker = Call {
                name,
                object: self.profile.intern_string(row.text(object).unwrap_or("")),
                category: if kind == Kind::Gaps {
                    self.unseen
                } else {
                    self.calls
                },
            };
            let end = self.time(begin.saturating_add(dur));
            let timing = MarkerTiming::Interval(self.time(begin), end);
            self.profile.add_marker(thread, timing, marker);
            ControlFlow::Continue(())
        })?;
        Ok(left)
    }

    fn time(&self, ts: Ns) -> Timestamp {
        let since = ts.saturating_sub(self.begin).max(0);
        Timestamp::from_nanos_since_reference(since.unsigned_abs())
    }

    fn thread(&mut self, comm: Option<&str>, pid: Option<i64>, tid: Option<i64>) -> ThreadHandle {
        let thread = Thread {
            comm: comm.unwrap_or("?").to_owned(),
            pid,
            tid,
        };
        if let Some(handle) = self.threads.get(&thread) {
            return *handle;
        }
        let number = |id: Option<i64>| id.and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
        let begin = Timestamp::from_nanos_since_reference(0);
        let profile = &mut self.profile;
        let process = *self
            .processes
            .entry(pid)
            .or_insert_with(|| profile.add_process(&thread.comm, number(pid), begin));
        let handle = profile.add_thread(process, number(tid), begin, pid == tid);
        profile.set_thread_name(handle, &thread.comm);
        profile.set_thread_samples_weight_type(handle, WeightType::TracingMs);
        self.threads.insert(thread, handle);
        handle
    }

    /// The document, with the weights of the samples filled in.
    fn into_json(self) -> Result<Value, ExportError> {
        let mut document = serde_json::to_value(&self.profile)?;
        let threads = document["threads"].as_array_mut();
        for thread in threads.into_iter().flatten() {
            // CPU times are unknown. Zeros would be drawn as an idle thread, but the Firefox
            // Profiler never finishes loading a thread that has only markers and no zeros at all.
            if let Some(samples) = thread["samples"].as_object_mut() {
                samples.remove("threadCPUDelta");
            }
            let weights = thread["samples"]["weight"].as_array_mut();
            for weight in weights.into_iter().flatten() {
                let number = weight
                    .as_u64()
                    .and_then(|number| usize::try_from(number).ok());
                let dur = number.and_then(|number| self.weights.get(number));
                // Milliseconds; a double is exact to the nanosecond for a hundred days.
                *weight = dur.map_or(0.0, |dur| *dur as f64 / 1e6).into();
            }
        }
        Ok(document)
    }
}

/// A long call or request.
struct Call {
    name: StringHandle,
    object: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for Call {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "call";
    const DESCRIPTION: Option<&'static str> =
        Some("A system call, a block request, or a sampling gap with the call at its end");
    const CHART_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.object}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name} {marker.data.object}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "object",
        label: "File, device or call",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.object
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0
    }
}
