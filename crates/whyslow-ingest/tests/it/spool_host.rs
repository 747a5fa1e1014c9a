//! Synthetic spools: properties of processes, and clock changes.

use std::fs;

use tempfile::TempDir;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::counter::{FS_SIZE, LOAD_1, RSS, push};
use whyslow_model::spool::{Block, Encoder, Kind};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
/// Wall-clock time at monotonic zero.
const EPOCH: u64 = 1_700_000_000 * S;

fn import(encoder: &Encoder) -> InMemory {
    let payload = encoder.payload();
    let mut block = Block {
        number: 0,
        complete_until: u64::MAX,
        payload_bytes: payload.len() as u32,
        record_bytes: payload.len() as u32,
        records: encoder.records(),
        is_compressed: false,
        has_names: false,
        crc: 0,
    };
    let mut crc = crc32fast::Hasher::new();
    crc.update(&block.head());
    crc.update(payload);
    block.crc = crc.finalize();
    let folder = TempDir::new().expect("a temporary folder");
    let file = [&block.head()[..], &block.crc.to_le_bytes(), payload].concat();
    fs::write(folder.path().join("000001.blocks"), file).expect("a disk");
    import_in_memory(&[folder.path().to_owned()]).expect("a spool is always readable")
}

/// All clocks at a monotonic time: `slept` is the total suspended time, `set` the total change of
/// the system clock.
fn clock(encoder: &mut Encoder, ts: u64, slept: u64, set: u64) {
    let boot = ts + 5 * S + slept;
    let record = encoder.begin(Kind::Clock, ts, (0, 0));
    record.u64(boot).u64(EPOCH + ts + slept + set).end();
}

fn process(encoder: &mut Encoder, ts: u64, pid: i32, (command, cgroup): (&[u8], &[u8])) {
    let record = encoder.begin(Kind::Process, ts, (pid, pid));
    let record = record
        .u32(1)
        .u32(33)
        .u64(3 * S)
        .u32(4242)
        .text(b"/bin/parent");
    record.text(command).text(cgroup).end();
}

fn task(encoder: &mut Encoder, kind: Kind, ts: u64, (by, pid): (i32, i32)) {
    let record = encoder.begin(kind, ts, (by, by)).u32(pid as u32);
    record.u32(pid as u32).comm(b"x").end();
}

/// Arguments, user and mount namespace.
fn program(encoder: &mut Encoder, ts: u64, pid: i32, (words, uid, mount_ns): (&[u8], u32, u32)) {
    let record = encoder.begin(Kind::Program, ts, (pid, pid)).u64(1).u32(uid);
    let record = record.u32(mount_ns).u32(u32::from(words.is_empty()));
    record.text(words).end();
}

#[test]
fn a_child_has_from_its_parent_what_nobody_told_of_itself() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, MS, 0, 0);
    encoder
        .begin(Kind::User, MS, (0, 0))
        .u32(33)
        .text(b"www")
        .end();
    let group = format!("3:cpu:/\n2:memory:/docker/{:064x}\n", 7);
    process(&mut encoder, 2 * MS, 10, (b"a\0b c\0", group.as_bytes()));
    task(&mut encoder, Kind::Fork, 3 * MS, (10, 11));
    task(&mut encoder, Kind::Fork, 4 * MS, (10, 12));
    let exec = encoder.begin(Kind::Exec, 5 * MS, (12, 12)).u32(12);
    exec.text(b"/bin/child").end();
    program(&mut encoder, 5 * MS + 1, 12, (b"child\0", 0, 4243));
    program(&mut encoder, 6 * MS, 12, (b"", 7, 4243));
    let imported = import(&encoder);
    let text = |sym: Option<Sym>| sym.map_or("-", |sym| imported.symbols.get(sym)).to_owned();
    let shown: Vec<_> = imported
        .rows
        .process
        .iter()
        .map(|row| {
            let texts = [row.exe, row.command_line, row.user_name]
                .map(text)
                .join("|");
            let created = row.ts_created.map(|ts| ts - EPOCH as i64);
            (row.pid, texts, row.uid, row.mount_ns, created)
        })
        .collect();
    let ms = MS as i64;
    let expected = [
        // CLOCK_BOOTTIME is five seconds ahead.
        (
            10,
            "/bin/parent|a 'b c'|www".into(),
            Some(33),
            Some(4242),
            Some(-2000 * ms),
        ),
        (
            11,
            "/bin/parent|a 'b c'|www".into(),
            Some(33),
            Some(4242),
            Some(3 * ms),
        ),
        (
            12,
            "/bin/child|child|-".into(),
            Some(7),
            Some(4243),
            Some(4 * ms),
        ),
    ];
    assert_eq!(shown, expected);
    let id = format!("{:064x}", 7);
    let mut rows = imported.rows.process.iter();
    assert!(rows.all(|row| text(row.container) == id && text(row.cgroup).starts_with("/docker/")));
}

#[test]
fn a_calendar_that_is_set_is_told_and_lengths_stay_true() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, S, 0, 0);
    task(&mut encoder, Kind::Fork, S + MS, (10, 11));
    clock(&mut encoder, 2 * S, 0, 0);
    clock(&mut encoder, 3 * S, 0, 3600 * S);
    clock(&mut encoder, 4 * S, 60 * S, 3600 * S);
    task(&mut encoder, Kind::Fork, 4 * S + MS, (10, 12));
    let imported = import(&encoder);
    let starts = imported.rows.thread.iter().filter_map(|row| row.ts_start);
    let starts: Vec<u64> = starts.map(|ts| ts as u64 - EPOCH).collect();
    assert_eq!(starts, [S + MS, 4 * S + MS]);
    let count = |name: &str| {
        let found = imported.anomalies.iter().find(|found| found.name == name);
        found.map(|found| (found.count, found.text.clone()))
    };
    assert_eq!(
        count("CLOCK_STEPPED"),
        Some((1, "set by +3600.000 s".into()))
    );
    assert_eq!(
        count("MACHINE_SUSPENDED"),
        Some((1, "suspended for 60.000 s".into()))
    );
    let clocks = imported.rows.clock_snapshot.iter();
    let real = clocks.filter(|row| imported.symbols.get(row.clock) == "realtime");
    let real: Vec<(u64, u64)> = real
        .map(|row| (row.value as u64 - EPOCH, row.ts as u64 - EPOCH))
        .collect();
    assert_eq!(real, [(S, S), (3603 * S, 3 * S), (3664 * S, 4 * S)]);
}

#[test]
fn a_group_is_told_by_its_number_and_an_unknown_one_is_not_the_parents() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, MS, 0, 0);
    for (id, path) in [(1, "/a"), (77, "/b")] {
        let record = encoder.begin(Kind::Cgroup, MS, (0, 0)).u64(id);
        record.text(path.as_bytes()).end();
    }
    process(&mut encoder, 2 * MS, 10, (b"p\0", b"0::/a\n"));
    for (pid, id) in [(11, 77u64), (12, 78), (13, 1)] {
        task(&mut encoder, Kind::Fork, 3 * MS, (10, pid));
        let record = encoder.begin(Kind::Program, 4 * MS, (pid, pid)).u64(id);
        record.u32(0).u32(1).u32(0).text(b"x\0").end();
    }
    let imported = import(&encoder);
    let text = |sym: Option<Sym>| sym.map(|sym| imported.symbols.get(sym).to_owned());
    let mut rows: Vec<_> = imported
        .rows
        .process
        .iter()
        .map(|row| (row.pid, text(row.cgroup)))
        .collect();
    rows.sort();
    let expected = [
        (10, Some("/a")),
        (11, Some("/b")),
        (12, None),
        (13, Some("/a")),
    ];
    let expected = expected.map(|(pid, path)| (pid, path.map(str::to_owned)));
    assert_eq!(rows, expected);
}

/// Values as encoded by the recorder.
fn counters(
    encoder: &mut Encoder,
    ts: u64,
    pid: i32,
    (mount_id, place): (u32, &str),
    value: (u32, i64),
) {
    let mut values = Vec::new();
    push(&mut values, value.0, value.1);
    let record = encoder
        .begin(Kind::Counters, ts, (pid, pid))
        .u32(9)
        .u32(mount_id);
    record.text(place.as_bytes()).text(&values).end();
}

#[test]
fn counters_mounts_and_devices_become_rows_once() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, MS, 0, 0);
    process(&mut encoder, 2 * MS, 10, (b"p\0", b""));
    counters(&mut encoder, 3 * MS, 0, (0, ""), (LOAD_1, 250));
    counters(&mut encoder, 4 * MS, 10, (0, ""), (RSS, 4096));
    counters(&mut encoder, 5 * MS, 0, (36, "/a b"), (FS_SIZE, 1 << 30));
    for _ in 0..2 {
        let record = encoder
            .begin(Kind::Mount, 6 * MS, (0, 0))
            .u32(9)
            .u32(36)
            .u32(1)
            .u32(8 << 20);
        let record = record.text(b"/").text(b"/a b").text(b"ext4");
        record.text(b"/dev/sda").text(b"rw").end();
        let record = encoder
            .begin(Kind::DeviceLink, 6 * MS, (0, 0))
            .u32(8 << 20 | 1);
        record.u32(8 << 20).text(b"partition").end();
    }
    let record = encoder
        .begin(Kind::DeviceAbout, 6 * MS, (0, 0))
        .u32(8 << 20 | 1)
        .u32(1);
    record.u64(u64::MAX).text(b"part").text(b"").text(b"").end();
    let imported = import(&encoder);
    let text = |sym: Sym| imported.symbols.get(sym).to_owned();
    let of = |sym: Option<Sym>| sym.map(text).unwrap_or_default();
    let values = imported.rows.counter.iter();
    let values: Vec<_> = values
        .map(|row| {
            (
                text(row.name),
                row.value,
                row.pid,
                row.upid.is_some(),
                of(row.mount_point),
            )
        })
        .collect();
    let expected = [
        ("load_1".to_owned(), 250, None, false, String::new()),
        ("rss".to_owned(), 4096, Some(10), true, String::new()),
        (
            "fs_size".to_owned(),
            1 << 30,
            None,
            false,
            "/a b".to_owned(),
        ),
    ];
    assert_eq!(values, expected);
    let mounts = &imported.rows.mount;
    assert_eq!(
        (mounts.len(), mounts[0].mount_ns, text(mounts[0].fs_type)),
        (1, 9, "ext4".into())
    );
    assert_eq!(imported.rows.device_link.len(), 1);
    let device = &imported.rows.device[0];
    assert_eq!(
        (device.parent, device.size, device.rotational),
        (Some(8 << 20), None, Some(true))
    );
}

#[test]
fn files_of_a_namespace_are_kept_when_they_change() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, MS, 0, 0);
    let mut file = |ts: u64, ns: u32, path: &str, text: Option<&[u8]>| {
        let size = text.map_or(u64::MAX, |text| text.len() as u64);
        let record = encoder.begin(Kind::ResolverFile, ts, (0, 0));
        let record = record.u32(ns).u64(size).text(path.as_bytes());
        record.text(text.unwrap_or_default()).end();
    };
    let resolv = "/etc/resolv.conf";
    file(2 * MS, 9, resolv, Some(b"nameserver 192.0.2.1\n"));
    file(3 * MS, 9, resolv, Some(b"nameserver 192.0.2.1\n"));
    file(4 * MS, 7, resolv, Some(b"nameserver 192.0.2.1\n"));
    file(5 * MS, 9, "/etc/hosts", None);
    file(6 * MS, 9, "/etc/hosts", Some(b""));
    file(7 * MS, 9, resolv, Some(b"\xff\x1b"));
    let imported = import(&encoder);
    let text = |sym: Sym| imported.symbols.get(sym).to_owned();
    let rows = imported.rows.resolver_file.iter().map(|row| {
        let path = text(row.path);
        (row.id, row.mount_ns, path, row.size, row.text.map(text))
    });
    let rows: Vec<_> = rows.collect();
    let server = Some("nameserver 192.0.2.1\n".to_owned());
    let row = |id, ns, path: &str, size, text| (id, ns, path.to_owned(), size, text);
    let expected = [
        row(0, 9, resolv, Some(21), server.clone()),
        row(1, 7, resolv, Some(21), server),
        row(2, 9, "/etc/hosts", None, None),
        row(3, 9, "/etc/hosts", Some(0), Some(String::new())),
        row(4, 9, resolv, Some(2), Some("\u{fffd}\u{1b}".to_owned())),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn what_a_process_sees_is_told_when_it_changes() {
    let mut encoder = Encoder::default();
    clock(&mut encoder, MS, 0, 0);
    process(&mut encoder, 2 * MS, 10, (b"p\0", b""));
    let mut root = |ts: u64, path: &[u8]| {
        encoder.begin(Kind::Root, ts, (10, 10)).text(path).end();
    };
    root(2 * MS, b"/srv/jail");
    root(5 * MS, b"/");
    // The same namespace again.
    process(&mut encoder, 6 * MS, 10, (b"p\0", b""));
    task(&mut encoder, Kind::Fork, 7 * MS, (10, 11));
    let record = encoder.begin(Kind::Program, 8 * MS, (11, 11));
    record.u64(0).u32(33).u32(7).u32(0).text(b"c\0").end();
    let imported = import(&encoder);
    let text = |sym: Sym| imported.symbols.get(sym).to_owned();
    let rows = imported.rows.process_view.iter();
    let rows: Vec<_> = rows
        .map(|row| (row.id, row.mount_ns, row.root.map(text), row.is_below))
        .collect();
    let expected = [
        (0, Some(4242), None, false),
        (2, None, Some("/srv/jail".to_owned()), false),
        (4, None, Some("/".to_owned()), false),
        (6, Some(7), None, false),
    ];
    assert_eq!(rows, expected);
}
