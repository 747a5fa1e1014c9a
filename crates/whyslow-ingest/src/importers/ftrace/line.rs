//! The prefix of a line: thread, CPU, time and event name.
//!
//! ```text
//!           dd-1183    [001] d..2. 18804.040727: block_rq_issue: 254,0 RA …      ftrace, trace-cmd report
//!           dd-1183    (   1183) [001] d..2. 18804.040727: …                     with the process
//!     perf 16767 [000] 15877.488278:  250000 raw_syscalls:sys_exit: NR 16 = 0    perf script
//!     dd 11103/11104 17434.913261228: block:block_bio_queue: …                   without a CPU
//! ```

use whyslow_model::Ns;
use whyslow_model::event::Interrupt;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'t> {
    pub(super) comm: &'t str,
    pub(super) pid: Option<i32>,
    pub(super) tid: i32,
    pub(super) cpu: Option<i32>,
    /// Interrupt that the CPU was serving, if flags are printed.
    pub(super) interrupt: Option<Interrupt>,
    pub(super) ts: Ns,
    /// With its subsystem, if printed.
    pub(super) event: &'t str,
    pub(super) text: &'t str,
}

impl<'t> Line<'t> {
    pub(super) fn read(line: &'t str) -> Option<Self> {
        let (before, ts, rest) = time(line)?;
        let (task, cpu) = cpu(before);
        let (comm, pid, tid) = task_of(task)?;
        let rest = rest.trim_start();
        // The period of a sample, if printed.
        let event = match rest.split_once(char::is_whitespace) {
            Some((count, event)) if count.bytes().all(|byte| byte.is_ascii_digit()) => {
                event.trim_start()
            }
            _ => rest,
        };
        let (event, text) = name(event)?;
        Some(Self {
            comm,
            pid,
            tid,
            cpu,
            interrupt: interrupt(before),
            ts,
            event,
            text: text.trim(),
        })
    }
}

/// The text before the first word that is a time, the time, and the text after it.
fn time(line: &str) -> Option<(&str, Ns, &str)> {
    let mut from = 0;
    while let Some(at) = line[from..].find(": ").or_else(|| {
        // A line may end after the time.
        line[from..].strip_suffix(':').map(str::len)
    }) {
        let end = from + at;
        let begin = line[..end].rfind(' ').map_or(0, |at| at + 1);
        if let Some(ts) = stamp(&line[begin..end]) {
            return Some((line[..begin].trim_end(), ts, &line[end + 1..]));
        }
        from = end + 1;
    }
    None
}

/// Seconds with six or nine decimals.
fn stamp(word: &str) -> Option<Ns> {
    let (seconds, decimals) = word.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(seconds) || !is_number(decimals) || !matches!(decimals.len(), 6..=9) {
        return None;
    }
    let fraction: Ns = decimals.parse().ok()?;
    let scale = 10_i64.pow(9 - decimals.len() as u32);
    let seconds: Ns = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(fraction * scale)
}

/// The text before `[001]`, and the CPU; flags may follow.
fn cpu(before: &str) -> (&str, Option<i32>) {
    let Some(open) = before.rfind('[') else {
        return (before, None);
    };
    let inside = before[open + 1..].split(']').next().unwrap_or("");
    match inside.parse::<u16>() {
        Ok(cpu) => (before[..open].trim_end(), Some(i32::from(cpu))),
        // A name may contain brackets.
        Err(_) => (before, None),
    }
}

/// The third of the flags after the CPU, as in `d.h1.`: hard interrupt, softirq, NMI or none.
fn interrupt(before: &str) -> Option<Interrupt> {
    let flags = before.rsplit_once(']')?.1.trim();
    if !(4..=6).contains(&flags.len()) || flags.contains(' ') {
        return None;
    }
    match flags.as_bytes()[2] {
        b'h' | b'H' | b'z' | b'Z' => Some(Interrupt::Hard),
        b's' => Some(Interrupt::Soft),
        b'.' => Some(Interrupt::None),
        _ => None,
    }
}

fn task_of(task: &str) -> Option<(&str, Option<i32>, i32)> {
    let task = task.trim();
    // `(   1183)`, or `(-------)` if the process is unknown.
    let (task, pid) = match task
        .strip_suffix(')')
        .and_then(|task| task.rsplit_once('('))
    {
        Some((task, pid)) => (task.trim_end(), pid.trim().parse().ok()),
        None => (task, None),
    };
    let (head, last) = task.rsplit_once(char::is_whitespace).unwrap_or(("", task));
    if let Some((pid, tid)) = last.split_once('/')
        && let (Ok(pid), Ok(tid)) = (pid.parse(), tid.parse())
    {
        return Some((head.trim(), Some(pid), tid));
    }
    if let Ok(tid) = last.parse()
        && !head.is_empty()
    {
        return Some((head.trim(), pid, tid));
    }
    let (comm, tid) = task.rsplit_once('-')?;
    Some((comm.trim(), pid, tid.parse().ok()?))
}

/// `block:block_rq_issue: text`, `cpu-clock:`, `sys_openat(dfd: …)`, `sys_openat -> 0x3`.
fn name(rest: &str) -> Option<(&str, &str)> {
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.' | '/')))
        .unwrap_or(rest.len());
    let (word, text) = rest.split_at(end);
    let event = word.trim_end_matches(':');
    if event.is_empty() || event.starts_with(['-', '.']) {
        return None;
    }
    let is_call = text.starts_with('(') || text.starts_with(" -> ");
    (word.len() > event.len() || is_call).then_some((event, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_show_the_interrupt() {
        let of = |flags: &str| {
            let line = format!("  dd-7  [001] {flags} 18804.031273: sched_waking: comm=x");
            Line::read(&line).expect("a line").interrupt
        };
        assert_eq!(of("d..2."), Some(Interrupt::None));
        assert_eq!(of("dNh2."), Some(Interrupt::Hard));
        assert_eq!(of("d.H2"), Some(Interrupt::Hard));
        assert_eq!(of("..s1."), Some(Interrupt::Soft));
        assert_eq!(of(""), None);
        // The flags of `perf script` are no flags of ftrace.
        assert_eq!(of("d"), None);
    }

    #[test]
    fn lines_of_all_tools_are_taken_apart() {
        let of = |line| {
            let line = Line::read(line)?;
            Some((
                line.comm, line.pid, line.tid, line.cpu, line.ts, line.event, line.text,
            ))
        };
        assert_eq!(
            of("  build-script-bu-399     [001] d..2. 18804.031273: sched_switch: prev_comm=x"),
            Some((
                "build-script-bu",
                None,
                399,
                Some(1),
                18_804_031_273_000,
                "sched_switch",
                "prev_comm=x"
            ))
        );
        assert_eq!(
            of(" a b-7 (    5) [000] 1.000001: sys_openat -> 0x3"),
            Some((
                "a b",
                Some(5),
                7,
                Some(0),
                1_000_001_000,
                "sys_openat",
                "-> 0x3"
            ))
        );
        assert_eq!(
            of("opt cgu.01 16764 [000] 15877.488316:   250000 cpu-clock: "),
            Some((
                "opt cgu.01",
                None,
                16764,
                Some(0),
                15_877_488_316_000,
                "cpu-clock",
                ""
            ))
        );
        assert_eq!(
            of("dd 11103/11104 17434.913261228:   block:block_bio_queue: 254,0 DS 7 + 8 [dd]"),
            Some((
                "dd",
                Some(11103),
                11104,
                None,
                17_434_913_261_228,
                "block:block_bio_queue",
                "254,0 DS 7 + 8 [dd]"
            ))
        );
        assert_eq!(
            of("<idle>-0 [000] ..s1 1.000001: softirq_entry: vec=1 [action=TIMER]"),
            Some((
                "<idle>",
                None,
                0,
                Some(0),
                1_000_001_000,
                "softirq_entry",
                "vec=1 [action=TIMER]"
            ))
        );
        for line in [
            "",
            "# tracer: nop",
            "a-1 [000] x: y: z",
            "ffff8138 schedule ([kernel.kallsyms])",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
