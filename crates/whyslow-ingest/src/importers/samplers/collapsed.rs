//! Collapsed stacks: `main;read;do_syscall_64_[k] 42`, the outermost function first.

use whyslow_model::Ns;

use super::{Lacks, Read, frame};
use crate::profile::{NO_STACK, Point, SampleKind, SampledState, SampledThread};

/// Maximum number of frames of a stack.
const FRAMES_MAX: usize = 4096;

/// Whether the first lines end in a number, and some have more than one frame.
pub(super) fn is_collapsed(head: &str) -> bool {
    let lines: Vec<&str> = head
        .lines()
        .filter(|line| !line.trim().is_empty())
        .take(32)
        .collect();
    // The last line may be truncated.
    let whole = lines.split_last().map_or(&[][..], |(_, whole)| whole);
    let whole = if whole.is_empty() { &lines[..] } else { whole };
    let is_stack = |line: &&&str| parse(line).is_some();
    !whole.is_empty()
        && whole.iter().all(|line| is_stack(&line))
        && whole.iter().any(|line| line.contains(';'))
}

fn parse(line: &str) -> Option<(&str, u64)> {
    let (stack, count) = line.trim_end().rsplit_once(' ')?;
    let count = count.parse().ok().filter(|count| *count > 0)?;
    (!stack.trim().is_empty()).then_some((stack, count))
}

/// There are no timestamps: all samples are at one time.
pub(super) fn read(text: &str, at: Ns) -> Read {
    let mut read = Read::default();
    let lines = text.lines().enumerate();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let Some((stack, count)) = parse(line) else {
            read.bad(|| format!("line {}: expected a stack and a count", number + 1));
            continue;
        };
        let mut names: Vec<&str> = stack.split(';').take(FRAMES_MAX).collect();
        let found = names
            .iter()
            .take(2)
            .position(|name| frame::thread(name).is_some());
        let thread = found.and_then(|place| frame::thread(names.remove(place)));
        let profile = &mut read.profile;
        let thread = profile.thread(thread.unwrap_or(SampledThread {
            tid: None,
            runtime_id: Some(1),
            name: Some("all".to_owned()),
        }));
        let frames: Vec<u32> = names
            .iter()
            .rev()
            .map(|name| profile.frame(frame::frame(name)))
            .collect();
        let stack = profile.stack(&frames);
        if stack == NO_STACK {
            continue;
        }
        let credits = read.weigh(count);
        read.profile.points.push(Point {
            ts: at,
            span: 0,
            thread,
            stack,
            credits,
            kind: SampleKind::Cpu,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }
    read.lacks = Lacks {
        times: read.samples,
        ..read.lacks
    };
    read
}
