//! What tools of bcc, libbpf-tools and bpftrace print becomes calls, requests, lookups, connections.

mod live_texts;

use live_texts::{Report, SECOND, at, damaged, fixture, import, met, text};
use serde_json::Value;
use whyslow_ingest::InMemory;

/// What the watched program wrote down of one thing that it did.
struct Deed {
    what: String,
    begin: f64,
    end: f64,
    about: Value,
}

/// Of one kind.
fn deeds(kind: &str) -> Vec<Deed> {
    let truth: Value = serde_json::from_str(&fixture("truth.json")).expect("it is JSON");
    let did = truth["did"].as_array().expect("what it did").iter();
    did.filter(|deed| deed["kind"] == kind)
        .map(|deed| Deed {
            what: deed["what"].as_str().expect("what it did").to_owned(),
            begin: deed["begin"].as_f64().expect("when it began"),
            end: deed["end"].as_f64().expect("when it ended"),
            about: deed.clone(),
        })
        .collect()
}

/// Its last line was written a moment ago: times of day have no date.
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
    for deed in deeds("open") {
        let errno = deed.about["error"].as_i64().expect("an error");
        let of_it: Vec<_> = calls
            .iter()
            .filter(|call| text(&import, call.path) == deed.what)
            .collect();
        assert_eq!(of_it.len(), 1, "{}", deed.what);
        let call = of_it[0];
        assert_eq!(i64::from(call.errno.unwrap_or(0)), errno, "{}", deed.what);
        // Its times have seconds.
        let begin = deed.begin.floor() as i64 * SECOND;
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
    let programs = deeds("program");
    assert_eq!(programs.len(), 5);
    for deed in programs {
        let pid = deed.about["pid"].as_i64().expect("a process") as i32;
        let of_it = started
            .rows
            .process
            .iter()
            .find(|process| process.pid == pid);
        let process = of_it.expect("the process");
        assert_eq!(text(&started, process.command_line).trim(), deed.what);
        let of_it = ended.rows.process.iter().find(|process| process.pid == pid);
        let process = of_it.expect("the process");
        let end = process.ts_exit.expect("its end");
        // Seconds, rounded down, and an age in hundredths.
        let told = (end as f64) / 1e9;
        assert!(
            told <= deed.end && told > deed.end - 1.1,
            "{told} {}",
            deed.end
        );
    }
}

#[test]
fn gethostlatency_tells_which_names_were_looked_up_for_how_long() {
    let import = log("gethostlatency.txt");
    is_whole(&import);
    let lookups = &import.rows.dns_lookup;
    for deed in deeds("lookup") {
        let mut of_it = lookups
            .iter()
            .filter(|lookup| text(&import, lookup.host) == deed.what);
        let lookup = of_it.next().expect("the lookup");
        let told = lookup.dur.expect("its length") as f64 / 1e9;
        let took = deed.end - deed.begin;
        assert!(told <= took && told > 0.0, "{told} of {took}");
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
    let connections = deeds("connection");
    assert_eq!(all.len(), 2 * connections.len());
    for row in all {
        // 20 ms of sleep are in each.
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

/// Rows of the tables that lines of tools fill.
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

/// Forms as the manuals of the tools have them, where the tools need kprobes that are not here.
const DOCUMENTED: [(&str, [usize; 8], &str); 30] = [
    (
        "biosnoop of bcc",
        [0, 3, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)\n\
         0.000004    supervise      1950    xvda1     W 13092560   4096       0.74\n\
         0.001469    my prog 2      1956    xvda1     R 13092440   4096       1.24\n\
         1.001469    ?              0       sda       W 13092440   4096       1.24\n",
    ),
    (
        "biosnoop -Q",
        [0, 1, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
         0.000004    supervise      1950    xvda1     W 13092560   4096      0.05    0.74\n",
    ),
    (
        "biosnoop of libbpf-tools",
        [0, 2, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T    SECTOR     BYTES   LAT(ms)\n\
         0.000000    kworker/u4:2   1234    vda       WS   0          4096      0.562\n\
         0.101000    dd             1235    vda       R    2048       65536     1.562\n",
    ),
    (
        "biosnoop of bpftrace",
        [0, 0, 0, 0, 2, 0, 0, 0],
        "TIME(ms)     DISK COMM              PID    LAT(ms)\n\
         611          nvme0n1 bash          4179        10\n\
         611          nvme0n1 cat           4179         2\n",
    ),
    (
        "ext4slower",
        [4, 0, 0, 0, 0, 0, 0, 0],
        "Tracing ext4 operations slower than 10 ms\n\
         TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n\
         06:35:01 cron           16464  R 1249    0          16.05 common-auth\n\
         06:35:01 my cron        16463  W 1249    8          16.04 common auth\n\
         06:35:02 cron           16465  S 0       0          16.03 common-auth\n\
         06:35:02 cron           16465  O 0       0          10.03 common-auth\n",
    ),
    (
        "xfsslower -j",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n\
         127200712278,bash,16978,R,4096,0,16512,date\n",
    ),
    (
        "fileslower",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "Tracing sync read/writes slower than 10 ms\n\
         TIME(s)  COMM           TID    D BYTES   LAT(ms) FILENAME\n\
         0.000    randread.pl    4762   R 8192      12.70 data1\n\
         8.850    randread.pl    4762   R 8192      11.26 data1\n",
    ),
    (
        "opensnoop -TU",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       UID   PID    COMM               FD ERR PATH\n\
         0.000000000   0     1576   snmpd              11   0 /proc/sys/net/ipv6\n",
    ),
    (
        "opensnoop -Te",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       PID    COMM               FD ERR FLAGS    PATH\n\
         0.000000000   1576   snmpd              11   0 02000000 /proc/sys/net\n",
    ),
    (
        "execsnoop -T",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME     PCOMM            PID     PPID    RET ARGS\n\
         05:57:16 bash             15887   15885     0 /bin/bash -c echo\n\
         05:57:16 ls               15888   15887     0 /bin/ls --color=auto\n",
    ),
    (
        "execsnoop -t",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s) PCOMM            PID    PPID   RET ARGS\n\
         0.031   dirname          23832  23808    0 /usr/bin/dirname /usr/local\n",
    ),
    (
        "execsnoop of bpftrace",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "Attaching 3 probes...\nTIME(ms)   PID   ARGS\n2460       3466  ls --color=auto -lh\n",
    ),
    (
        "tcpconnect -t",
        [0, 0, 0, 2, 0, 0, 0, 0],
        "TIME(s)  PID    COMM         IP SADDR            DADDR            DPORT\n\
         31.871   2482   local_agent  4  10.103.219.236   10.251.148.38    7001\n\
         32.090   2482   local_agent  6  fe80::1          fe80::2          7001\n",
    ),
    (
        "tcpconnect of bpftrace",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME     PID      COMM             SADDR          SPORT  DADDR          DPORT\n\
         00:36:45 1798396  agent            127.0.0.1      5001   10.229.20.82   56114\n",
    ),
    (
        "tcpconnlat -t",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME(s)  PID    COMM         IP SADDR            DADDR            DPORT LAT(ms)\n\
         0.000    1201   wget         4  10.153.223.157   23.23.100.231    80        1.65\n",
    ),
    (
        "tcpaccept -T",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME     PID    COMM         IP RADDR            RPORT LADDR            LPORT\n\
         08:28:08 907    sshd         4  192.168.56.1     32324 192.168.56.102   22\n",
    ),
    (
        "tcplife -T",
        [0, 0, 0, 2, 0, 0, 0, 0],
        "TIME     PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS\n\
         22:03:44 22597 recordProg 127.0.0.1       46644 127.0.0.1       28527     0     0 0.23\n\
         22:03:50 3314  server exe 2001:db8::1     46644 2001:db8::2     28527   100     3 5000.23\n",
    ),
    (
        "tcpretrans",
        [0, 0, 0, 0, 0, 0, 2, 0],
        "Tracing retransmits ... Hit Ctrl-C to end\n\
         TIME     PID    IP LADDR:LPORT          T> RADDR:RPORT          STATE\n\
         01:55:05 0      4  10.153.223.157:22    R> 69.53.245.40:34619   ESTABLISHED\n\
         01:55:17 1234   6  2001:db8::1:22       L> 2001:db8::2:22957    ESTABLISHED\n",
    ),
    (
        "tcpretrans of bpftrace",
        [0, 0, 0, 0, 0, 0, 1, 0],
        "Attaching 2 probes...\nTracing tcp retransmits. Hit Ctrl-C to end.\n\
         TIME     PID                LADDR:LPORT          RADDR:RPORT          STATE\n\
         00:43:54 0                127.0.0.1:34448    127.0.0.1:9999       ESTABLISHED\n",
    ),
    (
        "tcpdrop",
        [0, 0, 0, 0, 0, 0, 1, 0],
        "TIME     PID    IP SADDR:SPORT          > DADDR:DPORT          STATE (FLAGS)\n\
         20:49:06 0      4  10.32.119.56:443     > 10.66.65.252:22912   CLOSE (ACK)\n\
         \ttcp_drop+0x1\n\ttcp_data_queue+0x2b9\n\n",
    ),
    (
        "runqslower -P",
        [0, 0, 0, 0, 1, 0, 0, 0],
        "Tracing run queue latency higher than 10000 us.\n\
         TIME     COMM             TID           LAT(us) PREV COMM        PREV TID\n\
         13:11:43 kworker/0:2      8680            10250 swapper/0        0\n",
    ),
    (
        "syncsnoop",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)            CALL\n16458148.611952    sync()\n16458151.533709    sync()\n",
    ),
    (
        "syncsnoop of bpftrace",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "Attaching 7 probes...\nTracing sync syscalls... Hit Ctrl-C to end.\n\
         TIME      PID    COMM             EVENT\n\
         02:02:17  27933  sync             tracepoint:syscalls:sys_enter_sync\n",
    ),
    (
        "statsnoop -t",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       PID    COMM             FD ERR PATH\n\
         0.000366347   9118   ls               -1   2 /etc/ld.so.preload\n\
         0.000392181   9118   ls                0   0 /etc/ld.so.cache\n",
    ),
    (
        "gethostlatency",
        [0, 0, 2, 0, 0, 0, 0, 0],
        "TIME      PID    COMM                  LATms HOST\n\
         06:10:24  28011  wget                  90.00 www.iovisor.org\n\
         06:10:41  28404  my wget             5009.00 foo\n",
    ),
    (
        "killsnoop",
        [0, 0, 0, 0, 0, 1, 0, 0],
        "TIME      PID    COMM             SIG  TPID   RESULT\n\
         12:10:51  13967  bash             9    13885  0\n",
    ),
    (
        "oomkill",
        [0, 0, 0, 0, 0, 1, 0, 0],
        "Tracing OOM kills... Ctrl-C to stop.\n\
         21:03:39 Triggered by PID 3297 (\"ntpd\"), OOM kill of PID 22516 (\"perl\"), 3850642 pages, loadavg: 0.99 0.39 0.30 3/282 22724\n",
    ),
    (
        "drsnoop -T",
        [0, 0, 0, 0, 0, 0, 0, 1],
        "TIME(s)       COMM           PID     LAT(ms) PAGES\n\
         0.000000000   summond        17678      0.19   143\n",
    ),
    (
        "execsnoop -TU",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME     UID   PCOMM            PID     PPID    RET ARGS\n\
         05:57:16 1000  bash             15887   15885     0 /bin/bash -c echo\n",
    ),
    (
        "opensnoop of libbpf-tools",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME     PID    COMM              FD ERR PATH\n\
         05:27:16 1576   snmpd             11   0 /proc/sys/net\n",
    ),
];

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
            why.contains("no line has a time") && why.contains("-T"),
            "{why}"
        );
    }
    let histogram = "Tracing block device I/O... Hit Ctrl-C to end.\n\
                     \x20    usecs               : count     distribution\n\
                     \x20        0 -> 1          : 0        |                    |\n";
    let why = Report::new(histogram).refused();
    assert!(why.contains("histogram"), "{why}");
}

fn logs() -> Vec<(String, String)> {
    let fixtures = [
        "execsnoop.txt",
        "exitsnoop.txt",
        "gethostlatency.txt",
        "opensnoop.txt",
        "runqslower.txt",
        "sigsnoop.txt",
        "tcplife.txt",
    ];
    let fixtures = fixtures
        .iter()
        .map(|name| ((*name).to_owned(), fixture(name)));
    let documented = DOCUMENTED
        .iter()
        .map(|(name, _, log)| ((*name).to_owned(), (*log).to_owned()));
    fixtures.chain(documented).collect()
}

#[test]
fn logs_that_are_cut_have_what_is_whole() {
    for (name, log) in logs() {
        let whole = rows(&import(&log));
        for (end, _) in log.match_indices('\n') {
            let cut = Report::new(&log[..=end]);
            let Ok(import) = whyslow_ingest::import_in_memory(std::slice::from_ref(&cut.path))
            else {
                continue;
            };
            is_whole(&import);
            let found = rows(&import);
            assert!(
                found
                    .iter()
                    .zip(&whole)
                    .all(|(found, whole)| found <= whole),
                "{name} cut at {end}: {found:?} of {whole:?}"
            );
        }
    }
}

#[test]
fn damaged_logs_lose_what_is_damaged() {
    for (name, log) in logs() {
        for (number, bytes) in damaged(log.as_bytes()).into_iter().enumerate() {
            let file = Report::new(&bytes);
            let Ok(import) = whyslow_ingest::import_in_memory(std::slice::from_ref(&file.path))
            else {
                continue;
            };
            let records = import.records;
            assert_eq!(
                records.read,
                records.accepted + records.skipped,
                "{name} {number}"
            );
            let told = met(&import, "SNOOP_LINE_BAD")
                + met(&import, "REPORT_LINE_BAD")
                + met(&import, "TEXT_LINE_BAD");
            assert_eq!(
                records.skipped, told,
                "{name} {number}: {:?}",
                import.anomalies
            );
        }
    }
}
