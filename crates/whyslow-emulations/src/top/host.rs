//! Values of the machine in top, and memory and users of processes.

use std::collections::HashMap;
use std::fmt::Write as _;

use whyslow_base::failure::Failure;
use whyslow_model::Ns;

use crate::cells::rows;
use crate::front::Front;
use crate::front::counters::{Counters, Owner};

const NAMES: &[&str] = &[
    "uptime",
    "load_1",
    "load_5",
    "load_15",
    "mem_total",
    "mem_free",
    "mem_available",
    "mem_buffers",
    "mem_cached",
    "mem_reclaimable",
    "swap_total",
    "swap_free",
    "rss",
    "size",
    "shared",
];

pub(super) struct Host {
    counters: Counters,
    /// By process.
    users: HashMap<i64, String>,
}

impl Host {
    pub(super) fn read(front: &Front<'_>) -> Result<Self, Failure> {
        let mut users = HashMap::new();
        for row in rows(&front.threads()?, "threads") {
            if let (Some(pid), Some(user)) = (row.int("pid"), row.text("user")) {
                users.insert(pid, user.to_owned());
            }
        }
        Ok(Self {
            counters: Counters::read(front, NAMES)?,
            users,
        })
    }

    /// `top - 19:55:51 up  2:52,  - users,  load average: 13.06, 8.29, 6.43`
    pub(super) fn first_line(&self, time: &str, ts: Ns) -> String {
        let up = self.counters.of_machine("uptime", ts);
        // The uptime of the last sample, which is at most a second old.
        let up = up.map_or_else(|| "-".into(), |ns| uptime(ns / 1_000_000_000));
        let load = |name: &str| {
            let load = self.counters.of_machine(name, ts);
            load.map_or_else(|| "-".into(), |load| format!("{:.2}", load as f64 / 100.0))
        };
        format!(
            "top - {time} up {up},  - users,  load average: {}, {}, {}\n",
            load("load_1"),
            load("load_5"),
            load("load_15")
        )
    }

    pub(super) fn memory(&self, ts: Ns) -> String {
        let of = |name: &str| self.counters.of_machine(name, ts);
        let less = |all: Option<i64>, rest: Option<i64>| Some(all? - rest?);
        let cache = || Some(of("mem_buffers")? + of("mem_cached")? + of("mem_reclaimable")?);
        let shown = |bytes: Option<i64>| match bytes {
            Some(bytes) => format!("{:8.1}", bytes as f64 / 1024.0 / 1024.0),
            None => format!("{:>8}", "-"),
        };
        let (total, available) = (of("mem_total"), of("mem_available"));
        let (swap, swap_free) = (of("swap_total"), of("swap_free"));
        format!(
            "MiB Mem : {} total, {} free, {} used, {} buff/cache\n\
             MiB Swap: {} total, {} free, {} used. {} avail Mem\n",
            shown(total),
            shown(of("mem_free")),
            shown(less(total, available)),
            shown(cache()),
            shown(swap),
            shown(swap_free),
            shown(less(swap, swap_free)),
            shown(available),
        )
    }

    /// The first eight characters; a longer name ends with `+`.
    pub(super) fn user(&self, pid: Option<i64>) -> String {
        let user = pid.and_then(|pid| self.users.get(&pid));
        let Some(user) = user else { return "-".into() };
        if user.chars().count() <= 8 {
            return user.clone();
        }
        user.chars().take(7).chain(['+']).collect()
    }

    /// VIRT, RES and SHR, padded to their columns.
    pub(super) fn sizes(&self, pid: Option<i64>, ts: Ns) -> String {
        let columns = [("size", 7), ("rss", 6), ("shared", 6)];
        let mut text = String::new();
        for (name, width) in columns {
            let bytes = self.of_process(name, pid, ts);
            let shown = bytes.map_or_else(|| "-".into(), |bytes| scaled(bytes, width));
            let _ = write!(text, " {shown:>width$}");
        }
        text
    }

    /// %MEM.
    pub(super) fn share(&self, pid: Option<i64>, ts: Ns) -> String {
        let total = self.counters.of_machine("mem_total", ts);
        let rss = self.of_process("rss", pid, ts);
        match (rss, total.filter(|total| *total > 0)) {
            (Some(rss), Some(total)) => format!("{:.1}", rss as f64 * 100.0 / total as f64),
            _ => "-".into(),
        }
    }

    fn of_process(&self, name: &str, pid: Option<i64>, ts: Ns) -> Option<i64> {
        self.counters.at(name, &Owner::Process(pid?), ts)
    }
}

/// Kilobytes, or a larger unit if these do not fit.
fn scaled(bytes: i64, width: usize) -> String {
    let kilobytes = bytes / 1024;
    let text = kilobytes.to_string();
    if text.len() <= width {
        return text;
    }
    let mut size = kilobytes as f64;
    for unit in ['m', 'g', 't'] {
        size /= 1024.0;
        let text = format!("{size:.1}{unit}");
        if text.len() <= width {
            return text;
        }
    }
    format!("{:.0}p", size / 1024.0)
}

/// `12 days,  3:04`, ` 3:04`, `5 min`
fn uptime(seconds: i64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    let mut text = match days {
        0 => String::new(),
        1 => "1 day, ".into(),
        days => format!("{days} days, "),
    };
    if hours > 0 {
        let _ = write!(text, "{hours:2}:{minutes:02}");
    } else {
        let _ = write!(text, "{minutes} min");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_and_sizes_are_those_of_top() {
        assert_eq!(uptime(59), "0 min");
        assert_eq!(uptime(3 * 3600 + 240), " 3:04");
        assert_eq!(uptime(86_400 + 60), "1 day, 1 min");
        assert_eq!(uptime(12 * 86_400 + 13 * 3600), "12 days, 13:00");
        assert_eq!(scaled(5 << 10, 6), "5");
        assert_eq!(scaled(999_999 << 10, 6), "999999");
        assert_eq!(scaled(1_000_000 << 10, 6), "976.6m");
        assert_eq!(scaled(20_000_000 << 10, 6), "19.1g");
    }
}
