//! Samples threads through `/proc`, where there is no iterator: at a higher cost, and without the
//! frame pointer, so that fewer stacks can be unwound completely.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::Targets;
use super::texts::Texts;
use super::thread_sample::{Away, Doing, Place, ThreadSample};
use super::unwind::{self, Registers};
use crate::{clock, drop};

/// Maximum bytes read of a file.
const TEXT_MAX: usize = 16 << 10;
/// Attempts to sample a thread that runs meanwhile.
const TRIES: u32 = 3;
/// The kernel's own limit.
const FRAMES_MAX: usize = 127;

pub(super) struct Files {
    targets: Targets,
    texts: Arc<Mutex<Texts>>,
    buffer: Vec<u8>,
    own_pid: i32,
    /// Threads whose place was recorded, with the number of runs at that time.
    reported: std::collections::HashMap<i32, (i32, u64)>,
}

impl Files {
    pub(super) fn new(targets: Targets, texts: Arc<Mutex<Texts>>) -> Self {
        Self {
            targets,
            texts,
            buffer: vec![0; TEXT_MAX],
            own_pid: std::process::id() as i32,
            reported: std::collections::HashMap::new(),
        }
    }

    pub(super) fn round(&mut self, found: &mut Vec<ThreadSample>) -> io::Result<()> {
        let begin = found.len();
        let pids = match self.targets.pids() {
            Some(pids) => pids,
            None => numbers(Path::new("/proc"))?,
        };
        let own_pid = self.own_pid;
        for pid in pids.into_iter().filter(|pid| *pid != own_pid) {
            // An exited process has no threads.
            for tid in numbers(Path::new(&format!("/proc/{pid}/task"))).unwrap_or_default() {
                found.extend(self.sample(pid, tid));
            }
        }
        let here: BTreeSet<i32> = found[begin..].iter().map(|sample| sample.tid).collect();
        self.reported.retain(|tid, _| here.contains(tid));
        Ok(())
    }

    /// `None` if the thread is gone. A thread that runs while its files are read is sampled again.
    fn sample(&mut self, pid: i32, tid: i32) -> Option<ThreadSample> {
        let folder = format!("/proc/{pid}/task/{tid}");
        for _ in 0..TRIES {
            let sample = self.sample_once(&folder, (pid, tid))?;
            let Doing::Away(_, Away::OffCpu(place)) = &sample.doing else {
                return Some(sample);
            };
            let now = unwind::runs(
                self.read(&format!("{folder}/schedstat"))
                    .unwrap_or_default(),
            );
            if now.unwrap_or(0) == place.runs {
                self.reported.insert(tid, (pid, place.runs));
                return Some(sample);
            }
        }
        // It blocks and runs faster than it can be sampled.
        Some(ThreadSample {
            ts: clock::monotonic(),
            tid,
            pid,
            switches: self.reported.remove(&tid).map_or(0, |(_, runs)| runs),
            ran: 0,
            doing: Doing::MayRun,
        })
    }

    fn sample_once(&mut self, folder: &str, (pid, tid): (i32, i32)) -> Option<ThreadSample> {
        let counted = self
            .read(&format!("{folder}/schedstat"))
            .unwrap_or_default();
        let (ran, runs) = (unwind::ran(counted), unwind::runs(counted));
        let ts = clock::monotonic();
        let stat = self.read(&format!("{folder}/stat"))?;
        let state = state(stat)?;
        let runs = runs.unwrap_or(0);
        let mut sample = ThreadSample {
            ts,
            tid,
            pid,
            switches: runs,
            ran: ran.unwrap_or(0),
            doing: Doing::MayRun,
        };
        if state == 0 {
            self.reported.remove(&tid);
            return Some(sample);
        }
        if runs > 0 && self.reported.get(&tid) == Some(&(pid, runs)) {
            sample.doing = Doing::Away(state, Away::Same);
            return Some(sample);
        }
        let call = self.read(&format!("{folder}/syscall")).map(Call::parse);
        let kernel = self.kernel(folder);
        let (nr, registers) = match call {
            Some(Call::In(nr, registers)) => (nr, Some(registers)),
            _ => (-1, None),
        };
        sample.doing = Doing::Away(
            state,
            Away::OffCpu(Box::new(Place {
                runs,
                registers,
                nr,
                is_compat: false,
                kernel,
            })),
        );
        Some(sample)
    }

    /// Names of its kernel functions; only the function in which it waits, if its stack is not
    /// readable.
    fn kernel(&mut self, folder: &str) -> Vec<u64> {
        let stack = drop::raised(|| read(&format!("{folder}/stack"), &mut self.buffer));
        let mut functions: Vec<Vec<u8>> = Vec::new();
        if let Some(count) = stack {
            let lines = self.buffer[..count].split(|byte| *byte == b'\n');
            functions.extend(
                lines
                    .filter_map(function)
                    .take(FRAMES_MAX)
                    .map(<[u8]>::to_vec),
            );
        }
        if functions.is_empty() {
            let channel = self.read(&format!("{folder}/wchan")).unwrap_or_default();
            let is_one = !channel.is_empty() && channel != b"0";
            functions.extend(is_one.then(|| channel.to_vec()));
        }
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        functions
            .iter()
            .map(|function| texts.kernel(function))
            .collect()
    }

    fn read(&mut self, path: &str) -> Option<&[u8]> {
        let count = read(path, &mut self.buffer)?;
        Some(&self.buffer[..count])
    }
}

fn read(path: &str, buffer: &mut [u8]) -> Option<usize> {
    let mut file = File::open(path).ok()?;
    let mut count = 0;
    // A file of `/proc` is complete when a read returns nothing.
    while count < buffer.len() {
        match file.read(&mut buffer[count..]) {
            Ok(0) => break,
            Ok(more) => count += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(count)
}

fn numbers(folder: &Path) -> io::Result<BTreeSet<i32>> {
    let entries = fs::read_dir(folder)?.flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries.filter_map(number).collect())
}

/// Kernel task state of a thread, from `stat`; `None` if it has exited.
fn state(stat: &[u8]) -> Option<u32> {
    // A name may contain any character.
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(match stat.get(end + 2)? {
        b'R' => 0,
        b'S' => 0x1,
        b'D' => 0x2,
        b'T' => 0x4,
        b't' => 0x8,
        b'P' => 0x40,
        b'I' => 0x402,
        _ => return None,
    })
}

/// Content of `syscall`.
#[derive(Debug, PartialEq, Eq)]
enum Call {
    Running,
    In(i32, Registers),
    Unknown,
}

impl Call {
    /// `running`, `NR ARG … SP PC`, or `-1 SP PC`.
    fn parse(text: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(text) else {
            return Self::Unknown;
        };
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let hex = |word: &&str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        match words.as_slice() {
            ["running"] => Self::Running,
            [nr, .., sp, ip] => match (nr.parse(), hex(sp), hex(ip)) {
                (Ok(nr), Some(sp), Some(ip)) => Self::In(
                    nr,
                    Registers {
                        ip,
                        sp,
                        bp: None,
                        lr: 0,
                    },
                ),
                _ => Self::Unknown,
            },
            _ => Self::Unknown,
        }
    }
}

/// `[<0>] do_sys_poll+0x3f5/0x5d0`
fn function(line: &[u8]) -> Option<&[u8]> {
    let line = line.strip_prefix(b"[<")?;
    let begin = line.windows(3).position(|bytes| bytes == b">] ")? + 3;
    let name = &line[begin..];
    let end = name
        .iter()
        .rposition(|byte| *byte == b'+')
        .unwrap_or(name.len());
    let name = &name[..end];
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_are_read() {
        assert_eq!(state(b"12 (a) b) S 1 1"), Some(0x1));
        assert_eq!(state(b"12 (x) Z 1 1"), None);
        assert_eq!(state(b"12 (x)"), None);
        assert_eq!(
            function(b"[<0>] do_sys_poll+0x3f5/0x5d0"),
            Some(&b"do_sys_poll"[..])
        );
        assert_eq!(function(b"[<ffffffff81>] a.b"), Some(&b"a.b"[..]));
        assert_eq!(function(b"[<0>] +0x1"), None);
        let call = Call::parse(b"0 0x3 0x7f 0x0 0x0 0x0 0x0 0x7ffd 0x7f01\n");
        let registers = Registers {
            ip: 0x7f01,
            sp: 0x7ffd,
            bp: None,
            lr: 0,
        };
        assert_eq!(call, Call::In(0, registers));
        assert_eq!(Call::parse(b"running\n"), Call::Running);
        assert_eq!(Call::parse(b"-1 0x7ffd 0x7f01\n"), Call::In(-1, registers));
        for text in [&b""[..], b"1", b"x 0x1 0x2", b"0 1 2", b"\xff"] {
            assert_eq!(Call::parse(text), Call::Unknown);
        }
    }

    #[test]
    fn this_thread_runs_and_others_wait() {
        let texts = Arc::<Mutex<Texts>>::default();
        let mut files = Files::new(Targets { map: None }, texts);
        let pid = std::process::id() as i32;
        let sample = files.sample(pid, rustix::thread::gettid().as_raw_nonzero().get());
        assert_eq!(sample.expect("it is there").doing, Doing::MayRun);
        assert_eq!(files.sample(i32::MAX, i32::MAX), None);
    }
}
