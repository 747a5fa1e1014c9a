//! Traces with stacks, as text.

use std::fmt::Write as _;

/// Hostile function names.
pub(crate) const HOSTILE: [&str; 6] = [
    "<img src=x onerror=alert(1)>",
    "]]></script><script>alert(1)</script>",
    "\u{202e}exe.txt\u{2066}",
    "\u{1b}[31m\u{7}",
    "\" onload=\"alert(1)\" '&lt;",
    "a 12 b",
];

/// A wait of a millisecond in each function with a hostile name, and one with a very long name.
pub(crate) fn hostile() -> String {
    let mut trace = String::new();
    for (number, name) in (0..).zip(HOSTILE) {
        let name: String = name.chars().flat_map(quoted).collect();
        let long = "x".repeat(if number == 0 { 4096 } else { 0 });
        wait(&mut trace, number * 10, 1, &format!("\"{name}{long}\""));
    }
    trace
}

fn quoted(c: char) -> Vec<char> {
    match c {
        '"' => vec!['\\', '"'],
        '\\' => vec!['\\', '\\'],
        c if (c as u32) < 0x20 => format!("\\x{:02x}", c as u32).chars().collect(),
        c => vec![c],
    }
}

/// Waits one after another, each with these functions, outermost last.
pub(crate) fn trace(stacks: &[(Vec<u8>, i64)]) -> String {
    let mut trace = String::new();
    let mut at = 0;
    for (functions, ms) in stacks {
        let names: Vec<String> = functions
            .iter()
            .map(|number| format!("f{number}"))
            .collect();
        wait(&mut trace, at, *ms, &names.join(";"));
        at += ms + 1;
    }
    trace
}

fn wait(trace: &mut String, at_ms: i64, ms: i64, kernel: &str) {
    let time = |ms: i64| format!("{}.{:03}000000", 1 + ms / 1000, ms % 1000);
    let _ = writeln!(
        trace,
        "{} [0] (tid=10 pid=10 comm=web) sched_switch prev=10 prev_state=D next=0",
        time(at_ms)
    );
    let end = time(at_ms + ms);
    let _ = writeln!(trace, "{end} [0] sched_switch prev=0 prev_state=R next=10");
    let kernel = if kernel.is_empty() {
        String::new()
    } else {
        format!(" kernel={kernel}")
    };
    let _ = writeln!(
        trace,
        "{end} [0] (tid=10) stack kind=back since={} state=D cpu=0{kernel}",
        time(at_ms)
    );
}
