//! Synthetic spools: the results of stacks, lock waits and symbols.

use std::fs;

use tempfile::TempDir;
use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::Sym;
use whyslow_model::spool::{Block, Encoder, Kind, SLEPT};

const MS: u64 = 1_000_000;
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// A spool of these blocks, some of which contain symbols.
fn import(blocks: &[(bool, &Encoder)]) -> InMemory {
    let mut head = Encoder::default();
    let record = head.begin(Kind::Clock, MS, (0, 0));
    record.u64(MS).u64(EPOCH + MS).end();
    let mut file = Vec::new();
    let all = std::iter::once((false, &head)).chain(blocks.iter().copied());
    for (number, (has_names, encoder)) in (0..).zip(all) {
        let payload = encoder.payload();
        let mut block = Block {
            number,
            complete_until: 0,
            payload_bytes: payload.len() as u32,
            record_bytes: payload.len() as u32,
            records: encoder.records(),
            is_compressed: false,
            has_names,
            crc: 0,
        };
        let mut crc = crc32fast::Hasher::new();
        crc.update(&block.head());
        crc.update(payload);
        block.crc = crc.finalize();
        file.extend(block.head());
        file.extend(block.crc.to_le_bytes());
        file.extend(payload);
    }
    let folder = TempDir::new().expect("a temporary folder");
    let spool = folder.path().join("x.spool");
    fs::create_dir(&spool).expect("a disk");
    fs::write(spool.join("000001.blocks"), file).expect("a disk");
    import_in_memory(&[spool]).expect("a spool is always readable")
}

/// A stack, by kind, thread and flags.
fn stack(
    encoder: &mut Encoder,
    (kind, flags): (Kind, u16),
    (ts, since): (u64, u64),
    (kernel, user): (&[u64], &[u64]),
) {
    let record = encoder.begin_on(kind, ts, (7, 7), (1, flags));
    record.u64(since).u32(2);
    record.u16(kernel.len() as u16).u16(user.len() as u16);
    for address in kernel.iter().chain(user) {
        record.u64(*address);
    }
    record.end();
}

fn name(encoder: &mut Encoder, (pid, since): (i32, u64), address: u64, function: &str) {
    let record = encoder.begin(Kind::Name, 900 * MS, (pid, pid));
    record.u64(since).u64(address).u64(address & 0xf);
    record.text(function.as_bytes()).text(b"/bin/x").end();
}

fn text(imported: &InMemory, symbol: Option<Sym>) -> Option<&str> {
    symbol.map(|symbol| imported.symbols.get(symbol))
}

/// Functions of a stack, innermost first; addresses without symbols in hexadecimal.
fn functions(imported: &InMemory, callsite: Option<i64>) -> Vec<String> {
    let mut functions = Vec::new();
    let mut next = callsite;
    while let Some(id) = next {
        let site = imported.rows.callsite.iter().find(|site| site.id == id);
        let site = site.expect("callers have rows");
        let frame = imported.rows.frame.iter();
        let frame = frame.clone().find(|frame| frame.id == site.frame_id);
        let frame = frame.expect("frames have rows");
        functions.push(match text(imported, frame.function) {
            Some(function) => function.to_owned(),
            None => format!("{:x}", frame.address),
        });
        assert_eq!(site.depth == 0, site.parent_id.is_none());
        next = site.parent_id;
    }
    functions
}

#[test]
fn names_that_come_later_and_the_stack_of_the_program_make_one_row() {
    let (mut stacks, mut names) = (Encoder::default(), Encoder::default());
    let back = (Kind::Stack, SLEPT);
    stack(
        &mut stacks,
        back,
        (30 * MS, 10 * MS),
        (&[0x101, 0x102], &[]),
    );
    stack(
        &mut stacks,
        back,
        (40 * MS, 35 * MS),
        (&[0x103, 0x102], &[]),
    );
    let user = (Kind::UserStack, 0);
    stack(
        &mut stacks,
        user,
        (41 * MS, 9 * MS),
        (&[], &[0x201, 0, 0x202]),
    );
    // Not in a call: there is nothing to wait for.
    stack(
        &mut stacks,
        (Kind::Stack, 0),
        (60 * MS, 50 * MS),
        (&[0x104], &[]),
    );
    for (address, function) in [
        (0x101, "schedule_timeout"),
        (0x102, "do_wait"),
        (0x103, "ep_poll"),
    ] {
        name(&mut names, (0, 0), address, function);
    }
    name(&mut names, (7, 0), 0x201, "inner");
    // Of another process, or of a later program of the process.
    name(&mut names, (8, 0), 0x202, "wrong");
    name(&mut names, (7, 55 * MS), 0x202, "wrong");
    let imported = import(&[(false, &stacks), (true, &names)]);
    let rows: Vec<_> = imported
        .rows
        .stack_sample
        .iter()
        .map(|row| {
            let place = (row.ts as u64 - EPOCH) / MS;
            let dur = row.dur.map(|dur| dur as u64 / MS);
            let (function, user) = (
                text(&imported, row.function),
                text(&imported, row.user_function),
            );
            (
                place,
                dur,
                function,
                user,
                functions(&imported, row.callsite_id),
            )
        })
        .collect();
    let stack = |functions: &[&str]| functions.iter().map(|name| (*name).to_owned()).collect();
    let expected = [
        (
            10,
            Some(20),
            Some("do_wait"),
            Some("inner"),
            stack(&["schedule_timeout", "do_wait", "inner", "202"]),
        ),
        (
            35,
            Some(5),
            Some("ep_poll"),
            Some("inner"),
            stack(&["ep_poll", "do_wait", "inner", "202"]),
        ),
        (50, Some(10), None, None, stack(&["104"])),
    ];
    assert_eq!(rows, expected);
    let states = imported.rows.stack_sample.iter();
    let mut states = states.map(|row| text(&imported, row.state));
    assert!(states.all(|state| state == Some("uninterruptible")));
}

#[test]
fn a_stack_whose_program_never_tells_has_its_row_nevertheless() {
    let mut stacks = Encoder::default();
    let back = (Kind::Stack, SLEPT);
    for number in 1..=400 {
        let ts = number * 3 * MS;
        stack(&mut stacks, back, (ts, ts - 2 * MS), (&[0x101], &[]));
    }
    // The user stack of a kernel stack that was lost.
    let record = stacks.begin_on(Kind::UserStack, 2_000 * MS, (9, 9), (0, 0));
    record.u64(0).u32(0).u16(0).u16(1).u64(5).end();
    let imported = import(&[(false, &stacks)]);
    assert_eq!(imported.rows.stack_sample.len(), 400);
    let has = |name: &str| {
        imported
            .anomalies
            .iter()
            .any(|anomaly| anomaly.name == name)
    };
    assert!(has("USER_STACK_UNEXPECTED") && has("FRAME_UNNAMED"));
}

#[test]
fn a_wait_for_a_lock_is_that_of_who_wanted_it() {
    let (mut waits, mut names) = (Encoder::default(), Encoder::default());
    let record = waits.begin_on(Kind::Lock, 30 * MS, (7, 7), (1, 0));
    record.u64(10 * MS).u64(0xffff_8881_0000_0040).u32(4);
    record.u32((-4i32) as u32).u32(4).u32(0);
    record.u64(0x301).u64(0x302).u64(0x303).u64(0x304).end();
    let record = waits.begin_on(Kind::Lock, 31 * MS, (0, 0), (0, 0));
    record
        .u64(30 * MS)
        .u64(0x40)
        .u32(1)
        .u32(0)
        .u32(0)
        .u32(0)
        .end();
    for (address, function) in [
        (0x301, "bpf_prog_6deef7357e7b4530_on_lock_end"),
        (0x302, "rwsem_down_write_slowpath"),
        (0x303, "down_write"),
        (0x304, "ext4_buffered_write_iter"),
    ] {
        name(&mut names, (0, 0), address, function);
    }
    let imported = import(&[(true, &names), (false, &waits)]);
    let [wait, spin] = imported.rows.lock_wait.as_slice() else {
        panic!("{:?}", imported.rows.lock_wait);
    };
    assert_eq!(text(&imported, Some(wait.kind)), Some("rwsem"));
    assert_eq!(text(&imported, wait.mode), Some("write"));
    assert_eq!(text(&imported, Some(wait.lock)), Some("ffff888100000040"));
    assert_eq!(
        text(&imported, wait.function),
        Some("ext4_buffered_write_iter")
    );
    assert_eq!(
        (wait.dur, wait.tid, wait.ret),
        (Some(20 * MS as i64), Some(7), 4)
    );
    assert!(wait.slept);
    assert_eq!(functions(&imported, wait.callsite_id).len(), 3);
    assert_eq!(text(&imported, Some(spin.kind)), Some("spin"));
    assert_eq!(
        (spin.utid, spin.slept, spin.callsite_id),
        (None, false, None)
    );
}

#[test]
fn samples_stand_for_their_period() {
    let mut stacks = Encoder::default();
    let sample = (Kind::Sample, 0);
    stack(
        &mut stacks,
        sample,
        (30 * MS, 20 * MS),
        (&[0x101], &[0x201]),
    );
    let imported = import(&[(false, &stacks)]);
    let [row] = imported.rows.stack_sample.as_slice() else {
        panic!("{:?}", imported.rows.stack_sample);
    };
    assert_eq!(text(&imported, Some(row.kind)), Some("sample"));
    assert_eq!((row.dur, row.state), (Some(10 * MS as i64), None));
    assert_eq!(functions(&imported, row.callsite_id), ["101", "201"]);
}

#[test]
fn a_function_that_is_called_later_has_its_name_or_its_address() {
    let (mut items, mut names) = (Encoder::default(), Encoder::default());
    for (work, function) in [(0x50, 0xffff_8100_0000_0301), (0x60, 0x302)] {
        let record = items.begin_on(Kind::WorkItem, 20 * MS, (7, 7), (0, 0));
        record.u64(work).u64(function).u32(0).u32(0);
        let mut queue = [0u8; 32];
        queue[..7].copy_from_slice(b"kblockd");
        for byte in queue.chunks_exact(8) {
            record.u64(u64::from_le_bytes(byte.try_into().expect("eight")));
        }
        record.end();
        let record = items.begin_on(Kind::WorkItem, 23 * MS, (9, 9), (1, 0));
        record.u64(work).u64(function).u32(2).u32(1).end();
        let record = items.begin_on(Kind::WorkItem, 28 * MS, (9, 9), (1, 0));
        record.u64(work).u64(0).u32(3).u32(1).end();
    }
    // A phase unknown to this version.
    let record = items.begin_on(Kind::WorkItem, 29 * MS, (9, 9), (1, 0));
    record.u64(0x70).u64(0).u32(9).u32(1).end();
    name(
        &mut names,
        (0, 0),
        0xffff_8100_0000_0301,
        "blk_mq_run_work_fn",
    );
    let imported = import(&[(false, &items), (true, &names)]);
    let [named, unnamed] = imported.rows.work_item.as_slice() else {
        panic!("{:?}", imported.rows.work_item);
    };
    assert_eq!(text(&imported, named.function), Some("blk_mq_run_work_fn"));
    assert_eq!(text(&imported, unnamed.function), Some("302"));
    assert_eq!(text(&imported, named.workqueue), Some("kblockd"));
    let ms = |count: i64| Some(count * MS as i64);
    assert_eq!(
        (named.dur, named.queue_ns, named.run_ns),
        (ms(8), ms(3), ms(5))
    );
    assert_eq!((named.tid, named.worker_tid), (Some(7), Some(9)));
}
