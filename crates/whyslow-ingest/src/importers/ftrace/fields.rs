//! Parses the text that events print after their names back into fields.

use crate::importers::tracepoint::value::Value;

/// Maximum number of fields of one line.
const PAIRS_MAX: usize = 32;
pub(super) const ARGS: usize = 6;

/// Fields with their values.
#[derive(Debug, Default)]
pub(super) struct Fields<'t> {
    pub(super) pairs: Vec<(&'t str, Value<'t>)>,
    /// Arguments of a system call by position.
    pub(super) args: Option<[u64; ARGS]>,
}

impl<'t> Fields<'t> {
    /// Parses the text of `event`, a name without its subsystem.
    pub(super) fn read(event: &str, text: &'t str) -> Self {
        let mut fields = Self::default();
        let read = match event {
            "sys_enter" | "sys_exit" => fields.call(text),
            "block_plug" | "block_unplug" => Some(()),
            event if event.starts_with("block_") => fields.block(event, text),
            event if event.starts_with("sys_") => fields.named_call(text),
            "sched_switch" => fields.switch(text),
            "sched_wakeup" | "sched_wakeup_new" | "sched_waking" => fields.wakeup(text),
            _ => None,
        };
        if read.is_none() {
            fields.pairs.clear();
            fields.named(event, text);
        }
        fields
    }

    fn add(&mut self, name: &'t str, value: Value<'t>) {
        if self.pairs.len() < PAIRS_MAX {
            self.pairs.push((name, value));
        }
    }

    fn number(&mut self, name: &'t str, text: &str) -> Option<()> {
        self.add(name, Value::Signed(number(text)?));
        Some(())
    }

    /// `prev_comm=a b prev_pid=5 ==> next_comm=c`: a value extends to the next key.
    fn named(&mut self, event: &str, text: &'t str) {
        let mut at = next_key(text, 0);
        while let Some((key, value)) = at {
            // A value does not start with a key: `comm==`.
            let next = next_key(text, value + 1);
            let end = next.map_or(text.len(), |(key, _)| key.0);
            let printed = text[value..end].trim_end().trim_end_matches("==>").trim();
            let printed = printed.strip_suffix('[').unwrap_or(printed).trim_end();
            let key = &text[key.0..key.1];
            self.add(field_of(event, key), value_of(key, printed));
            at = next;
        }
    }

    /// `dd:183 [120] R ==> sh:184 [120]`, as trace-cmd prints it.
    fn switch(&mut self, text: &'t str) -> Option<()> {
        let (prev, next) = text.split_once(" ==> ")?;
        let (comm, pid, prio, state) = task(prev)?;
        self.add("prev_comm", Value::Str(comm.as_bytes()));
        self.number("prev_pid", pid)?;
        self.number("prev_prio", prio)?;
        // Older versions name these two states as kernels before 4.14 did.
        let state = match state {
            "x" => Some(0x40),
            "W" => Some(0x80),
            state => self::state(state),
        };
        self.add("prev_state", state.map_or(Value::Absent, Value::Signed));
        let (comm, pid, prio, _) = task(next)?;
        self.add("next_comm", Value::Str(comm.as_bytes()));
        self.number("next_pid", pid)?;
        self.number("next_prio", prio)
    }

    /// `sh:184 [120] CPU:001`
    fn wakeup(&mut self, text: &'t str) -> Option<()> {
        let (comm, pid, prio, rest) = task(text)?;
        let (_, cpu) = rest.rsplit_once("CPU:")?;
        self.add("comm", Value::Str(comm.as_bytes()));
        self.number("pid", pid)?;
        self.number("prio", prio)?;
        self.number("target_cpu", cpu)
    }

    /// `NR 33 (b, 1, 55a01f2c19bc, 0, 7, b)`, `NR 33 = 1`.
    fn call(&mut self, text: &'t str) -> Option<()> {
        let rest = text.strip_prefix("NR ")?;
        let (nr, rest) = rest.split_once(' ')?;
        self.number("id", nr)?;
        if let Some(ret) = rest.strip_prefix("= ") {
            return self.number("ret", ret);
        }
        let list = rest.strip_prefix('(')?.strip_suffix(')')?;
        let mut args = [0; ARGS];
        for (arg, text) in args.iter_mut().zip(list.split(',')) {
            *arg = u64::from_str_radix(text.trim(), 16).ok()?;
        }
        self.args = Some(args);
        Some(())
    }

    /// `(dfd: ffffff9c, filename: 7f83, flags: 80000)`, `dfd: 0xffffff9c, filename: 0x7f83`, `-> 0x3`, `0x3`.
    fn named_call(&mut self, text: &'t str) -> Option<()> {
        let hexadecimal = |text: &str| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            u64::from_str_radix(digits, 16).ok()
        };
        let ret = text.strip_prefix("-> ").unwrap_or(text);
        if ret.starts_with("0x") && !ret.contains(':') || ret.parse::<i64>().is_ok() {
            let ret = match ret.strip_prefix("0x") {
                Some(_) => hexadecimal(ret)? as i64,
                None => ret.parse().ok()?,
            };
            self.add("ret", Value::Signed(ret));
            return Some(());
        }
        let list = text.strip_prefix('(').unwrap_or(text);
        let list = list.strip_suffix(')').unwrap_or(list);
        for argument in list.split(", ").filter(|argument| !argument.is_empty()) {
            let (name, value) = argument.split_once(": ")?;
            // The rest is for human readers: `0x7f83 "/etc/passwd"`.
            let value = value.split(' ').next().unwrap_or(value);
            self.add(
                name.trim(),
                Value::Signed(sign_extended(hexadecimal(value)?)),
            );
        }
        Some(())
    }

    /// `254,0 RA 16384 () 12580504 + 32 be,0,4 [bash]` and its variants.
    fn block(&mut self, event: &str, text: &'t str) -> Option<()> {
        let (head, bracket) = match text.rfind('[') {
            Some(at) => (&text[..at], text[at + 1..].strip_suffix(']')),
            None => (text, None),
        };
        let mut words = head.split_ascii_whitespace();
        self.add("dev", Value::Signed(device(words.next()?)?));
        let rwbs = words.next()?;
        self.add("rwbs", Value::Str(rwbs.as_bytes()));
        let rest: Vec<&str> = words.collect();
        let sign = rest.iter().position(|word| matches!(*word, "+" | "/"))?;
        self.number("sector", rest[sign.checked_sub(1)?])?;
        let after = *rest.get(sign + 1)?;
        if rest[sign] == "/" {
            self.number("new_sector", after)?;
        } else {
            self.number("nr_sector", after)?;
        }
        // Requests have their size before the command in parentheses.
        if sign >= 2 && rest[0].bytes().all(|byte| byte.is_ascii_digit()) && sign > 1 {
            self.number("bytes", rest[0])?;
        }
        if event == "block_bio_remap" {
            let from = rest.iter().position(|word| *word == "<-")?;
            let old = rest.get(from + 1)?.trim_matches(['(', ')']);
            self.add("old_dev", Value::Signed(device(old)?));
            self.number("old_sector", rest.get(from + 2)?)?;
        }
        if let Some(inside) = bracket {
            if event.ends_with("complete") || event.ends_with("requeue") {
                let name = if event == "block_rq_requeue" {
                    "errors"
                } else {
                    "error"
                };
                self.number(name, inside)?;
            } else {
                self.add("comm", Value::Str(inside.as_bytes()));
            }
        }
        Some(())
    }
}

/// Name, tid and priority of `dd:183 [120] R`, and the text after them. A name may contain any
/// character.
fn task(text: &str) -> Option<(&str, &str, &str, &str)> {
    let open = text.rfind(" [")?;
    let (task, rest) = (&text[..open], &text[open + 2..]);
    let (prio, behind) = rest.split_once(']')?;
    let (comm, pid) = task.rsplit_once(':')?;
    Some((comm, pid, prio, behind.trim()))
}

/// Start and end of the next `key=` from `from` on, and the start of its value.
fn next_key(text: &str, from: usize) -> Option<((usize, usize), usize)> {
    let mut from = text.ceil_char_boundary(from);
    loop {
        let equals = from + text.get(from..)?.find('=')?;
        let is_of_key = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let mut before = text.as_bytes()[..equals].iter();
        let begin = before.rposition(|byte| !is_of_key(byte));
        let begin = begin.map_or(0, |at| at + 1);
        let is_key = text[begin..equals].starts_with(|c: char| c.is_ascii_alphabetic())
            && (begin == 0 || text[..begin].ends_with([' ', '[']));
        if is_key {
            return Some(((begin, equals), equals + 1));
        }
        from = equals + 1;
    }
}

/// Maps a printed key to the field name where the two differ.
fn field_of<'t>(event: &str, key: &'t str) -> &'t str {
    match (event, key) {
        ("sched_process_fork", "comm") => "parent_comm",
        ("sched_process_fork", "pid") => "parent_pid",
        (event, "dev") if event.starts_with("net") => "name",
        _ => key,
    }
}

fn value_of<'t>(key: &str, value: &'t str) -> Value<'t> {
    if key.ends_with("comm") || matches!(key, "name" | "filename" | "dev" | "action") {
        return Value::Str(value.as_bytes());
    }
    if key == "prev_state" {
        return state(value).map_or(Value::Absent, Value::Signed);
    }
    if key == "ret" && matches!(value, "handled" | "unhandled") {
        return Value::Signed(i64::from(value == "handled"));
    }
    number(value).map_or(Value::Str(value.as_bytes()), Value::Signed)
}

/// Task state as the kernel has reported it since 4.14.
fn state(letters: &str) -> Option<i64> {
    Some(match letters.as_bytes().first()? {
        b'R' if letters.ends_with('+') => 0x100,
        b'R' => 0,
        b'S' => 1,
        b'D' => 2,
        b'T' => 4,
        b't' => 8,
        b'X' | b'x' => 0x10,
        b'Z' => 0x20,
        b'P' => 0x40,
        b'I' => 0x80,
        _ => return None,
    })
}

/// Decimal, possibly with leading zeros, or hexadecimal after `0x`.
fn number(text: &str) -> Option<i64> {
    let word = text.split([' ', ',']).next()?;
    match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16)
            .ok()
            .map(|value| value as i64),
        None => word
            .parse::<i64>()
            .ok()
            .or_else(|| word.parse::<u64>().ok().map(|value| value as i64)),
    }
}

/// Descriptors and similar arguments are printed as 32-bit numbers: `ffffff9c` is -100.
fn sign_extended(value: u64) -> i64 {
    match u32::try_from(value) {
        Ok(value) if value >= 0xffff_f000 => i64::from(value as i32),
        _ => value as i64,
    }
}

/// `254,0` in the kernel's encoding of device numbers.
fn device(text: &str) -> Option<i64> {
    let (major, minor) = text.split_once(',')?;
    let (major, minor): (i64, i64) = (major.parse().ok()?, minor.parse().ok()?);
    ((0..1 << 12).contains(&major) && (0..1 << 20).contains(&minor)).then_some(major << 20 | minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(event: &str, text: &str) -> String {
        let fields = Fields::read(event, text);
        let mut shown: Vec<String> = fields
            .pairs
            .iter()
            .map(|(name, value)| match value {
                Value::Str(bytes) => format!("{name}={}", String::from_utf8_lossy(bytes)),
                value => format!("{name}={}", value.as_i64().unwrap_or(-1)),
            })
            .collect();
        shown.extend(fields.args.map(|args| format!("{args:x?}")));
        shown.join("; ")
    }

    #[test]
    fn printed_events_have_their_fields() {
        for (event, text, wanted) in [
            (
                "sched_switch",
                "prev_comm=a b prev_pid=5 prev_prio=120 prev_state=R+ ==> next_comm== next_pid=7 next_prio=0",
                "prev_comm=a b; prev_pid=5; prev_prio=120; prev_state=256; next_comm==; next_pid=7; next_prio=0",
            ),
            (
                "sched_wakeup",
                "comm=12 pid=399 prio=120 target_cpu=001",
                "comm=12; pid=399; prio=120; target_cpu=1",
            ),
            (
                "block_rq_issue",
                "254,0 RA 16384 () 12580504 + 32 be,0,4 [bash]",
                "dev=266338304; rwbs=RA; sector=12580504; nr_sector=32; bytes=16384; comm=bash",
            ),
            (
                "block_rq_complete",
                "8,1 WS () 72 + 8 [-5]",
                "dev=8388609; rwbs=WS; sector=72; nr_sector=8; error=-5",
            ),
            (
                "block_bio_remap",
                "8,0 R 123 + 8 <- (8,1) 99",
                "dev=8388608; rwbs=R; sector=123; nr_sector=8; old_dev=8388609; old_sector=99",
            ),
            (
                "block_bio_queue",
                "8,0 W 123 + 8 [kworker/u8:1]",
                "dev=8388608; rwbs=W; sector=123; nr_sector=8; comm=kworker/u8:1",
            ),
            (
                "block_split",
                "8,0 W 123 / 456 [dd]",
                "dev=8388608; rwbs=W; sector=123; new_sector=456; comm=dd",
            ),
            (
                "sys_enter",
                "NR 33 (b, 1, 55, 0, 7, b)",
                "id=33; [b, 1, 55, 0, 7, b]",
            ),
            ("sys_exit", "NR 33 = -2", "id=33; ret=-2"),
            (
                "sys_openat",
                "(dfd: ffffff9c, filename: 7f83, flags: 80000)",
                "dfd=-100; filename=32643; flags=524288",
            ),
            ("sys_exit_openat", "0x3", "ret=3"),
            ("sys_exit_openat", "-> 0xfffffffffffffffe", "ret=-2"),
            (
                "irq_handler_entry",
                "irq=36 name=virtio1-req.0",
                "irq=36; name=virtio1-req.0",
            ),
            ("irq_handler_exit", "irq=36 ret=handled", "irq=36; ret=1"),
            (
                "softirq_entry",
                "vec=1 [action=TIMER]",
                "vec=1; action=TIMER]",
            ),
            (
                "sched_process_fork",
                "comm=sh pid=50 child_comm=sh child_pid=52",
                "parent_comm=sh; parent_pid=50; child_comm=sh; child_pid=52",
            ),
            (
                "net_dev_xmit",
                "dev=eth0 skbaddr=00000000abcd len=66 rc=0",
                "name=eth0; skbaddr=00000000abcd; len=66; rc=0",
            ),
            ("anything", "", ""),
            ("sched_wakeup", "comm=éa pid=5 é=1", "comm=éa; pid=5"),
            ("block_rq_issue", "nonsense = 5", ""),
        ] {
            assert_eq!(shown(event, text), wanted, "{event} {text}");
        }
    }
}
