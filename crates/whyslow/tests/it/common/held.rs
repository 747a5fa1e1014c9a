//! The log of the program in the lock profiles: what each thread did with each lock.

use std::fs;

/// What a thread did with a lock, as logged by the program itself.
#[derive(Debug)]
pub(crate) struct LockUse {
    pub(crate) lock: String,
    pub(crate) thread: String,
    pub(crate) requested: i64,
    pub(crate) entered: i64,
    pub(crate) left: i64,
}

pub(crate) fn truth(name: &str) -> Vec<LockUse> {
    let path = whyslow_testkit::fixture("jfr").join(format!("{name}.truth.csv"));
    let table = fs::read_to_string(path).expect("a log");
    let lines = table.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        let time = |at: usize| cells[at].parse().expect("a time");
        LockUse {
            lock: cells[0].to_owned(),
            thread: cells[1].to_owned(),
            requested: time(2),
            entered: time(3),
            left: time(4),
        }
    });
    lines.collect()
}
