//! Stacks of this process and of others, unwound from outside.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use whyslow_testkit::{Need, skip};

use crate::wall::managed::{Part, Walker};

use super::*;

#[test]
fn the_third_number_is_how_often_it_came() {
    assert_eq!(runs(b"12 34 56\n"), Some(56));
    assert_eq!(ran(b"12 34 56\n"), Some(12));
    for text in [&b""[..], b"1 2", b"1 2 x", b"\xff"] {
        assert_eq!(runs(text), None);
    }
}

/// A process that waits for its input.
fn waiting() -> Option<Child> {
    let mut child = Command::new("sh")
        .args(["-c", "echo on; read x"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let mut on = [0; 3];
    child.stdout.as_mut()?.read_exact(&mut on).ok()?;
    std::thread::sleep(Duration::from_millis(100));
    Some(child)
}

#[test]
fn a_thread_that_waits_is_walked_from_its_registers() {
    let Some(mut child) = waiting() else {
        return skip(Need::Machine, "there is no `sh`");
    };
    let pid = child.id() as i32;
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    let words: Vec<&str> = call.split_whitespace().collect();
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let registers = match words.as_slice() {
        [.., sp, ip] => hex(sp).zip(hex(ip)),
        _ => None,
    };
    let Some((sp, ip)) = registers else {
        let _ = child.kill();
        return skip(
            Need::Machine,
            "the registers of another process cannot be read",
        );
    };
    let runs = fs::read(format!("/proc/{pid}/schedstat")).ok();
    let runs = runs.and_then(|text| super::runs(&text)).unwrap_or(0);
    let (give, walked) = mpsc::channel();
    let pool = Pool::start(give, || Walkers::new(Vec::new(), Arc::default()));
    let job = |id, runs| {
        let registers = Registers {
            ip,
            sp,
            bp: None,
            lr: 0,
        };
        let stack = Stack::There(Since { runs, switches: 0 });
        assert!(pool.submit(Job {
            id,
            pid,
            tid: pid,
            registers,
            stack
        }));
        walked
            .recv_timeout(Duration::from_secs(20))
            .expect("it answers")
    };
    let found = job(1, runs);
    // It has got a CPU another number of times.
    let torn = job(2, runs + 1);
    let _ = child.kill();
    let _ = child.wait();
    let gone = job(3, runs);
    assert_eq!(found.frames.first(), Some(&ip));
    assert!(found.frames.len() >= 3, "{found:?}");
    assert!(matches!(found.end, End::Whole | End::Cut));
    assert_eq!((torn.end, torn.frames.len()), (End::Torn, 0));
    assert_eq!(gone.end, End::Unread);
}

/// Blocks in one process until it is released, as on a page fault served by user space.
struct Stuck {
    pid: i32,
    until: Arc<Mutex<()>>,
}

impl Walker for Stuck {
    fn walk(&mut self, pid: i32, _: i32, _: &[u64]) -> Option<Vec<Part>> {
        let _waits = (pid == self.pid).then(|| self.until.lock());
        None
    }
}

#[test]
fn who_hangs_in_a_process_hangs_alone_and_what_waits_for_it_is_read_later() {
    const OTHER: i32 = i32::MAX - 1;
    let here = std::process::id() as i32;
    let until = Arc::<Mutex<()>>::default();
    let held = until.lock().expect("not poisoned");
    let (give, walked) = mpsc::channel();
    let stuck = Arc::clone(&until);
    let pool = Pool::start(give, move || {
        let until = Arc::clone(&stuck);
        let walker = Stuck { pid: here, until };
        Walkers::new(vec![Box::new(walker)], Arc::default())
    });
    let on_stack = 0_u64;
    let since = Since {
        runs: 1,
        switches: 0,
    };
    let job = |id, pid, stack| Job {
        id,
        pid,
        tid: id as i32,
        registers: Registers {
            ip: 16,
            sp: &raw const on_stack as u64,
            bp: None,
            lr: 0,
        },
        stack,
    };
    let waits = |id| job(id, here, Stack::There(since));
    let copy = |id, pid| job(id, pid, Stack::Copy(Vec::new(), since));
    let next = || {
        walked
            .recv_timeout(Duration::from_secs(20))
            .map(|one| one.id)
    };
    assert!(pool.submit(waits(1)) && pool.submit(waits(2)) && pool.submit(copy(3, OTHER)));
    std::thread::sleep(2 * HANGS);
    // No further copy waits for it, and another reader continues.
    assert!(!pool.submit(copy(4, here)));
    pool.tend();
    assert_eq!(next(), Ok(3));
    assert!(walked.try_recv().is_err());
    for _ in 0..9 {
        pool.tend();
    }
    // No further reader is needed if there is nothing to do.
    assert_eq!(pool.shared.lock().at.len(), 2);
    drop(held);
    let found = [next(), next()];
    assert_eq!(found, [Ok(1), Ok(2)]);
}
