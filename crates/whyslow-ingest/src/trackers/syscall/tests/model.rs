//! Random sequences, compared with a simple model and checked for invariants.

use std::collections::{BTreeMap, HashMap};

use proptest::prelude::*;

use super::Machine;

const PIDS: [i32; 3] = [7, 8, 9];

#[derive(Debug, Clone)]
enum Step {
    Open(i32, i32, usize, bool),
    Close(i32, i32),
    Dup2(i32, i32, i32),
    Fork(i32, i32),
    Exec(i32),
    Exit(i32),
    Read(i32, i32, i64),
    Write(i32, i32, i64),
    Unlink(i32, usize),
    Rename(i32, usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let pid = || prop::sample::select(&PIDS[..]);
    let fd = || 0..5i32;
    let path = || 0..4usize;
    prop_oneof![
        4 => (pid(), fd(), path(), any::<bool>()).prop_map(|(p, f, n, c)| Step::Open(p, f, n, c)),
        2 => (pid(), fd()).prop_map(|(p, f)| Step::Close(p, f)),
        2 => (pid(), fd(), fd()).prop_map(|(p, a, b)| Step::Dup2(p, a, b)),
        1 => (pid(), pid()).prop_map(|(p, c)| Step::Fork(p, c)),
        1 => pid().prop_map(Step::Exec),
        1 => pid().prop_map(Step::Exit),
        4 => (pid(), fd(), 0..100i64).prop_map(|(p, f, n)| Step::Read(p, f, n)),
        4 => (pid(), fd(), 0..100i64).prop_map(|(p, f, n)| Step::Write(p, f, n)),
        1 => (pid(), path()).prop_map(|(p, n)| Step::Unlink(p, n)),
        1 => (pid(), path(), path()).prop_map(|(p, a, b)| Step::Rename(p, a, b)),
    ]
}

/// Path and close-on-exec flag, by process and descriptor.
#[derive(Default)]
struct Model {
    open: BTreeMap<(i32, i32), (String, bool)>,
    alive: HashMap<i32, bool>,
    /// Expected result of each read and write, in order.
    shown: Vec<Option<String>>,
    bytes: i64,
}

impl Model {
    /// Applies the step; returns the script lines that describe it.
    fn step(&mut self, ts: usize, step: &Step) -> Option<String> {
        let path = |n: &usize| format!("/f{n}");
        let runs = |pid: &i32| self.alive.get(pid).copied().unwrap_or(true);
        match step {
            Step::Open(pid, fd, n, cloexec) if runs(pid) => {
                self.open.insert((*pid, *fd), (path(n), *cloexec));
                let flags = if *cloexec { 0o2_000_000 } else { 0 };
                Some(format!("{ts} {pid} = openat {fd} path=/f{n} flags={flags}"))
            }
            Step::Close(pid, fd) if runs(pid) => {
                let ret = self.open.remove(&(*pid, *fd)).map_or(-9, |_| 0);
                Some(format!("{ts} {pid} = close {ret} fd={fd}"))
            }
            Step::Dup2(pid, old, new) if runs(pid) => {
                let found = self.open.get(&(*pid, *old)).cloned();
                let ret = if found.is_some() { *new } else { -9 };
                if let Some((path, _)) = found.filter(|_| old != new) {
                    self.open.insert((*pid, *new), (path, false));
                }
                Some(format!("{ts} {pid} = dup2 {ret} fd={old} fd2={new}"))
            }
            Step::Fork(pid, child) if runs(pid) && !runs(child) => {
                self.alive.insert(*child, true);
                let copies: Vec<_> = self
                    .open
                    .range((*pid, 0)..(*pid, i32::MAX))
                    .map(|((_, fd), open)| ((*child, *fd), open.clone()))
                    .collect();
                self.open.extend(copies);
                Some(format!(
                    "{ts} {pid} fork parent={pid} child={child} child_pid={child}"
                ))
            }
            Step::Exec(pid) if runs(pid) => {
                self.open
                    .retain(|(owner, _), (_, cloexec)| owner != pid || !*cloexec);
                Some(format!("{ts} {pid} exec filename=/bin/x tid={pid}"))
            }
            Step::Exit(pid) if runs(pid) => {
                self.alive.insert(*pid, false);
                self.open.retain(|(owner, _), _| owner != pid);
                Some(format!("{ts} {pid} exit tid={pid}"))
            }
            Step::Read(pid, fd, n) | Step::Write(pid, fd, n) if runs(pid) => {
                let name = match step {
                    Step::Read(..) => "read",
                    _ => "write",
                };
                let found = self.open.get(&(*pid, *fd));
                self.shown.push(found.map(|(path, _)| path.clone()));
                let ret = found.map_or(-9, |_| *n);
                self.bytes += ret.max(0);
                Some(format!("{ts} {pid} = {name} {ret} fd={fd}"))
            }
            Step::Unlink(pid, n) if runs(pid) => Some(format!("{ts} {pid} = unlink 0 path=/f{n}")),
            Step::Rename(pid, a, b) if runs(pid) => {
                Some(format!("{ts} {pid} = rename 0 path=/f{a} path2=/f{b}"))
            }
            _ => None,
        }
    }
}

proptest! {
    #[test]
    fn descriptors_lead_where_a_naive_table_says(steps in prop::collection::vec(step(), 0..80)) {
        let mut model = Model::default();
        let script: Vec<String> = steps
            .iter()
            .enumerate()
            .filter_map(|(ts, step)| model.step(ts + 1, step))
            .collect();
        let machine = Machine::run(&script.join("\n"));

        let is_io = |row: &&whyslow_model::tables::SyscallRow| {
            matches!(machine.name(row.name), "read" | "write")
        };
        let io = machine.rows.syscall.iter().filter(is_io);
        let shown: Vec<Option<String>> = io
            .map(|row| row.path.map(|path| machine.name(path).to_string()))
            .collect();
        prop_assert_eq!(&shown, &model.shown, "{}", script.join("\n"));

        let still_open: BTreeMap<(i32, i32), String> = machine
            .rows
            .fd_life
            .iter()
            .filter(|row| row.ts_end.is_none())
            .map(|row| {
                let path = row.path.map_or("", |path| machine.name(path));
                ((row.pid.unwrap(), row.fd), path.to_string())
            })
            .collect();
        let expected: BTreeMap<(i32, i32), String> =
            model.open.iter().map(|(&key, (path, _))| (key, path.clone())).collect();
        prop_assert_eq!(still_open, expected, "{}", script.join("\n"));

        let by_call: i64 = machine.rows.syscall.iter().filter_map(|row| row.bytes).sum();
        let by_file: i64 = machine
            .rows
            .file_life
            .iter()
            .map(|row| row.bytes_read + row.bytes_written)
            .sum();
        prop_assert_eq!((by_call, by_file), (model.bytes, model.bytes));
    }

    #[test]
    fn illegal_sequences_are_kept_with_sound_rows(
        lines in prop::collection::vec(illegal(), 0..80)
    ) {
        let script: Vec<String> = lines
            .iter()
            .enumerate()
            .map(|(ts, (thread, event))| format!("{} {thread} {event}", ts + 1))
            .collect();
        let machine = Machine::run(&script.join("\n"));
        let entries = lines.iter().filter(|(_, event)| event.starts_with("> ")).count();
        let rows = &machine.rows;
        let begun = rows.syscall.iter().filter(|row| {
            row.cut.is_none_or(|cut| machine.name(cut) != "begin")
        });
        prop_assert_eq!(begun.count(), entries);
        let mut last: HashMap<i32, i64> = HashMap::new();
        let mut calls: Vec<_> = rows.syscall.iter().filter(|row| row.utid.is_some()).collect();
        calls.sort_by_key(|row| (row.ts, row.id));
        for row in calls {
            prop_assert!(row.ts_end.is_none_or(|end| end >= row.ts));
            if let (Some(utid), Some(end)) = (row.utid, row.ts_end) {
                let before = last.insert(utid, end).unwrap_or(0);
                prop_assert!(row.ts >= before, "calls of a thread overlap\n{}", script.join("\n"));
            }
        }
        for row in &rows.fd_life {
            prop_assert!(row.ts_end.is_none_or(|end| end >= row.ts));
        }
        let mut ids: Vec<i64> = rows.fd_life.iter().map(|row| row.id).collect();
        ids.dedup();
        prop_assert_eq!(ids.len(), rows.fd_life.len());
    }
}

fn illegal() -> impl Strategy<Value = (String, String)> {
    let thread = prop::sample::select(vec!["7", "7/8", "9", "-"]);
    let name = prop::sample::select(vec![
        "openat",
        "read",
        "close",
        "dup2",
        "dup3",
        "fcntl",
        "clone",
        "execve",
        "exit_group",
        "pipe2",
        "socket",
        "accept",
        "connect",
        "close_range",
        "rename",
        "unlink",
        "mmap",
        "munmap",
        "mremap",
        "rt_sigreturn",
        "chdir",
        "sendfile",
        "unshare",
        "recvmsg",
        "made_up",
    ]);
    let number = || prop::sample::select(vec![-100i64, -9, -1, 0, 1, 3, 0x400, i64::MAX, i64::MIN]);
    let call = (name, any::<bool>(), number(), number(), number(), number()).prop_map(
        |(name, enters, ret, fd, fd2, flags)| {
            let args = format!(
                "fd={fd} fd2={fd2} flags={flags} count={flags} value={fd} command={fd2} \
                 dirfd={fd} path=p path2=/q"
            );
            if enters {
                format!("> {name} {args} address={}", fd.unsigned_abs())
            } else {
                format!("< {name} ret={ret} fds=3,4 sockaddr=1.2.3.4:5")
            }
        },
    );
    let other = prop::sample::select(vec![
        "fork parent=7 child=9 child_pid=9",
        "fork parent=7 child=8 child_pid=7",
        "exec filename=/x tid=7 old_tid=8",
        "exec filename=/x tid=9",
        "exit tid=7",
        "exit tid=9",
        "free tid=8",
        "state_process tid=9 pid=9 file_table=0x1",
        "state_fd file_table=0x1 fd=3 path=/d",
        "state_fd pid=7 fd=3 path=pipe:[1]",
        "state_end",
    ]);
    let event = prop_oneof![6 => call, 1 => other.prop_map(str::to_string)];
    (thread.prop_map(str::to_string), event)
}
