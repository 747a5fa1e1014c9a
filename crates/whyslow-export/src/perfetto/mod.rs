//! Perfetto: timelines of threads, CPUs and devices for <https://ui.perfetto.dev> and for
//! `trace_processor`.
//!
//! Scheduling is written as the kernel's own events, from which Perfetto derives `sched` and
//! `thread_state`; calls, requests and waits are slices with annotations. Timestamps are ns since
//! 1970 on the boot-time clock, with a clock snapshot that maps it to real time: Perfetto shows the
//! same numbers as whyslow.

mod proto;
pub(crate) mod samples;
mod sched;
mod slices;
mod writer;

use std::io::Write;

use whyslow_analysis::Filter;
use whyslow_model::tables::{MetadataRow, ProcessRow, ThreadRow};
use whyslow_model::{Symbols, Window};
use whyslow_store::{Tables, rows};

use crate::ExportError;
use proto::{Clock, ClockSnapshot, Process, ProcessTree, SystemInfo, Thread, TracePacket, Utsname};
use writer::Writer;

/// Perfetto's ids of clocks.
const REALTIME: u32 = 1;
const BOOTTIME: u32 = 6;

/// Number of rows written, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Written {
    /// Rows of `sched_slice`.
    pub slices_of_cpus: u64,
    /// Rows of `wakeup`; 0 with a filter.
    pub wakeups: u64,
    /// Rows of `syscall`.
    pub calls: u64,
    /// Rows of `block_io`.
    pub requests: u64,
    /// Rows of `lock_wait`.
    pub lock_waits: u64,
    /// Rows of `stack_sample`.
    pub samples: u64,
    /// Rows of `sample_gap`.
    pub gaps: u64,
    /// Rows of `counter`.
    pub counters: u64,
    /// Rows of `lost_events`.
    pub losses: u64,
}

/// Writes the rows of a recording that a window and a filter select.
pub fn write_perfetto(
    tables: &dyn Tables,
    window: Option<Window>,
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<Written, ExportError> {
    let mut writer = Writer::new(out);
    begin(tables, &mut writer)?;
    let has = |name: &str| {
        let info = tables.info().tables.get(name);
        info.is_some_and(|table| table.rows > 0)
    };
    let mut written = Written::default();
    if has("sched_slice") {
        written.slices_of_cpus = sched::slices(tables, window, filter, &mut writer)?;
    }
    // With a filter, wakeups of other threads would be noise.
    if has("wakeup") && *filter == Filter::default() {
        written.wakeups = sched::wakeups(tables, window, &mut writer)?;
    }
    if has("syscall") {
        written.calls = slices::calls(tables, window, filter, &mut writer)?;
    }
    if has("block_io") {
        written.requests = slices::requests(tables, window, filter, &mut writer)?;
    }
    if has("lock_wait") {
        written.lock_waits = slices::lock_waits(tables, window, filter, &mut writer)?;
    }
    if has("stack_sample") {
        written.samples = samples::samples(tables, window, filter, &mut writer)?;
    }
    if has("sample_gap") {
        written.gaps = samples::gaps(tables, window, filter, &mut writer)?;
    }
    if has("counter") {
        written.counters = slices::counters(tables, window, &mut writer)?;
    }
    if has("lost_events") {
        written.losses = slices::losses(tables, window, &mut writer)?;
    }
    Ok(written)
}

/// The machine, its clocks, processes and threads.
fn begin(tables: &dyn Tables, writer: &mut Writer<'_>) -> Result<(), ExportError> {
    let mut symbols = Symbols::new();
    let info = tables.info();
    let at = Some(info.begin_ns as u64);
    let clock = |id| Clock {
        clock_id: Some(id),
        timestamp: at,
    };
    writer.packet(&TracePacket {
        timestamp: at,
        clock_snapshot: Some(ClockSnapshot {
            clocks: vec![clock(BOOTTIME), clock(REALTIME)],
            primary_trace_clock: Some(BOOTTIME as i32),
        }),
        ..TracePacket::default()
    })?;
    let mut fact = |wanted: &str| -> Result<Option<String>, ExportError> {
        let all = rows::<MetadataRow>(tables, &mut symbols)?;
        let found = all.iter().find(|row| symbols.get(row.key) == wanted);
        Ok(found.map(|row| symbols.get(row.value).to_owned()))
    };
    let utsname = Utsname {
        sysname: Some("Linux".to_owned()),
        release: fact("kernel_release")?,
        machine: fact("architecture")?,
    };
    writer.packet(&TracePacket {
        timestamp: at,
        system_info: Some(SystemInfo {
            utsname: Some(utsname),
        }),
        ..TracePacket::default()
    })?;
    let processes = rows::<ProcessRow>(tables, &mut symbols)?;
    let threads = rows::<ThreadRow>(tables, &mut symbols)?;
    let processes = processes.iter().map(|row| Process {
        pid: Some(row.pid),
        ppid: row.ppid,
        cmdline: row
            .command_line
            .or(row.comm)
            .map(|text| symbols.get(text).to_owned())
            .into_iter()
            .collect(),
        uid: row.uid.map(|uid| uid as i32),
    });
    let threads = threads.iter().map(|row| Thread {
        tid: Some(row.tid),
        name: row.comm.map(|comm| symbols.get(comm).to_owned()),
        tgid: row.pid,
    });
    writer.packet(&TracePacket {
        timestamp: at,
        process_tree: Some(ProcessTree {
            processes: processes.collect(),
            threads: threads.collect(),
        }),
        ..TracePacket::default()
    })
}
