//! Signals that stop, continue or terminate processes.

/// A signal at its generation or delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Signal number, from 1 on.
    pub number: i32,
    /// Origin of the signal (`si_code`).
    pub code: i32,
    /// Target thread.
    pub tid: i32,
    /// Kernel process id (thread group) of that thread.
    pub pid: i32,
    /// At generation: 0 sent, 1 ignored, 2 one was pending already, 3 queue full, 4 sent without
    /// its details.
    pub result: u32,
    /// Directed to the process rather than to a thread.
    pub is_group: bool,
    /// The program has a handler for it.
    pub has_handler: bool,
}

/// Action of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalAction {
    /// Stops the process: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
    Stop,
    /// Continues a stopped process: SIGCONT, also with a handler.
    Continue,
    /// Terminates the process.
    End,
    /// Runs a handler of the program.
    Handler,
}

impl SignalAction {
    /// Value of the column `signal.action`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Continue => "continue",
            Self::End => "end",
            Self::Handler => "handler",
        }
    }
}

/// Names of signals on all recorded architectures, from number 1.
const NAMES: [&str; 31] = [
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];

impl Signal {
    /// `SIGKILL`.
    pub const KILL: i32 = 9;
    /// `SIGCONT`.
    pub const CONTINUE: i32 = 18;

    /// Returns `None` for numbers without a fixed purpose.
    pub fn name(&self) -> Option<&'static str> {
        let place = usize::try_from(self.number).ok()?.checked_sub(1)?;
        NAMES.get(place).copied()
    }

    /// Action on the process, by signal number and presence of a handler.
    pub fn action(&self) -> SignalAction {
        match self.number {
            // The process is continued before the handler runs.
            Self::CONTINUE => SignalAction::Continue,
            _ if self.has_handler => SignalAction::Handler,
            19..=22 => SignalAction::Stop,
            _ => SignalAction::End,
        }
    }

    /// Origin as one word; `fault` for signals that the kernel sends for a fault.
    pub fn origin(&self) -> &'static str {
        match self.code {
            0 => "kill",
            -1 => "sigqueue",
            -2 => "timer",
            -6 => "tkill",
            128 => "kernel",
            code if code > 0 => "fault",
            _ => "other",
        }
    }

    /// Result of the generation.
    pub fn result_name(&self) -> &'static str {
        match self.result {
            0 => "sent",
            1 => "ignored",
            2 => "pending",
            4 => "details_lost",
            _ => "lost",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_do_what_they_are_for() {
        let check = |number, has_handler, name: &str, action: &str| {
            let signal = Signal {
                number,
                code: 0,
                tid: 1,
                pid: 1,
                result: 0,
                is_group: true,
                has_handler,
            };
            assert_eq!(signal.name().unwrap_or("-"), name);
            assert_eq!(signal.action().name(), action, "{name}");
        };
        check(9, false, "SIGKILL", "end");
        check(15, false, "SIGTERM", "end");
        check(15, true, "SIGTERM", "handler");
        check(18, true, "SIGCONT", "continue");
        check(19, false, "SIGSTOP", "stop");
        check(20, false, "SIGTSTP", "stop");
        check(31, false, "SIGSYS", "end");
        check(40, false, "-", "end");
        check(0, false, "-", "end");
        check(-1, false, "-", "end");
    }
}
