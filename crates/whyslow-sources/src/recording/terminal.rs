//! The terminal session that a command belongs to.

use std::fs;

/// Programs that run a command for another user, in a terminal session of its own.
const SWITCHERS: [&str; 5] = ["sudo", "doas", "su", "pkexec", "runuser"];
/// More ancestors than a command has below the shell of its user.
const ANCESTORS_MAX: usize = 16;

/// Identifies the terminal and its session, since numbers of terminals are reused: `34817-4711`.
/// `None` without a terminal. With sudo it is the terminal of the shell that ran sudo.
pub(super) fn session() -> Option<String> {
    session_of(std::process::id() as i32, |pid| {
        fs::read_to_string(format!("/proc/{pid}/stat")).ok()
    })
}

struct Process {
    comm: String,
    parent: i32,
    session: i32,
    terminal: i32,
}

fn session_of(pid: i32, stat: impl Fn(i32) -> Option<String>) -> Option<String> {
    let read = |pid: i32| Process::parse(&stat(pid)?);
    let own = read(pid)?;
    let (mut found, mut next) = (own.key(), own.parent);
    let mut is_switched = false;
    for _ in 0..ANCESTORS_MAX {
        let Some(process) = read(next) else { break };
        let is_switcher = SWITCHERS.contains(&process.comm.as_str());
        // The first process above the one that switched the user.
        if is_switched && !is_switcher {
            found = process.key();
        }
        is_switched = is_switcher;
        next = process.parent;
    }
    found
}

impl Process {
    /// Parses `/proc/PID/stat`; the name may contain spaces and parentheses.
    fn parse(stat: &str) -> Option<Self> {
        let (before, after) = stat.rsplit_once(") ")?;
        let comm = before.split_once(" (")?.1.to_owned();
        let mut fields = after.split(' ').skip(1);
        let mut number = || fields.next()?.parse::<i32>().ok();
        let (parent, _group) = (number()?, number()?);
        Some(Self {
            comm,
            parent,
            session: number()?,
            terminal: number()?,
        })
    }

    fn key(&self) -> Option<String> {
        (self.terminal != 0).then(|| format!("{}-{}", self.terminal, self.session))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines `pid comm parent session terminal`.
    fn key(processes: &str, pid: i32) -> Option<String> {
        session_of(pid, |wanted| {
            let mut lines = processes.lines().map(str::split_whitespace);
            lines.find_map(|mut words| {
                let mut word = || words.next();
                let (pid, comm, parent) = (word()?, word()?, word()?);
                let (session, terminal) = (word()?, word()?);
                (pid == wanted.to_string()).then(|| {
                    format!("{pid} ({comm}) S {parent} {pid} {session} {terminal} -1 4194304")
                })
            })
        })
    }

    #[test]
    fn a_session_is_that_of_the_shell_of_the_user() {
        let processes = "\
            1 systemd 0 1 0
            100 sshd 1 100 0
            200 bash 100 200 34817
            300 whyslow 200 200 34817
            400 sudo 200 200 34817
            401 sudo 400 401 34820
            402 whyslow 401 401 34820
            500 cron 1 500 0
            501 whyslow 500 500 0";
        assert_eq!(key(processes, 300).as_deref(), Some("34817-200"));
        assert_eq!(key(processes, 402).as_deref(), Some("34817-200"));
        assert_eq!(key(processes, 501), None);
        assert_eq!(key(processes, 999), None);
    }

    #[test]
    fn a_name_may_contain_anything() {
        let process = Process::parse("7 (a) (b c) S 3 7 5 34816 -1").expect("a process");
        assert_eq!(process.comm, "a) (b c");
        assert_eq!((process.parent, process.session), (3, 5));
        assert_eq!(process.key().as_deref(), Some("34816-5"));
    }
}
