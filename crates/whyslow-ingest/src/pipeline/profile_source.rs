//! Profiles: held in memory, sorted, and merged with the events of traces.

use std::fs::{self, File};
use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use whyslow_model::Ns;
use whyslow_model::stat::{self, Stat};

use super::account::{Account, LogEntry};
use super::{ImportError, written};
use crate::importers::jfr;
use crate::importers::jstack::{self, DumpFile};
use crate::importers::pyspy;
use crate::importers::samplers::{self, Form, Lacks};
use crate::limits;
use crate::profile::gaps::{self, Gaps, Off};
use crate::profile::locks::{self, LockWait};
use crate::profile::{Point, Profile};
use crate::trackers::{Sampled, Source};

/// Name of profiles in tables.
const LABEL: &str = "profile";

/// Content of all profiles in time order.
#[derive(Default)]
pub(super) struct ProfileQueue {
    sources: Vec<Queued>,
    dumps: Vec<Dumped>,
    python_dumps: Vec<Dumped>,
}

/// A file of thread dumps.
struct Dumped {
    source: usize,
    path: PathBuf,
    text: String,
    named: Option<Ns>,
    written: Option<Ns>,
    shift: Ns,
}

/// An anomaly, the number of occurrences, and examples.
type Remark = (&'static Stat, u64, Vec<LogEntry>);

impl Dumped {
    fn of(source: usize, path: &Path, shift: Ns) -> Result<Self, ImportError> {
        let (bytes, _) = read(path)?;
        Ok(Self {
            source,
            path: path.to_owned(),
            text: String::from_utf8_lossy(&bytes).into_owned(),
            named: named(path),
            written: written(path),
            shift,
        })
    }

    fn file(&self) -> DumpFile<'_> {
        DumpFile {
            text: &self.text,
            named: self.named,
            written: self.written,
            shift: self.shift,
        }
    }
}

struct Queued {
    source: usize,
    profile: Profile,
    gaps: Gaps,
    locks: Vec<LockWait>,
    shift: Ns,
    next_point: usize,
    next_gap: usize,
    next_event: usize,
    next_lock: usize,
    facts: Vec<(String, String)>,
    counts: Vec<(String, u64)>,
    remarks: Vec<Remark>,
}

impl ProfileQueue {
    /// Thread names given by runtimes, by kernel thread id.
    pub(super) fn names(&self) -> impl Iterator<Item = (i32, Box<str>)> + '_ {
        let threads = self.sources.iter().flat_map(|of| &of.profile.threads);
        threads.filter_map(|thread| Some((thread.tid?, thread.name.as_deref()?.into())))
    }

    pub(super) fn add_jfr(
        &mut self,
        source: usize,
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        let (read, remark) = read_jfr(path)?;
        let mut remarks = damage(&read.damage, source);
        remarks
            .extend(remark.map(|text| (&stat::PROFILE_LOST, 1, vec![entry(source, None, text)])));
        let counts = read.counts.into_iter().collect();
        let files: Vec<DumpFile<'_>> = read
            .dumps
            .iter()
            .map(|(ts, text)| DumpFile {
                text,
                named: Some(*ts),
                written: None,
                shift,
            })
            .collect();
        // Dumps may be missing: not the text of a JVM dump, or dropped for lack of space.
        let dumps = (!files.is_empty()).then(|| java_dumps(source, &files));
        let used = dumps.as_ref().map_or(0, |(_, used)| *used);
        let unused = (files.len() as u64).saturating_sub(used);
        remarks.push((
            &stat::PROFILE_DUMP_NOT_USED,
            read.damage.dumps + unused,
            Vec::new(),
        ));
        self.add(Queued::new(source, (read.profile, shift), counts, remarks));
        if let Some((mut queued, 1..)) = dumps {
            // Already noted for the samples of the same file.
            queued
                .remarks
                .retain(|(of, ..)| of.name != stat::GAPS_NOT_LOOKED_FOR.name);
            self.add(queued);
        }
        Ok(())
    }

    pub(super) fn add_samples(
        &mut self,
        (source, form): (usize, Form),
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        let (bytes, cut) = read(path)?;
        let limit = limits::TEXT_BYTES_MAX;
        if bytes.len() as u64 > limit {
            return Err(ImportError::TextTooLarge {
                path: path.to_owned(),
                bytes: bytes.len() as u64,
                limit,
            });
        }
        let read =
            samplers::read(form, &bytes, written(path)).map_err(|reason| ImportError::Samples {
                path: path.to_owned(),
                reason,
            })?;
        let mut remarks = lacking(&read.lacks);
        let examples = read.examples.into_iter();
        let examples = examples.map(|words| entry(source, None, words)).collect();
        remarks.push((&stat::SAMPLES_BAD, read.lacks.bad, examples));
        remarks.extend(cut.map(|text| (&stat::PROFILE_LOST, 1, vec![entry(source, None, text)])));
        if read.lacks.scaled > 0 {
            let words = format!("weights divided by {}", read.lacks.scaled);
            remarks.push((&stat::SAMPLES_SCALED, 1, vec![entry(source, None, words)]));
        }
        let counts = vec![("samples".to_owned(), read.samples)];
        self.add(Queued::new(source, (read.profile, shift), counts, remarks));
        Ok(())
    }

    /// All files of thread dumps form one series, see [`Self::seal`].
    pub(super) fn add_jstack(
        &mut self,
        source: usize,
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        self.dumps.push(Dumped::of(source, path, shift)?);
        Ok(())
    }

    /// Like [`Self::add_jstack`], for py-spy.
    pub(super) fn add_pyspy(
        &mut self,
        source: usize,
        path: &Path,
        shift: Ns,
    ) -> Result<(), ImportError> {
        self.python_dumps.push(Dumped::of(source, path, shift)?);
        Ok(())
    }

    /// To be called after the last file.
    pub(super) fn seal(&mut self) -> Result<(), ImportError> {
        self.seal_java();
        self.seal_python()
    }

    fn seal_python(&mut self) -> Result<(), ImportError> {
        let dumps = std::mem::take(&mut self.python_dumps);
        let Some(first) = dumps.first() else {
            return Ok(());
        };
        let files: Vec<DumpFile<'_>> = dumps.iter().map(Dumped::file).collect();
        let read = pyspy::read(&files).map_err(|(place, reason)| ImportError::Samples {
            path: dumps[place].path.clone(),
            reason,
        })?;
        // Anomalies of the whole series are counted once.
        let mut remarks: Vec<Remark> = vec![(&stat::DUMP_UNSTAMPED, read.unstamped, Vec::new())];
        let mut counts = vec![("thread dump".to_owned(), read.dumps)];
        let source = first.source;
        for profile in read.profiles {
            let (counts, remarks) = (std::mem::take(&mut counts), std::mem::take(&mut remarks));
            self.add(Queued::new(source, (profile, 0), counts, remarks));
        }
        Ok(())
    }

    fn seal_java(&mut self) {
        let dumps = std::mem::take(&mut self.dumps);
        let Some(first) = dumps.first() else { return };
        let files: Vec<DumpFile<'_>> = dumps.iter().map(Dumped::file).collect();
        let (mut queued, count) = java_dumps(first.source, &files);
        queued.counts.push(("thread dump".to_owned(), count));
        self.add(queued);
    }

    fn add(&mut self, queued: Queued) {
        self.sources.push(queued);
    }

    pub(super) fn open_account(&self, account: &mut Account) {
        for queued in &self.sources {
            let label = match queued.source {
                0 => LABEL.to_owned(),
                number => format!("{LABEL}{number}"),
            };
            for (key, value) in &queued.facts {
                account.add_fact(&label, key, value);
            }
            let mut all: u64 = 0;
            for (name, count) in &queued.counts {
                account.add_events(&label, name, *count);
                all = all.saturating_add(*count);
            }
            account.add_records(all, 0);
            for (stat, count, examples) in &queued.remarks {
                account.add_anomaly(stat, *count, examples);
            }
        }
    }

    /// Whether there is an item before this time.
    #[inline]
    pub(super) fn is_due(&self, ts: Ns) -> bool {
        let nexts = self.sources.iter().filter_map(Queued::next_ts);
        nexts.min().is_some_and(|next| next < ts)
    }

    /// Passes on all items before this time, or all that remain.
    pub(super) fn until(
        &mut self,
        ts: Option<Ns>,
        take: &mut dyn FnMut(Source<'_>, &Sampled<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        loop {
            let nexts = self.sources.iter().enumerate();
            let nexts = nexts.filter_map(|(number, queued)| Some((queued.next_ts()?, number)));
            let Some((next, number)) = nexts.min() else {
                break;
            };
            if ts.is_some_and(|ts| next >= ts) {
                break;
            }
            // Continues until another profile is due: with a single profile, to its end.
            let others = self
                .sources
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number);
            let until = others
                .filter_map(|(_, queued)| queued.next_ts())
                .chain(ts)
                .min();
            self.sources[number].until((number, until.unwrap_or(Ns::MAX)), take)?;
        }
        ControlFlow::Continue(())
    }
}

impl Queued {
    fn new(
        source: usize,
        (mut profile, shift): (Profile, Ns),
        counts: Vec<(String, u64)>,
        mut remarks: Vec<Remark>,
    ) -> Self {
        let mut facts = profile.facts.clone();
        if let Some(interval) = profile.interval {
            facts.push(("sample_interval_ns".to_owned(), interval.to_string()));
        }
        let gaps = gaps::find(&mut profile).unwrap_or_else(|off| {
            let reason = match off {
                Off::NotWall => "the sampler does not visit all threads",
                Off::NoInterval => "the sampling interval is unknown",
            };
            let remark = entry(source, None, reason.to_owned());
            if !profile.points.is_empty() {
                remarks.push((&stat::GAPS_NOT_LOOKED_FOR, 1, vec![remark]));
            }
            Gaps::default()
        });
        let locks = locks::find(&profile, &gaps);
        Self {
            source,
            profile,
            gaps,
            locks,
            shift,
            next_point: 0,
            next_gap: 0,
            next_event: 0,
            next_lock: 0,
            facts,
            counts,
            remarks,
        }
    }

    #[inline]
    fn point_ts(&self) -> Ns {
        self.profile
            .points
            .get(self.next_point)
            .map_or(Ns::MAX, |point| point.ts)
    }

    #[inline]
    fn event_ts(&self) -> Ns {
        self.profile
            .events
            .get(self.next_event)
            .map_or(Ns::MAX, |event| event.ts)
    }

    #[inline]
    fn gap_ts(&self) -> Ns {
        self.gaps
            .gaps
            .get(self.next_gap)
            .map_or(Ns::MAX, |gap| gap.ts)
    }

    /// Lock waits are passed on at their end, when the activity of their holders is known.
    #[inline]
    fn lock_ts(&self) -> Ns {
        self.locks
            .get(self.next_lock)
            .map_or(Ns::MAX, |wait| wait.ts_end)
    }

    #[inline]
    fn next_ts(&self) -> Option<Ns> {
        let next = self.point_ts().min(self.event_ts()).min(self.gap_ts());
        let next = next.min(self.lock_ts());
        (next < Ns::MAX).then(|| next.saturating_add(self.shift))
    }

    fn until(
        &mut self,
        (number, until): (usize, Ns),
        take: &mut dyn FnMut(Source<'_>, &Sampled<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut is_first = true;
        while let Some(next) = self.next_ts() {
            // At least one: others may start at the same time.
            if next >= until && !is_first {
                break;
            }
            is_first = false;
            let source = Source {
                number,
                profile: &self.profile,
            };
            let (point, event, gap) = (self.point_ts(), self.event_ts(), self.gap_ts());
            if self.lock_ts() < point.min(event).min(gap) {
                let wait = &self.locks[self.next_lock];
                take(source, &Sampled::Lock(wait, self.shift))?;
                self.next_lock += 1;
            } else if gap <= point && gap <= event {
                take(
                    source,
                    &Sampled::Gap(&self.gaps.gaps[self.next_gap], self.shift),
                )?;
                self.next_gap += 1;
            } else if event <= point {
                let event = &self.profile.events[self.next_event];
                take(source, &Sampled::Runtime(event, self.shift))?;
                self.next_event += 1;
            } else {
                let at = self.next_point;
                self.next_point += 1;
                if self.gaps.is_queued.get(at).copied().unwrap_or(false) {
                    continue;
                }
                let (point, since) = self.stretch(at);
                take(source, &Sampled::Point(&point, since))?;
            }
        }
        ControlFlow::Continue(())
    }

    /// A sample in the form that is written, and the start of the time that it stands for.
    #[inline]
    fn stretch(&self, at: usize) -> (Point, Ns) {
        let mut point = self.profile.points[at];
        let since = match self.gaps.since.get(at) {
            Some(since) => *since,
            // Without sampling gaps, each sample stands for one interval.
            None => point.ts.saturating_sub(self.profile.interval.unwrap_or(0)),
        };
        point.ts = point.ts.saturating_add(self.shift);
        (point, since.saturating_add(self.shift))
    }
}

/// A series of JVM thread dumps, and their number.
fn java_dumps(source: usize, files: &[DumpFile<'_>]) -> (Queued, u64) {
    let read = jstack::read(files);
    let remarks: Vec<Remark> = vec![
        (&stat::DUMP_UNSTAMPED, read.unstamped, Vec::new()),
        (&stat::DUMP_ZONE_GUESSED, read.zoneless, Vec::new()),
    ];
    let mut queued = Queued::new(source, (read.profile, 0), Vec::new(), remarks);
    // Dumps show lock holders, so they need not be inferred.
    queued.locks = read.waits;
    (queued, read.dumps)
}

/// Seconds or milliseconds since 1970 in a file name: `dump-1795530153123.txt`.
fn named(path: &Path) -> Option<Ns> {
    let name = path.file_name()?.to_str()?;
    let mut numbers = name.split(|c: char| !c.is_ascii_digit());
    numbers.find_map(|digits| {
        let number: Ns = digits.parse().ok()?;
        match digits.len() {
            10 => number.checked_mul(1_000_000_000),
            13 => number.checked_mul(1_000_000),
            _ => None,
        }
    })
}

fn entry(source: usize, byte_offset: Option<u64>, text: String) -> LogEntry {
    LogEntry {
        source: Some(format!("{LABEL}{source}")),
        byte_offset: byte_offset.map(|offset| offset as i64),
        ts: None,
        text,
    }
}

/// Limitations of a profile, as anomalies.
fn lacking(lacks: &Lacks) -> Vec<Remark> {
    let counts = [
        (&stat::SAMPLES_NO_TIMES, lacks.times),
        (&stat::SAMPLES_NO_DATES, u64::from(lacks.dates)),
        (&stat::SAMPLES_UNPAIRED, lacks.unpaired),
        (&stat::SAMPLES_UNNAMED, lacks.unnamed),
        (&stat::SAMPLES_STACK_CUT, lacks.cut),
        (&stat::SAMPLES_BY_ADDRESS, lacks.addresses),
        (&stat::SAMPLES_ONE_THREAD, u64::from(lacks.one_thread)),
        (&stat::SAMPLES_SUMS, u64::from(lacks.sums)),
        (&stat::SAMPLES_NOT_TIME, u64::from(lacks.not_time)),
        (&stat::SAMPLES_MISSED, lacks.missed),
    ];
    let remarks = counts.map(|(stat, count)| (stat, count, Vec::new()));
    remarks.into()
}

/// Damage of a JFR file, as anomalies.
fn damage(damage: &jfr::Damage, source: usize) -> Vec<Remark> {
    let places = |places: &[jfr::Place], what: &str| {
        let shown = places.iter().take(limits::LOG_EXAMPLES_MAX);
        let entries = shown.map(|place| {
            entry(
                source,
                Some(place.offset as u64),
                format!("{} {what}", place.count),
            )
        });
        entries.collect::<Vec<_>>()
    };
    let (unfinished, lost) = (&damage.unfinished, &damage.lost);
    let lost_bytes = lost.iter().map(|place| place.count).sum();
    vec![
        (
            &stat::PROFILE_UNFINISHED,
            unfinished.len() as u64,
            places(unfinished, "events used"),
        ),
        (&stat::PROFILE_LOST, lost_bytes, places(lost, "bytes")),
        (
            &stat::PROFILE_UNREADABLE,
            damage.unreadable.len() as u64,
            places(&damage.unreadable, "bytes"),
        ),
        (
            &stat::PROFILE_CONSTANTS_DAMAGED,
            damage.constants,
            Vec::new(),
        ),
        (&stat::PROFILE_UNRESOLVED, damage.unresolved, Vec::new()),
        (&stat::PROFILE_STACK_CUT, damage.truncated, Vec::new()),
        (&stat::SAMPLE_WITHOUT_THREAD, damage.no_thread, Vec::new()),
    ]
}

/// Reads a recording chunk by chunk if it is uncompressed and sorted; otherwise all of it at once.
fn read_jfr(path: &Path) -> Result<(jfr::Read, Option<String>), ImportError> {
    let failed = |source| ImportError::Read {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    if bytes <= limits::PROFILE_BYTES_MAX
        && let Some(read) = jfr::read_chunks(&file, bytes).map_err(failed)?
    {
        return Ok((read, None));
    }
    let (bytes, remark) = read(path)?;
    Ok((jfr::read(&bytes), remark))
}

/// Reads and decompresses the whole file. Returns a note about incomplete decompression, too.
fn read(path: &Path) -> Result<(Vec<u8>, Option<String>), ImportError> {
    let failed = |source| ImportError::Read {
        path: path.to_owned(),
        source,
    };
    let limit = limits::PROFILE_BYTES_MAX;
    let too_large = |bytes| ImportError::ProfileTooLarge {
        path: path.to_owned(),
        bytes,
        limit,
    };
    let bytes = fs::metadata(path).map_err(failed)?.len();
    if bytes > limit {
        return Err(too_large(bytes));
    }
    let content = fs::read(path).map_err(failed)?;
    if !content.starts_with(&[0x1f, 0x8b]) {
        return Ok((content, None));
    }
    let mut inflated = Vec::new();
    let file = File::open(path).map_err(failed)?;
    let read = MultiGzDecoder::new(file)
        .take(limit + 1)
        .read_to_end(&mut inflated);
    if inflated.len() as u64 > limit {
        return Err(too_large(inflated.len() as u64));
    }
    // The data decompressed before the error is used.
    let remark = read.err().map(|error| {
        format!(
            "the compressed file is truncated or damaged after {} bytes: {error}",
            inflated.len()
        )
    });
    Ok((inflated, remark))
}

#[cfg(test)]
mod tests;
