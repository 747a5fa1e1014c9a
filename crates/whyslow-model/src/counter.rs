//! Counters of the machine, its processes and its file systems, read periodically.
//!
//! Spools identify a counter by its index in [`ALL`], everything else by its name. New counters are
//! added at the end.

/// Unit of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CounterUnit {
    /// Things, operations, pages.
    Count,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Ns,
    /// A hundredth of one, or of a percent.
    Hundredths,
    /// Mean over the preceding interval.
    BytesPerSecond,
    /// Hundredths of one, per second.
    HundredthsPerSecond,
}

impl CounterUnit {
    const ALL: [Self; 6] = [
        Self::Count,
        Self::Bytes,
        Self::Ns,
        Self::Hundredths,
        Self::BytesPerSecond,
        Self::HundredthsPerSecond,
    ];

    /// Returns the unit with that [`CounterUnit::name`].
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Value of the column `counter.unit`: `bytes/s`.
    pub fn name(self) -> &'static str {
        match self {
            CounterUnit::Count => "count",
            CounterUnit::Bytes => "bytes",
            CounterUnit::Ns => "ns",
            CounterUnit::Hundredths => "hundredths",
            CounterUnit::BytesPerSecond => "bytes/s",
            CounterUnit::HundredthsPerSecond => "hundredths/s",
        }
    }
}

/// A counter read by the recorder or the BPF programs.
#[derive(Debug)]
pub struct Counter {
    /// Name in the column `counter.name`.
    pub name: &'static str,
    /// Unit of its value.
    pub unit: CounterUnit,
    /// Meaning, for the documentation.
    pub doc: &'static str,
}

macro_rules! counters {
    ($( $ident:ident $name:literal $unit:ident $doc:literal ),+ $(,)?) => {
        $(
            #[doc = concat!("Index of `", $name, "` in [`ALL`]: ", $doc, ".")]
            pub const $ident: u32 = Place::$ident as u32;
        )+
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($ident),+ }
        /// Every counter.
        pub static ALL: &[Counter] = &[$( Counter {
            name: $name, unit: CounterUnit::$unit, doc: $doc,
        } ),+];
    };
}

counters! {
    LOAD_1 "load_1" Hundredths "load average over 1 minute",
    LOAD_5 "load_5" Hundredths "load average over 5 minutes",
    LOAD_15 "load_15" Hundredths "load average over 15 minutes",
    THREADS_RUNNABLE "threads_runnable" Count "runnable threads, running or waiting for a CPU",
    THREADS "threads" Count "threads",
    UPTIME "uptime" Ns "time since boot",
    CPU_USER "cpu_user" Ns "user time of all CPUs",
    CPU_NICE "cpu_nice" Ns "user time of all CPUs at low priority",
    CPU_SYSTEM "cpu_system" Ns "kernel time of all CPUs",
    CPU_IDLE "cpu_idle" Ns "idle time of all CPUs",
    CPU_IOWAIT "cpu_iowait" Ns "idle time of all CPUs while I/O was pending",
    CPU_IRQ "cpu_irq" Ns "hard interrupt time of all CPUs",
    CPU_SOFTIRQ "cpu_softirq" Ns "softirq time of all CPUs",
    CPU_STEAL "cpu_steal" Ns "time of all CPUs stolen by the hypervisor",
    CONTEXT_SWITCHES "context_switches" Count "context switches",
    FORKS "forks" Count "threads and processes created",
    THREADS_BLOCKED "threads_blocked" Count "threads blocked on I/O",
    MEM_TOTAL "mem_total" Bytes "total memory",
    MEM_FREE "mem_free" Bytes "free memory",
    MEM_AVAILABLE "mem_available" Bytes "memory available without swapping",
    MEM_BUFFERS "mem_buffers" Bytes "page cache of block devices",
    MEM_CACHED "mem_cached" Bytes "page cache of files, including shared memory",
    MEM_RECLAIMABLE "mem_reclaimable" Bytes "reclaimable kernel memory",
    MEM_SHARED "mem_shared" Bytes "shared memory and tmpfs files",
    MEM_ANONYMOUS "mem_anonymous" Bytes "anonymous memory",
    MEM_DIRTY "mem_dirty" Bytes "dirty page cache",
    MEM_WRITEBACK "mem_writeback" Bytes "page cache under writeback",
    SWAP_TOTAL "swap_total" Bytes "total swap space",
    SWAP_FREE "swap_free" Bytes "free swap space",
    PSI_CPU_SOME "psi_cpu_some" Ns "time in which some threads waited for a CPU",
    PSI_CPU_SOME_10 "psi_cpu_some_10" Hundredths "percentage of the last 10 s in which some threads waited for a CPU",
    PSI_IO_SOME "psi_io_some" Ns "time in which some threads waited for I/O",
    PSI_IO_SOME_10 "psi_io_some_10" Hundredths "percentage of the last 10 s in which some threads waited for I/O",
    PSI_IO_FULL "psi_io_full" Ns "time in which all non-idle threads waited for I/O",
    PSI_IO_FULL_10 "psi_io_full_10" Hundredths "percentage of the last 10 s in which all non-idle threads waited for I/O",
    PSI_MEMORY_SOME "psi_memory_some" Ns "time in which some threads waited for memory",
    PSI_MEMORY_SOME_10 "psi_memory_some_10" Hundredths "percentage of the last 10 s in which some threads waited for memory",
    PSI_MEMORY_FULL "psi_memory_full" Ns "time in which all non-idle threads waited for memory",
    PSI_MEMORY_FULL_10 "psi_memory_full_10" Hundredths "percentage of the last 10 s in which all non-idle threads waited for memory",
    PAGED_IN "paged_in" Bytes "data read from block devices",
    PAGED_OUT "paged_out" Bytes "data written to block devices",
    SWAPPED_IN "swapped_in" Count "pages read from swap",
    SWAPPED_OUT "swapped_out" Count "pages written to swap",
    FAULTS "faults" Count "page faults",
    FAULTS_MAJOR "faults_major" Count "major page faults",
    OOM_KILLS "oom_kills" Count "processes killed by the OOM killer",
    RSS "rss" Bytes "resident memory of a process",
    SIZE "size" Bytes "address space of a process",
    SHARED "shared" Bytes "memory that a process may share with others",
    IO_READ "io_read" Bytes "data that a process caused to be read from block devices",
    IO_WRITTEN "io_written" Bytes "data that a process dirtied, to be written to block devices",
    IO_CANCELLED "io_cancelled" Bytes "dirty pages that a process truncated or deleted before they were written",
    FS_SIZE "fs_size" Bytes "size of a file system",
    FS_FREE "fs_free" Bytes "free space of a file system",
    FS_AVAILABLE "fs_available" Bytes "free space of a file system without the blocks reserved for root",
    FS_INODES "fs_inodes" Count "inodes of a file system",
    FS_INODES_FREE "fs_inodes_free" Count "free inodes of a file system",
}

/// Bytes of an encoded value: index of the counter, and value.
pub const VALUE_BYTES: usize = 12;

/// Encoded values, as in spools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values<'b>(pub &'b [u8]);

impl<'b> Values<'b> {
    /// Iterates over the values of known counters.
    pub fn iter(self) -> impl Iterator<Item = (&'static Counter, i64)> + 'b {
        self.0.chunks_exact(VALUE_BYTES).filter_map(|value| {
            let (place, count) = value.split_first_chunk::<4>()?;
            let counter = ALL.get(u32::from_le_bytes(*place) as usize)?;
            Some((counter, i64::from_le_bytes(*count.first_chunk()?)))
        })
    }
}

/// Values reported by another tool under its own names: `NAME VALUE UNIT`, separated by semicolons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReportedValues<'b>(pub &'b str);

impl<'b> ReportedValues<'b> {
    /// Iterates over the well-formed values.
    pub fn iter(self) -> impl Iterator<Item = (&'b str, i64, CounterUnit)> + 'b {
        self.0.split(';').filter_map(|value| {
            let mut words = value.split(' ');
            let name = words.next().filter(|name| !name.is_empty())?;
            let value = words.next()?.parse().ok()?;
            let unit = CounterUnit::by_name(words.next()?)?;
            words.next().is_none().then_some((name, value, unit))
        })
    }

    /// Whether it contains only well-formed values.
    pub fn is_whole(self) -> bool {
        self.iter().count() == self.0.split(';').count()
    }
}

/// Appends a value reported by a tool. Separators are removed from its name.
pub fn push_reported(values: &mut String, (name, value): (&str, i64), unit: CounterUnit) {
    use std::fmt::Write as _;
    if !values.is_empty() {
        values.push(';');
    }
    let begin = values.len();
    values.extend(
        name.chars()
            .filter(|c| !matches!(c, ';' | ' ') && !c.is_control()),
    );
    if values.len() == begin {
        values.push('?');
    }
    let _ = write!(values, " {value} {}", unit.name());
}

/// Appends an encoded value.
pub fn push(values: &mut Vec<u8>, place: u32, count: i64) {
    values.extend(place.to_le_bytes());
    values.extend(count.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_written() {
        let mut values = Vec::new();
        push(&mut values, LOAD_1, 703);
        push(&mut values, 1_000_000, 1);
        push(&mut values, FS_INODES_FREE, i64::MIN);
        values.extend([1, 2, 3]);
        let read: Vec<_> = Values(&values)
            .iter()
            .map(|(counter, count)| (counter.name, count))
            .collect();
        assert_eq!(read, [("load_1", 703), ("fs_inodes_free", i64::MIN)]);
    }

    #[test]
    fn told_values_are_read_as_they_were_written() {
        let mut values = String::new();
        push_reported(&mut values, ("%util", 9_800), CounterUnit::Hundredths);
        push_reported(&mut values, ("r k;B/s", -1), CounterUnit::BytesPerSecond);
        push_reported(&mut values, ("\u{1}", 1), CounterUnit::Count);
        let read: Vec<_> = ReportedValues(&values).iter().collect();
        assert_eq!(read[2], ("?", 1, CounterUnit::Count));
        let read = &read[..2];
        let (share, rate) = (CounterUnit::Hundredths, CounterUnit::BytesPerSecond);
        assert_eq!(read, [("%util", 9_800, share), ("rkB/s", -1, rate)]);
        assert!(ReportedValues(&values).is_whole());
        for bad in [
            "",
            "a",
            "a 1",
            "a 1 miles",
            "a 1 ns;",
            "a 1 ns 2",
            " 1 ns",
            "a x ns",
        ] {
            assert!(!ReportedValues(bad).is_whole(), "{bad}");
        }
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(ALL[MEM_TOTAL as usize].name, "mem_total");
    }
}
