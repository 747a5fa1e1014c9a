//! Counters of the whole machine, from `/proc`.

use std::fs;
use std::path::Path;

use whyslow_model::counter as c;

/// A counter's number, and its value.
pub(super) type Value = (u32, i64);

/// All counters; those that the kernel lacks are left out.
pub(super) fn all(proc: &Path, uptime_ns: i64) -> Vec<Value> {
    let read = |name: &str| fs::read_to_string(proc.join(name)).unwrap_or_default();
    let mut values = vec![(c::UPTIME, uptime_ns)];
    load(&read("loadavg"), &mut values);
    stat(&read("stat"), ticks_ns(), &mut values);
    memory(&read("meminfo"), &mut values);
    events(&read("vmstat"), &mut values);
    let pressures = [
        (
            "pressure/cpu",
            [Some((c::PSI_CPU_SOME, c::PSI_CPU_SOME_10)), None],
        ),
        (
            "pressure/io",
            [
                Some((c::PSI_IO_SOME, c::PSI_IO_SOME_10)),
                Some((c::PSI_IO_FULL, c::PSI_IO_FULL_10)),
            ],
        ),
        (
            "pressure/memory",
            [
                Some((c::PSI_MEMORY_SOME, c::PSI_MEMORY_SOME_10)),
                Some((c::PSI_MEMORY_FULL, c::PSI_MEMORY_FULL_10)),
            ],
        ),
    ];
    for (name, places) in pressures {
        pressure(&read(name), places, &mut values);
    }
    values
}

fn ticks_ns() -> i64 {
    1_000_000_000 / rustix::param::clock_ticks_per_second().max(1) as i64
}

/// `7.03 5.94 3.85 6/152 14626`
fn load(text: &str, values: &mut Vec<Value>) {
    let mut words = text.split_whitespace();
    for place in [c::LOAD_1, c::LOAD_5, c::LOAD_15] {
        let load = words.next().and_then(hundredths);
        values.extend(load.map(|load| (place, load)));
    }
    let threads = words.next().and_then(|threads| threads.split_once('/'));
    if let Some((runnable, all)) = threads {
        let number = |text: &str| text.parse().ok();
        values.extend(number(runnable).map(|count| (c::THREADS_RUNNABLE, count)));
        values.extend(number(all).map(|count| (c::THREADS, count)));
    }
}

/// `7.03` as 703.
fn hundredths(text: &str) -> Option<i64> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then(|| (number * 100.0).round() as i64)
}

fn stat(text: &str, tick_ns: i64, values: &mut Vec<Value>) {
    const TIMES: [u32; 8] = [
        c::CPU_USER,
        c::CPU_NICE,
        c::CPU_SYSTEM,
        c::CPU_IDLE,
        c::CPU_IOWAIT,
        c::CPU_IRQ,
        c::CPU_SOFTIRQ,
        c::CPU_STEAL,
    ];
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let name = words.next();
        let mut number = || words.next()?.parse::<i64>().ok();
        match name {
            Some("cpu") => {
                let times = TIMES.iter().map_while(|place| Some((*place, number()?)));
                values.extend(times.map(|(place, ticks)| (place, ticks.saturating_mul(tick_ns))));
            }
            Some("ctxt") => values.extend(number().map(|count| (c::CONTEXT_SWITCHES, count))),
            Some("processes") => values.extend(number().map(|count| (c::FORKS, count))),
            Some("procs_blocked") => {
                values.extend(number().map(|count| (c::THREADS_BLOCKED, count)));
            }
            _ => {}
        }
    }
}

/// `MemTotal:       24683656 kB`
fn memory(text: &str, values: &mut Vec<Value>) {
    for line in text.lines() {
        let Some((name, rest)) = line.split_once(':') else {
            continue;
        };
        let place = match name {
            "MemTotal" => c::MEM_TOTAL,
            "MemFree" => c::MEM_FREE,
            "MemAvailable" => c::MEM_AVAILABLE,
            "Buffers" => c::MEM_BUFFERS,
            "Cached" => c::MEM_CACHED,
            "SReclaimable" => c::MEM_RECLAIMABLE,
            "Shmem" => c::MEM_SHARED,
            "AnonPages" => c::MEM_ANONYMOUS,
            "Dirty" => c::MEM_DIRTY,
            "Writeback" => c::MEM_WRITEBACK,
            "SwapTotal" => c::SWAP_TOTAL,
            "SwapFree" => c::SWAP_FREE,
            _ => continue,
        };
        let kilobytes = rest
            .split_whitespace()
            .next()
            .and_then(|text| text.parse::<i64>().ok());
        values.extend(kilobytes.map(|count| (place, count.saturating_mul(1024))));
    }
}

/// `pgfault 1234`
fn events(text: &str, values: &mut Vec<Value>) {
    for line in text.lines() {
        let Some((name, count)) = line.split_once(' ') else {
            continue;
        };
        // Paging is reported in kilobytes, swapping in pages.
        let (place, unit) = match name {
            "pgpgin" => (c::PAGED_IN, 1024),
            "pgpgout" => (c::PAGED_OUT, 1024),
            "pswpin" => (c::SWAPPED_IN, 1),
            "pswpout" => (c::SWAPPED_OUT, 1),
            "pgfault" => (c::FAULTS, 1),
            "pgmajfault" => (c::FAULTS_MAJOR, 1),
            "oom_kill" => (c::OOM_KILLS, 1),
            _ => continue,
        };
        let count = count.trim().parse::<i64>().ok();
        values.extend(count.map(|count| (place, count.saturating_mul(unit))));
    }
}

/// `some avg10=0.51 avg60=1.14 avg300=3.21 total=60360899`, microseconds; then `full`.
fn pressure(text: &str, places: [Option<(u32, u32)>; 2], values: &mut Vec<Value>) {
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let places = match words.next() {
            Some("some") => places[0],
            Some("full") => places[1],
            _ => None,
        };
        let Some((total, average)) = places else {
            continue;
        };
        for word in words {
            match word.split_once('=') {
                Some(("avg10", share)) => {
                    values.extend(hundredths(share).map(|share| (average, share)));
                }
                Some(("total", time)) => {
                    let time = time.parse::<i64>().ok();
                    values.extend(time.map(|time| (total, time.saturating_mul(1000))));
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(fill: impl Fn(&mut Vec<Value>)) -> Vec<(&'static str, i64)> {
        let mut values = Vec::new();
        fill(&mut values);
        let named = |(place, value): &Value| (c::ALL[*place as usize].name, *value);
        values.iter().map(named).collect()
    }

    #[test]
    fn load_and_tasks_are_read() {
        let found = read(|values| load("7.03 5.94 0.00 6/152 14626\n", values));
        let expected = [
            ("load_1", 703),
            ("load_5", 594),
            ("load_15", 0),
            ("threads_runnable", 6),
            ("threads", 152),
        ];
        assert_eq!(found, expected);
        assert_eq!(read(|values| load("inf nan x 6", values)), []);
        assert_eq!(read(|values| load("", values)), []);
    }

    #[test]
    fn times_of_cpus_are_read_as_far_as_there_are_some() {
        let text =
            "cpu  10 20 30 40 x\ncpu0 1 2 3 4\nctxt 55\nprocesses 7\nprocs_blocked -\nintr 9 9\n";
        let found = read(|values| stat(text, 10_000_000, values));
        let expected = [
            ("cpu_user", 100_000_000),
            ("cpu_nice", 200_000_000),
            ("cpu_system", 300_000_000),
            ("cpu_idle", 400_000_000),
            ("context_switches", 55),
            ("forks", 7),
        ];
        assert_eq!(found, expected);
        let wild = format!("cpu {} 1\n", i64::MAX);
        assert_eq!(read(|values| stat(&wild, 10, values))[0].1, i64::MAX);
    }

    #[test]
    fn memory_and_events_are_read_in_bytes() {
        let text = "MemTotal:  3 kB\nMemFree:\nHugePages_Total:   0\nDirty: 2 kB\nCached: -1 kB\n";
        let found = read(|values| memory(text, values));
        assert_eq!(
            found,
            [
                ("mem_total", 3072),
                ("mem_dirty", 2048),
                ("mem_cached", -1024)
            ]
        );
        let found = read(|values| events("pgpgin 4\npgfault 9\nnr_dirty 1\noom_kill\n", values));
        assert_eq!(found, [("paged_in", 4096), ("faults", 9)]);
    }

    #[test]
    fn pressure_is_read_in_nanoseconds_and_hundredths() {
        let text = "some avg10=0.51 avg60=1.14 total=60\nfull avg10=x total=7\nother total=1\nsome";
        let places = [
            Some((c::PSI_IO_SOME, c::PSI_IO_SOME_10)),
            Some((c::PSI_IO_FULL, c::PSI_IO_FULL_10)),
        ];
        let found = read(|values| pressure(text, places, values));
        let expected = [
            ("psi_io_some_10", 51),
            ("psi_io_some", 60_000),
            ("psi_io_full", 7_000),
        ];
        assert_eq!(found, expected);
    }
}
