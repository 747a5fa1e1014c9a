//! Losses in a source.

use crate::Ns;

/// A time range in which a stream lost events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loss<'a> {
    /// Start of the range: nothing was lost before this time.
    pub ts: Ns,
    /// End of the range: nothing was lost after this time; `None` if unknown.
    pub ts_end: Option<Ns>,
    /// CPU whose events were lost; `None` if several or unknown.
    pub cpu: Option<i32>,
    /// Stream or buffer that lost them.
    pub stream: &'a str,
    /// Unit of `count`.
    pub kind: LossKind,
    /// Number lost; `None` if the source does not report it.
    pub count: Option<i64>,
}

/// What the events of a loss would have shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hidden {
    /// Events of any kind.
    Anything,
    /// Switches, wakeups, starts and ends of threads.
    Threads,
    /// Entries or returns of system calls.
    Calls,
    /// Steps of block requests.
    BlockIo,
    /// Events that none of these depends on, such as lock waits.
    Others,
}

impl Hidden {
    /// What was hidden if a stream or buffer with this name lost events. The recorder counts runs of
    /// its programs that the kernel skipped under the name of the program, and only about once per
    /// second: what that program does not observe is not in doubt.
    pub fn of_stream(stream: &str) -> Self {
        let program = ["on_", "raw_"]
            .iter()
            .find_map(|prefix| stream.strip_prefix(prefix));
        match program {
            None if stream == "waits" => Self::Others,
            None => Self::Anything,
            Some(
                "switch" | "switch_old" | "waking" | "wakeup_new" | "fork" | "exec" | "exit"
                | "free",
            ) => Self::Threads,
            Some("sys_enter" | "sys_exit") => Self::Calls,
            Some("getrq" | "split") => Self::BlockIo,
            Some(name) if name.starts_with("rq_") || name.starts_with("bio_") => Self::BlockIo,
            Some(_) => Self::Others,
        }
    }

    /// Whether it may be one of these.
    pub fn may_be(self, other: Self) -> bool {
        self == Self::Anything || self == other
    }
}

/// What was lost, as in the column `lost_events.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Events for which a buffer had no space.
    Events,
    /// Whole packets of a stream: overwritten sub-buffers.
    Packets,
    /// Bytes that could not be read.
    Bytes,
}

#[cfg(test)]
mod tests {
    use super::Hidden;

    #[test]
    fn a_program_hides_only_what_it_observes() {
        let of = Hidden::of_stream;
        assert_eq!(of("spool"), Hidden::Anything);
        assert_eq!(of("kernel/channel0_3"), Hidden::Anything);
        assert_eq!(of("raw_switch"), Hidden::Threads);
        assert_eq!(of("on_sys_exit"), Hidden::Calls);
        assert_eq!(of("on_rq_complete"), Hidden::BlockIo);
        assert_eq!(of("on_lock_wait"), Hidden::Others);
        assert_eq!(of("waits"), Hidden::Others);
        assert!(Hidden::Anything.may_be(Hidden::Calls));
        assert!(!Hidden::Others.may_be(Hidden::Calls));
    }
}
