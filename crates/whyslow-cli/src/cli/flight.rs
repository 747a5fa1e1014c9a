//! Arguments of `record --ring`.

use clap::Args;
use whyslow_base::time::{parse_duration, parse_size};
use whyslow_model::Ns;
use whyslow_record::{Term, WhenError, parse_when};

pub(super) const MANUAL: &str = "\
CONDITIONS
With --ring, recorded data is kept in memory and saved when a condition of --when holds: one or more terms, \
separated by |, any of which suffices. A term is NAME>LIMIT:

  open, read, write, sync, io   a system call of that class; read, write and io ignore pipes, sockets and \
terminals, unless the descriptor is closed by then
  clock_nanosleep, …            a system call of that name
  block                         a block I/O request, from submission to completion
  sched                         the run-queue latency of a thread
  request                       a request served on this machine: on an accepted connection, from the first \
read that returns data to the last write before the next such read
  dns                           a DNS lookup
  lock                          a wait for a contended kernel lock
  psi.cpu, psi.io, psi.memory   percentage of the last 10 s in which threads were stalled (some avg10 in /proc/pressure)

LIMIT is a duration with a unit (200ms), for psi a percentage: \
--when 'open>200ms | block>100ms | psi.io>40'. \
A system call is checked when it returns; one that does not return is checked once it has lasted half of --ring. \
Conditions apply to recorded topics only: block needs the topic block, sched needs sched, and so on (--what +TOPIC). Activity \
of the recorder itself is ignored.

A request triggers a save at its first write more than LIMIT after its first read. A request without a response \
triggers one once it has lasted half of --ring. No request triggers twice. The time between a response and the \
next request is ignored. A stream (a large download, a websocket, a shell) is a request that lasts as long as \
data is written to it; it can trigger once each time the peer sends data. On hosts that serve streams, use -p or \
--comm to record other processes only. Reads older than --ring are forgotten. Local sockets of systemd, D-Bus, udev and desktop \
environments are ignored. \
Connections accepted before the recording started are tracked from their next read; connections that were passed \
to a process over a socket or inherited across exec are tracked from the next snapshot (every quarter of \
--ring, at least 10 s). io_uring I/O is not seen. --min and --light omit short reads and writes, so they \
cannot be combined with request.

MEMORY
Recording has a memory limit even without --max-memory: 64 MiB for the program, its symbol tables and data in \
transit; --buffer, in the kernel; and twice --ring-memory, because data that is being saved is kept while new \
data arrives. With --max-memory, the program gets 64 MiB of that limit; of the rest, a flight recorder uses a \
quarter for the buffer (at most 64 MiB) and the remainder for kept data. A limit that is too low is refused; \
the error shows the minimum.

Recording does not stop at the limit: if the buffer is full, events are lost and counted, and results report \
the loss; --ring drops its oldest data, and a saved recording reports the time it covers. \
Memory is checked every second. If it exceeds the limit anyway, symbol tables are dropped, then part of the kept \
data, and a note reports that. The memory used is reported at the end.

Mapped files, such as the code of the program, count too, although the kernel can reclaim them. \
top and ps count the buffer twice, because it is mapped twice. The kernel also keeps a few hundred bytes for each \
thread that made a system call or waited during the recording. None of this memory is charged to the cgroups of \
recorded processes. Importing the spool after the recording takes up to 400 MB more; with --no-import this can be \
done later or on another machine. --ring imports in a separate process.

SIGNALS
SIGUSR1 saves what --ring keeps immediately. `whyslow explain @flight` does the same, waits for the recording and \
explains it. SIGINT (Ctrl-C), SIGTERM and SIGHUP (the terminal is closed) stop the \
recording, which is then written as usual; with --ring, SIGTERM and SIGHUP save what is kept first. A second \
SIGINT or SIGTERM terminates the recorder before everything has been written; the spool remains. Under nohup, \
SIGHUP is ignored.

EXIT STATUS
With COMMAND, the exit status is that of COMMAND, or 128 plus the number of the signal that ended it; 127 if it \
does not exist and 126 if it cannot be executed, in which case nothing is recorded. Otherwise it is 0 if the recording \
was written, even if a signal stopped it, 1 if not, and 2 if the command line is invalid.

FILES
NAME.wsl.spool is the spool of an active recording; `whyslow import` reads the spool of a killed recorder. \
--ring writes no file until something is saved: NAME-YYYYmmdd-HHMMSS.wsl, where NAME is that of -o [default: \
flight]. A separate low-priority process saves while the recording continues; it needs as much memory again as \
the kept data. Nothing is saved if less than 5 % of the disk (or 1 GiB, if that is less) would stay free, or if \
the recordings saved under NAME would exceed --max-disk in total; a note reports that.";

/// Conditions, any of which suffices.
#[derive(Debug, Clone)]
pub(crate) struct Conditions(pub(crate) Vec<Term>);

fn conditions(text: &str) -> Result<Conditions, WhenError> {
    parse_when(text, parse_duration).map(Conditions)
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Flight recorder")]
pub(crate) struct FlightArgs {
    /// Keep the last DURATION in memory; save it when a condition of --when holds, on SIGUSR1, or for
    /// `whyslow explain @flight`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["force", "max_size"])]
    pub(crate) ring: Option<Ns>,
    /// Save when one of CONDITIONS holds: 'open>200ms | block>100ms | psi.io>40' (see CONDITIONS)
    #[arg(long, value_name = "CONDITIONS", requires = "ring", value_parser = conditions)]
    pub(crate) when: Option<Conditions>,
    /// Keep recording for DURATION after a condition holds, and save that too
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub(crate) after: Ns,
    /// Ignore conditions for DURATION after a save
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(crate) cooldown: Ns,
    /// Limit the kept data, compressed, to SIZE [default: 256MiB, or what --max-memory leaves]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) ring_memory: Option<i64>,
    /// Stop saving when the saved recordings reach SIZE in total
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub(crate) max_disk: i64,
}
