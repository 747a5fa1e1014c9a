//! Stacks of this process and of others, walked from outside.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

#[test]
fn the_third_number_is_how_often_it_came() {
    assert_eq!(runs(b"12 34 56\n"), Some(56));
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
        println!("skipped: there is no `sh`");
        return;
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
        println!("skipped: nobody tells the registers of another process");
        let _ = child.kill();
        return;
    };
    let runs = fs::read(format!("/proc/{pid}/schedstat")).ok();
    let runs = runs.and_then(|text| super::runs(&text)).unwrap_or(0);
    let (give, walked) = mpsc::channel();
    let pool = Pool::start(give, Walkers::new(Vec::new(), Arc::default()));
    let job = |id, runs| {
        let registers = Registers {
            ip,
            sp,
            bp: None,
            lr: 0,
        };
        let stack = Stack::There(Since { runs, switches: 0 });
        assert!(pool.ask(Job {
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
    // It came to a CPU at another time than this.
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
