//! Random sequences of events.

use proptest::prelude::*;

use super::{Machine, body, here};

fn any_event() -> impl Strategy<Value = String> {
    let kind = prop::sample::select(vec![
        "queue",
        "getrq",
        "insert",
        "issue",
        "requeue",
        "backmerge",
        "frontmerge",
        "rqmerge",
        "complete",
        "biodone",
        "remap",
        "split",
        "dumped",
    ]);
    let dev = prop::sample::select(vec!["8:0", "8:1", "254:0"]);
    let rwbs = prop::sample::select(vec!["R", "WS", "FF", "FWFS", "D", "N"]);
    (kind, dev.clone(), dev, -1i64..5, 0i64..4, rwbs).prop_map(|(kind, dev, old, at, n, rwbs)| {
        let at = at * 8;
        let rest = match kind {
            "remap" => format!(" {old} {}", at + 8),
            "split" => format!(" {}", at + 8),
            _ => String::new(),
        };
        format!("{kind} {dev} {at}+{} {rwbs}{rest}", n * 8)
    })
}

proptest! {
    #[test]
    fn any_sequence_gives_each_io_once_and_sound_times(
        events in prop::collection::vec(any_event(), 0..120)
    ) {
        let mut machine = Machine::new();
        for (ts, event) in events.iter().enumerate() {
            let words: Vec<&str> = event.split_whitespace().collect();
            machine.apply(&here(ts as i64, "7"), &body(&words));
        }
        machine.finish();
        let rows = &machine.rows.block_io;
        let mut ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids.dedup();
        prop_assert_eq!(ids.len(), rows.len());
        prop_assert_eq!(machine.tracker.open.len(), 0);
        for row in rows {
            prop_assert!(row.ts_end.is_none_or(|end| end >= row.ts));
            prop_assert_eq!(row.dur.is_none(), row.cut.is_some());
            prop_assert!(row.queue_ns.is_none_or(|ns| ns >= 0));
            prop_assert!(row.device_ns.is_none_or(|ns| ns >= 0));
            if let (Some(queue), Some(device), Some(dur)) = (row.queue_ns, row.device_ns, row.dur) {
                prop_assert!(queue + device <= dur);
            }
        }
        // Every completion of data ends an I/O, is a part of one, or has a row of its own.
        let completions = events.iter().filter(|event| {
            event.starts_with("complete") && !event.contains("+0") && !event.contains("-8+")
        });
        let completed: i64 = rows.iter().map(|row| i64::from(row.completions)).sum();
        prop_assert!(completed >= completions.count() as i64);
    }
}
