//! Thread dumps of a Python program (`py-spy dump -j`), a single one or a series in many files.
//!
//! A dump is an array of threads with their frames, innermost first. It contains no time: the time
//! is taken from the file name, else from the modification time. Nothing is known about the time
//! between two dumps. The dumps of each process form a series of their own.

use std::collections::BTreeMap;

use serde::Deserialize;
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::jstack::DumpFile;
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, Profile, SampleKind, SampledState, SampledThread,
};

/// Duration covered by the first dump of a series.
const FIRST: Ns = 1_000_000_000;
/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;
/// Prefix of the file names of frozen (built-in) Python modules.
const MODULE: &str = "<frozen";

/// Result of reading a series of dumps.
#[derive(Debug, Default)]
pub struct Read {
    /// One per process, by pid.
    pub profiles: Vec<Profile>,
    /// Number of dumps.
    pub dumps: u64,
    /// Dumps without a time in their file name.
    pub unstamped: u64,
}

#[derive(Deserialize)]
struct Dumped {
    pid: Option<i32>,
    thread_name: Option<String>,
    os_thread_id: Option<i64>,
    thread_id: Option<i64>,
    #[serde(default)]
    active: bool,
    #[serde(default)]
    frames: Vec<Frame>,
}

#[derive(Deserialize)]
struct Frame {
    name: String,
    #[serde(default)]
    filename: String,
    line: Option<i32>,
}

/// Whether a file starting with `head` is output of `py-spy dump -j`.
pub fn is_dump(head: &str) -> bool {
    head.trim_start().starts_with('[')
        && ["\"owns_gil\"", "\"thread_id\"", "\"active\""]
            .iter()
            .all(|key| head.contains(key))
}

/// Reads all dumps in time order. Fails with the index of the file that cannot be read, and the
/// reason.
pub fn read(files: &[DumpFile<'_>]) -> Result<Read, (usize, String)> {
    let mut read = Read::default();
    let mut dumps: Vec<(Ns, Vec<Dumped>)> = Vec::new();
    for (place, file) in files.iter().enumerate() {
        let threads: Vec<Dumped> =
            serde_json::from_str(file.text).map_err(|error| (place, error.to_string()))?;
        read.unstamped += u64::from(file.named.is_none());
        let ts = file.named.or(file.written).unwrap_or(0);
        dumps.push((ts.saturating_add(file.shift), threads));
    }
    dumps.index_sort_by_key(|(ts, _)| *ts);
    read.dumps = dumps.len() as u64;
    let mut series: BTreeMap<Option<i32>, Vec<(Ns, Vec<&Dumped>)>> = BTreeMap::new();
    for (ts, threads) in &dumps {
        let mut processes: BTreeMap<Option<i32>, Vec<&Dumped>> = BTreeMap::new();
        for thread in threads {
            processes.entry(thread.pid).or_default().push(thread);
        }
        for (pid, threads) in processes {
            series.entry(pid).or_default().push((*ts, threads));
        }
    }
    read.profiles = series
        .into_iter()
        .map(|(pid, dumps)| of_process(pid, &dumps))
        .collect();
    if read.profiles.is_empty() {
        // A dump without threads is still a dump.
        read.profiles.push(Profile::default());
    }
    Ok(read)
}

fn of_process(pid: Option<i32>, dumps: &[(Ns, Vec<&Dumped>)]) -> Profile {
    let mut profile = Profile::default();
    profile.pid = pid;
    let mut before: Option<Ns> = None;
    for (ts, threads) in dumps {
        let ts = before.map_or(*ts, |before| (*ts).max(before.saturating_add(1)));
        let begin = before.unwrap_or_else(|| ts.saturating_sub(FIRST));
        for thread in threads {
            add(thread, (begin, ts), &mut profile);
        }
        before = Some(ts);
    }
    profile.sort();
    profile
}

/// A thread of a dump covers the time since the previous dump.
fn add(dumped: &Dumped, (begin, ts): (Ns, Ns), profile: &mut Profile) {
    let tid = dumped.os_thread_id.and_then(|tid| i32::try_from(tid).ok());
    let tid = tid.filter(|tid| *tid > 0);
    let thread = profile.thread(SampledThread {
        tid,
        runtime_id: tid
            .is_none()
            .then(|| dumped.thread_id.unwrap_or(0).rem_euclid(100_000_000)),
        name: dumped.thread_name.clone().filter(|name| !name.is_empty()),
    });
    let frames: Vec<u32> = dumped
        .frames
        .iter()
        .take(FRAMES_MAX)
        .map(|frame| {
            let is_python = frame.filename.ends_with(".py") || frame.filename.starts_with(MODULE);
            profile.frame(CodeFrame {
                kind: if is_python || frame.filename.starts_with('<') {
                    CodeKind::Managed
                } else {
                    CodeKind::User
                },
                function: frame.name.clone(),
                module: Some(frame.filename.clone()).filter(|file| !file.is_empty()),
                line: frame.line.filter(|line| *line > 0),
            })
        })
        .collect();
    let stack = profile.stack(&frames);
    if stack == NO_STACK {
        return;
    }
    profile.points.push(Point {
        ts: begin,
        span: ts.saturating_sub(begin),
        thread,
        stack,
        credits: 1,
        kind: SampleKind::Dump,
        state: if dumped.active {
            SampledState::Running
        } else {
            SampledState::Sleeping
        },
        is_assumed: false,
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUMP: &str = r#"[{"pid":7,"thread_id":139973366089408,"thread_name":"worker-3","os_thread_id":12,
        "active":false,"owns_gil":false,"frames":[
        {"name":"getaddrinfo","filename":"/usr/lib/python3.11/socket.py","short_filename":"socket.py","line":962},
        {"name":"work","filename":"web.py","line":51}]},
        {"pid":7,"thread_id":139973366089409,"thread_name":"","os_thread_id":null,"active":true,"owns_gil":true,
        "frames":[]}]"#;

    fn file(text: &str, named: Option<Ns>, written: Ns) -> DumpFile<'_> {
        DumpFile {
            text,
            named,
            written: Some(written),
            shift: 0,
        }
    }

    #[test]
    fn the_time_in_the_name_of_a_file_comes_before_that_of_writing() {
        assert!(is_dump(DUMP));
        let files = [
            file(DUMP, None, 9_000_000_000),
            file(DUMP, Some(7_500_000_000), 1),
        ];
        let read = read(&files).expect("dumps");
        let [profile] = &read.profiles[..] else {
            panic!("{:?}", read.profiles);
        };
        let points = &profile.points;
        let times: Vec<(Ns, Ns)> = points.iter().map(|at| (at.ts, at.span)).collect();
        assert_eq!(
            times,
            [
                (6_500_000_000, 1_000_000_000),
                (7_500_000_000, 1_500_000_000)
            ]
        );
        assert_eq!((read.dumps, read.unstamped, profile.pid), (2, 1, Some(7)));
        assert_eq!(profile.threads[0].tid, Some(12));
        assert_eq!(points[0].state, SampledState::Sleeping);
    }

    #[test]
    fn dumps_of_two_processes_are_two_series() {
        let other = DUMP
            .replace("\"pid\":7", "\"pid\":8")
            .replace("\"os_thread_id\":12", "\"os_thread_id\":13");
        let second = 1_000_000_000;
        let files = [
            file(DUMP, Some(10 * second), 1),
            file(&other, Some(12 * second), 1),
            file(DUMP, Some(13 * second), 1),
            file(&other, Some(17 * second), 1),
        ];
        let read = read(&files).expect("dumps");
        let points = read.profiles.iter().flat_map(|profile| {
            let points = profile.points.iter();
            points.map(|at| (profile.pid, at.ts / second, at.span / second))
        });
        assert_eq!(
            points.collect::<Vec<_>>(),
            [
                (Some(7), 9, 1),
                (Some(7), 10, 3),
                (Some(8), 11, 1),
                (Some(8), 12, 5)
            ]
        );
    }

    #[test]
    fn a_file_that_is_cut_is_named() {
        for end in 0..DUMP.len() {
            let files = [file(DUMP, None, 5), file(&DUMP[..end], None, 6)];
            let (place, reason) = read(&files).expect_err("the file is truncated");
            assert!(place == 1 && reason.contains("line"), "{reason}");
        }
    }
}
