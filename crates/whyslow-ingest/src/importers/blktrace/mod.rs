//! Binary files of blktrace, one per device and CPU: block requests with all their steps.

mod record;
mod runs;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use whyslow_model::Ns;
use whyslow_model::event::{BlockRange, Body, Context, Event, Loss, LossKind};
use whyslow_model::sort::IndexSort;
use whyslow_model::stat;

use super::streamed::{Item, Note, Streamed, Summary};
use record::{Record, act, moved_from, note, order_of, split_at, version_of};
use runs::{Runs, Scanned};

/// Whether a file starting with `head` was written by blktrace.
pub fn is_blktrace(head: &[u8]) -> bool {
    order_of(head).is_some()
}

/// The version of a blktrace file that is not supported.
pub fn strange_version(head: &[u8]) -> Option<u32> {
    version_of(head).filter(|_| !is_blktrace(head))
}

/// Whether the name is that of a per-CPU file, which is empty if nothing happened on its CPU.
pub fn is_empty_part(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = name
        .rsplit_once(".blktrace.")
        .map(|(_, number)| number.parse::<u32>());
    matches!(number, Some(Ok(_)))
}

/// Files of one blktrace session, read as one stream in time order.
pub struct BlktraceSource {
    runs: Runs,
    scanned: Scanned,
    /// Offset from the clock of the records to wall-clock time.
    offset: Ns,
    comms: HashMap<u32, Vec<u8>>,
    /// Sequence number and time of the last record by device and CPU.
    sequences: HashMap<(u32, u32), (u32, Ns)>,
    counts: BTreeMap<&'static str, u64>,
    records: u64,
    unused: u64,
    cut: u64,
    unnamed: u64,
}

impl BlktraceSource {
    /// The blktrace files of a directory; subdirectories are ignored.
    pub fn files_of(folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_file() && is_blktrace(&head_of(&path)?) {
                files.push(path);
            }
        }
        files.index_sort();
        Ok(files)
    }

    /// Opens the files of one machine and one run. `written` is the modification time of the newest
    /// one, in ns since 1970.
    pub fn open(
        paths: &[PathBuf],
        written: Option<Ns>,
        shift: Ns,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let (runs, scanned) = Runs::open(paths)?;
        let last = Ns::try_from(scanned.last).unwrap_or(Ns::MAX);
        let guessed = written.map_or(0, |written| written.saturating_sub(last));
        Ok(Self {
            runs,
            offset: scanned.offset.unwrap_or(guessed).saturating_add(shift),
            scanned,
            comms: HashMap::new(),
            sequences: HashMap::new(),
            counts: BTreeMap::new(),
            records: 0,
            unused: 0,
            cut: 0,
            unnamed: 0,
        })
    }

    fn record(&mut self, record: &Record, behind: &[u8], take: &mut dyn FnMut(Item<'_>)) {
        self.records += 1;
        *self.counts.entry(record.name()).or_default() += 1;
        let payload = record.payload(behind);
        if record.is_note() {
            if record.act() == note::PROCESS {
                let end = payload.iter().position(|byte| *byte == 0);
                let comm = payload[..end.unwrap_or(payload.len())].to_vec();
                self.comms.insert(record.pid, comm);
            } else if record.act() != note::TIMESTAMP {
                self.unused += 1;
            }
            return;
        }
        let ts = time(record, self.offset);
        self.detect_loss(record, ts, take);
        let tid = i32::try_from(record.pid).ok();
        let comm = self.comms.get(&record.pid).map(Vec::as_slice);
        self.unnamed += u64::from(comm.is_none() && tid > Some(0));
        let Some(body) = body_of(record, payload, &self.scanned) else {
            self.cut += 1;
            return;
        };
        self.unused += u64::from(matches!(body, Body::Other));
        let context = Context {
            tid,
            comm,
            ..Context::default()
        };
        take(Item::Event(Event {
            ts,
            cpu: i32::try_from(record.cpu).ok(),
            context,
            body,
        }));
    }

    /// The records of a device are numbered on each CPU; missing numbers are lost records.
    fn detect_loss(&mut self, record: &Record, ts: Ns, take: &mut dyn FnMut(Item<'_>)) {
        // Records of the ftrace tracer have no sequence numbers.
        if record.sequence == 0 {
            return;
        }
        let now = (record.sequence, ts);
        let before = self.sequences.insert((record.device, record.cpu), now);
        let Some((number, since)) = before else {
            return;
        };
        let missing = record.sequence.wrapping_sub(number).wrapping_sub(1);
        // A number lower than the last one: another run started.
        if missing == 0 || record.sequence <= number {
            return;
        }
        take(Item::Loss(Loss {
            ts: since.min(ts),
            ts_end: Some(ts),
            cpu: i32::try_from(record.cpu).ok(),
            stream: "blktrace",
            kind: LossKind::Events,
            count: Some(i64::from(missing)),
        }));
    }
}

fn time(record: &Record, offset: Ns) -> Ns {
    let time = Ns::try_from(record.time).unwrap_or(Ns::MAX);
    time.saturating_add(offset)
}

/// None if the payload is incomplete.
fn body_of<'a>(record: &Record, payload: &[u8], scanned: &Scanned) -> Option<Body<'a>> {
    let range = BlockRange {
        dev: i64::from(record.device),
        sector: record.sector as i64,
        sectors: record.sectors(),
        bytes: record.is_command().then_some(i64::from(record.bytes)),
        flags: record.flags(),
        tid: None,
        comm: None,
    };
    // Errors are negative numbers in an unsigned field.
    let error = Some(i32::from(record.error as i16));
    Some(match record.act() {
        act::QUEUE => Body::BlockBioQueue(range),
        act::BACK_MERGE => Body::BlockBioBackmerge(range),
        act::FRONT_MERGE => Body::BlockBioFrontmerge(range),
        act::GET_REQUEST => Body::BlockGetRq(range),
        act::REQUEUE => Body::BlockRqRequeue(range),
        act::ISSUE => Body::BlockRqIssue(range),
        // Completions of a stacked device (dm, md) have no issue.
        act::COMPLETE if scanned.issued.contains(&record.device) => {
            Body::BlockRqComplete { range, error }
        }
        act::COMPLETE => Body::BlockBioComplete { range, error },
        act::INSERT => Body::BlockRqInsert(range),
        act::SPLIT => Body::BlockSplit {
            range,
            new_sector: split_at(payload)?,
        },
        act::REMAP => {
            let (old_dev, old_sector) = moved_from(payload)?;
            Body::BlockBioRemap {
                range,
                old_dev,
                old_sector,
            }
        }
        _ => Body::Other,
    })
}

fn head_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut head)?;
    Ok(head)
}

impl Streamed for BlktraceSource {
    fn next_ts(&mut self) -> io::Result<Option<Ns>> {
        let next = self.runs.next_time()?;
        let time = next.map(|time| Ns::try_from(time).unwrap_or(Ns::MAX));
        Ok(time.map(|time| time.saturating_add(self.offset)))
    }

    fn next(&mut self, take: &mut dyn FnMut(Item<'_>)) -> io::Result<bool> {
        // Moved out while one of its records is processed.
        let mut runs = std::mem::take(&mut self.runs);
        let read = runs.next(&mut |record, behind, _| self.record(record, behind, take));
        self.runs = runs;
        read
    }

    fn progress(&self) -> (u64, u64) {
        (self.runs.bytes_read, self.scanned.bytes)
    }

    fn summary(&self) -> Summary {
        let counts = self.counts.iter();
        let lost = Note::new(&stat::BLKTRACE_LOST_BYTES, self.scanned.lost_bytes);
        let lost_text = format!("{} bytes", self.scanned.lost_bytes);
        let is_guessed = self.scanned.offset.is_none() && self.records > 0;
        Summary {
            facts: Vec::new(),
            counts: counts
                .map(|(name, count)| (format!("blktrace:{name}"), *count))
                .collect(),
            records: self.records,
            skipped: self.cut,
            notes: vec![
                lost.at(self.scanned.lost_at, lost_text),
                Note::new(&stat::EVENT_FIELD_MISSING, self.cut),
                Note::new(&stat::EVENT_NOT_USED, self.unused),
                Note::new(&stat::BLKTRACE_UNNAMED, self.unnamed),
                Note::new(&stat::BLKTRACE_CLOCK_GUESSED, u64::from(is_guessed)),
            ],
        }
    }
}
