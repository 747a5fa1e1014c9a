//! Signals that stop, continue or end processes.

/// A signal that is sent, or has its effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal {
    /// Signal number, from 1 on.
    pub number: i32,
    /// Who sent it and how (`si_code`).
    pub code: i32,
    /// Thread that it is for, and its process.
    pub tid: i32,
    /// Kernel process id (thread group) of that thread.
    pub pid: i32,
    /// Of sending: 0 sent, 1 ignored, 2 there was one already, 3 no room, 4 no room for its details.
    pub result: u32,
    /// For any thread of the process.
    pub is_group: bool,
    /// The program does with it as it likes.
    pub has_handler: bool,
}

/// What a signal does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignalAction {
    /// Stops the process: SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU.
    Stop,
    /// Continues a stopped process: SIGCONT, also with a handler.
    Continue,
    /// It ends the process.
    End,
    /// A function of the program is called.
    Handler,
}

impl SignalAction {
    /// As the column `signal.action` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Continue => "continue",
            Self::End => "end",
            Self::Handler => "handler",
        }
    }
}

/// Names of signals on all architectures that are recorded, from 1 on.
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

    /// Nothing for a number that stands for no purpose of its own.
    pub fn name(&self) -> Option<&'static str> {
        let place = usize::try_from(self.number).ok()?.checked_sub(1)?;
        NAMES.get(place).copied()
    }

    /// What the signal does to the process, by its number and whether there is a handler.
    pub fn action(&self) -> SignalAction {
        match self.number {
            // It continues first, and calls the function then.
            Self::CONTINUE => SignalAction::Continue,
            _ if self.has_handler => SignalAction::Handler,
            19..=22 => SignalAction::Stop,
            _ => SignalAction::End,
        }
    }

    /// Who sent it, in a word; nothing for what the kernel says of a fault.
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

    /// What became of sending it.
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
