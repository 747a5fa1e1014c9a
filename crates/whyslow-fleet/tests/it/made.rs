//! Small recordings built from rows.

use whyslow_fleet::lake::PushOptions;
use whyslow_fleet::{RecordingFacts, recording_id};
use whyslow_model::Symbols;
use whyslow_model::row::Emit as _;
use whyslow_model::tables::{BlockIoRow, Collected, SyscallRow};
use whyslow_store::{MemoryTables, RecordingInfo, SourceInfo, Tables};

/// 2026-11-27, 00:00:00 UTC.
pub(crate) const BEGIN: i64 = 1_795_737_600_000_000_000;
pub(crate) const SECOND: i64 = 1_000_000_000;

/// One operation of a recording.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Made {
    /// Offset from the start, and duration, in ns; without a duration it is unfinished.
    pub(crate) at: i64,
    pub(crate) dur: Option<i64>,
    pub(crate) path: &'static str,
    pub(crate) failed: bool,
}

/// A recording of a host with these reads, and a block request for each.
pub(crate) fn recording(host: &str, number: i64, reads: &[Made]) -> MemoryTables {
    recording_as(host, number, reads, None)
}

/// The same with its texts redacted as given.
fn recording_as(host: &str, number: i64, reads: &[Made], redacted: Option<&str>) -> MemoryTables {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    let [read, comm, disk] = ["read", "worker-1", "sda"].map(|text| symbols.intern(text));
    let begin = BEGIN + number * 60 * SECOND;
    for (id, made) in (0_i32..).zip(reads) {
        let ts = begin + made.at;
        let ts_end = made.dur.map(|dur| ts + dur);
        let (utid, tid) = (Some(id % 3), Some(100 + id % 3));
        rows.emit(SyscallRow {
            id: id.into(),
            ts,
            dur: made.dur,
            ts_end,
            utid,
            tid,
            comm: Some(comm),
            name: read,
            nr: Some(0),
            op: read,
            errno: made.failed.then_some(5),
            path: Some(symbols.intern(made.path)),
            bytes: Some(4096),
            ..SyscallRow::default()
        });
        rows.emit(BlockIoRow {
            id: id.into(),
            ts,
            dur: made.dur,
            ts_end,
            dev_name: disk,
            bytes: 4096,
            op: read,
            rwbs: read,
            layer: read,
            utid,
            tid,
            comm: Some(comm),
            ..BlockIoRow::default()
        });
    }
    let info = RecordingInfo {
        sources: vec![SourceInfo {
            path: "somewhere".into(),
            kind: "spool".into(),
            bytes: 1,
            digest: format!("{host} {number}"),
        }],
        host: Some(host.to_owned()),
        zone: Some("Europe/Berlin".into()),
        begin_ns: begin,
        end_ns: begin + 10 * SECOND,
        redacted: redacted.map(str::to_owned),
        ..RecordingInfo::default()
    };
    MemoryTables::new(&rows, &symbols, info)
}

/// The same with a thousand reads.
pub(crate) fn usual(host: &str, number: i64) -> MemoryTables {
    usual_as(host, number, None)
}

pub(crate) fn usual_as(host: &str, number: i64, redacted: Option<&str>) -> MemoryTables {
    let made = |at: i64| Made {
        at: at * 9_000_000,
        dur: (at % 100 != 99).then_some(50_000 + at * at % 977 * 1_000),
        path: if at % 7 == 0 {
            "/var/lib/db/17.log"
        } else {
            "/srv/www/index.html"
        },
        failed: at % 50 == 3,
    };
    let reads: Vec<Made> = (0..1000).map(made).collect();
    recording_as(host, number, &reads, redacted)
}

pub(crate) fn facts(tables: &dyn Tables) -> RecordingFacts {
    let info = tables.info();
    RecordingFacts {
        recording: recording_id(info, "digest", None),
        digest: "digest".into(),
        host: info.host.clone().unwrap_or_default(),
        name: "web.wsl".into(),
        labels: vec![("rack".into(), "r7".into())],
        ..RecordingFacts::default()
    }
}

pub(crate) fn options() -> PushOptions {
    PushOptions {
        cluster: "eu-1".into(),
        replace: false,
        whole: None,
    }
}
