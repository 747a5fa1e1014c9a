//! Counters of a host in the BPF map.

use super::LOOKUP_EDGES;

/// See `lookups.bpf.c`.
pub(super) const RESULTS: usize = 26;
const EDGES_MAX: usize = 24;
pub(super) const BUCKETS: usize = LOOKUP_EDGES.len() + 1;
const COUNTS_WORDS: usize = 2 + RESULTS + EDGES_MAX + 1;
const NAME_AT: usize = 8;

/// A host name, in a mount namespace.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Host {
    pub(super) mount_ns: u32,
    pub(super) name: Box<[u8]>,
}

impl Host {
    /// `None` if the key is invalid.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mount_ns = u32::from_ne_bytes(*bytes.first_chunk()?);
        let name = bytes.get(NAME_AT..)?.split(|byte| *byte == 0).next()?;
        Some(Self {
            mount_ns,
            name: name.into(),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) sum_ns: u64,
    pub(super) timeouts: u64,
    pub(super) results: [u64; RESULTS],
    pub(super) buckets: [u64; BUCKETS],
}

impl Counts {
    pub(super) const ZERO: Self = Self {
        sum_ns: 0,
        timeouts: 0,
        results: [0; RESULTS],
        buckets: [0; BUCKETS],
    };

    /// `None` if the size differs.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || words.len() != COUNTS_WORDS {
            return None;
        }
        let mut words = words.iter().map(|word| u64::from_ne_bytes(*word));
        let mut next = || words.next().unwrap_or(0);
        Some(Self {
            sum_ns: next(),
            timeouts: next(),
            results: std::array::from_fn(|_| next()),
            buckets: std::array::from_fn(|_| next()),
        })
    }

    pub(super) fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The increase since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        self.with(before, u64::wrapping_sub)
    }

    pub(super) fn and(&self, more: &Self) -> Self {
        self.with(more, u64::wrapping_add)
    }

    fn with(&self, other: &Self, both: fn(u64, u64) -> u64) -> Self {
        Self {
            sum_ns: both(self.sum_ns, other.sum_ns),
            timeouts: both(self.timeouts, other.timeouts),
            results: std::array::from_fn(|at| both(self.results[at], other.results[at])),
            buckets: std::array::from_fn(|at| both(self.buckets[at], other.buckets[at])),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skeletons::lookups::types;

    #[test]
    fn counts_are_read_where_the_program_has_them() {
        assert_eq!(size_of::<types::counts>(), COUNTS_WORDS * 8);
        assert_eq!(size_of::<types::host>(), NAME_AT + 256);
        let counts = types::counts::default();
        assert_eq!(counts.results.len(), RESULTS);
        assert_eq!(counts.buckets.len(), EDGES_MAX + 1);
        let words = (0..COUNTS_WORDS as u64).flat_map(u64::to_ne_bytes);
        let bytes: Vec<u8> = words.collect();
        let found = Counts::parse(&bytes).expect("whole");
        assert_eq!((found.sum_ns, found.timeouts), (0, 1));
        assert_eq!((found.results[0], found.results[RESULTS - 1]), (2, 27));
        assert_eq!((found.buckets[0], found.buckets[BUCKETS - 1]), (28, 46));
        assert_eq!(Counts::parse(&bytes[8..]), None);
        assert_eq!(Counts::parse(&[]), None);
        assert_eq!(found.since(&found), Counts::ZERO);
        assert_eq!(found.since(&Counts::ZERO).and(&Counts::ZERO), found);
    }

    #[test]
    fn a_host_is_a_text_in_a_namespace() {
        let mut bytes = vec![0; NAME_AT + 256];
        bytes[..4].copy_from_slice(&7u32.to_ne_bytes());
        bytes[NAME_AT..NAME_AT + 3].copy_from_slice(b"db\xff");
        let expected = Host {
            mount_ns: 7,
            name: Box::from(&b"db\xff"[..]),
        };
        assert_eq!(Host::parse(&bytes), Some(expected));
        assert_eq!(Host::parse(&bytes[..3]), None);
    }
}
