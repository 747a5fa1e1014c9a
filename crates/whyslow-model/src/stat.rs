//! Everything that can go wrong with input, declared once: name, severity, meaning.
//!
//! A bad record is counted under one of these and skipped; nothing is dropped without a number.

/// How much an anomaly matters for answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Normal for this kind of source; no answer is affected.
    Info,
    /// Some answer may be incomplete.
    Warning,
    /// Data was there and could not be used.
    Error,
}

impl Severity {
    /// As the column `import_log.severity` has it.
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
    /// Upper snake case, as the column `import_log.name` has it.
    pub name: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What one count of it means, for `docs/format.md`.
    pub doc: &'static str,
    /// Whether one count means one record read and not accepted.
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
    EVENT_UNDECODABLE Error true "an event whose bytes do not fit its declared layout",
    EVENT_UNKNOWN_ID Error true "an event id that the metadata does not declare",
    PACKET_DAMAGED Error false "a packet whose header or sizes are impossible; the rest of its stream was searched for the next good one",
    PACKET_TRUNCATED Error false "a stream file that ends inside a packet; its readable events were kept",
    PACKET_FOREIGN Error false "a packet of another trace (uuid differs)",
    METADATA_DAMAGED Error false "metadata that could not be read to its end; what parsed was used",
    METADATA_UNKNOWN Info false "an unknown attribute or block in the metadata",
    INDEX_DISAGREES Info false "an index file that does not describe its stream; not needed",
    STREAM_EMPTY Info false "a stream file without any packet",
    TIME_BACKWARDS Warning false "an event earlier than its predecessor in the same stream; it keeps its place in the sequence",
    TIME_CLAMPED Warning false "an event too late for its place in time; its time was raised",
    EVENT_AFTER_PACKET_END Info false "an event later than its packet's declared end (known tracer bug); the event is right",
    EVENTS_DISCARDED Warning false "events the tracer discarded for lack of buffer space",
    PACKET_REPEATED Info false "a packet that an earlier file of the same stream holds too (snapshots overlap); read once",
    PACKETS_LOST Warning false "packets missing by sequence number",
    SPOOL_BLOCK_DAMAGED Error false "a block of a spool that is damaged or cut short; the blocks before and after it were used",
    SPOOL_BLOCK_MISSING Error false "blocks of a spool missing by number",
    SPOOL_RECORD_DAMAGED Error true "a record of a spool that is too short for its kind, or of a kind that is not known",
    CLOCK_STEPPED Warning false "the calendar of the recorded machine was set while it was recorded; times go on as it was at the begin",
    MACHINE_SLEPT Info false "the recorded machine slept while it was recorded; that time is not in the recording",
    TEXT_LINE_BAD Error true "a line that is not in the format's grammar",
    STRACE_LINE_BAD Error true "a line that strace did not write, or that was cut",
    STRACE_LINE_NOT_USED Info false "signals, ends of threads and stacks in a log of strace: no table holds them",
    STRACE_NO_DURATIONS Warning false "calls in a log of strace without -T: what they did is known, how long they took is not",
    STRACE_NO_THREADS Warning false "lines in logs of strace without a thread (-f): all of one log are taken for those of one, shown as 4194305, those of the next as 4194306",
    STRACE_NO_DATES Info false "lines in a log of strace with times of day or since the line before (-ttt has more): the log is taken to end when its file was last written, by the clock of Greenwich",
    REPORT_LINE_BAD Error true "a line that sysstat, vmstat or top did not write in a form that is known, or that was cut",
    REPORT_SINCE_BOOT Info false "rows of sysstat, vmstat or top with means since the machine was started, which say nothing of any moment: not used",
    REPORT_SUMS Info false "means of all rows at the end of a report, restarts of the machine, and comments: not used",
    REPORT_NO_TIMES Warning false "rows of a report without a time (iostat -t, vmstat -t): not used",
    REPORT_UNREADABLE Info false "values that pidstat could not read itself (-1): it was not run by root, or the threads are those of the kernel: not used",
    REPORT_ZONE_GUESSED Info false "a report whose times tell no zone: it is the one in which the file was written soon after its last line, else that of Greenwich",
    REPORT_DATES_GUESSED Info false "a report whose dates can be read with the day or the month first: they are read so that its days lie near each other, and near to when its file was last written",
    SNOOP_LINE_BAD Error true "a line whose fields are not those of the header that bcc, libbpf-tools or bpftrace wrote, or that was cut",
    SNOOP_TALK Info false "lines in which a tool of bcc, libbpf-tools or bpftrace says what it does",
    SNOOP_NO_THREADS Info false "lines of a tool that names processes, not threads: they are on threads of their own, from 5000001 on",
    SNOOP_NO_TIMES Warning false "lines of a tool without times (-T, -t): not used",
    SNOOP_CLOCK_GUESSED Info false "lines of a tool with times of day or since a zero of its own: the file is taken to end when it was last written",
    PROFILE_UNFINISHED Warning false "a chunk of a profile that was never finished: its program was killed, or the file was copied too early; what it has was used",
    PROFILE_LOST Error false "bytes of a profile that are no part of an event",
    PROFILE_UNREADABLE Error false "a chunk of a profile that nothing says how to read",
    PROFILE_CONSTANTS_DAMAGED Error false "a table of names of a profile that could not be read to its end",
    PROFILE_UNRESOLVED Warning false "threads, stacks and methods of a profile that nothing explains",
    PROFILE_STACK_CUT Info false "stacks that the profiler cut (the JDK does at 64 frames): their outermost frames are unknown",
    PROFILE_DUMP_NOT_USED Warning false "thread dumps in a profile that are not as a JVM writes them, or repeat a text so often that there was no room for it",
    SAMPLE_WITHOUT_THREAD Warning true "a sample of a thread that nothing explains",
    GAPS_NOT_LOOKED_FOR Info false "a profile in which times without samples mean nothing: its sampler does not go round all threads, or nobody tells how often it should",
    SAMPLES_NO_TIMES Info false "samples of a profile without times (collapsed stacks): their shares are right, when they were taken nobody knows",
    SAMPLES_NO_DATES Info false "a profile whose times count from a zero of their own: it is taken to end when its file was last written",
    SAMPLES_BAD Error false "lines or samples of a profile that make no sense",
    SAMPLES_UNPAIRED Warning false "calls of a profile with a begin and no end, or the other way round",
    SAMPLES_UNNAMED Info false "addresses of a profile without a name (pprof of a program without symbols): they are shown as addresses",
    SAMPLES_STACK_CUT Warning false "stacks of a profile that are so long, and so many, that only their innermost frames were kept",
    SAMPLES_BY_ADDRESS Info false "threads of a profile that are known by an address of the runtime alone: they are none of the kernel's, and what else was recorded cannot be put beside them",
    SAMPLES_ONE_THREAD Info false "a profile whose samples are of the thread that had the interpreter last (rbspy, stackprof): how long any other thread waited it does not tell",
    SAMPLES_SUMS Info false "a profile of sums by function, with its caller at most (ruby-prof): each microsecond of its own time is shown as one sample, whole stacks are not there",
    SAMPLES_NOT_TIME Info false "a profile that counts something else than time: objects, bytes, goroutines",
    SAMPLES_SCALED Info false "a profile of which one weight is more than a row can tell: all were divided by the same number, and their shares are right",
    SAMPLES_MISSED Warning false "samples that the profiler says it missed, as stackprof does those of calls without the lock of the interpreter (lookups, connects): their time is nowhere",
    DUMP_UNSTAMPED Info false "thread dumps without a time: of several in one file each is taken for a second after the one before; the first, or the only one, for when its file was last written",
    DUMP_ZONE_GUESSED Info false "thread dumps whose times tell no zone: it is the one in which most of the files were written soon after their last dump, else that of Greenwich",
    FTRACE_LINE_BAD Error true "a line that is neither an event of the kernel nor a frame of its stack, or that was cut",
    FTRACE_CLOCK_GUESSED Info false "a trace as text, whose clock counts from the start of the machine: it is taken to end when its file was last written",
    PERF_UNFINISHED Warning false "a perf.data file that nobody finished: perf was killed, or the file was copied too early; without its end the formats of tracepoints are unknown",
    PERF_LOST_BYTES Error false "bytes of a perf.data file that are no records",
    PERF_STRANGE Error false "samples of a perf.data file that nothing describes",
    PERF_CUT Error false "records of a perf.data file that end too early for what they should have",
    PERF_NO_FORMAT Warning false "tracepoints of a perf.data file that has no formats for them",
    PERF_UNNAMED Info false "addresses of a perf.data file without names: the programs are not here any more, or are other ones (import it where it was recorded, or give the text of `perf script`)",
    PERF_THROTTLED Warning false "times that the kernel took fewer samples than asked for, as they cost too much",
    PERF_HURRIED Warning false "records of a perf.data file that were put in order before all that may be earlier was read: nothing in the file marks how far it is in order, and more would not fit in memory",
    PERF_CLOCK_GUESSED Info false "a perf.data file whose clock nothing relates to times of day (perf record -k CLOCK_MONOTONIC has that): it is taken to end when it was last written",
    TRACEDAT_LOST_BYTES Error false "bytes of a trace.dat file that are not there (it is cut), or cannot be unpacked",
    TRACEDAT_PART_DAMAGED Error false "parts of a trace.dat file beside its events that could not be read: formats of events, names of threads, an instance",
    TRACEDAT_PAGE_DAMAGED Error false "pages of events in a trace.dat file that make no sense from some place on; what is before it was used",
    TRACEDAT_OVERRUN Warning false "events that a trace.dat file says the kernel dropped or overwrote, without saying when",
    TRACEDAT_GUEST Info false "a trace.dat file of a virtual machine with a table of times of its host: its times are those of its own clock here",
    TRACEDAT_CLOCK_GUESSED Info false "a trace.dat file whose clock nothing relates to times of day (trace-cmd record --date has that): it is taken to end when it was last written",
    TRACEDAT_CLOCK_COUNTS Warning false "a trace.dat file whose clock counts something else than nanoseconds (trace-cmd record -C): the order of events is right, lengths of time are not",
    BLKTRACE_LOST_BYTES Error false "bytes of a file of blktrace that are no records, or the begin of one that is cut",
    BLKTRACE_UNNAMED Info false "records of blktrace whose thread no record names",
    BLKTRACE_CLOCK_GUESSED Info false "files of blktrace without the record that relates their clock to times of day: they are taken to end when the newest was last written",
    BLKPARSE_LINE_BAD Error true "a line that blkparse did not write in a form that is known, or that was cut",
    BLKPARSE_CLOCK_GUESSED Info false "what blkparse printed, whose times count from the first record: it is taken to end when its file was last written",
    REQUEST_LINE_BAD Error true "a line, or a part of a document, that tells of a request in a form that is not known, or was cut",
    REQUEST_NO_DURATION Warning false "requests in a log that does not tell how long they took: when they were is known, why they were slow is not ($request_time in nginx's log_format, %D in Apache's LogFormat)",
    REQUEST_TIME_COARSE Info false "requests with times of whole seconds: what happened within a second is known no better ($msec in nginx's log_format, %{usec}t in Apache's LogFormat)",
    REQUEST_NOT_ASKED Info false "lines of an access log about what a client sent that is no request (TLS to a port without it, scans)",
    REQUEST_ZONE_GUESSED Info false "a list of requests whose times have no zone, or count from the begin of the load: they are taken to end when the file was last written, in a zone of whole quarters of an hour",
    REQUEST_SPAN_ALONE Info false "spans of traces inside of no request that is told of: not used",
    MARKER_LINE_BAD Error true "a marker without a time that can be read, or a list of markers that breaks off",
    REQUESTS_CUT Warning false "a list of requests without its end: who wrote it was killed, or goes on; what is there was used",
    REQUEST_LATE Info false "requests that took so long that very many others began and ended meanwhile: their numbers are not in order of begin",
    REQUEST_TEXT_CUT Info false "texts of requests (targets, errors) longer than 4 KiB: their begin was kept",
    REQUEST_TEXTS_LIMIT Warning false "texts of requests that were left out, as there were too many different ones (targets with an id in each, most of the time)",
    // meaning
    EVENT_FIELD_MISSING Warning true "an event without a field that its meaning needs",
    EVENT_NOT_USED Info false "events of kinds that no table holds; counted by name in `import_log`",
    THREAD_UNKNOWN Info false "an event on a CPU before anything told which thread ran there",
    SYSCALL_EXIT_WITHOUT_ENTRY Info false "a system call that returned without a recorded entry; kept, begin unknown",
    SYSCALL_ENTRY_WITHOUT_EXIT Info false "a system call entered and never seen to return; kept, end unknown",
    SYSCALL_NESTED Warning false "a system call entered while the thread was inside another; an exit was lost",
    SYSCALL_MISMATCH Warning false "a return from another system call than the one entered",
    SYSCALL_THREAD_UNKNOWN Info false "an entry or return of a system call of which nothing tells the thread; entries are kept, end unknown",
    STATE_FD_UNOWNED Info false "a descriptor in a state dump of a process that the dump did not tell of",
    SYSCALL_UNNAMED Info false "a system call known by number only",
    BLOCK_COMPLETE_WITHOUT_ISSUE Info false "a completed block request whose beginning was not recorded",
    BLOCK_ISSUE_WITHOUT_COMPLETE Info false "a block request never seen to complete",
    BLOCK_KEY_REUSED Warning false "a block request at a place where another one was still open; a completion was lost",
    VALUE_IMPOSSIBLE Warning false "an event with a value that cannot be; used without the value",
    CPU_IMPOSSIBLE Warning false "an event on a CPU of a number that no machine has; used without its CPU",
    SCHED_PREV_MISMATCH Warning false "a thread switched out on a CPU where another was known to run",
    RECLAIM_END_WITHOUT_BEGIN Info false "an end of reclaim whose begin was not recorded",
    RECLAIM_NESTED Warning false "a begin of reclaim in a thread that was in it already; an end was lost",
    LOOKUP_NESTED Info false "a lookup of a name that began while its thread was in another one: an end was lost, or the first was left by a jump",
    QUERIES_LIMIT Warning false "sockets on which name servers were asked that were not followed, as so many others were open",
    FUNCTION_END_WITHOUT_BEGIN Info false "a return of a function whose entry was not recorded",
    FUNCTION_LEFT Info false "a call of a function without a return: it went on, was left by a jump, or was nested too deeply; kept, end unknown",
    FUNCTION_UNKNOWN Warning true "a call of a function, or a pass of a static probe, that the spool does not tell of",
    FRAME_UNNAMED Info false "an address in stacks of which no name was found; kept as an address",
    USER_STACK_UNEXPECTED Info false "a stack of a program without the stack in the kernel that it belongs to",
    WALL_ROUNDS_MISSED Info false "looks at all threads (record --stacks wall:…) that were due and not made, because the machine was too busy; rows before and after stand for that time",
    WALL_RUN_UNSEEN Info false "threads that ran at a look and were not met by the clock of their CPU; they have no stack",
    WALL_STACK_CUT Info false "stacks of programs that could not be followed to where they begin; their outermost frames are unknown",
    WALL_STACK_TORN Info false "stacks of programs whose thread ran while they were read; they are left out",
    WALL_STACK_UNREAD Info false "stacks of programs that could not be read, or not in time",
    WORK_END_WITHOUT_BEGIN Info false "an end of work of the kernel whose begin was not recorded",
    WORK_NESTED Warning false "a begin of work of the kernel in a thread that was at it already; an end was lost",
    ITEM_END_WITHOUT_BEGIN Info false "a function of a workqueue that ended without a recorded begin",
    ITEM_NESTED Warning false "a function of a workqueue that was called again before its end; an end was lost",
    TCP_END_MISSED Warning false "a TCP connection whose socket was used for another one; its end was lost",
    IRQ_EXIT_WITHOUT_ENTRY Info false "an interrupt handler that ended without a recorded begin",
    REQUEST_TURNS_LIMIT Warning false "a hand-over of a request from thread to thread beyond the number that is kept of one",
    REQUEST_CLOCK Info false "the clock of a client that told its requests is not that of this machine: which requests belong together was found all the same, times are as they were told (import --shift)",
    REQUEST_JOIN_LIMIT Warning false "requests of clients beyond the number of which it is found out who served them",
    MAP_LIMIT Warning false "a bounded table of the importer was full and its oldest entry was given up",
}
