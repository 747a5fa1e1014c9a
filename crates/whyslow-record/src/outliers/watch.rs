//! Waits for slow requests, and reads the counters at the end of every interval.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{ErrorKind, MapCore, MapFlags, RingBuffer, RingBufferBuilder};

use whyslow_model::sort::IndexSort;

use super::histogram::Counters;
use super::load::{Loaded, load};
use super::{DeviceTimes, Missed, OutlierEvent, OutlierOptions, OutlierReady, Period, SlowRequest};
use crate::clock;
use crate::error::RecordError;

/// Maximum time until the caller can stop.
const PAUSE: Duration = Duration::from_millis(250);
/// Maximum number of slow requests reported before the caller can stop.
const AT_ONCE: usize = 1_000;
/// A BPF program that started before the end of the interval has completed by then.
const SETTLE: Duration = Duration::from_millis(2);

/// Reports slow requests and intervals until `each` breaks, or the requested number of intervals is
/// over. `ready` is called when the programs run.
pub fn watch_outliers(
    options: &OutlierOptions,
    ready: impl FnOnce(&OutlierReady<'_>),
    mut each: impl FnMut(OutlierEvent<'_>) -> ControlFlow<()>,
) -> Result<(), RecordError> {
    let mut storage = MaybeUninit::uninit();
    let loaded = load(options, &mut storage)?;
    let slow = Rc::new(RefCell::new(Vec::new()));
    let ring = ring(&loaded, &slow)?;
    let mut counting = Counting::begin(&loaded, options)?;
    ready(&OutlierReady { off: &loaded.off });
    let mut due = Instant::now() + options.interval;
    let mut over = 0;
    let mut flow = ControlFlow::Continue(());
    loop {
        let left = due.saturating_duration_since(Instant::now());
        let polled = ring.poll(left.min(PAUSE));
        let found = std::mem::take(&mut *slow.borrow_mut());
        polled.or_else(|error| match error.kind() {
            ErrorKind::Interrupted => Ok(()),
            // As many as are taken at once.
            _ if found.len() >= AT_ONCE => Ok(()),
            _ => Err(RecordError::Consume(error)),
        })?;
        for request in &found {
            flow = merge(flow, each(OutlierEvent::Slow(request)));
        }
        if found.is_empty() {
            flow = merge(flow, each(OutlierEvent::Nothing));
        }
        let is_due = Instant::now() >= due;
        if is_due || flow.is_break() {
            let period = counting.end_period(!is_due)?;
            flow = merge(flow, each(OutlierEvent::Period(&period)));
            over += 1;
            // Intervals missed during suspend are skipped.
            due = (due + options.interval).max(Instant::now());
        }
        if flow.is_break() || options.count == Some(over) {
            return Ok(());
        }
    }
}

fn merge(before: ControlFlow<()>, now: ControlFlow<()>) -> ControlFlow<()> {
    if before.is_break() { before } else { now }
}

fn ring(
    loaded: &Loaded<'_>,
    slow: &Rc<RefCell<Vec<SlowRequest>>>,
) -> Result<RingBuffer<'static>, RecordError> {
    let mut builder = RingBufferBuilder::new();
    let slow = Rc::clone(slow);
    let take = move |record: &[u8]| {
        let mut slow = slow.borrow_mut();
        slow.extend(parse(record));
        // Otherwise a faster producer would keep us here forever.
        -i32::from(slow.len() >= AT_ONCE)
    };
    builder
        .add(&loaded.skeleton.maps.slow_requests, take)
        .map_err(RecordError::Buffer)?;
    builder.build().map_err(RecordError::Buffer)
}

/// Reads numbers at offsets of a map value.
struct Fields<'b>(&'b [u8]);

impl Fields<'_> {
    fn u64(&self, at: usize) -> Option<u64> {
        let bytes = self.0.get(at..at + 8)?;
        bytes.try_into().ok().map(u64::from_ne_bytes)
    }

    fn u32(&self, at: usize) -> Option<u32> {
        let bytes = self.0.get(at..at + 4)?;
        bytes.try_into().ok().map(u32::from_ne_bytes)
    }
}

/// `struct slow`
fn parse(record: &[u8]) -> Option<SlowRequest> {
    let fields = Fields(record);
    let (begun, issued, ended) = (fields.u64(0)?, fields.u64(8)?, fields.u64(64)?);
    let (tid, pid) = (fields.u32(36)? as i32, fields.u32(40)? as i32);
    let comm = record.get(48..64)?;
    let comm = comm.split(|byte| *byte == 0).next().unwrap_or_default();
    let clocks = clock::clocks();
    let offset = clocks.real.saturating_sub(clocks.monotonic as i64);
    Some(SlowRequest {
        ts_end: (ended as i64).saturating_add(offset),
        dur: Duration::from_nanos(ended.saturating_sub(begun)),
        queue: (pid != 0).then(|| Duration::from_nanos(issued.saturating_sub(begun))),
        sector: fields.u64(16)?,
        dev: fields.u32(24)?,
        bytes: fields.u32(28)?,
        rwbs: fields.u32(32)?,
        error: fields.u32(72)? as i32,
        submitter: (pid != 0).then(|| (tid, pid, String::from_utf8_lossy(comm).into_owned())),
    })
}

/// Counters up to the end of the last interval.
struct Counting<'c, 'o> {
    loaded: &'c Loaded<'o>,
    options: &'c OutlierOptions,
    epoch: u64,
    begin: i64,
    devices: BTreeMap<u32, Counters>,
    missed: Missed,
}

impl<'c, 'o> Counting<'c, 'o> {
    fn begin(loaded: &'c Loaded<'o>, options: &'c OutlierOptions) -> Result<Self, RecordError> {
        let mut counting = Self {
            loaded,
            options,
            epoch: 0,
            begin: 0,
            devices: BTreeMap::new(),
            missed: Missed::default(),
        };
        // What was counted before everything was attached belongs to no interval.
        counting.end_period(true)?;
        Ok(counting)
    }

    fn end_period(&mut self, is_cut: bool) -> Result<Period, RecordError> {
        let epoch = self.epoch;
        self.epoch += 1;
        let end = clock::clocks().real;
        let maps = &self.loaded.skeleton.maps;
        maps.epoch
            .update(
                &0u32.to_ne_bytes(),
                &self.epoch.to_ne_bytes(),
                MapFlags::ANY,
            )
            .map_err(RecordError::Consume)?;
        thread::sleep(SETTLE);
        let open = self.open()?;
        let mut devices = Vec::new();
        for (dev, counters) in self.counters()? {
            let zero = Counters::zero();
            let before = self.devices.get(&dev).unwrap_or(&zero);
            let new = counters.since(before);
            let open = open.get(&dev).copied().unwrap_or(0);
            if new.count() > 0 || open > 0 {
                devices.push(times(dev, &new, epoch, open));
            }
            self.devices.insert(dev, counters);
        }
        for (dev, open) in &open {
            if !self.devices.contains_key(dev) {
                devices.push(times(*dev, &Counters::zero(), epoch, *open));
            }
        }
        devices.index_sort_by_key(|device| device.dev);
        let begin = std::mem::replace(&mut self.begin, end);
        Ok(Period {
            begin,
            end,
            is_cut,
            devices,
            missed: self.missed_since()?,
        })
    }

    fn counters(&self) -> Result<Vec<(u32, Counters)>, RecordError> {
        let devices = &self.loaded.skeleton.maps.devices;
        let mut found = Vec::new();
        // Devices are never removed, so no key vanishes meanwhile.
        for key in devices.keys() {
            let counters = devices
                .lookup(&key, MapFlags::ANY)
                .map_err(RecordError::Consume)?;
            let counters = counters.as_deref().and_then(Counters::parse);
            if let (Some(dev), Some(counters)) = (Fields(&key).u32(0), counters) {
                found.push((dev, counters));
            }
        }
        Ok(found)
    }

    /// Requests in flight that are slow already, by device.
    fn open(&self) -> Result<BTreeMap<u32, u64>, RecordError> {
        let requests = &self.loaded.skeleton.maps.requests;
        let slow_min = u64::try_from(self.options.slow_min.as_nanos()).unwrap_or(u64::MAX);
        let now = clock::monotonic();
        let mut open = BTreeMap::new();
        // In one batch: the kernel returns whole buckets, and a smaller batch would look like the
        // last.
        let all = requests.max_entries();
        let batches = requests
            .lookup_batch(all, MapFlags::ANY, MapFlags::ANY)
            .map_err(RecordError::Consume)?;
        for (_, request) in batches {
            let fields = Fields(&request);
            let (Some(begun), Some(dev)) = (fields.u64(0), fields.u32(24)) else {
                continue;
            };
            if now.saturating_sub(begun) >= slow_min && self.matches(&fields) {
                *open.entry(dev).or_default() += 1;
            }
        }
        Ok(open)
    }

    fn matches(&self, request: &Fields<'_>) -> bool {
        let (Some(bytes), Some(rwbs)) = (request.u32(28), request.u32(32)) else {
            return false;
        };
        let options = self.options;
        let op = rwbs & whyslow_model::spool::BlockIo::OP;
        (options.ops.is_empty() || options.ops.contains(&op))
            && bytes >= options.bytes_min
            && options.bytes_max.is_none_or(|max| bytes <= max)
    }

    fn missed_since(&mut self) -> Result<Missed, RecordError> {
        let missed = &self.loaded.skeleton.maps.missed;
        let read = |kind: u32| {
            let count = missed
                .lookup(&kind.to_ne_bytes(), MapFlags::ANY)
                .map_err(RecordError::Consume)?;
            Ok::<u64, RecordError>(count.and_then(|bytes| Fields(&bytes).u64(0)).unwrap_or(0))
        };
        let now = Missed {
            requests: read(0)?,
            devices: read(1)?,
            lines: read(2)?,
        };
        let before = std::mem::replace(&mut self.missed, now);
        Ok(Missed {
            requests: now.requests.wrapping_sub(before.requests),
            devices: now.devices.wrapping_sub(before.devices),
            lines: now.lines.wrapping_sub(before.lines),
        })
    }
}

fn times(dev: u32, counters: &Counters, epoch: u64, open: u64) -> DeviceTimes {
    let extremes = counters
        .extremes(epoch)
        .filter(|_| counters.count() > 0)
        .map(|(min, max)| (Duration::from_nanos(min), Duration::from_nanos(max)));
    // The middle of a bucket may be outside the range of its values.
    let within = |percentile: Option<Duration>| {
        percentile.map(|length| extremes.map_or(length, |(min, max)| length.clamp(min, max)))
    };
    DeviceTimes {
        dev,
        count: counters.count(),
        sum: Duration::from_nanos(counters.sum),
        extremes,
        p50: within(counters.percentile(50)),
        p99: within(counters.percentile(99)),
        slow: counters.slow,
        open,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeletons::outliers::types;

    #[test]
    fn a_request_is_read_where_the_program_wrote_it() {
        assert_eq!(size_of::<types::slow>(), 80);
        assert_eq!(size_of::<types::started>(), 64);
        let mut record = [0; 80];
        let mut put = |at: usize, bytes: &[u8]| record[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &1_000u64.to_ne_bytes());
        put(8, &3_000u64.to_ne_bytes());
        put(16, &77u64.to_ne_bytes());
        put(24, &(8u32 << 20 | 16).to_ne_bytes());
        put(28, &8192u32.to_ne_bytes());
        put(32, &1u32.to_ne_bytes());
        put(36, &11u32.to_ne_bytes());
        put(40, &10u32.to_ne_bytes());
        put(48, b"dd\0");
        put(64, &9_000u64.to_ne_bytes());
        put(72, &10u32.to_ne_bytes());
        let slow = parse(&record).expect("whole");
        assert_eq!(
            (slow.dur, slow.queue),
            (Duration::from_micros(8), Some(Duration::from_micros(2)))
        );
        assert_eq!(
            (slow.sector, slow.dev, slow.bytes),
            (77, 8 << 20 | 16, 8192)
        );
        assert_eq!(slow.submitter, Some((11, 10, "dd".to_owned())));
        assert_eq!((slow.rwbs, slow.error), (1, 10));
        assert_eq!(parse(&record[..75]), None);
        assert_eq!(parse(&[]), None);
    }
}
