//! Counters of the machine, its processes and its file systems: what is looked at again and again.
//!
//! A counter is known by its place in [`ALL`] in spools, and by its name everywhere else. New ones
//! are added at the end.

/// What a counter's value is.
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
    /// Mean of the interval before it.
    BytesPerSecond,
    /// Hundredths of one, each second.
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

    /// The unit of that [`CounterUnit::name`].
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// As the column `counter.unit` has it: `bytes/s`.
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

/// A counter that the recorder or the kernel programs read.
#[derive(Debug)]
pub struct Counter {
    /// Name in the column `counter.name`.
    pub name: &'static str,
    /// What its value counts.
    pub unit: CounterUnit,
    /// Meaning, for the documentation.
    pub doc: &'static str,
}

macro_rules! counters {
    ($( $ident:ident $name:literal $unit:ident $doc:literal ),+ $(,)?) => {
        $(
            #[doc = concat!("Place of `", $name, "` in [`ALL`]: ", $doc, ".")]
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
    LOAD_1 "load_1" Hundredths "load average of a minute",
    LOAD_5 "load_5" Hundredths "load average of five minutes",
    LOAD_15 "load_15" Hundredths "load average of fifteen minutes",
    THREADS_RUNNABLE "threads_runnable" Count "threads that run or wait for a CPU",
    THREADS "threads" Count "threads",
    UPTIME "uptime" Ns "time since the machine was started",
    CPU_USER "cpu_user" Ns "time of all CPUs in programs",
    CPU_NICE "cpu_nice" Ns "time of all CPUs in programs of low priority",
    CPU_SYSTEM "cpu_system" Ns "time of all CPUs in the kernel",
    CPU_IDLE "cpu_idle" Ns "time of all CPUs without anything to do",
    CPU_IOWAIT "cpu_iowait" Ns "time of all CPUs without anything to do while I/O was waited for",
    CPU_IRQ "cpu_irq" Ns "time of all CPUs in hard interrupts",
    CPU_SOFTIRQ "cpu_softirq" Ns "time of all CPUs in softirqs",
    CPU_STEAL "cpu_steal" Ns "time of all CPUs that the hypervisor gave to others",
    CONTEXT_SWITCHES "context_switches" Count "switches of threads",
    FORKS "forks" Count "threads and processes made",
    THREADS_BLOCKED "threads_blocked" Count "threads that wait for I/O",
    MEM_TOTAL "mem_total" Bytes "memory",
    MEM_FREE "mem_free" Bytes "memory that nothing is in",
    MEM_AVAILABLE "mem_available" Bytes "memory that could be had without swapping",
    MEM_BUFFERS "mem_buffers" Bytes "page cache of block devices",
    MEM_CACHED "mem_cached" Bytes "page cache of files, and shared memory",
    MEM_RECLAIMABLE "mem_reclaimable" Bytes "memory of the kernel that can be had back",
    MEM_SHARED "mem_shared" Bytes "shared memory and files in memory",
    MEM_ANONYMOUS "mem_anonymous" Bytes "memory of programs that no file holds",
    MEM_DIRTY "mem_dirty" Bytes "page cache still to be written",
    MEM_WRITEBACK "mem_writeback" Bytes "page cache being written",
    SWAP_TOTAL "swap_total" Bytes "room for swapping",
    SWAP_FREE "swap_free" Bytes "room for swapping that is free",
    PSI_CPU_SOME "psi_cpu_some" Ns "time in which some threads waited for a CPU",
    PSI_CPU_SOME_10 "psi_cpu_some_10" Hundredths "the same, percent of the last ten seconds",
    PSI_IO_SOME "psi_io_some" Ns "time in which some threads waited for I/O",
    PSI_IO_SOME_10 "psi_io_some_10" Hundredths "the same, percent of the last ten seconds",
    PSI_IO_FULL "psi_io_full" Ns "time in which all threads that could have run waited for I/O",
    PSI_IO_FULL_10 "psi_io_full_10" Hundredths "the same, percent of the last ten seconds",
    PSI_MEMORY_SOME "psi_memory_some" Ns "time in which some threads waited for memory",
    PSI_MEMORY_SOME_10 "psi_memory_some_10" Hundredths "the same, percent of the last ten seconds",
    PSI_MEMORY_FULL "psi_memory_full" Ns "time in which all threads that could have run waited for memory",
    PSI_MEMORY_FULL_10 "psi_memory_full_10" Hundredths "the same, percent of the last ten seconds",
    PAGED_IN "paged_in" Bytes "read from block devices",
    PAGED_OUT "paged_out" Bytes "written to block devices",
    SWAPPED_IN "swapped_in" Count "pages read from swap",
    SWAPPED_OUT "swapped_out" Count "pages written to swap",
    FAULTS "faults" Count "page faults",
    FAULTS_MAJOR "faults_major" Count "page faults that had to read",
    OOM_KILLS "oom_kills" Count "processes killed for want of memory",
    RSS "rss" Bytes "memory of a process",
    SIZE "size" Bytes "address space of a process",
    SHARED "shared" Bytes "memory of a process that others may have too",
    IO_READ "io_read" Bytes "what a process had read from block devices",
    IO_WRITTEN "io_written" Bytes "what a process made dirty, to be written to block devices",
    IO_CANCELLED "io_cancelled" Bytes "dirty pages that a process truncated or deleted before they were written",
    FS_SIZE "fs_size" Bytes "size of a file system",
    FS_FREE "fs_free" Bytes "free room of a file system",
    FS_AVAILABLE "fs_available" Bytes "the same without what is kept for root",
    FS_INODES "fs_inodes" Count "inodes of a file system",
    FS_INODES_FREE "fs_inodes_free" Count "free inodes of a file system",
}

/// Bytes of a value: the counter's place, and what it counts.
pub const VALUE_BYTES: usize = 12;

/// Values as spools hold them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values<'b>(pub &'b [u8]);

impl<'b> Values<'b> {
    /// Those of counters that are known.
    pub fn iter(self) -> impl Iterator<Item = (&'static Counter, i64)> + 'b {
        self.0.chunks_exact(VALUE_BYTES).filter_map(|value| {
            let (place, count) = value.split_first_chunk::<4>()?;
            let counter = ALL.get(u32::from_le_bytes(*place) as usize)?;
            Some((counter, i64::from_le_bytes(*count.first_chunk()?)))
        })
    }
}

/// Values that another tool told, by its own names: `NAME VALUE UNIT`, with semicolons between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ToldValues<'b>(pub &'b str);

impl<'b> ToldValues<'b> {
    /// Those that are whole.
    pub fn iter(self) -> impl Iterator<Item = (&'b str, i64, CounterUnit)> + 'b {
        self.0.split(';').filter_map(|value| {
            let mut words = value.split(' ');
            let name = words.next().filter(|name| !name.is_empty())?;
            let value = words.next()?.parse().ok()?;
            let unit = CounterUnit::by_name(words.next()?)?;
            words.next().is_none().then_some((name, value, unit))
        })
    }

    /// Whether nothing is in it but values.
    pub fn is_whole(self) -> bool {
        self.iter().count() == self.0.split(';').count()
    }
}

/// Appends a value to those that a tool told. Of its name what separates values is left out.
pub fn push_told(values: &mut String, (name, value): (&str, i64), unit: CounterUnit) {
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

/// Appends a value to those that a record will have.
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
        push_told(&mut values, ("%util", 9_800), CounterUnit::Hundredths);
        push_told(&mut values, ("r k;B/s", -1), CounterUnit::BytesPerSecond);
        push_told(&mut values, ("\u{1}", 1), CounterUnit::Count);
        let read: Vec<_> = ToldValues(&values).iter().collect();
        assert_eq!(read[2], ("?", 1, CounterUnit::Count));
        let read = &read[..2];
        let (share, rate) = (CounterUnit::Hundredths, CounterUnit::BytesPerSecond);
        assert_eq!(read, [("%util", 9_800, share), ("rkB/s", -1, rate)]);
        assert!(ToldValues(&values).is_whole());
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
            assert!(!ToldValues(bad).is_whole(), "{bad}");
        }
    }

    #[test]
    fn names_are_different() {
        let names: std::collections::BTreeSet<_> = ALL.iter().map(|counter| counter.name).collect();
        assert_eq!(names.len(), ALL.len());
        assert_eq!(ALL[MEM_TOTAL as usize].name, "mem_total");
    }
}
