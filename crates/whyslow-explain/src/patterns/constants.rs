//! T8: do slow items come near to a time that is known for a cause?
//!
//! A hint, never a verdict: it tells which evidence to look for, and that is printed with it. Slow
//! items have to be inside a narrow window around the constant far more often than if their times
//! were spread evenly over the orders of magnitude seen; for causes that repeat and double, most of
//! them at the first value, as to wait twice is rarer than once.

use whyslow_model::sort::IndexSort;

use whyslow_analysis::statistics::binomial_tail;

/// A cause whose waits have known lengths.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Name of the cause, for the hint.
    pub cause: &'static str,
    /// ns, ascending: the first is the commonest.
    pub values: &'static [f64],
    /// Evidence that would make it a verdict.
    pub confirm: &'static str,
}

const MS: f64 = 1e6;
const S: f64 = 1e9;

/// Lengths from the sources of the kernel and of the C libraries, and from measurements with Linux 6.18
/// (resolver 5.004 s, neighbour 3.060 s, SYN 1.007 s, retransmission 206–214 ms).
pub const KNOWN: [Known; 13] = [
    Known {
        cause: "resolver timeout (glibc: 5 s for each server and attempt)",
        values: &[5.0 * S, 10.0 * S, 15.0 * S, 20.0 * S],
        confirm: "a poll of 5 s on a socket to port 53 that returned 0, or getaddrinfo on the stack",
    },
    Known {
        cause: "resolver timeout (musl: 5 s by 2 attempts)",
        values: &[2.5 * S, 5.0 * S, 7.5 * S],
        confirm: "a poll of 2.5 s on a socket to port 53 that returned 0",
    },
    Known {
        cause: "no answer of a neighbour (ARP: 3 probes of 1 s)",
        values: &[3.06 * S],
        confirm: "EHOSTUNREACH or POLLERR at the end of the wait",
    },
    Known {
        cause: "SYN sent again (Linux 6.5 and later: after 1, 2, 3, 4, 5, 7, 11 … s)",
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
        cause: "SYN or SYN-ACK sent again (doubling: after 1, 3, 7, 15, 31, 63 s)",
        values: &[S, 3.0 * S, 7.0 * S, 15.0 * S, 31.0 * S, 63.0 * S],
        confirm: "tcp_retransmit_skb on the connection while it was opened",
    },
    Known {
        cause: "packet lost and sent again (least retransmission time 200 ms, doubling)",
        values: &[200.0 * MS, 600.0 * MS, 1400.0 * MS],
        confirm: "tcp_retransmit_skb on the connection inside the wait",
    },
    Known {
        cause: "delayed ACK with Nagle's algorithm (40 ms)",
        values: &[40.0 * MS],
        confirm: "two small sends without TCP_NODELAY, and a wake by a bare ACK",
    },
    Known {
        cause: "first retransmission without a known round trip (3 s)",
        values: &[3.0 * S],
        confirm: "tcp_retransmit_skb inside the wait on a new connection",
    },
    Known {
        cause: "command timeout of a disk (SCSI, NVMe: 30 s), or a proxy's or conntrack's 30 s",
        values: &[30.0 * S],
        confirm: "block_rq_error, or a line of the kernel's log at the end of the wait",
    },
    Known {
        cause: "timeout of a minute (TIME_WAIT and FIN_WAIT2, proxies)",
        values: &[60.0 * S],
        confirm: "the error of the connect or read at the end of the wait",
    },
    Known {
        cause: "probe of an idle connection (TCP keepalive: every 75 s)",
        values: &[75.0 * S],
        confirm: "an idle connection that ended with ETIMEDOUT",
    },
    Known {
        cause: "longest pause of a writer of dirty pages (200 ms)",
        values: &[200.0 * MS],
        confirm: "balance_dirty_pages with a pause of that length",
    },
    Known {
        cause: "reclaim held back (100 ms), or the CPU quota's period",
        values: &[100.0 * MS],
        confirm: "mm_vmscan_throttled inside the wait, or throttled_time of the control group",
    },
];

/// Times that repeat by known causes: ns, cause, evidence.
pub const PERIODS: [(f64, &str, &str); 5] = [
    (
        5.0 * S,
        "journal commit, or writeback",
        "jbd2_start_commit or writeback_start at the onsets",
    ),
    (
        30.0 * S,
        "dirty pages that are old enough",
        "writeback_start at the onsets",
    ),
    (
        60.0 * S,
        "cron, or another job of each minute",
        "sched_process_exec at the onsets",
    ),
    (
        300.0 * S,
        "checkpoint, or a job of each five minutes",
        "sched_process_exec at the onsets",
    ),
    (
        3600.0 * S,
        "a job of each hour, or rotation of logs",
        "sched_process_exec at the onsets",
    ),
];

const SHARE_MIN: f64 = 0.5;
const ITEMS_MIN: usize = 5;
const LEVEL: f64 = 1e-3;
/// A period is that of a known cause if it is so near.
const PERIOD_WITHIN: f64 = 0.01;

/// What slow items waited, all ns.
#[derive(Debug, Clone, PartialEq)]
pub struct Waits {
    /// Of each slow item: its longest wait, or what it took beyond the usual.
    pub waits: Vec<f64>,
    /// Median of usual items and its MAD, by which `waits` are uncertain: 0 for waits that were
    /// recorded themselves.
    pub usual: f64,
    /// Median absolute deviation of the usual items, ns.
    pub mad: f64,
    /// Times that were seen at all.
    pub range: (f64, f64),
}

/// Slow items near to a constant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hint {
    /// The cause.
    pub known: Known,
    /// The value that most of them are near to, ns.
    pub value: f64,
    /// Slow items within the window around `value`.
    pub inside: usize,
    /// Slow items in all.
    pub slow: usize,
    /// Over all causes that are known.
    pub p: f64,
}

/// Causes that slow items come near to, the most certain first.
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
    // Windows do not overlap but for the shortest constants in noisy times.
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

/// Least and greatest wait that is near to a value. Below, as part of the usual time may pass meanwhile
/// and is then taken off twice; above, as timers are late and the rest of the item varies.
fn window(value: f64, waits: &Waits) -> (f64, f64) {
    let least = value - waits.usual.min(0.02 * value) - MS;
    let most = value + (0.05 * value).max(4.0 * MS).max(3.0 * waits.mad);
    (least, most)
}

/// Of being in one of the windows, if logarithms are spread evenly over the range.
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
        // Three are too few, and a third of them is too.
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
