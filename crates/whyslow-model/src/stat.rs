//! Anomalies of input: everything that can go wrong, declared once with name, severity and meaning.
//!
//! A bad record is counted under one of these and skipped; nothing is dropped uncounted.

/// Severity of an anomaly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Normal for this kind of source; answers are not affected.
    Info,
    /// Answers may be incomplete.
    Warning,
    /// Data could not be used.
    Error,
}

impl Severity {
    /// Value of the column `import_log.severity`.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One kind of anomaly.
#[derive(Debug)]
pub struct Stat {
    /// Upper snake case, as in the column `import_log.name`.
    pub name: &'static str,
    /// Severity.
    pub severity: Severity,
    /// Meaning of one count, for `docs/format.md`.
    pub doc: &'static str,
    /// Whether each count is a record that was read but not accepted.
    pub skips_record: bool,
}

macro_rules! stats {
    ($( $ident:ident $severity:ident $skips:literal $doc:literal ),+ $(,)?) => {
        $( #[doc = $doc] pub static $ident: Stat = Stat {
            name: stringify!($ident), severity: Severity::$severity, doc: $doc, skips_record: $skips,
        }; )+
        /// All declared anomalies.
        pub static ALL: &[&Stat] = &[$(&$ident),+];
    };
}

stats! {
    // reading
    EVENT_UNDECODABLE Error true "an event whose bytes do not match its declared layout",
    EVENT_UNKNOWN_ID Error true "an event id that the metadata does not declare",
    PACKET_DAMAGED Error false "a packet with an impossible header or size; reading continued at the next valid packet of the stream",
    PACKET_TRUNCATED Error false "a stream file that ends inside a packet; the readable events were kept",
    PACKET_FOREIGN Error false "a packet of another trace (its uuid differs)",
    METADATA_DAMAGED Error false "metadata that could not be read completely; the part that was parsed was used",
    METADATA_UNKNOWN Info false "an unknown attribute or block in the metadata",
    INDEX_DISAGREES Info false "an index file that does not match its stream; indexes are not needed",
    STREAM_EMPTY Info false "a stream file without packets",
    TIME_BACKWARDS Warning false "an event with an earlier time than its predecessor in the stream; it keeps its place in the sequence",
    TIME_CLAMPED Warning false "an event that arrived too late to be sorted; its time was raised",
    EVENT_AFTER_PACKET_END Info false "an event later than the declared end of its packet (a known bug of the tracer); the event is valid",
    EVENTS_DISCARDED Warning false "events that the tracer discarded because its buffers were full",
    PACKET_REPEATED Info false "a packet that is also in an earlier file of the stream (overlapping snapshots); read once",
    PACKETS_LOST Warning false "packets missing by sequence number",
    SPOOL_BLOCK_DAMAGED Error false "a damaged or truncated block of a spool; the other blocks were used",
    SPOOL_BLOCK_MISSING Error false "blocks of a spool missing by sequence number",
    SPOOL_RECORD_DAMAGED Error true "a spool record that is too short for its kind, or of unknown kind",
    CLOCK_STEPPED Warning false "the system clock of the recorded machine was set during the recording; times follow the clock as it was at the start",
    MACHINE_SUSPENDED Info false "the recorded machine was suspended during the recording; the suspended time is missing",
    TEXT_LINE_BAD Error true "a line that does not match the grammar of the format",
    STRACE_LINE_BAD Error true "a line that is not strace output, or that was truncated",
    STRACE_LINE_NOT_USED Info false "signals, thread exits and stacks in an strace log: no table holds them",
    STRACE_NO_DURATIONS Warning false "calls in an strace log without -T: their effects are known, their durations are not",
    STRACE_NO_THREADS Warning false "lines in strace logs without thread ids (-f): all lines of a log are attributed to one thread, shown as 4194305, those of the next log to 4194306",
    STRACE_NO_DATES Info false "lines in an strace log with times of day or relative times (-ttt is better): the log is assumed to end at the modification time of its file, in UTC",
    REPORT_LINE_BAD Error true "a line that is not in a known format of sysstat, vmstat or top, or that was truncated",
    REPORT_SINCE_BOOT Info false "rows of sysstat, vmstat or top with averages since boot, not of an interval: not used",
    REPORT_SUMS Info false "averages at the end of a report, restarts of the machine, and comments: not used",
    REPORT_NO_TIMES Warning false "rows of a report without timestamps (add them with iostat -t or vmstat -t): not used",
    REPORT_UNREADABLE Info false "values that pidstat could not read (-1), because it was not run as root, or because the threads are kernel threads: not used",
    REPORT_ZONE_GUESSED Info false "a report whose times have no time zone: it is inferred from the modification time of the file if that is soon after the last line, otherwise UTC is assumed",
    REPORT_DATES_GUESSED Info false "a report whose dates can be read with the day or the month first: the order was chosen so that its days are close to each other and to the modification time of the file",
    SNOOP_LINE_BAD Error true "a line whose fields do not match the header written by bcc, libbpf-tools or bpftrace, or that was truncated",
    SNOOP_STATUS_LINE Info false "status messages of a tool of bcc, libbpf-tools or bpftrace",
    SNOOP_NO_THREADS Info false "lines of a tool that reports processes, not threads: they are attributed to threads of their own, numbered from 5000001",
    SNOOP_NO_TIMES Warning false "lines of a tool without timestamps (add them with -T or -t): not used",
    SNOOP_CLOCK_GUESSED Info false "lines of a tool with times of day or relative times: the file is assumed to end at its modification time",
    PROFILE_UNFINISHED Warning false "an unfinished chunk of a profile: the program was killed, or the file was copied too early; the complete events were used",
    PROFILE_LOST Error false "bytes of a profile that are not part of an event",
    PROFILE_UNREADABLE Error false "a chunk of a profile without readable metadata",
    PROFILE_CONSTANTS_DAMAGED Error false "a constant pool of a profile that could not be read completely",
    PROFILE_UNRESOLVED Warning false "threads, stacks and methods of a profile that are not declared",
    PROFILE_STACK_CUT Info false "stacks that the profiler truncated (the JDK does at 64 frames): their outermost frames are unknown",
    PROFILE_DUMP_NOT_USED Warning false "thread dumps in a profile that are not in the format of a JVM, or that were dropped because of too many repetitions of a text",
    SAMPLE_WITHOUT_THREAD Warning true "a sample of an undeclared thread",
    GAPS_NOT_LOOKED_FOR Info false "a profile in which sampling gaps have no meaning: its sampler does not visit all threads, or its interval is unknown",
    SAMPLES_NO_TIMES Info false "samples of a profile without timestamps (collapsed stacks): their shares are correct, their times are unknown",
    SAMPLES_NO_DATES Info false "a profile with relative times: it is assumed to end at the modification time of its file",
    SAMPLES_BAD Error false "invalid lines or samples of a profile",
    SAMPLES_UNPAIRED Warning false "calls of a profile with a start and no end, or an end and no start",
    SAMPLES_UNNAMED Info false "addresses of a profile without symbols (pprof of a stripped program): shown as addresses",
    SAMPLES_STACK_CUT Warning false "stacks of a profile that are long and numerous, so that only their innermost frames were kept",
    SAMPLES_BY_ADDRESS Info false "threads of a profile that are identified only by an address in the runtime: they cannot be matched to kernel threads or to other sources",
    SAMPLES_ONE_THREAD Info false "a profile that samples only the thread that holds the interpreter lock (rbspy, stackprof): it does not show how long other threads waited",
    SAMPLES_SUMS Info false "a profile of totals by function and caller (ruby-prof): each microsecond of self time is shown as one sample; complete stacks are unavailable",
    SAMPLES_NOT_TIME Info false "a profile that does not count time: objects, bytes, goroutines",
    SAMPLES_SCALED Info false "a profile with a weight that exceeds the range of a row: all weights were divided by the same number, so their shares are correct",
    SAMPLES_MISSED Warning false "samples that the profiler reports as missed, as stackprof does for calls without the interpreter lock (DNS lookups, connects): their time is not included",
    DUMP_UNSTAMPED Info false "thread dumps without timestamps: dumps in one file are assumed to be one second apart; the first, or the only one, is assumed to be at the modification time of the file",
    DUMP_ZONE_GUESSED Info false "thread dumps whose times have no time zone: it is inferred from the modification times of the files if most of them are soon after the last dump, otherwise UTC is assumed",
    FTRACE_LINE_BAD Error true "a line that is neither a kernel event nor a stack frame, or that was truncated",
    FTRACE_CLOCK_GUESSED Info false "a text trace with times since boot: it is assumed to end at the modification time of its file",
    PERF_UNFINISHED Warning false "an unfinished perf.data file: perf was killed, or the file was copied too early; without its end the tracepoint formats are unknown",
    PERF_LOST_BYTES Error false "bytes of a perf.data file that are not records",
    PERF_STRANGE Error false "samples of a perf.data file without a matching event description",
    PERF_CUT Error false "records of a perf.data file that end before all of their fields",
    PERF_NO_FORMAT Warning false "tracepoints of a perf.data file without their formats",
    PERF_UNNAMED Info false "addresses of a perf.data file without symbols: the programs were removed or replaced (import the file where it was recorded, or import the output of `perf script`)",
    PERF_THROTTLED Warning false "times in which the kernel reduced the sampling rate because sampling took too much CPU time",
    PERF_SORTED_EARLY Warning false "records of a perf.data file that were sorted before all earlier ones were read: the file does not mark how far it is sorted, and waiting would exceed the memory limit",
    PERF_CLOCK_GUESSED Info false "a perf.data file whose clock is not related to wall-clock time (record with perf record -k CLOCK_MONOTONIC): it is assumed to end at its modification time",
    TRACEDAT_LOST_BYTES Error false "bytes of a trace.dat file that are missing (the file is truncated) or cannot be decompressed",
    TRACEDAT_PART_DAMAGED Error false "parts of a trace.dat file other than events that could not be read: event formats, thread names, an instance",
    TRACEDAT_PAGE_DAMAGED Error false "pages of a trace.dat file that are invalid from some offset; the events before it were used",
    TRACEDAT_OVERRUN Warning false "events that the kernel dropped or overwrote at an unknown time, according to a trace.dat file",
    TRACEDAT_GUEST Info false "a trace.dat file of a virtual machine with a table for conversion to the host's clock: times stay in the guest's own clock",
    TRACEDAT_CLOCK_GUESSED Info false "a trace.dat file whose clock is not related to wall-clock time (record with trace-cmd record --date): it is assumed to end at its modification time",
    TRACEDAT_CLOCK_COUNTS Warning false "a trace.dat file whose clock does not count nanoseconds (trace-cmd record -C): the order of events is correct, durations are not",
    BLKTRACE_LOST_BYTES Error false "bytes of a blktrace file that are not records, or that are a truncated record",
    BLKTRACE_UNNAMED Info false "records of blktrace whose thread is not named by any record",
    BLKTRACE_CLOCK_GUESSED Info false "blktrace files without the record that relates their clock to wall-clock time: they are assumed to end at the modification time of the newest one",
    BLKPARSE_LINE_BAD Error true "a line that is not in a known format of blkparse, or that was truncated",
    BLKPARSE_CLOCK_GUESSED Info false "blkparse output, whose times count from the first record: it is assumed to end at the modification time of its file",
    REQUEST_LINE_BAD Error true "a line or a part of a document that describes a request in an unknown format, or that was truncated",
    REQUEST_NO_DURATION Warning false "requests in a log without durations: only their times are known (add $request_time to nginx's log_format, %D to Apache's LogFormat)",
    REQUEST_TIME_COARSE Info false "requests with times in whole seconds: the order within a second is unknown (add $msec to nginx's log_format, %{usec}t to Apache's LogFormat)",
    REQUEST_NOT_HTTP Info false "lines of an access log about clients that did not send an HTTP request (TLS to a plain-text port, scans)",
    REQUEST_ZONE_GUESSED Info false "a request log whose times have no time zone, or are relative: it is assumed to end at the modification time of its file, in a time zone of whole quarters of an hour",
    REQUEST_SPAN_ALONE Info false "spans of traces that are not part of a recorded request: not used",
    MARKER_LINE_BAD Error true "a marker without a valid time, or a truncated list of markers",
    REQUESTS_CUT Warning false "a request log without its end: the writer was killed, or is still running; the complete requests were used",
    REQUEST_LATE Info false "very long requests, during which very many others started and ended: their ids are not in order of start",
    REQUEST_TEXT_CUT Info false "texts of requests (targets, errors) longer than 4 KiB, which were truncated",
    REQUEST_TEXTS_LIMIT Warning false "texts of requests that were dropped because there were too many distinct ones (usually targets that contain ids)",
    // meaning
    EVENT_FIELD_MISSING Warning true "an event without a required field",
    EVENT_NOT_USED Info false "events of kinds that no table holds; counted by name in `import_log`",
    THREAD_UNKNOWN Info false "an event on a CPU before the first event that identifies the thread running on it",
    SYSCALL_EXIT_WITHOUT_ENTRY Info false "a system call that returned without a recorded entry; kept, its start is unknown",
    SYSCALL_ENTRY_WITHOUT_EXIT Info false "a system call without a recorded return; kept, its end is unknown",
    SYSCALL_NESTED Warning false "a system call entered while the thread was inside another one; a return was lost",
    SYSCALL_MISMATCH Warning false "a return from a different system call than the one entered",
    SYSCALL_THREAD_UNKNOWN Info false "an entry to or return from a system call of an unidentified thread; entries are kept, their end is unknown",
    STATE_FD_UNOWNED Info false "a descriptor in a state dump of a process that is not in the dump",
    SYSCALL_UNNAMED Info false "a system call known by number only",
    BLOCK_COMPLETE_WITHOUT_ISSUE Info false "a completed block request whose start was not recorded",
    BLOCK_ISSUE_WITHOUT_COMPLETE Info false "a block request without a recorded completion",
    BLOCK_KEY_REUSED Warning false "a block request at the same sector as another one that was still in flight; a completion was lost",
    VALUE_IMPOSSIBLE Warning false "an event with an impossible value; used without the value",
    CPU_IMPOSSIBLE Warning false "an event with an impossible CPU number; used without its CPU",
    SCHED_PREV_MISMATCH Warning false "a thread switched out of a CPU on which another one was known to run",
    RECLAIM_END_WITHOUT_BEGIN Info false "an end of reclaim whose start was not recorded",
    RECLAIM_NESTED Warning false "a start of reclaim in a thread that was already in reclaim; an end was lost",
    LOOKUP_NESTED Info false "a DNS lookup that started while its thread was in another one: an end was lost, or the first one was left by longjmp or an exception",
    QUERIES_LIMIT Warning false "sockets with DNS queries that were not tracked because too many others were open",
    FUNCTION_END_WITHOUT_BEGIN Info false "a return from a function whose entry was not recorded",
    FUNCTION_LEFT Info false "a function call without a return: it was still in progress, was left by longjmp or an exception, or was nested too deeply; kept, its end is unknown",
    FUNCTION_UNKNOWN Warning true "a function call or a USDT probe hit whose probe is not declared in the spool",
    FRAME_UNNAMED Info false "an address in stacks without a symbol; kept as an address",
    USER_STACK_UNEXPECTED Info false "a user stack without the kernel stack that it belongs to",
    WALL_ROUNDS_MISSED Info false "rounds of wall-clock samples (record --stacks wall:…) that were skipped because the machine was too busy; the preceding and following samples represent that time",
    WALL_RUN_UNSEEN Info false "threads that were running at a wall-clock sample but were missed by the CPU clock sampler; they have no stack",
    WALL_STACK_CUT Info false "user stacks that could not be unwound completely; their outermost frames are unknown",
    WALL_STACK_TORN Info false "user stacks whose thread ran while they were read; omitted",
    WALL_STACK_UNREAD Info false "user stacks that could not be read, or not in time",
    WORK_END_WITHOUT_BEGIN Info false "an end of kernel work whose start was not recorded",
    WORK_NESTED Warning false "a start of kernel work in a thread that was already doing such work; an end was lost",
    ITEM_END_WITHOUT_BEGIN Info false "an end of a workqueue item without a recorded start",
    ITEM_NESTED Warning false "a workqueue item that started again before its end; an end was lost",
    TCP_END_MISSED Warning false "a TCP connection whose socket was reused for another one; its end was lost",
    IRQ_EXIT_WITHOUT_ENTRY Info false "an interrupt handler that ended without a recorded start",
    REQUEST_TURNS_LIMIT Warning false "handovers of a request between threads beyond the number kept per request",
    REQUEST_CLOCK Info false "the clock of a client differs from the clock of this machine: its requests were matched nevertheless, and their times are as reported (correct them with import --shift)",
    REQUEST_JOIN_LIMIT Warning false "client requests beyond the number that is matched with server requests",
    MAP_LIMIT Warning false "a bounded table of the importer was full, and its oldest entry was dropped",
}
