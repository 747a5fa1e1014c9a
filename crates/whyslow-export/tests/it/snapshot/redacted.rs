//! Hidden texts do not occur anywhere in a snapshot.

use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use whyslow_export::redact::{Keep, Key, RedactedTables, Redactor, Scope};
use whyslow_export::snapshot::{CutQuery, cut};
use whyslow_model::{ColumnType, Window, tables};
use whyslow_store::{Recording, Scan, Tables, packed};
use whyslow_test_recordings::Recorded;

use super::made::incident;

/// A unique word in each place where a text can be.
const PLANTED: &str = "\
meta hostname=qhostqxkw.example.org
meta trace_name=qtraceqxkw
1.000000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_enter name=openat path=\"/srv/qpathqxkw/qfileqxkw.txt\" flags=66
1.010000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_exit name=openat ret=13
1.011000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_enter name=rename path=\"/srv/qoldqxkw\" path2=\"/home/quserqxkw/qnewqxkw\"
1.012000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_exit name=rename ret=0
1.013000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_enter name=connect fd=4 sockaddr=203.0.113.77:45611
1.014000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_exit name=connect ret=0
1.015000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_enter name=connect fd=5 sockaddr=unix:/run/qsockqxkw.sock
1.016000 [0] (tid=10 pid=10 comm=qcommqxkw) syscall_exit name=connect ret=0
1.017000 [0] (tid=10 pid=10 comm=qcommqxkw) exec filename=/opt/qprogramqxkw/bin/qserverqxkw
1.018000 [0] (tid=10 pid=10 comm=qcommqxkw) marker name=qmarkqxkw:hit text=\"a note of qnoteqxkw\"
1.019000 [0] (tid=10) state_net_interface name=qlinkqxkw ifindex=3 address=198.51.100.7
1.020000 [0] (tid=10) state_fd fd=9 pid=10 path=/data/qstateqxkw
1.021000 [0] (tid=10 pid=10 comm=qcommqxkw) net kind=queue bytes=1500 netif=qlinkqxkw skbaddr=0x10 source=203.0.113.99:45612 destination=192.0.2.55:45613
1.030000 [0] (tid=10 pid=10 comm=qcommqxkw) sched_switch prev=10 prev_comm=qcommqxkw prev_state=D next=0
1.060000 [0] sched_switch prev=0 prev_state=R next=10 next_comm=qcommqxkw
1.060000 [0] (tid=10 comm=qcommqxkw) stack kind=back since=1.030000000 state=D cpu=0 kernel=io_schedule;submit user=qfunctionqxkw;main
1.070000 [0] (tid=10 pid=10 comm=qcommqxkw) qeventqxkw:something
";

fn all(recording: &Recording) -> Window {
    Window::new(recording.info().begin_ns, recording.info().end_ns + 1)
}

struct Sent {
    /// Tar archive.
    archive: Vec<u8>,
    recording: Recording,
    folder: tempfile::TempDir,
}

fn sent(whole: &Recorded, scope: Scope, keep: &[&str]) -> Sent {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let query = CutQuery {
        focus: all(&whole.recording),
        around: None,
        digest: whole.recording.digest().expect("it is whole"),
    };
    let keep = Keep::new(keep.iter().copied()).expect("globs");
    let redactor = Redactor::new(Key::random().expect("random numbers"), scope).keeping(keep);
    let again = Recording::open(whole.recording.path()).expect("it is a recording");
    let redacted = RedactedTables::new(Box::new(again), redactor).expect("it can be read");
    let target = folder.path().join("cut.wsl");
    cut(&redacted, &query, &target, &AtomicBool::new(false)).expect("it can be cut");
    let mut packed = Vec::new();
    packed::pack(&target, &mut packed).expect("writing to a vector");
    let mut archive = Vec::new();
    let mut decoder = zstd::stream::read::Decoder::new(&*packed).expect("zstd");
    decoder.read_to_end(&mut archive).expect("zstd");
    archive.extend(packed);
    Sent {
        archive,
        recording: Recording::open(&target).expect("it is a recording"),
        folder,
    }
}

/// All words of dictionaries, used or not, and the manifest.
fn texts(recording: &Recording) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for table in tables::ALL {
        let columns = table.columns.iter();
        for column in columns.filter(|column| column.kind == ColumnType::Utf8) {
            found.extend(
                recording
                    .words(table, column.name)
                    .expect("whole")
                    .into_iter()
                    .flatten(),
            );
            let scan = Scan {
                table,
                columns: vec![column.name],
                window: None,
            };
            let mut show = |batch: &arrow_array::RecordBatch| {
                let words = batch
                    .column(0)
                    .as_dictionary::<Int32Type>()
                    .values()
                    .clone();
                found.extend(words.as_string::<i32>().iter().flatten().map(str::to_owned));
                Ok(ControlFlow::Continue(()))
            };
            recording.scan(&scan, &mut show).expect("whole");
        }
    }
    found.insert(format!("{:?}", recording.info()));
    found
}

fn words_with(mark: &str, text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words
        .filter(|word| word.contains(mark))
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_planted_word_is_in_a_redacted_part() {
    let whole = Recorded::of_text(PLANTED);
    let original: String = texts(&whole.recording)
        .into_iter()
        .collect::<Vec<_>>()
        .join(" ");
    let planted = words_with("qxkw", &original);
    assert_eq!(
        planted,
        words_with("qxkw", PLANTED),
        "each can be found where nothing is hidden"
    );
    let addresses = ["203.0.113", "198.51.100", "192.0.2"];
    for scope in [Scope::Texts, Scope::Names] {
        let sent = sent(&whole, scope, &[]);
        let stays = |word: &str| {
            // A program that was executed is named after its file.
            let names = [
                "qcommqxkw",
                "qserverqxkw",
                "qfunctionqxkw",
                "qeventqxkw",
                "qmarkqxkw",
            ];
            scope == Scope::Texts && names.contains(&word)
        };
        let shown: String = texts(&sent.recording)
            .into_iter()
            .collect::<Vec<_>>()
            .join(" ");
        for word in planted.iter().map(String::as_str).chain(addresses) {
            if !stays(word) {
                assert!(!shown.contains(word), "{word} in the texts ({scope:?})");
                let is_in =
                    |bytes: &[u8]| bytes.windows(word.len()).any(|at| at == word.as_bytes());
                assert!(!is_in(&sent.archive), "{word} in the file ({scope:?})");
            }
        }
        assert_eq!(
            sent.recording.info().redacted.as_deref(),
            Some(scope.name())
        );
        drop(sent.folder);
    }
}

#[test]
fn what_is_to_be_kept_can_be_read_and_nothing_else() {
    let whole = Recorded::of_text(PLANTED);
    let sent = sent(
        &whole,
        Scope::Names,
        &["qcomm*", "/srv/qpath*/**", "*.example.org"],
    );
    let shown: String = texts(&sent.recording)
        .into_iter()
        .collect::<Vec<_>>()
        .join(" ");
    let kept = ["qcommqxkw", "qfileqxkw", "qhostqxkw", "qpathqxkw"];
    let kept: BTreeSet<String> = kept.map(str::to_owned).into();
    assert_eq!(words_with("qxkw", &shown), kept);
}

#[test]
fn no_text_that_an_incident_would_tell_is_in_a_redacted_part() {
    let whole = incident();
    let redactor = Redactor::new(Key::random().expect("random numbers"), Scope::Names);
    let original = texts(&whole.recording);
    // Only texts with words too long for a replacement to equal them by chance; public words and
    // numbers stay.
    let is_hidden = |text: &&String| {
        let new = redactor.text(whyslow_export::redact::Class::Object, text);
        let is_gone = |word: &str| word.len() >= 6 && !new.contains(word);
        let mut words = text.split(|c: char| !c.is_ascii_alphabetic());
        text.len() >= 8 && text.starts_with('/') && words.any(is_gone)
    };
    let hidden: Vec<&String> = original.iter().filter(is_hidden).collect();
    assert!(hidden.len() > 100, "only {} texts are hidden", hidden.len());
    let sent = sent(whole, Scope::Names, &[]);
    let shown = texts(&sent.recording);
    for text in &hidden {
        assert!(!shown.contains(*text), "{text}");
    }
    // In the bytes, too: first by their first eight, then completely.
    let mut begins: std::collections::BTreeMap<&[u8], Vec<&[u8]>> =
        std::collections::BTreeMap::new();
    for text in &hidden {
        begins
            .entry(&text.as_bytes()[..8])
            .or_default()
            .push(text.as_bytes());
    }
    for at in 0..sent.archive.len().saturating_sub(8) {
        if let Some(texts) = begins.get(&sent.archive[at..at + 8]) {
            for text in texts {
                let is_there = sent.archive[at..].starts_with(text);
                assert!(!is_there, "{}", String::from_utf8_lossy(text));
            }
        }
    }
}

#[test]
fn a_redacted_part_tells_the_same_finding() {
    let whole = incident();
    let sent = sent(whole, Scope::Names, &[]);
    let query = whyslow_explain::Query::default();
    let findings = |tables| {
        let report = whyslow_explain::explain(tables, &query, None).expect("it can be explained");
        let of = |finding: &whyslow_explain::Finding| {
            let parts = finding.parts.iter();
            let blame = parts.map(|part| (part.mechanism.clone(), part.dur_ns));
            (finding.target.id.clone(), blame.collect::<Vec<_>>())
        };
        report.findings.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(findings(&sent.recording), findings(&whole.recording));
}
