//! What a culprit did, as the predicate of a sentence, for every mechanism.
//!
//! Placeholders: `{victim}` the thread that was held up, `{on}` ` on sda`, `{to}` ` to sda`,
//! `{from}` ` from sda`, `{of}` ` of sda` (empty without a known device), `{lock}` ` NAME` of the
//! lock, `{in}` ` in NAME` of the function, `{path}` ` NAME` of the file (` the file` without one),
//! `{with}` ` for FILE` or ` with CALL`. Each takes only an object of its kind: a CPU is no lock.

use super::names::shortened;
use crate::report::Thing;

/// Predicates and a noun phrase for one mechanism.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Phrase {
    /// Id of [`whyslow_model::mechanism::MECHANISMS`].
    pub(super) id: &'static str,
    /// What another thread, device or host did to the victim.
    pub(super) other: &'static str,
    /// What the slow thread itself did.
    pub(super) own: &'static str,
    /// The time spent on it, for lists of shares.
    pub(super) noun: &'static str,
}

const fn of(
    id: &'static str,
    other: &'static str,
    own: &'static str,
    noun: &'static str,
) -> Phrase {
    Phrase {
        id,
        other,
        own,
        noun,
    }
}

/// The phrase of a mechanism; that of `unknown` for an unknown id.
pub(super) fn phrase(id: &str) -> &'static Phrase {
    let found = PHRASES.iter().find(|phrase| phrase.id == id);
    found.unwrap_or(&PHRASES[PHRASES.len() - 1])
}

/// The time spent on a mechanism as a noun phrase: `run-queue waits`.
pub fn mechanism_noun(id: &str) -> String {
    Values::default().fill(phrase(id).noun)
}

/// In the order of the vocabulary, `unknown` last.
pub(super) static PHRASES: &[Phrase] = &[
    of("cpu_running", "was on CPU", "was on CPU", "CPU time"),
    of(
        "cpu_runqueue",
        "kept the CPU of {victim} busy",
        "waited in a run queue",
        "run-queue waits",
    ),
    of(
        "cpu_throttled",
        "was throttled by the CPU quota of its cgroup",
        "was throttled by the CPU quota of its cgroup",
        "CPU quota throttling",
    ),
    of(
        "cpu_stalled",
        "stood still (steal, SMI or interrupts off)",
        "had its CPU stand still (steal, SMI or interrupts off)",
        "CPU stalls (steal, SMI or interrupts off)",
    ),
    of(
        "block_service",
        "was writing data{to} that {victim} needed",
        "waited for its own requests{to}",
        "service time of its own requests{on}",
    ),
    of(
        "block_queue",
        "filled the request queue{of}",
        "waited behind its own requests{on}",
        "waits in the request queue{of}",
    ),
    of(
        "block_held",
        "had its I/O{to} throttled before the block layer (cgroup I/O limit or tag exhaustion)",
        "had its I/O{to} throttled before the block layer (cgroup I/O limit or tag exhaustion)",
        "I/O throttled before the block layer",
    ),
    of(
        "device_held",
        "held the requests of {victim} while no device below was serving them",
        "waited for a stacked device{on}, while no device below was serving its requests",
        "requests held by stacked devices{on}",
    ),
    of(
        "journal_wait",
        "kept the file system journal{on} busy",
        "waited for a commit of the file system journal{on}",
        "journal waits{on}",
    ),
    of(
        "writeback_wait",
        "kept the writeback of dirty pages{to} busy",
        "waited for writeback of its own pages{to}",
        "writeback waits{on}",
    ),
    of(
        "sync_storm",
        "flushed dirty pages{to}",
        "flushed dirty pages{to}",
        "dirty-page flushes{to}",
    ),
    of(
        "reclaim",
        "made {victim} reclaim memory",
        "was in direct memory reclaim",
        "memory reclaim",
    ),
    of(
        "swap_in",
        "kept the swap device of {victim} busy",
        "waited for pages to be swapped in{from}",
        "swap-ins",
    ),
    of(
        "page_fault_io",
        "kept the device with a mapped file of {victim} busy",
        "waited for pages of a mapped file{from}",
        "page faults with I/O",
    ),
    of(
        "lock_futex",
        "held the lock that {victim} waited for",
        "waited for a lock of its own process",
        "lock waits (futex)",
    ),
    of(
        "lock_program",
        "held the lock{lock} that {victim} waited for",
        "waited for the lock{lock}",
        "waits for the lock{lock}",
    ),
    of(
        "unseen_wait",
        "was blocked in the kernel{in}",
        "was blocked in the kernel{in}",
        "kernel waits inferred from sampling gaps",
    ),
    of(
        "lock_kernel",
        "held the kernel lock{lock} that {victim} waited for",
        "waited for the kernel lock{lock}",
        "waits for the kernel lock{lock}",
    ),
    of(
        "lock_inode",
        "held the inode lock of the file that {victim} used",
        "waited for the inode lock of its file",
        "inode lock waits",
    ),
    of(
        "lock_file",
        "held the lock on{path} that {victim} needed",
        "waited for the lock on{path}",
        "waits for the lock on{path}",
    ),
    of(
        "pipe_wait",
        "kept {victim} waiting at the other end of a pipe",
        "waited for the other end of a pipe",
        "pipe waits",
    ),
    of(
        "local_ipc",
        "kept {victim} waiting for a reply over a local socket",
        "waited for its peer, and its peer for it,",
        "waits for replies over local sockets",
    ),
    of(
        "network_remote",
        "kept {victim} waiting for a reply",
        "waited for a reply from another host",
        "waits for replies from other hosts",
    ),
    of(
        "network_retransmit",
        "did not acknowledge packets, which were retransmitted",
        "waited for lost packets to be retransmitted",
        "retransmits",
    ),
    of(
        "send_delayed",
        "had sent data that the kernel delayed (Nagle's algorithm or a full window)",
        "had sent data that the kernel delayed (Nagle's algorithm or a full window)",
        "delayed sending",
    ),
    of(
        "send_buffer",
        "did not read or acknowledge data that {victim} sent",
        "waited for space in its send buffer",
        "waits for space in send buffers",
    ),
    of(
        "dns_lookup",
        "did not reply to a DNS query",
        "waited for a DNS reply",
        "DNS lookups",
    ),
    of(
        "timer_sleep",
        "slept by its own timer{in}",
        "slept by its own timer{in}",
        "timer sleeps",
    ),
    of(
        "polling",
        "kept {victim} polling{with} between sleeps",
        "polled{with} between sleeps",
        "polling",
    ),
    of(
        "irq_stolen",
        "ran on the CPU of {victim}",
        "lost its CPU to interrupt handlers",
        "interrupt handlers",
    ),
    of(
        "child_wait",
        "kept its parent {victim} waiting for its exit",
        "waited for a child process",
        "waits for child processes",
    ),
    of(
        "signal_stop",
        "stopped {victim} with a signal",
        "was stopped by a signal",
        "stopped by signals",
    ),
    of(
        "frozen",
        "froze the cgroup of {victim}",
        "was frozen with its cgroup",
        "time frozen with the cgroup",
    ),
    of(
        "fs_frozen",
        "froze the file system {victim} was writing to",
        "was waiting for a file system to be thawed",
        "waits for a frozen file system",
    ),
    of(
        "runtime_pause",
        "paused the threads of the program (garbage collection or a safepoint)",
        "was paused by its runtime (garbage collection or a safepoint)",
        "pauses of the runtime",
    ),
    of(
        "fuse_wait",
        "kept {victim} waiting for a reply of the FUSE file system",
        "waited for a reply of a FUSE file system",
        "waits for FUSE file systems",
    ),
    of(
        "temporary_files",
        "wrote temporary files, read them back and deleted them",
        "wrote temporary files, read them back and deleted them",
        "temporary files",
    ),
    of(
        "misbehaving_disk",
        "was slower than its peers under the same load",
        "used a disk that was slower than its peers",
        "a disk that was slower than its peers",
    ),
    of(
        "io_wait",
        "kept the I/O of {victim} waiting",
        "waited for its own I/O",
        "waits for I/O",
    ),
    of(
        "memory_throttle",
        "kept memory short, which throttled {victim}",
        "was throttled by memory reclaim or memory.high",
        "memory throttling",
    ),
    of(
        "dirty_throttle",
        "dirtied pages faster than they were written back{to}, which throttled {victim}",
        "was throttled by the limit of dirty pages",
        "dirty-page throttling",
    ),
    of(
        "cpu_idle_delay",
        "was runnable while its CPU was still idle",
        "was runnable while its CPU was still idle",
        "wakeup latency of an idle CPU",
    ),
    of(
        "device_irq",
        "kept {victim} waiting for a device interrupt",
        "waited for a device interrupt",
        "waits for device interrupts",
    ),
    of(
        "kernel_wait",
        "kept {victim} waiting{in}",
        "waited{in} in the kernel",
        "waits for kernel threads",
    ),
    of(
        "producer_idle",
        "had not started the work that {victim} waited for",
        "had not started its work",
        "waits for work that had not started",
    ),
    of(
        "woken_by",
        "woke {victim} from a wait of unknown cause",
        "waited for an unknown reason",
        "waits of unknown cause",
    ),
    of(
        "still_blocked",
        "was still blocked when the recording ended",
        "was still blocked when the recording ended",
        "waits still in progress at the end of the recording",
    ),
    of(
        "lost",
        "was in an interval with lost events",
        "was in an interval with lost events",
        "time with lost events",
    ),
    of(
        "unknown",
        "had no recorded activity",
        "had no recorded activity",
        "time without a recorded cause",
    ),
];

/// Values of the placeholders.
#[derive(Debug, Clone, Default)]
pub(super) struct Values<'v> {
    pub(super) victim: &'v str,
    objects: Vec<(&'v str, String)>,
}

impl<'v> Values<'v> {
    /// With the objects of a step or a part; of several of one kind the first counts.
    pub(super) fn new(victim: &'v str, objects: &[Option<&'v Thing>]) -> Self {
        let objects = objects.iter().flatten();
        let named = objects.filter(|thing| !thing.name.is_empty());
        let objects = named.map(|thing| (thing.kind.as_str(), shortened(&thing.name)));
        Self {
            victim,
            objects: objects.collect(),
        }
    }

    fn object(&self, kind: &str) -> Option<&str> {
        let found = self.objects.iter().find(|(of, _)| *of == kind);
        found.map(|(_, name)| name.as_str())
    }

    fn of(&self, placeholder: &str) -> String {
        let with = |word: &str, kind: &str| {
            let name = self.object(kind);
            name.map_or_else(String::new, |name| format!(" {word} {name}"))
        };
        match placeholder {
            "victim" => self.victim.to_owned(),
            "on" | "to" | "from" | "of" => with(placeholder, "device"),
            "in" => with("in", "function"),
            "lock" => self
                .object("lock")
                .map_or_else(String::new, |name| format!(" {name}")),
            "path" => format!(" {}", self.object("file").unwrap_or("the file")),
            "with" => match self.object("file") {
                Some(_) => with("for", "file"),
                None => with("with", "function"),
            },
            _ => String::new(),
        }
    }

    /// A phrase with its placeholders filled in, in one pass: values may contain braces.
    pub(super) fn fill(&self, phrase: &str) -> String {
        let mut filled = String::with_capacity(phrase.len() + 32);
        let mut rest = phrase;
        while let Some((before, after)) = rest.split_once('{') {
            filled.push_str(before);
            let (placeholder, after) = after.split_once('}').unwrap_or((after, ""));
            filled.push_str(&self.of(placeholder));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }
}

#[cfg(test)]
mod tests {
    use whyslow_model::mechanism::MECHANISMS;

    use super::*;

    #[test]
    fn every_mechanism_has_a_phrase_and_no_other_id_has() {
        for (id, _) in MECHANISMS {
            let found = phrase(id);
            assert_eq!(found.id, *id);
            for text in [found.other, found.own, found.noun] {
                assert!(!text.is_empty() && !text.contains('_'), "{id}: {text}");
            }
            assert!(!found.own.contains("{victim}"), "{id}");
        }
        assert_eq!(PHRASES.len(), MECHANISMS.len());
        assert_eq!(phrase("no such mechanism").id, "unknown");
    }

    fn thing(kind: &str, name: &str) -> Thing {
        Thing {
            kind: kind.to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn placeholders_are_filled_in_once() {
        let things = [
            thing("device", "sda"),
            thing("lock", "0xff"),
            thing("function", "f"),
            thing("file", "/a"),
        ];
        let objects: Vec<Option<&Thing>> = things.iter().map(Some).collect();
        let values = Values::new("{on}", &objects);
        let filled =
            values.fill("kept {victim} waiting{on} for{lock}{from}{in}{to}{of}{path}{with}");
        assert_eq!(
            filled,
            "kept {on} waiting on sda for 0xff from sda in f to sda of sda /a for /a"
        );
        let none = Values::default();
        assert_eq!(none.fill("flushed dirty pages{to}"), "flushed dirty pages");
        // Every placeholder of the table has a meaning.
        for phrase in PHRASES {
            for text in [phrase.other, phrase.own, phrase.noun] {
                let places = text.split('{').skip(1);
                for place in places {
                    let name = place.split('}').next().unwrap_or("");
                    assert!(!values.of(name).is_empty(), "{}: {name}", phrase.id);
                }
            }
        }
    }

    /// The object of a part is that of the last link of its chain: a CPU where the wait was for a
    /// lock. An object without a name has none to print.
    #[test]
    fn no_object_is_printed_as_one_of_another_kind() {
        let kinds = ["cpu", "lock", "function", "device", "file", "peer", "futex"];
        for kind in kinds {
            let (object, unnamed) = (thing(kind, "17"), thing(kind, ""));
            for phrase in PHRASES {
                for text in [phrase.other, phrase.own, phrase.noun] {
                    let filled = Values::new("v", &[Some(&object)]).fill(text);
                    let is_printed = filled.contains("17");
                    let may_be = match kind {
                        "lock" => text.contains("{lock}"),
                        "function" => text.contains("{in}") || text.contains("{with}"),
                        "file" => text.contains("{path}") || text.contains("{with}"),
                        "device" => ["{on}", "{to}", "{from}", "{of}"]
                            .iter()
                            .any(|place| text.contains(place)),
                        _ => false,
                    };
                    assert_eq!(is_printed, may_be, "{kind}: {filled}");
                    let filled = Values::new("v", &[Some(&unnamed)]).fill(text);
                    assert!(!filled.contains("  ") && !filled.ends_with(' '), "{filled}");
                }
            }
        }
    }
}
