pub(crate) mod made;
mod reported;

use proptest::prelude::*;

use self::made::{MONITOR, Made};
use super::*;
use crate::profile::CodeKind;

const SECOND: i64 = 1_000_000_000;

/// Two threads, two stacks, a batch, a wait for a monitor.
fn usual(start_ns: i64) -> Made {
    let mut made = Made::new(start_ns);
    made.setting("event", "wall");
    made.setting("interval", "10000000");
    made.sample([5_000_000, 1, 1, 0, 1, 0]);
    made.sample([2_000_000, 2, 2, 1, 1, 0]);
    made.sample([15_000_000, 1, 1, 1, 3, 25_000_000]);
    made.event(MONITOR, &[4_000_000, 3_000_000, 2, 2, 1, 1, 0xabc]);
    made
}

#[test]
fn what_was_written_is_read() {
    let read = read(&usual(SECOND).chunk());
    assert_eq!(read.damage, Damage::default());
    let profile = &read.profile;
    assert_eq!(profile.interval, Some(10_000_000));
    let points: Vec<_> = profile
        .points
        .iter()
        .map(|point| {
            let thread = profile.threads[point.thread as usize].name.as_deref();
            (
                point.ts - SECOND,
                thread,
                point.credits,
                point.span,
                point.is_assumed,
            )
        })
        .collect();
    let (one, two) = (Some("one"), Some("two"));
    assert_eq!(
        points,
        [
            (2_000_000, two, 1, 0, false),
            (5_000_000, one, 1, 0, false),
            (15_000_000, one, 3, 25_000_000, true),
        ]
    );
    let frames: Vec<_> = profile.frames_of(profile.points[0].stack).collect();
    assert_eq!(frames[0].function, "write");
    assert_eq!(frames[0].module.as_deref(), Some("libc.so"));
    assert_eq!(
        (frames[0].kind, frames[1].kind),
        (CodeKind::User, CodeKind::Managed)
    );
    assert_eq!(
        (frames[1].function.as_str(), frames[1].line),
        ("A.work", Some(8))
    );
    let thread = &profile.threads[profile.points[1].thread as usize];
    assert_eq!((thread.tid, thread.runtime_id), (Some(71), Some(11)));
    let [event] = &profile.events[..] else {
        panic!("{:?}", profile.events)
    };
    assert_eq!((event.ts - SECOND, event.dur), (4_000_000, 3_000_000));
    assert_eq!(event.object.as_deref(), Some("A"));
    assert_eq!(event.address, Some(0xabc));
    let owner = &profile.threads[event.owner.expect("an owner") as usize];
    assert_eq!(owner.name, one.map(str::to_owned));
    assert_eq!(read.counts["profiler.WallClockSample"], 3);
}

#[test]
fn chunks_one_after_the_other_are_one_profile() {
    let (first, second) = (usual(SECOND).chunk(), usual(9 * SECOND).chunk());
    for file in [
        [&first[..], &second].concat(),
        [&second[..], &first].concat(),
    ] {
        let read = read(&file);
        assert_eq!(read.damage, Damage::default());
        assert_eq!(read.profile.points.len(), 6);
        assert!(read.profile.points.is_sorted_by_key(|point| point.ts));
        assert_eq!(read.profile.threads.len(), 2);
        assert_eq!(read.profile.stacks.len(), 2);
    }
}

#[test]
fn ticks_of_any_length_become_nanoseconds() {
    let mut made = usual(SECOND);
    made.ticks_per_second = 2_500_000_000;
    let read = read(&made.chunk());
    assert_eq!(read.profile.points[0].ts - SECOND, 800_000);
    assert_eq!(read.profile.points[2].span, 10_000_000);
}

#[test]
fn an_unfinished_chunk_has_its_events_and_the_names_of_those_before() {
    let (first, last) = (usual(SECOND).chunk(), usual(9 * SECOND).unfinished());
    let file = [&first[..], &last].concat();
    let read = read(&file);
    assert_eq!(read.profile.points.len(), 6);
    assert_eq!(
        read.damage.unfinished,
        [Place {
            offset: first.len(),
            count: 6 + 1
        }]
    );
    let names = read.profile.points.iter().map(|point| {
        let thread = &read.profile.threads[point.thread as usize];
        let leaf = read.profile.frames_of(point.stack).next();
        (
            thread.name.is_some(),
            leaf.is_some_and(|leaf| !leaf.function.contains("unresolved")),
        )
    });
    assert!(
        names.clone().all(|known| known == (true, true)),
        "{:?}",
        names.collect::<Vec<_>>()
    );
}

#[test]
fn alone_it_has_the_numbers_of_its_threads() {
    let read = read(&usual(SECOND).unfinished());
    assert_eq!(read.profile.points.len(), 3);
    assert!(read.damage.unresolved > 0);
    let tids: Vec<_> = read
        .profile
        .threads
        .iter()
        .map(|thread| thread.tid)
        .collect();
    // In files of async-profiler, the key of a thread is its tid.
    assert_eq!(tids, [Some(1), Some(2)]);
}

#[test]
fn zeros_at_the_end_are_no_loss_and_other_bytes_are() {
    let chunk = usual(SECOND).chunk();
    let padded = read(&[&chunk[..], &[0; 4096]].concat());
    assert_eq!(padded.damage.lost, []);
    assert_eq!(padded.profile.points.len(), 3);
    let spoilt = read(&[&b"something"[..], &chunk].concat());
    assert_eq!(
        spoilt.damage.lost,
        [Place {
            offset: 0,
            count: 9
        }]
    );
    assert_eq!(spoilt.profile.points.len(), 3);
}

#[test]
fn a_file_may_end_anywhere() {
    let first = usual(SECOND).chunk();
    let file = [&first[..], &usual(9 * SECOND).chunk()].concat();
    for end in 0..file.len() {
        let read = read(&file[..end]);
        let points = read.profile.points.len();
        if end >= first.len() {
            assert!(points >= 3, "{end}: {points}");
        }
        if end > 0 && end != first.len() {
            let damage = &read.damage;
            let is_reported = !(damage.unfinished.is_empty()
                && damage.lost.is_empty()
                && damage.unreadable.is_empty());
            assert!(is_reported, "{end}");
        }
    }
}

#[test]
fn sizes_and_counts_that_cannot_be_are_not_believed() {
    let chunk = usual(SECOND).chunk();
    for at in 0..chunk.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut spoilt = chunk.clone();
            spoilt[at] = byte;
            let read = read(&spoilt);
            assert!(read.profile.points.len() <= chunk.len());
        }
    }
}

proptest! {
    #[test]
    fn the_order_of_events_does_not_matter(order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle(), cut in 0..40_usize) {
        let of = |numbers: &[u64], start: i64| {
            let mut made = Made::new(start);
            made.setting("interval", "10000000");
            for number in numbers {
                made.sample([number * 7 % 40 * 1_000_000, 1 + number % 2, 1 + number % 3 % 2, number % 2, 1 + number % 4, 0]);
            }
            made.chunk()
        };
        let sorted = read(&of(&(0..40).collect::<Vec<_>>(), SECOND));
        let shuffled = [of(&order[..cut], SECOND), of(&order[cut..], SECOND)].concat();
        let shuffled = read(&shuffled);
        let summary = |read: &Read| {
            let profile = &read.profile;
            let points = profile.points.iter().map(|point| {
                let thread = profile.threads[point.thread as usize].clone();
                let stack: Vec<_> = profile.frames_of(point.stack).cloned().collect();
                (point.ts, thread, stack, point.credits, point.state)
            });
            points.collect::<Vec<_>>()
        };
        prop_assert_eq!(summary(&sorted), summary(&shuffled));
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
        let mut with_header = usual(SECOND).chunk();
        with_header.truncate(68);
        with_header.extend(bytes);
        read(&with_header);
    }
}

/// Reading by chunk and reading at once give the same result; a truncated or damaged file is read
/// at once, or with the same result.
#[test]
fn chunks_of_a_file_are_read_as_its_bytes_are() {
    let whole = [usual(SECOND).chunk(), usual(9 * SECOND).chunk()].concat();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jfr");
    let summary = |read: &Read| {
        format!(
            "{:?}",
            (
                &read.profile.points,
                &read.profile.events,
                &read.profile.facts,
                &read.damage,
                &read.counts
            )
        )
    };
    let by_chunk = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("written");
        let file = File::open(&path).expect("a file");
        read_chunks(&file, bytes.len() as u64).expect("read")
    };
    let found = by_chunk(&whole).expect("complete chunks");
    assert_eq!(summary(&found), summary(&read(&whole)));
    for at in 0..whole.len() {
        assert_eq!(
            by_chunk(&whole[..at]).is_some(),
            at == 0 || at == whole.len() / 2,
            "cut at {at}"
        );
        let mut damaged = whole.clone();
        damaged[at] ^= 1 << (at % 8);
        if let Some(found) = by_chunk(&damaged) {
            assert_eq!(summary(&found), summary(&read(&damaged)), "damaged at {at}");
        }
    }
}
