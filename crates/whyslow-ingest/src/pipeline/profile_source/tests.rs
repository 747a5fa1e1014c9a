use crate::importers::jfr::tests::made::Made;
use crate::pipeline::{InMemory, import_in_memory};

const SECOND: i64 = 1_000_000_000;

fn imported(name: &str, bytes: &[u8]) -> InMemory {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).expect("written");
    import_in_memory(&[path]).expect("it can be imported")
}

fn count(imported: &InMemory, name: &str) -> u64 {
    let mut anomalies = imported.anomalies.iter();
    let found = anomalies.find(|anomaly| anomaly.name == name);
    found.map_or(0, |found| found.count)
}

#[test]
fn thread_dumps_of_a_recording_are_read_as_files_of_them_are() {
    let dump = |state: &str| {
        format!(
            "2026-11-24 14:22:33\nFull thread dump OpenJDK 64-Bit Server VM (17):\n\n\
            \"owner\" #11 prio=5 nid=71 runnable\n   java.lang.Thread.State: RUNNABLE\n\
            \tat a.Log.append(Log.java:7)\n\t- locked <0x00000000000000aa> (a a.Log)\n\n\
            \"waiter\" #12 prio=5 nid=72 waiting for monitor entry\n   java.lang.Thread.State: {state}\n\
            \tat a.Log.size(Log.java:9)\n\t- waiting to lock <0x00000000000000aa> (a a.Log)\n\n"
        )
    };
    let mut made = Made::new(5 * SECOND);
    let text = dump("BLOCKED (on object monitor)");
    made.dump(1_000_000_000, Ok(&text));
    made.dump(3_000_000_000, Ok(&text));
    made.dump(4_000_000_000, Ok("this is no dump"));
    let imported = imported("a.jfr", &made.chunk());
    let rows = &imported.rows;
    let word = |sym| imported.symbols.get(sym);
    let samples: Vec<(i64, Option<i32>, &str)> = rows
        .stack_sample
        .iter()
        .map(|row| (row.ts_end.unwrap_or(0), row.tid, word(row.kind)))
        .collect();
    assert_eq!(
        samples,
        [
            (6 * SECOND, Some(71), "dump"),
            (6 * SECOND, Some(72), "dump"),
            (8 * SECOND, Some(71), "dump"),
            (8 * SECOND, Some(72), "dump")
        ]
    );
    let [wait] = &rows.lock_wait[..] else {
        panic!("{:?}", rows.lock_wait);
    };
    assert_eq!((wait.ts, wait.ts_end), (6 * SECOND, Some(8 * SECOND)));
    assert_eq!(wait.reported_by.map(word), Some("dump"));
    assert_eq!((wait.tid, wait.holder_tid), (Some(72), Some(71)));
    assert_eq!(count(&imported, "PROFILE_DUMP_NOT_USED"), 1);
    assert_eq!(count(&imported, "DUMP_UNSTAMPED"), 0);
    assert_eq!(imported.records.skipped, 0);
}

#[test]
fn a_call_that_nothing_ends_makes_no_recording_longer() {
    let text = br#"[{"name":"a","ph":"B","ts":1621401187000000,"pid":1,"tid":8},
      {"name":"b","ph":"X","ts":1621401187000010,"dur":20,"pid":1,"tid":8}]"#;
    let imported = imported("a.json", text);
    let begin = 1_621_401_187 * SECOND;
    assert_eq!(
        (imported.begin_ns, imported.end_ns),
        (begin, begin + 30_000)
    );
}

#[test]
fn weights_of_any_size_are_counted() {
    let most = u64::MAX;
    let text = format!("a;b {most}\nc;d {most}\n");
    let imported = imported("a.txt", text.as_bytes());
    let credits: Vec<Option<i32>> = imported
        .rows
        .stack_sample
        .iter()
        .map(|row| row.credits)
        .collect();
    assert_eq!(credits, [Some(i32::MAX), Some(i32::MAX)]);
    assert_eq!(count(&imported, "SAMPLES_SCALED"), 1);
    let stats = &imported.rows.trace_stat;
    assert!(stats.iter().all(|row| row.count >= 0));
}
