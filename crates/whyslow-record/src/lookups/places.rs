//! The resolver configuration of each mount namespace.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Resolving;
use crate::snapshot::{self, ResolverFiles};

/// Maximum number of namespaces; the servers of further ones are not known.
const PLACES_MAX: usize = 1024;
const RESOLV_CONF: &str = "/etc/resolv.conf";

pub(super) struct Places {
    resolving: fn(&str) -> Resolving,
    known: FxHashMap<u32, Resolving>,
    /// Since the last call of [`Places::take_changed`].
    changed: Vec<(u32, Duration)>,
}

impl Places {
    pub(super) fn new(resolving: fn(&str) -> Resolving) -> Self {
        Self {
            resolving,
            known: FxHashMap::default(),
            changed: Vec::new(),
        }
    }

    /// Query timeout without a `resolv.conf`.
    pub(super) fn patience(&self) -> Duration {
        (self.resolving)("").patience
    }

    /// Reads the namespaces of all processes, and returns them.
    pub(super) fn scan_all(&mut self) -> FxHashSet<u32> {
        self.scan_pids(
            &snapshot::pids(Path::new("/proc")),
            &mut FxHashSet::default(),
        )
    }

    /// Reads the namespaces of these processes, if they are not known.
    pub(super) fn scan(&mut self, pids: &[i32]) {
        let mut seen = self.known.keys().copied().collect();
        self.scan_pids(pids, &mut seen);
    }

    /// Drops namespaces that no longer exist.
    pub(super) fn keep(&mut self, alive: &FxHashSet<u32>) {
        self.known.retain(|ns, _| alive.contains(ns));
    }

    fn scan_pids(&mut self, pids: &[i32], seen: &mut FxHashSet<u32>) -> FxHashSet<u32> {
        let mut alive = FxHashSet::default();
        for pid in pids {
            let folder = Path::new("/proc").join(pid.to_string());
            let Some(ns) = snapshot::mount_ns(&folder) else {
                continue;
            };
            alive.insert(ns);
            // Processes with another root see other files.
            let root = |folder: &Path| fs::read_link(folder.join("root"));
            let fits = self.known.len() < PLACES_MAX || self.known.contains_key(&ns);
            if seen.contains(&ns)
                || !fits
                || !root(&folder).is_ok_and(|root| root == Path::new("/"))
            {
                continue;
            }
            if let Ok(files) = ResolverFiles::of(&folder.join("root")) {
                seen.insert(ns);
                self.learn(ns, &files);
            }
        }
        alive
    }

    fn learn(&mut self, ns: u32, files: &ResolverFiles) {
        let Some(text) = files.text(RESOLV_CONF) else {
            self.known.remove(&ns);
            return;
        };
        let resolving = (self.resolving)(&String::from_utf8_lossy(text));
        if self.known.get(&ns) != Some(&resolving) {
            self.changed.push((ns, resolving.patience));
            self.known.insert(ns, resolving);
        }
    }

    /// Empty if unknown.
    pub(super) fn servers(&self, ns: u32) -> String {
        let known = self.known.get(&ns);
        known.map_or_else(String::new, |resolving| resolving.servers.clone())
    }

    /// Timeouts of namespaces where they are new or changed.
    pub(super) fn take_changed(&mut self) -> Vec<(u32, Duration)> {
        std::mem::take(&mut self.changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolving(text: &str) -> Resolving {
        Resolving {
            servers: text.trim().to_owned(),
            patience: Duration::from_secs(text.len() as u64),
        }
    }

    #[test]
    fn this_process_has_a_resolver() {
        let mut places = Places::new(resolving);
        let own = std::process::id() as i32;
        let ns = snapshot::mount_ns(Path::new("/proc/self")).expect("it is ours");
        assert_eq!(places.servers(ns), "");
        places.scan(&[own, i32::MAX - 1]);
        let text = fs::read_to_string(RESOLV_CONF).unwrap_or_default();
        assert_eq!(places.servers(ns), resolving(&text).servers);
        assert_eq!(places.take_changed(), [(ns, resolving(&text).patience)]);
        // A known, unchanged namespace is not returned again.
        assert!(places.scan_all().contains(&ns));
        let again = places.take_changed();
        assert!(again.iter().all(|(of, _)| *of != ns), "{again:?}");
        places.keep(&FxHashSet::default());
        assert_eq!(places.servers(ns), "");
    }
}
