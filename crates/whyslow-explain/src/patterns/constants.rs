//! T8: whether durations of slow items are near the known constant of a cause.
//!
//! This is a hint, never a verdict: the evidence that would confirm it is printed with it. Far more
//! slow items have to be within a narrow window around the constant than if durations were spread
//! evenly over the observed orders of magnitude. For causes that repeat and double, most of them
//! have to be at the first value, because waiting twice is rarer than once.

use whyslow_model::sort::IndexSort;

use whyslow_analysis::statistics::binomial_tail;

/// A cause of waits with known durations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Name of the cause, for the hint.
    pub cause: &'static str,
    /// ns, ascending; the first is the most common.
    pub values: &'static [f64],
    /// Evidence that would confirm it.
    pub confirm: &'static str,
}

const MS: f64 = 1e6;
const S: f64 = 1e9;

/// Durations from the sources of the kernel and the C libraries, and from measurements on Linux
/// 6.18 (resolver 5.004 s, neighbour 3.060 s, SYN 1.007 s, retransmission 206–214 ms).
pub const KNOWN: [Known; 13] = [
    Known {
        cause: "resolver timeout (glibc: 5 s per name server and attempt)",
        values: &[5.0 * S, 10.0 * S, 15.0 * S, 20.0 * S],
        confirm: "a poll of 5 s on a socket to port 53 that returned 0, or getaddrinfo on the stack",
    },
    Known {
        cause: "resolver timeout (musl: 5 s in 2 attempts)",
        values: &[2.5 * S, 5.0 * S, 7.5 * S],
        confirm: "a poll of 2.5 s on a socket to port 53 that returned 0",
    },
    Known {
        cause: "no reply from a neighbour (ARP: 3 probes of 1 s)",
        values: &[3.06 * S],
        confirm: "EHOSTUNREACH or POLLERR at the end of the wait",
    },
    Known {
        cause: "SYN retransmitted (Linux 6.5 and later: after 1, 2, 3, 4, 5, 7, 11 … s)",
        values: &[
            S,
            2.0 * S,
            3.0 * S,
            4.0 * S,
            5.0 * S,
            7.0 * S,
            11.0 * S,
            19.0 * S,
            35.0 * S,
            67.0 * S,
        ],
        confirm: "connect in SYN_SENT with tcp_retransmit_skb inside the wait",
    },
    Known {
        cause: "SYN or SYN-ACK retransmitted (doubling: after 1, 3, 7, 15, 31, 63 s)",
        values: &[S, 3.0 * S, 7.0 * S, 15.0 * S, 31.0 * S, 63.0 * S],
        confirm: "tcp_retransmit_skb on the connection while it was being opened",
    },
    Known {
        cause: "packet lost and retransmitted (minimum retransmission timeout 200 ms, doubling)",
        values: &[200.0 * MS, 600.0 * MS, 1400.0 * MS],
        confirm: "tcp_retransmit_skb on the connection inside the wait",
    },
    Known {
        cause: "delayed ACK with Nagle's algorithm (40 ms)",
        values: &[40.0 * MS],
        confirm: "two small sends without TCP_NODELAY, and a wakeup by a bare ACK",
    },
    Known {
        cause: "first retransmission without a known round-trip time (3 s)",
        values: &[3.0 * S],
        confirm: "tcp_retransmit_skb inside the wait on a new connection",
    },
    Known {
        cause: "command timeout of a disk (SCSI, NVMe: 30 s), or a proxy's or conntrack's 30 s",
        values: &[30.0 * S],
        confirm: "block_rq_error, or a line in the kernel log at the end of the wait",
    },
    Known {
        cause: "one-minute timeout (TIME_WAIT and FIN_WAIT2, proxies)",
        values: &[60.0 * S],
        confirm: "the error of the connect or read at the end of the wait",
    },
    Known {
        cause: "probe of an idle connection (TCP keepalive: every 75 s)",
        values: &[75.0 * S],
        confirm: "an idle connection that ended with ETIMEDOUT",
    },
    Known {
        cause: "longest pause of a throttled writer of dirty pages (200 ms)",
        values: &[200.0 * MS],
        confirm: "balance_dirty_pages with a pause of that duration",
    },
    Known {
        cause: "reclaim throttling (100 ms), or the CPU quota's period",
        values: &[100.0 * MS],
        confirm: "mm_vmscan_throttled inside the wait, or throttled_time of the cgroup",
    },
];

/// Periods of known causes: ns, cause, evidence.
pub const PERIODS: [(f64, &str, &str); 5] = [
    (
        5.0 * S,
        "journal commit, or writeback",
        "jbd2_start_commit or writeback_start at the onsets",
    ),
    (
        30.0 * S,
        "writeback of expired dirty pages",
        "writeback_start at the onsets",
    ),
    (
        60.0 * S,
        "cron, or another job every minute",
        "sched_process_exec at the onsets",
    ),
    (
        300.0 * S,
        "a checkpoint, or a job every five minutes",
        "sched_process_exec at the onsets",
    ),
    (
        3600.0 * S,
        "an hourly job, or log rotation",
        "sched_process_exec at the onsets",
    ),
];

const SHARE_MIN: f64 = 0.5;
const ITEMS_MIN: usize = 5;
const LEVEL: f64 = 1e-3;
/// Maximum relative distance of a period from that of a known cause.
const PERIOD_WITHIN: f64 = 0.01;

/// Waits of slow items, all in ns.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// For each slow item, its longest wait, or the time beyond the usual.
    pub waits: Vec<f64>,
    /// Median of the usual items, which with `mad` is the uncertainty of `waits`; 0 for recorded
    /// waits.
    pub usual: f64,
    /// Median absolute deviation of the usual items, ns.
    pub mad: f64,
    /// Range of the observed durations.
    pub range: (f64, f64),
}

/// Slow items near a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hint {
    /// The cause.
    pub known: Known,
    /// The value that most of them are near, ns.
    pub value: f64,
    /// Slow items within the windows around the values.
    pub inside: usize,
    /// All slow items.
    pub slow: usize,
    /// Adjusted for all known causes.
    pub p: f64,
}

/// Causes with a constant that slow items are near, the most certain first.
pub fn hints(waits: &Waits) -> Vec<Hint> {
    let mut hints: Vec<Hint> = KNOWN
        .iter()
        .filter_map(|known| hint(known, waits))
        .collect();
    hints.index_sort_by(|a, b| a.p.total_cmp(&b.p));
    hints
}

fn hint(known: &Known, waits: &Waits) -> Option<Hint> {
    let windows: Vec<(f64, f64)> = known
        .values
        .iter()
        .map(|value| window(*value, waits))
        .collect();
    let inside = |place: usize| {
        let (least, most) = windows[place];
        let found = waits
            .waits
            .iter()
            .filter(|wait| (least..=most).contains(*wait));
        found.count()
    };
    let counts: Vec<usize> = (0..windows.len()).map(inside).collect();
    // Windows overlap only for the shortest constants with noisy durations.
    let all = counts.iter().sum::<usize>().min(waits.waits.len());
    let slow = waits.waits.len();
    let is_much = all >= ITEMS_MIN && all as f64 >= SHARE_MIN * slow as f64;
    if !is_much || 2 * counts[0] < all {
        return None;
    }
    let p = binomial_tail(all as u64, slow as u64, chance(&windows, waits.range));
    let p = p * KNOWN.len() as f64;
    (p < LEVEL).then_some(Hint {
        known: *known,
        value: known.values[0],
        inside: all,
        slow,
        p,
    })
}

/// Smallest and largest wait that is near a value. Below it, because a part of the usual time may
/// pass during the wait and is then subtracted twice; above it, because timers are late and the
/// rest of the item varies.
fn window(value: f64, waits: &Waits) -> (f64, f64) {
    let least = value - waits.usual.min(0.02 * value) - MS;
    let most = value + (0.05 * value).max(4.0 * MS).max(3.0 * waits.mad);
    (least, most)
}

/// Probability of being in one of the windows, if logarithms are spread evenly over the range.
fn chance(windows: &[(f64, f64)], (from, to): (f64, f64)) -> f64 {
    let (from, to) = (from.max(1.0).ln(), to.max(1.0).ln());
    if to <= from {
        return 1.0;
    }
    let inside = windows.iter().map(|(least, most)| {
        let (least, most) = (least.max(1.0).ln().max(from), most.ln().min(to));
        (most - least).max(0.0)
    });
    (inside.sum::<f64>() / (to - from)).min(1.0)
}

/// The known cause of a period (ns), with its evidence.
pub fn of_period(period: f64) -> Option<(&'static str, &'static str)> {
    let near = |known: &&(f64, &str, &str)| (period / known.0 - 1.0).abs() <= PERIOD_WITHIN;
    PERIODS.iter().find(near).map(|known| (known.1, known.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(waits: Vec<f64>) -> Waits {
        Waits {
            waits,
            usual: 100.0 * MS,
            mad: 20.0 * MS,
            range: (50.0 * MS, 6.0 * S),
        }
    }

    #[test]
    fn five_seconds_are_a_resolver_first() {
        let near = vec![4.99 * S, 5.0 * S, 5.01 * S, 5.05 * S, 5.004 * S, 0.3 * S];
        let found = hints(&waits(near.clone()));
        assert!(found[0].known.cause.starts_with("resolver timeout (glibc"));
        assert_eq!((found[0].inside, found[0].slow), (5, 6));
        // Three are too few, and so is a share of a third.
        assert_eq!(hints(&waits(near[..3].to_vec())), []);
        let far = [near.clone(), vec![0.8 * S; 9]].concat();
        assert_eq!(hints(&waits(far)), []);
    }

    #[test]
    fn what_doubles_is_mostly_at_its_first_value() {
        let times = |first: usize, second: usize| {
            [vec![0.207 * S; first], vec![0.615 * S; second]].concat()
        };
        let found = hints(&waits(times(8, 3)));
        assert!(found[0].known.cause.starts_with("packet lost") && found[0].inside == 11);
        assert_eq!(hints(&waits(times(3, 8))), []);
    }

    #[test]
    fn windows_by_hand() {
        let found = window(5.0 * S, &waits(Vec::new()));
        assert_eq!(found, (4.899 * S, 5.25 * S));
        assert_eq!(
            window(0.04 * S, &waits(Vec::new())),
            (38.2 * MS, 100.0 * MS)
        );
        let whole = chance(&[(1.0 * S, 10.0 * S)], (1.0 * S, 100.0 * S));
        assert!((whole - 0.5).abs() < 1e-12);
        assert_eq!(chance(&[(1.0, 2.0)], (5.0, 5.0)), 1.0);
        assert_eq!(of_period(60.3 * S).unwrap().0, PERIODS[2].1);
        assert_eq!(of_period(61.0 * S), None);
    }
}
