//! Requests reported by a client, imported together with a recording of the machine that served
//! them.

use std::path::PathBuf;

use whyslow_ingest::import_in_memory;

/// A server of one connection, at the longer form of its address.
const SERVED: &str = "whyslow-text 1
1.000012 [0] (tid=9 pid=9) tcp sock=0x2 from=listen to=syn_recv local=127.0.0.1:80 peer=127.0.0.1:5000
1.000014 [0] (tid=9 pid=9) tcp sock=0x2 from=syn_recv to=established local=127.0.0.1:80 peer=127.0.0.1:5000
1.000020 [1] (tid=7 pid=7 comm=server) syscall_enter name=accept4 fd=4
1.000021 [1] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=[::ffff:127.0.0.1]:5000
1.000031 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
1.000032 [1] (tid=7 pid=7) syscall_exit name=read ret=100
1.000040 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=50
1.000041 [1] (tid=7 pid=7) syscall_exit name=write ret=50
1.000061 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
1.000062 [1] (tid=7 pid=7) syscall_exit name=read ret=10
1.000070 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=5
1.000071 [1] (tid=7 pid=7) syscall_exit name=write ret=5
";
/// The last one was served by another program.
const REQUESTED: &str = r#"{"whyslow_load":1}
{"seq":0,"start_ns":1000030000,"total_ns":15000,"method":"GET","url":"http://127.0.0.1/a","status":200,"local":"127.0.0.1:5000","peer":"127.0.0.1:80"}
{"seq":1,"start_ns":1000055000,"total_ns":20000,"method":"GET","url":"http://127.0.0.1/b","status":200,"local":"[::ffff:127.0.0.1]:5000","peer":"[::ffff:127.0.0.1]:80"}
{"seq":2,"start_ns":1000055000,"total_ns":20000,"method":"GET","url":"http://127.0.0.1/c","status":200,"local":"127.0.0.1:5001","peer":"127.0.0.1:80"}
{"end_ns":1000090000,"reason":"done"}
"#;

/// Number in the load, start of the same request at the server, how the match was found.
fn joined(sources: &[PathBuf]) -> Vec<(Option<i64>, Option<i64>, String)> {
    let made = import_in_memory(sources).expect("both can be read");
    let rows = &made.rows.request;
    let text = |sym| made.symbols.get(sym).to_owned();
    let mut matches: Vec<_> = rows
        .iter()
        .filter(|row| text(row.source) == "load")
        .map(|row| {
            let served = rows
                .iter()
                .find(|served| Some(served.id) == row.server_request);
            let how = row.joined_by.map(text).unwrap_or_default();
            (row.seq, served.map(|served| served.ts), how)
        })
        .collect();
    matches.sort();
    matches
}

#[test]
fn load_and_the_recording_of_its_server_say_the_same_of_a_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (server, load) = (place("server.txt", SERVED), place("load.ndjson", REQUESTED));
    let expected = [
        (Some(0), Some(1_000_032_000), "connection".to_owned()),
        (Some(1), Some(1_000_062_000), "connection".to_owned()),
        (Some(2), None, String::new()),
    ];
    assert_eq!(joined(&[server.clone(), load.clone()]), expected);
    assert_eq!(joined(&[load.clone(), server]), expected);
    let alone = joined(&[load]);
    assert_eq!(alone.len(), 3);
    assert!(alone.iter().all(|(_, served, _)| served.is_none()));
}

/// A request of load, through a front end that creates its own spans.
const TRACED: &str = r#"{"whyslow_load":1}
{"seq":0,"start_ns":1795697837990000000,"total_ns":270000000,"method":"GET","url":"http://front/a","status":503,"local":"10.0.0.9:5000","peer":"10.0.0.1:80","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"1111111111111111"}
{"seq":1,"start_ns":1795697837990000000,"total_ns":270000000,"method":"GET","url":"http://front/b","status":200,"local":"10.0.0.9:5001","peer":"10.0.0.1:80","trace_id":"0af7651916cd43dd8448eb211c803199","span_id":"2222222222222222"}
{"end_ns":1795697838990000000,"reason":"done"}
"#;

#[test]
fn spans_of_one_trace_are_joined_and_so_is_the_load_that_began_it() {
    let spans = whyslow_testkit::fixture("requests/otlp.json");
    let made = import_in_memory(std::slice::from_ref(&spans)).expect("it can be read");
    let text = |sym| made.symbols.get(sym);
    let of = |role: &str| {
        let rows = made.rows.request.iter();
        rows.filter(|row| text(row.role) == role)
            .collect::<Vec<_>>()
    };
    let (clients, servers) = (of("client"), of("server"));
    assert_eq!((clients.len(), servers.len()), (2, 1));
    let front = clients.iter().find(|row| row.parent_span.is_none());
    let front = front.expect("no request to the front end");
    assert_eq!(front.server_request, Some(servers[0].id));
    assert_eq!(front.joined_by.map(text), Some("trace"));
    let database = clients.iter().find(|row| row.id != front.id);
    let database = database.expect("the other one");
    assert_eq!(database.server_request, None);

    let folder = tempfile::tempdir().expect("a folder");
    let load = folder.path().join("load.ndjson");
    std::fs::write(&load, TRACED).expect("written");
    // The front end is a root, too: only its span shows which of the two sent the request to the
    // application.
    let matches = joined(&[load.clone(), spans.clone()]);
    assert_eq!(matches[0], (Some(0), None, String::new()));

    // Without its own span, the front end is the only candidate that can have served the load.
    let all = std::fs::read_to_string(&spans).expect("it can be read");
    let behind: Vec<&str> = all.lines().skip(1).collect();
    let app = folder.path().join("app.json");
    std::fs::write(&app, behind.join("\n")).expect("written");
    let matches = joined(&[load, app]);
    let begin = servers[0].ts;
    assert_eq!(matches[0], (Some(0), Some(begin), "trace".to_owned()));
    assert_eq!(matches[1], (Some(1), None, String::new()));
}

/// The client is on the same machine, and its sockets show the requests that it reports.
const BOTH: &str = "whyslow-text 1
1.000001 [0] (tid=9 pid=9 comm=load) syscall_enter name=socket family=2 socket_type=1
1.000002 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
1.000008 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=127.0.0.1:80
1.000009 [0] (tid=9 pid=9) tcp sock=0x1 from=close to=syn_sent local=127.0.0.1:5000 peer=127.0.0.1:80
1.000012 [0] (tid=9 pid=9) tcp sock=0x2 from=listen to=syn_recv local=127.0.0.1:80 peer=127.0.0.1:5000
1.000013 [0] (tid=9 pid=9) tcp sock=0x1 from=syn_sent to=established local=127.0.0.1:5000 peer=127.0.0.1:80
1.000014 [0] (tid=9 pid=9) tcp sock=0x2 from=syn_recv to=established local=127.0.0.1:80 peer=127.0.0.1:5000
1.000015 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
1.000020 [1] (tid=7 pid=7 comm=server) syscall_enter name=accept4 fd=4
1.000021 [1] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=[::ffff:127.0.0.1]:5000
1.000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=100
1.000031 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
1.000031 [0] (tid=9 pid=9) syscall_exit name=write ret=100
1.000032 [1] (tid=7 pid=7) syscall_exit name=read ret=100
1.000040 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=50
1.000041 [1] (tid=7 pid=7) syscall_exit name=write ret=50
1.000042 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
1.000043 [0] (tid=9 pid=9) syscall_exit name=read ret=50
1.000058 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=10
1.000059 [0] (tid=9 pid=9) syscall_exit name=write ret=10
1.000061 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
1.000062 [1] (tid=7 pid=7) syscall_exit name=read ret=10
1.000070 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=5
1.000071 [1] (tid=7 pid=7) syscall_exit name=write ret=5
1.000072 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
1.000073 [0] (tid=9 pid=9) syscall_exit name=read ret=5
1.000080 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=7
1.000081 [0] (tid=9 pid=9) syscall_exit name=write ret=7
";

#[test]
fn what_a_client_tells_and_its_sockets_show_is_marked_and_names_what_its_server_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let sources = [place("both.txt", BOTH), place("load.ndjson", REQUESTED)];
    let made = import_in_memory(&sources).expect("both can be read");
    let text = |sym: Option<_>| sym.map_or("-", |sym| made.symbols.get(sym));
    let mut found: Vec<_> = made.rows.request.iter().collect();
    found.sort_by_key(|row| (row.source, row.role, row.ts));
    let seq = |id: Option<i64>| {
        let reported = made.rows.request.iter().find(|row| Some(row.id) == id);
        reported.and_then(|row| row.seq)
    };
    let of = |role: &str, source: &str| -> Vec<_> {
        let rows = found
            .iter()
            .filter(|row| text(Some(row.role)) == role && text(Some(row.source)) == source);
        rows.map(|row| {
            let outcome = text(Some(row.outcome));
            (text(row.endpoint), row.status, outcome, seq(row.same_as))
        })
        .collect()
    };
    assert_eq!(
        of("server", "socket"),
        [("/a", Some(200), "ok", None), ("/b", Some(200), "ok", None)]
    );
    // The last request was not reported.
    assert_eq!(
        of("client", "socket"),
        [
            ("-", None, "unknown", Some(0)),
            ("-", None, "unknown", Some(1)),
            ("-", None, "unknown", None)
        ]
    );
    assert_eq!(of("client", "load").len(), 3);
}
