//! Lines before a table: which tool it is from, and its subject.

use super::table::Timed;

/// `Linux 6.1.0 (web1)  11/25/26  _x86_64_  (2 CPU)`
pub(super) fn is_banner(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().take(8).collect();
    line.starts_with("Linux ")
        && words.get(2).is_some_and(|word| word.starts_with('('))
        && words.iter().any(|word| word.starts_with('_'))
}

pub(super) fn tool_of(header: &[&str], timed: Timed) -> &'static str {
    let has = |name: &str| header.contains(&name);
    let is_number_of_irq = |name: &&str| {
        name.strip_suffix("/s")
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    if timed == Timed::Above {
        "iostat"
    } else if has("PID") || has("TGID") {
        "pidstat"
    } else if has("NODE")
        || has("%usr") && header.get(5) == Some(&"%irq")
        || has("intr/s")
        || has("NET_RX/s")
        || header.iter().any(is_number_of_irq)
    {
        "mpstat"
    } else {
        "sar"
    }
}

/// Tables whose columns have names that other tables use, too.
pub(super) fn topic_of(header: &[&str]) -> Option<&'static str> {
    match *header.first()? {
        "call/s" => Some("nfs"),
        "scall/s" => Some("nfsd"),
        "atmptf/s" => Some("tcp"),
        _ => None,
    }
}

/// A thread name: the prefixes `|__` and `(java)__` denote the process, a path is a command line.
pub(super) fn comm(text: &str) -> Option<&str> {
    let name = text.split_once("__").map_or(text, |(before, name)| {
        let is_mark = before == "|" || before.starts_with('(') && before.ends_with(')');
        if is_mark { name } else { text }
    });
    let is_path = name.starts_with('/');
    let name = if is_path {
        let program = name.split(' ').next().unwrap_or_default();
        program.rsplit('/').next().unwrap_or_default()
    } else {
        name
    };
    let cut = name
        .char_indices()
        .map(|(at, c)| at + c.len_utf8())
        .take_while(|end| *end <= 15)
        .last();
    cut.and_then(|end| name.get(..end))
        .filter(|name| !name.is_empty())
}
