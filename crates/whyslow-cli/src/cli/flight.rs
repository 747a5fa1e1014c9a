//! What can be typed after `record --ring`.

use clap::Args;
use whyslow_base::time::{parse_duration, parse_size};
use whyslow_model::Ns;
use whyslow_record::{Term, WhenError, parse_when};

pub(super) const MANUAL: &str = "\
CONDITIONS
With --ring, what happens is kept in memory, and saved when a condition of --when holds: one or more terms, \
separated by |, any of which suffices. A term is a name, >, and a limit:

  open, read, write, sync, io   calls of that group that last longer; of read, write and io not those on \
pipes, sockets and terminals, as far as their descriptor is still open
  clock_nanosleep, …            calls of that name that last longer
  block                         block I/O, from its submission to its completion
  sched                         a thread that can run, and waits longer for a CPU
  request                       a request that is served here: at a connection that a process has accepted, from \
the first read that had bytes to the last write before the next such read
  dns                           a lookup of a host name
  lock                          a wait for a contended lock of the kernel
  psi.cpu, psi.io, psi.memory   percent of the last 10 s in which threads waited for it (/proc/pressure)

Limits are lengths of time with a unit (200ms), those of psi percentages: \
--when 'open>200ms | block>100ms | psi.io>40'. \
A call counts when it returns; one that does not return counts when it has lasted for half of --ring. \
Conditions are looked for in what is recorded: block needs --what block, sched needs --what sched, and so on. What the \
recorder does itself counts for nothing.

A request counts at the first write that comes so late after its first read, and one without any answer when it has \
lasted for half of --ring; each counts once. So the time between an answer and the next question is no request, but \
a stream is one (a large download, a websocket, a shell): it goes on for as long as it is written to, and counts once \
for each time that the other side said something. What was read longer ago than --ring counts no more. Where \
such servers are, -p and --comm choose others. Local sockets of systemd, D-Bus, udev and desktops do not count. \
Connections that were accepted before the recording count from their next read on; those that a process \
was sent through a socket, or kept when it ran another program, from the next snapshot on (each quarter of --ring, \
at least 10 s). What io_uring reads and writes is not seen. --min and --light leave out reads and writes that are \
short, so request is refused with them.

MEMORY
What recording takes has a limit, also without --max-memory: 64 MiB for the program, its tables of names of \
functions and what is on its way; --buffer, in the kernel; and twice --ring-memory, because what is being saved \
is kept beside what comes meanwhile. --max-memory shares out less: of what is left beside the 64 MiB, a \
flight recorder has a quarter for the buffer (64 MiB at most) and the rest for what it keeps. Too little is \
refused, with the least that will do.

Nothing grows beyond that, and nothing ends because of it: records that find the buffer full are lost and \
counted, and answers say so; of what --ring keeps the oldest goes, and what was saved says how long it is. \
Memory is looked at every second; where it is too much all the same, tables of names are given up, then some of \
what is kept, and that is told. How much was taken is told at the end.

Maps of files count too, such as the code of the program, though the kernel takes them back when it needs to. \
top and ps count the buffer twice, because it is mapped twice. In addition the kernel keeps some hundred bytes for each \
thread that made a call or waited while it was recorded, and none of it counts for the control groups of those who \
are recorded. When recording is over, its spool becomes a recording: that takes up to 400 MB more; with \
--no-import it is done later, or elsewhere. --ring does it in a process of its own.

SIGNALS
SIGUSR1 saves what --ring keeps, at once. SIGINT and SIGTERM end the recording; a second one ends the \
recorder before it has written everything.

FILES
NAME.wsl.spool is the spool of a recording under way; what a killed recorder leaves, import reads. \
--ring writes no file until something is saved: NAME-YYYYmmdd-HHMMSS.wsl, NAME being that of -o [default: \
flight]. Saving takes place beside the recording, in a process of low priority; it needs as much memory \
again as was kept. Nothing is saved that would leave less than 5 % of the disk (or 1 GiB, if that is less) \
free, or make all that was saved under that NAME larger than --max-disk; that is told.";

/// Conditions, any of which is to hold.
#[derive(Debug, Clone)]
pub(crate) struct Conditions(pub(crate) Vec<Term>);

fn conditions(text: &str) -> Result<Conditions, WhenError> {
    parse_when(text, parse_duration).map(Conditions)
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Flight recorder")]
pub(crate) struct FlightArgs {
    /// Keep so much time in memory, and save it when a condition holds or SIGUSR1 asks for it
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with_all = ["force", "max_size"])]
    pub(crate) ring: Option<Ns>,
    /// What to save it for: 'open>200ms | block>100ms | psi.io>40' (see CONDITIONS)
    #[arg(long, value_name = "CONDITIONS", requires = "ring", value_parser = conditions)]
    pub(crate) when: Option<Conditions>,
    /// Save so much of what comes after, too
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = parse_duration)]
    pub(crate) after: Ns,
    /// Pass over conditions for so long after one was saved
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = parse_duration)]
    pub(crate) cooldown: Ns,
    /// Memory for what is kept, compressed [default: 256MiB, or what --max-memory leaves for it]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) ring_memory: Option<i64>,
    /// Save no more when all that was saved has so many bytes
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = parse_size)]
    pub(crate) max_disk: i64,
}
