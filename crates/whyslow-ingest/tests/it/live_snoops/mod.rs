//! Output of bcc, libbpf-tools and bpftrace tools becomes system calls, requests, DNS lookups,
//! connections.

mod damage;
mod documented;

use documented::DOCUMENTED;
use serde_json::Value;
use whyslow_ingest::{InMemory, import_in_memory};

use crate::live_texts::{Report, SECOND, at, fixture, import, met, text};

/// An action in the log of the watched program.
struct Action {
    what: String,
    begin: f64,
    end: f64,
    about: Value,
}

/// Actions of one kind.
fn actions(kind: &str) -> Vec<Action> {
    let truth: Value = serde_json::from_str(&fixture("truth.json")).expect("it is JSON");
    let did = truth["did"].as_array().expect("what it did").iter();
    did.filter(|action| action["kind"] == kind)
        .map(|action| Action {
            what: action["what"].as_str().expect("what it did").to_owned(),
            begin: action["begin"].as_f64().expect("when it began"),
            end: action["end"].as_f64().expect("when it ended"),
            about: action.clone(),
        })
        .collect()
}

/// Its last line was written just before: times of day have no date.
fn log(name: &str) -> InMemory {
    Report::new(fixture(name)).written(at("04:13:40")).import()
}

fn is_whole(import: &InMemory) {
    assert_eq!(met(import, "SNOOP_LINE_BAD"), 0, "{:?}", import.anomalies);
    assert_eq!(import.records.skipped, 0);
}

#[test]
fn opensnoop_tells_what_was_opened_and_what_was_not_there() {
    let import = log("opensnoop.txt");
    is_whole(&import);
    let calls = &import.rows.syscall;
    for action in actions("open") {
        let errno = action.about["error"].as_i64().expect("an error");
        let of_it: Vec<_> = calls
            .iter()
            .filter(|call| text(&import, call.path) == action.what)
            .collect();
        assert_eq!(of_it.len(), 1, "{}", action.what);
        let call = of_it[0];
        assert_eq!(i64::from(call.errno.unwrap_or(0)), errno, "{}", action.what);
        // Its times are in whole seconds.
        let begin = action.begin.floor() as i64 * SECOND;
        assert!((begin..=begin + 2 * SECOND).contains(&call.ts));
        assert_eq!(call.dur, None);
        assert_eq!(call.pid, Some(1339));
    }
}

#[test]
fn opensnoop_and_strace_tell_of_the_same_calls() {
    let (snoop, strace) = (log("opensnoop.txt"), log("strace.txt"));
    let opened = |import: &InMemory| -> Vec<(String, i32)> {
        let calls = import.rows.syscall.iter().filter(|call| {
            let name = import.symbols.get(call.name);
            name == "openat" && text(import, call.path).contains("/file with blanks")
                || text(import, call.path).contains("/missing")
        });
        let mut opened: Vec<(String, i32)> = calls
            .map(|call| {
                let path = text(import, call.path).to_owned();
                (path, call.errno.unwrap_or(0))
            })
            .collect();
        opened.sort();
        opened
    };
    assert!(opened(&snoop).len() >= 30);
    assert_eq!(opened(&snoop), opened(&strace));
}

#[test]
fn execsnoop_and_exitsnoop_tell_when_programs_were_there() {
    let started = log("execsnoop.txt");
    is_whole(&started);
    let ended = log("exitsnoop.txt");
    is_whole(&ended);
    let programs = actions("program");
    assert_eq!(programs.len(), 5);
    for action in programs {
        let pid = action.about["pid"].as_i64().expect("a process") as i32;
        let of_it = started
            .rows
            .process
            .iter()
            .find(|process| process.pid == pid);
        let process = of_it.expect("the process");
        assert_eq!(text(&started, process.command_line).trim(), action.what);
        let of_it = ended.rows.process.iter().find(|process| process.pid == pid);
        let process = of_it.expect("the process");
        let end = process.ts_exit.expect("its end");
        // Seconds, rounded down, and an age in hundredths.
        let reported = (end as f64) / 1e9;
        assert!(
            reported <= action.end && reported > action.end - 1.1,
            "{reported} {}",
            action.end
        );
    }
}

#[test]
fn gethostlatency_tells_which_names_were_looked_up_for_how_long() {
    let import = log("gethostlatency.txt");
    is_whole(&import);
    let lookups = &import.rows.dns_lookup;
    for action in actions("lookup") {
        let mut of_it = lookups
            .iter()
            .filter(|lookup| text(&import, lookup.host) == action.what);
        let lookup = of_it.next().expect("the lookup");
        let reported = lookup.dur.expect("its length") as f64 / 1e9;
        let took = action.end - action.begin;
        assert!(reported <= took && reported > 0.0, "{reported} of {took}");
        assert_eq!(text(&import, Some(lookup.function)), "unknown");
        assert_eq!(text(&import, lookup.result), "unknown");
        assert_eq!(lookup.ts_end, Some(at("04:13:36")));
    }
    assert_eq!(met(&import, "SNOOP_NO_THREADS"), lookups.len() as u64);
}

#[test]
fn tcplife_tells_of_both_ends_of_each_connection() {
    let import = log("tcplife.txt");
    is_whole(&import);
    let all = &import.rows.tcp_connection;
    let connections = actions("connection");
    assert_eq!(all.len(), 2 * connections.len());
    for row in all {
        // Each includes a sleep of 20 ms.
        assert!(row.dur.expect("its length") > 20_000_000);
        assert_eq!(text(&import, Some(row.kind)), "unknown");
        assert_eq!(text(&import, Some(row.outcome)), "unknown");
        assert_eq!(row.pid, Some(1339));
    }
}

#[test]
fn runqslower_and_sigsnoop_keep_what_they_count() {
    let waits = log("runqslower.txt");
    is_whole(&waits);
    let found: Vec<(i64, &str)> = waits
        .rows
        .counter
        .iter()
        .map(|row| (row.value, text(&waits, Some(row.unit))))
        .collect();
    assert_eq!(found, [(1_947_000, "ns"), (8_834_000, "ns")]);
    let signals = log("sigsnoop.txt");
    is_whole(&signals);
    assert_eq!(signals.rows.marker.len(), 29);
    let first = signals.rows.marker[0].text;
    assert!(text(&signals, Some(first)).contains("signal 19 to 1339"));
}

/// Rows of the tables that lines of tools are imported into.
fn rows(import: &InMemory) -> [usize; 8] {
    let rows = &import.rows;
    [
        rows.syscall.len(),
        rows.block_io.len(),
        rows.dns_lookup.len(),
        rows.tcp_connection.len(),
        rows.counter.len(),
        rows.marker.len(),
        rows.net_packet.len(),
        rows.reclaim.len(),
    ]
}

#[test]
fn tables_of_other_families_are_read_by_their_headers() {
    for (name, expected, log) in DOCUMENTED {
        let import = import(log);
        assert_eq!(
            met(&import, "SNOOP_LINE_BAD"),
            0,
            "{name}: {:?}",
            import.anomalies
        );
        assert_eq!(rows(&import), expected, "{name}");
        assert_eq!(met(&import, "SNOOP_CLOCK_GUESSED"), 1, "{name}");
    }
}

#[test]
fn requests_and_calls_have_their_lengths_and_sizes() {
    let of = |name: &str| {
        let mut documented = DOCUMENTED.iter();
        let (.., log) = documented.find(|(of, ..)| *of == name).expect("the form");
        import(log)
    };
    let block = of("biosnoop of libbpf-tools");
    let request = &block.rows.block_io[1];
    assert_eq!(request.device_ns, Some(1_562_000));
    assert_eq!((request.sector, request.bytes), (2048, 65_536));
    let slower = of("ext4slower");
    let write = slower
        .rows
        .syscall
        .iter()
        .find(|call| slower.symbols.get(call.name) == "pwrite64");
    let write = write.expect("the write");
    assert_eq!(write.dur, Some(16_040_000));
    assert_eq!(write.file_offset, Some(8192));
    assert_eq!(text(&slower, write.path), "common auth");
    assert_eq!(text(&slower, write.comm), "my cron");
    let stats = of("statsnoop -t");
    assert!(
        stats
            .rows
            .syscall
            .iter()
            .all(|call| stats.symbols.get(call.name) == "stat")
    );
    let life = of("tcplife -T");
    let long = life.rows.tcp_connection.iter().filter_map(|row| row.dur);
    assert_eq!(long.max(), Some(5_000_230_000));
}

#[test]
fn logs_without_times_are_refused_with_the_flag() {
    for log in [
        "PID    COMM               FD ERR PATH\n1576   snmpd              11   0 /proc/sys\n",
        "PCOMM            PID     PPID    RET ARGS\nbash             15887   15885     0 /bin/bash\n",
    ] {
        let why = Report::new(log).refused();
        assert!(
            why.contains("lines have no timestamps") && why.contains("-T"),
            "{why}"
        );
    }
    let histogram = "Tracing block device I/O... Hit Ctrl-C to end.\n\
                     \x20    usecs               : count     distribution\n\
                     \x20        0 -> 1          : 0        |                    |\n";
    let why = Report::new(histogram).refused();
    assert!(why.contains("histogram"), "{why}");
}

fn import_both(logs: [&str; 2]) -> InMemory {
    let files = logs.map(Report::new);
    let paths = files.each_ref().map(|file| file.path.clone());
    import_in_memory(&paths).expect("they can be imported")
}

#[test]
fn files_that_are_imported_together_share_no_thread_and_no_socket() {
    const LOOKUP: &str = "TIME      PID    COMM                  LATms HOST\n";
    let import = import_both([
        &format!("{LOOKUP}06:10:24  10     wget                4000.00 a.example\n"),
        &format!("{LOOKUP}06:10:23  20     curl                2000.00 b.example\n"),
    ]);
    let mut lookups: Vec<_> = import
        .rows
        .dns_lookup
        .iter()
        .map(|row| {
            let (host, comm) = (text(&import, row.host), text(&import, row.comm));
            (host, comm, row.pid, row.dur.map(|dur| dur / SECOND))
        })
        .collect();
    lookups.sort_unstable();
    let expected = [
        ("a.example", "wget", Some(10), Some(4)),
        ("b.example", "curl", Some(20), Some(2)),
    ];
    assert_eq!(lookups, expected);

    const LIFE: &str =
        "TIME     PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS\n";
    let import = import_both([
        &format!(
            "{LIFE}22:03:50 10    a          127.0.0.1       1     127.0.0.1       2     0     0 5000.00\n"
        ),
        &format!(
            "{LIFE}22:03:49 20    b          127.0.0.1       3     127.0.0.1       4     0     0 3000.00\n"
        ),
    ]);
    let connections = &import.rows.tcp_connection;
    let mut lives: Vec<_> = connections
        .iter()
        .map(|row| (row.pid, row.dur.map(|dur| dur / SECOND)))
        .collect();
    lives.sort_unstable();
    assert_eq!(lives, [(Some(10), Some(5)), (Some(20), Some(3))]);
}

#[test]
fn kinds_of_slow_calls_are_what_their_letters_mean() {
    let import = import(
        "TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n\
         06:35:01 cron           16464  G 0       0          16.05 a\n\
         06:35:02 cron           16464  C 0       0          16.05 b\n\
         06:35:03 cron           16464  X 0       0          16.05 c\n",
    );
    assert_eq!(met(&import, "SNOOP_LINE_BAD"), 1);
    let calls: Vec<_> = import
        .rows
        .syscall
        .iter()
        .map(|call| (import.symbols.get(call.name), text(&import, call.path)))
        .collect();
    assert_eq!(calls, [("stat", "a"), ("fsync", "b")]);
}
