//! Every operation in the I/O logs of lttng-analyses, and its disk statistics, compared with ours.
//! `docs/lttng-analyses-differences.md` lists the differences, and why our result is correct.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use whyslow_ingest::{InMemory, archive};
use whyslow_model::tables::SyscallRow;

use crate::common::{data, import, text};

const DAY_NS: i64 = 86_400_000_000_000;

/// Calls that the peer does not consider I/O, or does not log.
const NOT_LOGGED: [&str; 18] = [
    "accept",
    "accept4",
    "arm_sync_file_range",
    "bind",
    "close_range",
    "connect",
    "epoll_create1",
    "eventfd2",
    "fcntl", // F_DUPFD_CLOEXEC
    "fcntl64",
    "inotify_init1",
    "pipe",
    "pipe2",
    "recvmmsg",
    "send",
    "sendmmsg",
    "socketpair",
    "splice",
];

/// A line of the peer's log.
struct Logged<'l> {
    begin: i64,
    end: i64,
    name: &'l str,
    size: Option<f64>,
    /// Half of the last printed digit.
    size_error: f64,
    tid: i32,
    path: &'l str,
}

fn time_of_day(text: &str) -> Option<i64> {
    let (clock, ns) = text.split_once('.')?;
    let mut seconds = 0;
    for part in clock.split(':') {
        seconds = seconds * 60 + part.parse::<i64>().ok()?;
    }
    Some(seconds * 1_000_000_000 + ns.parse::<i64>().ok()?)
}

/// `[begin, end]  name  duration  size [unit]  comm  tid  path (fd=N)`; a comm may hold blanks.
fn logged(line: &str) -> Option<Logged<'_>> {
    let (times, rest) = line.strip_prefix('[')?.split_once(']')?;
    let (begin, end) = times.split_once(", ")?;
    let (name, rest) = rest.trim().split_once(' ')?;
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let (size, rest) = rest.trim_start().split_once(' ')?;
    let (size, size_error, rest) = match size.parse::<f64>() {
        Err(_) => (None, 0.0, rest),
        Ok(size) => {
            let (unit, rest) = rest.trim_start().split_once(' ')?;
            let unit = match unit {
                "B" => 1.0,
                "KiB" => 1024.0,
                "MiB" => 1024.0 * 1024.0,
                _ => return None,
            };
            (Some(size * unit), 0.006 * unit, rest)
        }
    };
    let (_, rest) = rest.trim_start().split_at_checked(COMM_WIDTH)?;
    let (tid, path) = rest.trim_start().split_once(' ')?;
    let path = path.trim();
    Some(Logged {
        begin: time_of_day(begin)?,
        end: time_of_day(end)?,
        name,
        size,
        size_error,
        tid: tid.parse().ok()?,
        path: path
            .rsplit_once("(fd=")
            .map_or(path, |(path, _)| path.trim()),
    })
}

/// Width of the name column.
const COMM_WIDTH: usize = 24;

fn for_each_trace(check: impl Fn(&str, &InMemory, &Path)) {
    let Some(data) = data() else { return };
    let said = data.join("lttng-analyses/reference-outputs.tar.xz");
    let said = archive::unpack(&said).expect("the archive unpacks");
    for name in [
        "arm-old-syscalls-3.10",
        "basic-kernel-4.4",
        "many-threads-4.4",
        "perfctx-6.2",
    ] {
        let trace = import(data.join(format!("{name}.tar.xz")));
        check(name, &trace, &said.path().join(name));
    }
}

/// Whether the peer's file name matches ours: it keeps relative names unchanged.
fn is_same_file(peer: &str, ours: &str) -> bool {
    let plain = peer.trim_start_matches("./");
    ours == peer || ours.ends_with(&format!("/{plain}"))
}

#[test]
fn every_operation_of_the_peers_log_is_ours_with_its_times_size_and_thread() {
    for_each_trace(|name, trace, said| {
        let log = fs::read_to_string(said.join("iolog.txt")).expect("the peer's log");
        let first = trace.rows.syscall.iter().map(|row| row.ts).min();
        let midnight = first.expect("calls").div_euclid(DAY_NS) * DAY_NS;
        let mut ours: HashMap<(i64, Option<i64>, Option<i32>), &SyscallRow> = HashMap::new();
        for row in &trace.rows.syscall {
            ours.insert((row.ts, row.ts_end, row.tid), row);
        }
        let (mut lines, mut renamed) = (0, Vec::new());
        for line in log.lines().filter(|line| line.starts_with('[')) {
            let peer = logged(line).unwrap_or_else(|| panic!("{name}: {line}"));
            let key = (
                midnight + peer.begin,
                Some(midnight + peer.end),
                Some(peer.tid),
            );
            let row = ours
                .remove(&key)
                .unwrap_or_else(|| panic!("{name}: {line}"));
            lines += 1;
            let same_call = trace.symbols.get(row.name).trim_end_matches("64");
            assert_eq!(same_call, peer.name.trim_end_matches("64"), "{line}");
            match (peer.size, row.bytes) {
                (Some(size), Some(bytes)) => {
                    assert!((size - bytes as f64).abs() <= peer.size_error, "{line}");
                }
                (size, bytes) => assert!(size.is_none() && bytes.is_none(), "{line}"),
            }
            let known = !matches!(peer.path, "unknown" | "socket" | "N/A" | "");
            let path = text(trace, row.path);
            if known && !is_same_file(peer.path, path) {
                renamed.push((
                    peer.name.to_string(),
                    peer.path.to_string(),
                    path.to_string(),
                ));
            }
        }
        let expected = match name {
            "arm-old-syscalls-3.10" => (289, 0),
            // Sockets under the address that they were connected to later; "." by its path.
            "basic-kernel-4.4" => (7164, 10),
            "many-threads-4.4" => (25_609, 0),
            // Two such sockets; a file under the name of an older descriptor 3 (3 times).
            _ => (13_076, 5),
        };
        assert_eq!((lines, renamed.len()), expected, "{name}: {renamed:#?}");
        let not_logged = ours.values().filter(|row| {
            let op = trace.symbols.get(row.op);
            row.cut.is_none()
                && matches!(
                    op,
                    "open" | "connect" | "close" | "read" | "write" | "read_write" | "sync"
                )
        });
        for row in not_logged {
            let call = trace.symbols.get(row.name);
            assert!(NOT_LOGGED.contains(&call), "{name}: {row:?} {call}");
        }
    });
}

/// Requests with data by device or partition: count, and their device times.
fn disks(trace: &InMemory) -> BTreeMap<&str, Vec<i64>> {
    let mut disks: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for row in trace.rows.block_io.iter().filter(|row| row.sectors > 0) {
        let disk = text(trace, row.part_name.or(Some(row.dev_name)));
        disks.entry(disk).or_default().extend(row.device_ns);
    }
    disks
}

#[track_caller]
fn check_disks(trace: &InMemory, expected: &[(&str, usize, f64, f64, f64)]) {
    let disks = disks(trace);
    let us = |ns: i64| ns as f64 / 1e3;
    let found: Vec<_> = disks
        .iter()
        .map(|(&disk, times)| {
            let (min, max) = (times.iter().min(), times.iter().max());
            let mean = us(times.iter().sum()) / times.len() as f64;
            let mean = (mean * 1e3).round() / 1e3;
            (
                disk,
                times.len(),
                us(*min.expect("any")),
                mean,
                us(*max.expect("any")),
            )
        })
        .collect();
    assert_eq!(found, expected);
}

/// The values are the peer's own: `iolatencystats*.txt`.
#[test]
fn requests_take_as_long_in_the_device_as_the_peer_measures() {
    let Some(data) = data() else { return };
    let basic = import(data.join("basic-kernel-4.4.tar.xz"));
    check_disks(&basic, &[("vda1", 93, 80.194, 488.143, 4057.405)]);
    let perfctx = import(data.join("perfctx-6.2.tar.xz"));
    check_disks(&perfctx, &[("sda", 145, 20.254, 163.968, 1192.062)]);
    let incident = import(data.join("ours-web-incident/trace.tar.zst"));
    check_disks(
        &incident,
        &[
            ("sda", 1184, 7.66, 9866.003, 974_896.833),
            ("vda", 2707, 6.678, 97.776, 3943.963),
            ("vdb", 12, 6.794, 245.504, 2526.198),
        ],
    );
}

/// The trace contains 3,916 issues: 3,903 with data, 13 of the flush machinery.
#[test]
fn every_request_of_the_incident_has_one_row_and_its_submitter() {
    let Some(data) = data() else { return };
    let incident = import(data.join("ours-web-incident/trace.tar.zst"));
    let rows = &incident.rows.block_io;
    let flushes = rows
        .iter()
        .filter(|row| text(&incident, Some(row.op)) == "flush");
    assert_eq!((rows.len(), flushes.count()), (3916, 13));
    for row in rows {
        assert_eq!(text(&incident, row.submitter_source), "bio_queue");
        assert!(row.utid.is_some() && row.cut.is_none() && row.completions == 1);
        // The block layer's workers issue requests, but submit none themselves.
        assert!(!text(&incident, row.comm).ends_with('H'), "{row:?}");
    }
}

#[test]
fn bytes_of_files_are_the_bytes_of_calls_on_them() {
    for_each_trace(|name, trace, _| {
        const IN_FILES: [&str; 7] = ["file", "directory", "tty", "proc", "sys", "dev", "block"];
        let in_files = |row: &&SyscallRow| {
            let op = text(trace, Some(row.op));
            matches!(op, "read" | "write")
                && row.path.is_some()
                && IN_FILES.contains(&text(trace, row.fd_class))
        };
        let calls: i64 = trace
            .rows
            .syscall
            .iter()
            .filter(in_files)
            .filter_map(|row| row.bytes)
            .sum();
        let lives = trace.rows.file_life.iter();
        let files: i64 = lives.map(|row| row.bytes_read + row.bytes_written).sum();
        // sendfile and splice count for files, too; the peer's traces splice to and from pipes.
        let copied: i64 = trace
            .rows
            .syscall
            .iter()
            .filter(|row| text(trace, Some(row.op)) == "read_write")
            .map(|row| {
                let first =
                    i64::from(row.path.is_some() && IN_FILES.contains(&text(trace, row.fd_class)));
                let path2 = text(trace, row.path2);
                let second = i64::from(!path2.is_empty() && !path2.starts_with("pipe:"));
                row.bytes.unwrap_or(0) * (first + second)
            })
            .sum();
        assert_eq!(files, calls + copied, "{name}");
    });
}
