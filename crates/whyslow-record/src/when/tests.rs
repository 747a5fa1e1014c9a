//! What counts and what does not.

use super::*;
use whyslow_model::spool::Encoder;

const MS: u64 = 1_000_000;
const KEPT: Duration = Duration::from_secs(30);
/// No process has this id.
const PID: i32 = i32::MAX - 1;

fn watcher(when: &str) -> Watcher {
    let ms = |text: &str| {
        let number: i64 = text.trim_end_matches("ms").parse().map_err(|_| "number")?;
        Ok(number * MS as i64)
    };
    Watcher::new(&parse_when(when, ms).unwrap(), Abi::X86_64, KEPT)
}

fn call(kind: Kind, name: &str, ts: u64, entered: u64) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let nr = syscall::number_of(Abi::X86_64, name).unwrap();
    let record = encoder.begin(kind, ts * MS, (PID, PID));
    record
        .u64(entered * MS)
        .u64(0)
        .u32(nr as u32)
        .u32(1)
        .u64(3)
        .end();
    encoder.payload().to_vec()
}

/// A call on descriptor 3.
fn returned(name: &str, ts: u64, ret: u64) -> Vec<u8> {
    let mut encoder = Encoder::default();
    let nr = syscall::number_of(Abi::X86_64, name).unwrap();
    let record = encoder.begin(Kind::Syscall, ts * MS, (PID, PID));
    let record = record.u64(ts * MS).u64(ret).u32(nr as u32).u32(1);
    record.u64(3).end();
    encoder.payload().to_vec()
}

fn whats(watcher: &mut Watcher) -> Vec<String> {
    let fired = watcher.take_fired().into_iter();
    fired.map(|trigger| trigger.what).collect()
}

#[test]
fn a_call_counts_when_it_lasted_so_long_and_its_thread_has_a_name() {
    let mut watcher = watcher("open>200ms | fsync>50ms");
    watcher.see(&call(Kind::Syscall, "openat", 300, 101));
    watcher.see(&call(Kind::Syscall, "read", 900, 1));
    watcher.see(&call(Kind::Syscall, "fsync", 340, 300));
    assert!(watcher.take_fired().is_empty());
    watcher.see(&call(Kind::Syscall, "openat", 600, 400));
    let mut encoder = Encoder::default();
    let record = encoder.begin(Kind::Exit, 601 * MS, (PID, PID));
    record.u32(PID as u32).u32(PID as u32).comm(b"gone").end();
    watcher.see(encoder.payload());
    let expected = format!("openat by gone {PID}/{PID} took 200.0 ms");
    assert_eq!(whats(&mut watcher), [expected]);
    watcher.ignore_process(PID);
    watcher.see(&call(Kind::Syscall, "openat", 1600, 400));
    assert!(watcher.take_fired().is_empty());
}

#[test]
fn a_call_that_does_not_return_counts_once() {
    let mut watcher = watcher("fsync>50ms");
    let kept = Duration::from_secs(2);
    watcher.see(&call(Kind::SyscallEnter, "fsync", 120, 100));
    watcher.check_pending(1000 * MS, kept);
    assert!(watcher.take_fired().is_empty());
    watcher.check_pending(1200 * MS, kept);
    watcher.check_pending(2200 * MS, kept);
    let expected = format!("fsync by ? {PID}/{PID} has not returned for 1.10 s");
    assert_eq!(whats(&mut watcher), [expected]);
}

#[test]
fn an_entry_that_comes_after_its_return_is_no_call_under_way() {
    let mut watcher = watcher("fsync>50ms");
    let mut encoder = Encoder::default();
    let nr = syscall::number_of(Abi::X86_64, "fsync").unwrap();
    let record = encoder.begin_on(Kind::Syscall, 121 * MS, (PID, PID), (0, ENTRY_RECORDED));
    record
        .u64(100 * MS)
        .u64(0)
        .u32(nr as u32)
        .u32(1)
        .u64(3)
        .end();
    watcher.see(encoder.payload());
    assert!(watcher.take_fired().is_empty());
    watcher.see(&call(Kind::SyscallEnter, "fsync", 120, 100));
    watcher.check_pending(1200 * MS, Duration::from_secs(2));
    assert!(watcher.take_fired().is_empty());
}

#[test]
fn lookups_and_waits_for_locks_count_when_they_are_over() {
    let mut watcher = watcher("dns>200ms | lock>50ms");
    let mut see = |kind, ts: u64, since: u64| {
        let mut encoder = Encoder::default();
        let record = encoder.begin(kind, ts * MS, (PID, PID));
        record.u64(since * MS);
        // Of a lookup: the result, its type, an address; the name.
        record.u64(0xabc).u64(0).u64(0);
        record.comm(b"db.internal").end();
        watcher.see(encoder.payload());
        whats(&mut watcher)
    };
    assert!(see(Kind::Lookup, 300, 101).is_empty());
    assert!(see(Kind::LookupBegin, 300, 0).is_empty());
    assert!(see(Kind::Lock, 349, 300).is_empty());
    let expected = format!("DNS lookup of \"db.internal\" by ? {PID}/{PID} took 200.0 ms");
    assert_eq!(see(Kind::Lookup, 300, 100), [expected]);
    let expected = format!("kernel lock wait at 0xabc by ? {PID}/{PID} took 50.0 ms");
    assert_eq!(see(Kind::Lock, 350, 300), [expected]);
}

#[test]
fn a_request_counts_for_the_term_that_says_most_and_has_a_thread() {
    let mut watcher = watcher("request>2000ms | request>300ms");
    let answer = |watcher: &mut Watcher, ts: u64| {
        for (name, ts, ret) in [("accept4", 90, 3), ("read", 100, 9), ("write", ts, 9)] {
            watcher.see(&returned(name, ts, ret));
        }
        assert!(watcher.take_fired().is_empty());
        watcher.settle(ts * MS);
        watcher.take_fired()
    };
    let check = |fired: &[Trigger], term: &str, took: &str| {
        let [fired] = fired else { panic!("{fired:?}") };
        assert_eq!(fired.term.as_deref(), Some(term));
        let what = format!("request answered by ? {PID}/{PID} took {took}");
        assert_eq!(fired.what, what);
    };
    assert_eq!(answer(&mut watcher, 399), []);
    check(&answer(&mut watcher, 400), "request>300ms", "300.0 ms");
    check(&answer(&mut watcher, 2100), "request>2000ms", "2.00 s");
    // A request without a response counts once.
    assert_eq!(answer(&mut watcher, 150), []);
    watcher.see(&returned("read", 3000, 9));
    watcher.lose();
    watcher.see(&returned("read", 4000, 9));
    watcher.settle(4000 * MS);
    watcher.check_pending(18_999 * MS, KEPT);
    assert_eq!(watcher.take_fired(), []);
    watcher.check_pending(19_000 * MS, KEPT);
    watcher.check_pending(20_000 * MS, KEPT);
    let expected = format!("request read by ? {PID}/{PID} has had no response for 15.00 s");
    assert_eq!(whats(&mut watcher), [expected]);
    watcher.ignore_process(PID);
    assert_eq!(answer(&mut watcher, 2100), []);
}

#[test]
fn what_met_a_condition_can_be_found_again() {
    let mut watcher = watcher("open>200ms | request>300ms | lock>50ms | fsync>50ms");
    let operation = |watcher: &mut Watcher| {
        let [trigger] = <[Trigger; 1]>::try_from(watcher.take_fired()).unwrap();
        let operation = trigger.operation.expect("an operation");
        assert_eq!(operation.thread, Some((PID, PID)));
        // Its start is that of the row.
        let begin = (trigger.ts - operation.took) / MS;
        (operation.kind, begin, operation.name, operation.is_over)
    };
    watcher.see(&call(Kind::Syscall, "openat", 600, 390));
    let expected = (TriggerKind::Call, 390, "openat".to_owned(), true);
    assert_eq!(operation(&mut watcher), expected);
    let mut encoder = Encoder::default();
    let record = encoder.begin(Kind::Lock, 350 * MS, (PID, PID));
    record.u64(290 * MS).u64(0xabc).end();
    watcher.see(encoder.payload());
    let expected = (TriggerKind::Lock, 290, "0xabc".to_owned(), true);
    assert_eq!(operation(&mut watcher), expected);
    for (name, ts, ret) in [("accept4", 700, 3), ("read", 710, 9), ("write", 1100, 9)] {
        watcher.see(&returned(name, ts, ret));
    }
    watcher.settle(2000 * MS);
    let expected = (TriggerKind::Request, 710, String::new(), true);
    assert_eq!(operation(&mut watcher), expected);
    watcher.see(&call(Kind::SyscallEnter, "fsync", 1200, 1200));
    watcher.check_pending(20_000 * MS, KEPT);
    let expected = (TriggerKind::Call, 1200, "fsync".to_owned(), false);
    assert_eq!(operation(&mut watcher), expected);
}

#[test]
fn block_io_is_identified_by_device_and_sector() {
    let mut watcher = watcher("block>100ms");
    for (kind, ts) in [(Kind::BioQueue, 100), (Kind::RqComplete, 300)] {
        let mut encoder = Encoder::default();
        let record = encoder.begin(kind, ts * MS, (PID, PID));
        let record = record.u32((8 << 20) + 16).u32(4096).u64(64);
        record.u32(0).u32(0).end();
        watcher.see(encoder.payload());
    }
    let [trigger] = <[Trigger; 1]>::try_from(watcher.take_fired()).unwrap();
    let operation = trigger.operation.expect("an operation");
    assert_eq!(
        (operation.kind, operation.took),
        (TriggerKind::Block, 200 * MS)
    );
    assert_eq!(operation.name, "8:16+64");
}

#[test]
fn each_term_has_its_own_limit() {
    let see = |when: &str, took: u64| {
        let mut watcher = watcher(when);
        let mut encoder = Encoder::default();
        let at = |encoder: &mut Encoder, kind, ts: u64| {
            let record = encoder.begin(kind, ts * MS, (PID, PID));
            record.u32(8 << 20).u32(4096).u64(64).u32(0).u32(0).end();
        };
        at(&mut encoder, Kind::BioQueue, 100);
        at(&mut encoder, Kind::RqComplete, 100 + took);
        for (ts, kind) in [(100, Kind::Waking), (100 + took, Kind::Switch)] {
            let record = encoder.begin(kind, ts * MS, (0, 0));
            record.u32(PID as u32).u32(PID as u32).u32(1).u32(0).end();
        }
        let record = encoder.begin(Kind::Lock, (100 + took) * MS, (PID, PID));
        record.u64(100 * MS).u64(0xabc).end();
        let mut begin = 0;
        let all = encoder.payload();
        for (at, _) in whyslow_model::spool::records(all).skip(1) {
            watcher.see(&all[begin..at]);
            begin = at;
        }
        watcher.see(&all[begin..]);
        watcher.see(&call(Kind::Syscall, "fsync", 100 + took, 100));
        let fired = watcher.take_fired().into_iter();
        let terms = fired.map(|trigger| trigger.term.expect("one of them"));
        terms.collect::<Vec<_>>().join(" ")
    };
    for what in ["block", "sched", "lock", "fsync"] {
        for when in [
            format!("{what}>100ms | {what}>900ms | open>1ms"),
            format!("open>1ms | {what}>900ms | {what}>100ms"),
        ] {
            assert_eq!(see(&when, 99), "");
            assert_eq!(see(&when, 100), format!("{what}>100ms"));
            assert_eq!(see(&when, 899), format!("{what}>100ms"));
            assert_eq!(see(&when, 900), format!("{what}>900ms"));
        }
    }
}

#[test]
fn records_cut_short_do_no_harm_and_triggers_are_bounded() {
    let mut watcher = watcher("io>0ms | request>0ms | block>0ms | sched>0ms | dns>0ms | lock>0ms");
    let whole = call(Kind::Syscall, "openat", 600, 400);
    for kind in 0..200u16 {
        for end in 0..whole.len() {
            let mut cut = whole[..end].to_vec();
            for (byte, of_kind) in cut.iter_mut().zip(kind.to_le_bytes()) {
                *byte = of_kind;
            }
            watcher.see(&cut);
            watcher.see_snapshot(&cut);
        }
    }
    watcher.settle(u64::MAX);
    for _ in 0..1000 {
        watcher.see(&whole);
    }
    assert!(watcher.take_fired().len() <= FIRED_MAX);
}
