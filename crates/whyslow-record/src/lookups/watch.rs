//! Reads the kernel's counters at the end of every interval.

use std::cmp::Reverse;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapFlags};

use super::counts::{Counts, Host};
use super::load::{Loaded, load};
use super::places::Places;
use super::series::All;
use super::{LookupNews, LookupOptions, LookupPeriod, LookupReady};
use crate::error::RecordError;

/// Maximum time until the caller can stop.
const PAUSE: Duration = Duration::from_millis(250);
/// Interval of scans of new processes.
const SCAN_INTERVAL: Duration = Duration::from_secs(1);
/// See `lookups.bpf.c`.
const HOSTS_MAX: usize = 4096;
/// From this number of hosts on, those of deleted namespaces are evicted.
const HOSTS_MANY: usize = HOSTS_MAX / 2;

/// Reports intervals until `each` breaks, or the requested number of intervals is over. `ready` is
/// called when the programs run.
pub fn watch_lookups(
    options: &LookupOptions,
    ready: impl FnOnce(&LookupReady<'_>),
    mut each: impl FnMut(LookupNews<'_>) -> ControlFlow<()>,
) -> Result<(), RecordError> {
    let mut storage = MaybeUninit::uninit();
    let places = Places::new(options.resolving);
    let loaded = load(places.patience(), &mut storage)?;
    let mut watch = Watch {
        loaded,
        places,
        all: All::default(),
    };
    watch.places.scan_all();
    watch.update_timeouts();
    ready(&LookupReady {
        off: &watch.loaded.off,
        files: watch.loaded.files,
    });
    let mut due = Instant::now() + options.interval;
    let mut scanned = Instant::now();
    let mut over = 0;
    loop {
        thread::sleep(due.saturating_duration_since(Instant::now()).min(PAUSE));
        if scanned.elapsed() >= SCAN_INTERVAL {
            scanned = Instant::now();
            watch.scan();
        }
        let mut flow = each(LookupNews::Nothing);
        let is_due = Instant::now() >= due;
        if is_due || flow.is_break() {
            let of_period = watch.period(&mut each)?;
            flow = if flow.is_break() { flow } else { of_period };
            over += 1;
            // Intervals missed during suspend are skipped.
            due = (due + options.interval).max(Instant::now());
        }
        if flow.is_break() || options.count == Some(over) {
            return Ok(());
        }
    }
}

struct Watch<'o> {
    loaded: Loaded<'o>,
    places: Places,
    all: All,
}

impl Watch<'_> {
    /// Scans new processes.
    fn scan(&mut self) {
        let begun = &self.loaded.skeleton.maps.begun;
        let keys: Vec<Vec<u8>> = begun.keys().collect();
        let mut pids = Vec::new();
        for key in keys {
            // Another key may have replaced it meanwhile.
            let _ = begun.delete(&key);
            pids.extend(key.first_chunk().map(|bytes| i32::from_ne_bytes(*bytes)));
        }
        self.loaded.begun(&pids);
        self.loaded.poll();
        self.places.scan(&pids);
        self.update_timeouts();
    }

    fn update_timeouts(&mut self) {
        let known = &self.loaded.skeleton.maps.patience;
        for (ns, patience) in self.places.take_changed() {
            let patience = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
            let (key, value) = (ns.to_ne_bytes(), patience.to_ne_bytes());
            // If the map is full, the default timeout applies.
            if known.update(&key, &value, MapFlags::ANY).is_err() {
                break;
            }
        }
    }

    fn period(
        &mut self,
        each: &mut impl FnMut(LookupNews<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, RecordError> {
        let alive = self.places.scan_all();
        self.update_timeouts();
        let maps = &self.loaded.skeleton.maps;
        let mut found = Vec::new();
        // No key vanishes meanwhile: only this thread deletes keys.
        for key in maps.hosts.keys() {
            let value = maps.hosts.lookup(&key, MapFlags::ANY);
            let value = value.map_err(RecordError::Consume)?.unwrap_or_default();
            if let (Some(host), Some(counts)) = (Host::parse(&key), Counts::parse(&value)) {
                found.push((key, host, counts));
            }
        }
        let hosts = found.len();
        // If there are too many, the hosts with the most lookups get a series of their own.
        found.sort_by_cached_key(|(key, _, counts)| (Reverse(counts.count()), key.clone()));
        let mut gone = Vec::new();
        for (key, host, counts) in found {
            let places = &self.places;
            let is_gone = !alive.contains(&host.mount_ns);
            let is_new = self.all.take(host.clone(), counts, |ns| places.servers(ns));
            // A namespace created since the scan of all processes has an increase.
            if is_gone && !is_new {
                gone.push((key, host));
            }
        }
        let zero = 0u32.to_ne_bytes();
        let one = |map: &dyn MapCore| {
            map.lookup(&zero, MapFlags::ANY)
                .map_err(RecordError::Consume)
        };
        let others = one(&maps.others)?;
        if let Some(counts) = others.as_deref().and_then(Counts::parse) {
            self.all.take_others(counts);
        }
        let uncounted = one(&maps.uncounted)?;
        let uncounted = uncounted.as_deref().and_then(<[u8]>::first_chunk);
        let uncounted = uncounted.map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        if hosts >= HOSTS_MANY {
            // No process is left in them that could count.
            for (key, host) in gone {
                if maps.hosts.delete(&key).is_ok() {
                    self.all.forget(&host);
                }
            }
        }
        self.places.keep(&alive);
        let period = LookupPeriod {
            series: self.all.series(),
            uncounted,
            hosts,
            hosts_max: HOSTS_MAX,
            files: self.loaded.files,
            files_over: self.loaded.files_over,
            narrow: self.loaded.narrow,
        };
        Ok(each(LookupNews::Period(&period)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeletons::lookups::LookupsSkelBuilder;
    use libbpf_rs::skel::SkelBuilder as _;

    #[test]
    fn there_is_room_for_as_many_hosts_as_is_told() {
        let mut storage = MaybeUninit::uninit();
        let open = LookupsSkelBuilder::default().open(&mut storage);
        let open = open.expect("it is part of this program");
        assert_eq!(open.maps.hosts.max_entries() as usize, HOSTS_MAX);
    }
}
