//! A recording that continues in further spools: nothing is lost or duplicated between them.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use whyslow_ingest::{InMemory, import_in_memory};
use whyslow_model::tables::SyscallRow;
use whyslow_record::{Options, Progress, Step};

use super::can_record;
use crate::common::Place;

/// A number of uniquely named directories, and a call that outlasts all of them.
const SCRIPT: &str = "\
    i=0; while [ $i -lt 503 ]; do mkdir segment-$i; i=$((i+1)); done";
const FOLDERS: usize = 503;
const TURNS: u64 = 4;

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(place: &Place, script: &str) -> Ended {
    let shell = Command::new("/bin/sh")
        .args(["-c", script])
        .current_dir(place.path())
        .stderr(Stdio::null())
        .spawn();
    Ended(shell.expect("it starts"))
}

#[test]
fn each_call_is_in_one_spool_and_those_under_way_in_all() {
    if !can_record() {
        return;
    }
    let _calm = super::no_floods();
    let place = Place::new();
    let pipe = place.join("waited-7919");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("it starts").success());
    let spools: Vec<_> = (0..=TURNS)
        .map(|number| place.join(&format!("{number}.spool")))
        .collect();
    let mut options = Options::new(&spools[0]);
    options.may_turn = true;
    let (mut load, mut waiting, mut writer) = (None, None, None);
    let each = |progress: &Progress| {
        let turns = progress.turns;
        let is_due = progress.elapsed > Duration::from_millis(300) * (turns as u32 + 1);
        let load = load.get_or_insert_with(|| shell(&place, SCRIPT));
        let waiting: &mut Ended =
            waiting.get_or_insert_with(|| shell(&place, "exec cat waited-7919"));
        if turns < TURNS && is_due && is_asleep(&waiting.0) {
            return Step::Turn(spools[turns as usize + 1].clone());
        }
        let is_done = !matches!(load.0.try_wait(), Ok(None));
        if turns < TURNS || !is_done {
            return Step::GoOn;
        }
        // The writer that the call waits for.
        writer.get_or_insert_with(|| {
            let pipe = std::fs::OpenOptions::new().write(true).open(&pipe);
            drop(pipe.expect("it reads"));
        });
        if matches!(waiting.0.try_wait(), Ok(None)) {
            return Step::GoOn;
        }
        Step::End
    };
    let summary = whyslow_record::record(&options, |_| {}, each).expect("it records");
    assert_eq!(summary.progress.turns, TURNS);
    assert_eq!(summary.progress.lost, 0);
    let imported: Vec<InMemory> = spools
        .iter()
        .map(|spool| import_in_memory(std::slice::from_ref(spool)).expect("it is whole"))
        .collect();
    let mut made: Vec<String> = imported.iter().flat_map(folders).collect();
    assert_eq!(made.len(), FOLDERS);
    made.sort();
    made.dedup();
    assert_eq!(made.len(), FOLDERS);
    // The open of the pipe: in each spool from its start, and with its end in the last.
    let opens: Vec<_> = imported.iter().map(open_of_pipe).collect();
    let (last, before) = opens.split_last().expect("several");
    let begins: Vec<i64> = opens.iter().flatten().map(|(ts, _)| *ts).collect();
    assert_eq!(begins.len(), opens.len(), "{opens:?}");
    assert!(
        begins.iter().all(|ts| (ts - begins[0]).abs() < 100_000_000),
        "{opens:?}"
    );
    assert!(
        before.iter().flatten().all(|(_, dur)| dur.is_none()),
        "{opens:?}"
    );
    assert!(last.is_some_and(|(_, dur)| dur.is_some()), "{opens:?}");
    together(&place, &spools, (&imported, &opens));
    // Descriptors of calls in flight are known from each spool's own snapshot.
    for imported in &imported {
        assert!(!imported.rows.fd_life.is_empty());
    }
}

/// When it started, and how long it took, if known.
type Open = Option<(i64, Option<i64>)>;

/// Imported from one directory they are one recording, in which everything occurs once.
fn together(place: &Place, spools: &[std::path::PathBuf], (apart, opens): (&[InMemory], &[Open])) {
    let folder = place.join("together.spool");
    std::fs::create_dir(&folder).expect("there is room");
    for (number, spool) in spools.iter().enumerate() {
        for file in std::fs::read_dir(spool).expect("a folder") {
            let file = file.expect("it can be read");
            let name = format!("{number:06}-{}", file.file_name().to_string_lossy());
            std::fs::hard_link(file.path(), folder.join(name)).expect("the same file system");
        }
    }
    let whole = import_in_memory(&[folder]).expect("it is whole");
    let mut made = folders(&whole);
    assert_eq!(made.len(), FOLDERS);
    made.sort();
    made.dedup();
    assert_eq!(made.len(), FOLDERS);
    // The calendar is that of the first spool.
    let length = |open: &Open| open.and_then(|(_, length)| length);
    assert_eq!(length(&open_of_pipe(&whole)), opens.last().and_then(length));
    // A call that ends occurs once, wherever it started. Imported separately, calls that never
    // return may be repeated for threads that have exited.
    let ended = |imported: &InMemory| {
        let rows = imported.rows.syscall.iter();
        let ended = rows
            .filter(|row| row.ts_end.is_some() && imported.symbols.get(row.name) != "exit_group");
        ended.count()
    };
    let apart: usize = apart.iter().map(ended).sum();
    let together = ended(&whole);
    assert!(apart - together <= 4, "{together} {apart}");
    let facts = &whole.rows.metadata;
    let keys: std::collections::BTreeSet<_> = facts
        .iter()
        .map(|row| (row.source, row.key, row.value))
        .collect();
    assert_eq!(keys.len(), facts.len());
}

/// Whether it has executed the waiting command.
fn is_asleep(waiting: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", waiting.id()));
    stat.is_ok_and(|stat| stat.contains("(cat) S"))
}

/// Last path components of the created directories.
fn folders(imported: &InMemory) -> Vec<String> {
    let of_row = |row: &SyscallRow| {
        let path = imported.symbols.get(row.path?);
        let name = path.rsplit('/').next()?;
        let is_ours = imported.symbols.get(row.name).starts_with("mkdir") && row.dur.is_some();
        (is_ours && name.starts_with("segment-")).then(|| name.to_owned())
    };
    imported.rows.syscall.iter().filter_map(of_row).collect()
}

fn open_of_pipe(imported: &InMemory) -> Open {
    let row = imported.rows.syscall.iter().find(|row| {
        let path = row.path.map(|path| imported.symbols.get(path));
        let is_open = imported.symbols.get(row.name).starts_with("open");
        is_open && path.is_some_and(|path| path.ends_with("waited-7919"))
    })?;
    Some((row.ts, row.dur))
}
