//! Sockets of processes that have files mapped: no call shows what they send of these.

use whyslow_analysis::{Kind, Query, Verb, evaluate};
use whyslow_model::Symbols;
use whyslow_model::tables::{Collected, MappingRow, ProcessRow, SyscallRow};
use whyslow_store::{MemoryTables, RecordingInfo};

fn caveats(sends_to: &str, path: &str) -> Vec<String> {
    let mut symbols = Symbols::new();
    let mut rows = Collected::default();
    rows.process.push(ProcessRow {
        upid: 1,
        pid: 17,
        comm: Some(symbols.intern("server")),
        ..ProcessRow::default()
    });
    rows.mapping.push(MappingRow {
        id: 1,
        ts: 10,
        upid: Some(1),
        pid: Some(17),
        bytes: 8 << 20,
        path: Some(symbols.intern(path)),
        prot: Some(1),
        ..MappingRow::default()
    });
    rows.syscall.push(SyscallRow {
        id: 1,
        ts: 20,
        dur: Some(5),
        ts_end: Some(25),
        upid: Some(1),
        pid: Some(17),
        tid: Some(17),
        utid: Some(1),
        name: symbols.intern("writev"),
        op: symbols.intern("write"),
        fd_class: Some(symbols.intern(sends_to)),
        bytes: Some(1_234_567),
        ..SyscallRow::default()
    });
    let info = RecordingInfo {
        begin_ns: 0,
        end_ns: 1_000,
        ..RecordingInfo::default()
    };
    let tables = MemoryTables::new(&rows, &symbols, info);
    let answer = evaluate(&tables, &Query::new(Kind::Io, Verb::Usage)).unwrap();
    answer.caveats
}

fn mentions_sockets(caveats: &[String]) -> Option<&String> {
    caveats.iter().find(|caveat| caveat.contains("sockets"))
}

#[test]
fn a_socket_may_send_what_is_mapped() {
    let caveats = caveats("inet", "/data/blob");
    let caveat = mentions_sockets(&caveats).expect("a caveat");
    for part in [
        "server",
        "1,234,567 B to sockets",
        "/data/blob mapped (8,388,608 B)",
    ] {
        assert!(caveat.contains(part), "{caveat}");
    }
}

#[test]
fn files_and_libraries_are_no_reason() {
    assert_eq!(mentions_sockets(&caveats("file", "/data/blob")), None);
    assert_eq!(
        mentions_sockets(&caveats("inet", "/usr/lib/libz.so.1")),
        None
    );
}
