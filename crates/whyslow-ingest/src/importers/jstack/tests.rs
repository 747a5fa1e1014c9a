use super::*;

fn read_one(text: &str, named: Option<Ns>, written: Option<Ns>) -> Read {
    read(&[DumpFile {
        text,
        named,
        written,
        shift: 0,
    }])
}

/// Two threads of which one waits for the other's lock in both dumps, and a third that waits for work.
fn text() -> String {
    let dump = |second: u32, waiting: &str| {
        format!(
            "2026-11-24 14:22:{second:02}\nFull thread dump OpenJDK 64-Bit Server VM (17):\n\n\
             \"holder\" #1 prio=5 nid=0x10 runnable\n   java.lang.Thread.State: RUNNABLE\n\
             \tat a.Log.append(Log.java:5)\n\t- locked <0x00000000000000aa> (a a.Log)\n\n\
             \"waiter\" #2 prio=5 nid=0x11 waiting\n   java.lang.Thread.State: {waiting}\n\n\
             \"worker\" #3 prio=5 nid=0x12 waiting\n   java.lang.Thread.State: WAITING (parking)\n\
             \tat jdk.internal.misc.Unsafe.park(java.base@17/Native Method)\n\
             \t- parking to wait for  <0x00000000000000bb> (a java.util.X$ConditionObject)\n\
             \tat java.util.concurrent.locks.LockSupport.park(java.base@17/LockSupport.java:1)\n\
             \tat java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject.await(A.java:1)\n\
             \tat a.Queue.take(Queue.java:9)\n\n"
        )
    };
    let blocked = "BLOCKED (on object monitor)\n\tat a.Log.size(Log.java:9)\n\
                   \t- waiting to lock <0x00000000000000aa> (a a.Log)";
    let running = "RUNNABLE\n\tat a.Main.run(Main.java:1)";
    [
        dump(30, running),
        dump(31, blocked),
        dump(33, blocked),
        dump(34, running),
    ]
    .concat()
}

#[test]
fn who_holds_a_lock_is_told() {
    let read = read_one(&text(), None, None);
    assert_eq!((read.dumps, read.unstamped), (4, 0));
    let [wait] = &read.waits[..] else {
        panic!("{:?}", read.waits);
    };
    let name = |thread: u32| read.profile.threads[thread as usize].name.clone();
    assert_eq!(name(wait.thread).as_deref(), Some("waiter"));
    assert_eq!(wait.dur(), 2_000_000_000);
    assert_eq!((wait.kind, wait.told_by), (LockKind::Monitor, Teller::Dump));
    assert_eq!((wait.object.as_str(), wait.address), ("a.Log", Some(0xaa)));
    let holder = wait.holder.expect("it is told");
    assert_eq!(name(holder.thread).as_deref(), Some("holder"));
    assert_eq!(
        (holder.held, holder.confidence),
        (wait.dur(), Confidence::High)
    );
    let frame = &read.profile.frames[wait.frame as usize];
    assert_eq!(frame.function, "a.Log.size");
    assert_eq!(read.profile.points.len(), 12);
    assert!(read.profile.points.is_sorted_by_key(|point| point.ts));
}

#[test]
fn a_file_that_is_cut_anywhere_gives_what_it_has() {
    let text = text();
    for end in 0..text.len() {
        if let Some(part) = text.get(..end) {
            let read = read_one(part, None, Some(5));
            assert!(read.dumps <= 4 && read.waits.len() <= 1);
        }
    }
}

#[test]
fn times_come_from_names_stamps_or_the_file() {
    let one = "Full thread dump X:\n\"a\" #1 nid=1 runnable\n\tat a.B.c(B.java:1)\n";
    let ts = |named, written| {
        let profile = read_one(one, named, written).profile;
        profile.points[0].ts + profile.points[0].span
    };
    assert_eq!(ts(Some(7_000_000_000), Some(9)), 7_000_000_000);
    assert_eq!(ts(None, Some(9_000_000_000)), 9_000_000_000);
}

#[test]
fn files_of_a_series_are_one() {
    let whole = text();
    let parts: Vec<&str> = whole.split_inclusive("Queue.java:9)\n\n").collect();
    assert_eq!(parts.len(), 4);
    let mut files: Vec<DumpFile<'_>> = parts
        .iter()
        .map(|text| DumpFile {
            text,
            ..DumpFile::default()
        })
        .collect();
    files.reverse();
    let read = read(&files);
    assert_eq!((read.dumps, read.waits.len()), (4, 1));
    assert_eq!(read.waits[0].dur(), 2_000_000_000);
}

#[test]
fn dumps_of_one_second_share_it() {
    let one =
        "2026-11-24 14:22:33\nFull thread dump X:\n\"a\" #1 nid=1 runnable\n\tat a.B.c(B.java:1)\n";
    let profile = read_one(&one.repeat(4), None, None).profile;
    let ends: Vec<Ns> = profile
        .points
        .iter()
        .map(|point| point.ts + point.span)
        .collect();
    let quarter = 250_000_000;
    assert!(
        ends.windows(2).all(|pair| pair[1] - pair[0] == quarter),
        "{ends:?}"
    );
}
