use super::*;

fn read_one(text: &str, named: Option<Ns>, written: Option<Ns>) -> Read {
    read(&[DumpFile {
        text,
        named,
        written,
        shift: 0,
    }])
}

/// Two threads, one of which waits for the other's lock in both dumps, and a third that waits for
/// work.
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
    assert_eq!(
        (wait.kind, wait.reported_by),
        (LockKind::Monitor, WaitSource::Dump)
    );
    assert_eq!((&*wait.object, wait.address), ("a.Log", Some(0xaa)));
    let holder = wait.holder.expect("a known holder");
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

fn dump_of(threads: &[(&str, &str, &str)]) -> Read {
    let threads = (1..).zip(threads).map(|(number, (name, state, lines))| {
        let head = format!("\"{name}\" #{number} nid=0x{number}\n");
        format!("{head}   java.lang.Thread.State: {state}\n{lines}\n")
    });
    let head = "2026-11-24 14:22:33\nFull thread dump X:\n\n".to_owned();
    let text: String = std::iter::once(head).chain(threads).collect();
    read_one(&text, None, None)
}

/// Names of the waiting threads and of the holders.
fn waits_of(read: &Read) -> Vec<(String, Option<String>)> {
    let name = |thread: u32| {
        let thread = &read.profile.threads[thread as usize];
        thread.name.clone().unwrap_or_default()
    };
    let waits = read.waits.iter();
    waits
        .map(|wait| {
            (
                name(wait.thread),
                wait.holder.map(|holder| name(holder.thread)),
            )
        })
        .collect()
}

const SLEEPS: &str = "WAITING (on object monitor)";
const BLOCKED: &str = "BLOCKED (on object monitor)";
const RUNS: &str = "RUNNABLE";
/// As printed by JDK 9 to 13.
const RE_LOCKS: &str = "\tat java.lang.Object.wait(java.base@11/Native Method)\n\
    \t- waiting on <no object reference available>\n\
    \tat java.lang.ref.ReferenceQueue.remove(java.base@11/ReferenceQueue.java:155)\n\
    \t- waiting to re-lock in wait() <0x00000007d3e7a738> (a java.lang.ref.ReferenceQueue$Lock)\n";
/// As printed by later versions.
const UNNAMED: &str = "\tat java.lang.Object.wait(java.base@17/Native Method)\n\
    \t- waiting on <no object reference available>\n\
    \tat a.Queue.take(Queue.java:5)\n\
    \t- locked <0x00000000000000aa> (a a.Queue)\n\
    \tat a.Main.run(Main.java:1)\n\
    \t- locked <0x00000000000000cc> (a a.Main)\n";
const WANTS: &str = "\tat a.Queue.put(Queue.java:9)\n\
    \t- waiting to lock <0x00000000000000aa> (a a.Queue)\n";
const HOLDS: &str = "\tat a.Queue.size(Queue.java:7)\n\
    \t- locked <0x00000000000000aa> (a a.Queue)\n";

#[test]
fn who_sleeps_in_object_wait_waits_for_no_lock() {
    let named = RE_LOCKS.replace(
        "<no object reference available>",
        "<0x00000007d3e7a738> (a java.lang.ref.ReferenceQueue$Lock)",
    );
    for lines in [RE_LOCKS, &named, UNNAMED] {
        let read = dump_of(&[("Finalizer", SLEEPS, lines)]);
        assert_eq!(waits_of(&read), [], "{lines}");
    }
}

#[test]
fn who_was_notified_waits_for_the_lock_that_it_gave_back() {
    let unnamed = UNNAMED.replace("waiting on", "waiting to re-lock in wait()");
    let threads = [
        ("notified", BLOCKED, unnamed.as_str()),
        ("owner", RUNS, HOLDS),
    ];
    let read = dump_of(&threads);
    let expected = [("notified".to_owned(), Some("owner".to_owned()))];
    assert_eq!(waits_of(&read), expected);
    let frame = &read.profile.frames[read.waits[0].frame as usize];
    assert_eq!(frame.function, "a.Queue.take");
    let lines = RE_LOCKS.replace("waiting on", "waiting to re-lock in wait()");
    let read = dump_of(&[("notified", BLOCKED, &lines)]);
    assert_eq!(waits_of(&read), [("notified".to_owned(), None)]);
}

#[test]
fn who_gave_a_lock_back_is_never_its_holder() {
    let wants = ("waiter", BLOCKED, WANTS);
    let read = dump_of(&[wants, ("sleeper", SLEEPS, UNNAMED)]);
    assert_eq!(waits_of(&read), [("waiter".to_owned(), None)]);
    // Other locks are still held.
    let other = WANTS.replace("0aa>", "0cc>");
    let read = dump_of(&[("waiter", BLOCKED, &other), ("sleeper", SLEEPS, UNNAMED)]);
    let expected = [("waiter".to_owned(), Some("sleeper".to_owned()))];
    assert_eq!(waits_of(&read), expected);
}

#[test]
fn of_two_holders_the_one_that_does_not_wait_is_told() {
    // A compiled frame may not name the object that it waits on.
    let sleeper = ("sleeper", SLEEPS, HOLDS);
    let (waiter, owner) = (("waiter", BLOCKED, WANTS), ("owner", RUNS, HOLDS));
    let expected = [("waiter".to_owned(), Some("owner".to_owned()))];
    for threads in [[waiter, sleeper, owner], [waiter, owner, sleeper]] {
        assert_eq!(waits_of(&dump_of(&threads)), expected);
    }
}

#[test]
fn the_zone_of_stamps_is_that_in_which_most_files_were_written() {
    const HOUR: Ns = 3_600_000_000_000;
    let stamp = 1_795_530_153_000_000_000; // 14:22:33 UTC
    let text =
        "2026-11-24 14:22:33\nFull thread dump X:\n\"a\" #1 nid=1 runnable\n\tat a.B.c(B.java:1)\n";
    let end = |written: &[Ns], named| {
        let file = |written: &Ns| DumpFile {
            text,
            named,
            written: Some(*written),
            shift: 0,
        };
        let files: Vec<DumpFile<'_>> = written.iter().map(file).collect();
        let read = read(&files);
        let first = read.profile.points[0];
        (first.ts + first.span, read.zoneless)
    };
    assert_eq!(end(&[stamp - 2 * HOUR + 7], None), (stamp - 2 * HOUR, 1));
    assert_eq!(end(&[stamp + 7], None), (stamp, 1));
    // One of the files was modified later.
    let written = [stamp - HOUR, stamp + 50 * HOUR, stamp - HOUR];
    assert_eq!(end(&written, None), (stamp - HOUR, 3));
    assert_eq!(end(&[stamp - 2 * HOUR], Some(5)), (5, 0));
}
