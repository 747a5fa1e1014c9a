//! Permitted differences from lttng-analyses, each with its proof from the trace. The names of the
//! rules are the rows of `docs/lttng-analyses-differences.md`.

use std::rc::Rc;

use super::facts::{Facts, Wait};
use super::parse::Cells;

/// A cell, or a whole row (`column` is `row`), that differs.
#[derive(Debug)]
pub(crate) struct Difference {
    pub(crate) file: String,
    pub(crate) table: String,
    pub(crate) key: String,
    pub(crate) column: String,
    pub(crate) theirs: Cells,
    pub(crate) ours: Cells,
    /// Smallest amount among the rows of lttng-analyses, if it prints only the largest ones.
    pub(crate) least: Option<f64>,
    pub(crate) range: (i64, i64),
    pub(crate) is_ranged: bool,
    /// Keys of rows that only this program has.
    pub(crate) extra: Rc<Vec<(String, f64)>>,
    /// Keys of rows that only lttng-analyses has.
    pub(crate) missing: Rc<Vec<(String, f64)>>,
    /// Smallest amount among the rows of this program.
    pub(crate) our_least: Option<f64>,
}

impl Difference {
    fn their(&self, column: &str) -> &str {
        cell(&self.theirs, column)
    }

    fn our(&self, column: &str) -> &str {
        cell(&self.ours, column)
    }

    fn is_missing(&self) -> bool {
        self.column == "row" && self.ours.is_empty()
    }

    fn is_extra(&self) -> bool {
        self.column == "row" && self.theirs.is_empty()
    }

    /// Thread of a row by thread, or of a call.
    fn tid(&self) -> &str {
        self.key
            .rsplit_once("tid ")
            .map_or(&self.key, |(_, tid)| tid)
    }
}

fn cell<'c>(cells: &'c Cells, column: &str) -> &'c str {
    let cell = cells.iter().find(|(name, _)| *name == column);
    cell.map_or("", |(_, value)| value)
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// Bytes of `1.50 KiB`.
pub(crate) fn bytes(text: &str) -> f64 {
    let (amount, unit) = text.split_once(' ').unwrap_or((text, "B"));
    let power = ["B", "KiB", "MiB", "GiB"]
        .iter()
        .position(|known| *known == unit);
    number(amount) * 1024_f64.powi(power.map_or(0, |power| power as i32))
}

pub(crate) fn explain(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let table = difference.table.split(" #").next().unwrap_or("");
    match table {
        _ if difference.column == "comm" => names(difference, facts),
        _ if table.starts_with("System calls of TID") || table == "Total syscalls" => {
            syscalls(difference, table, facts)
        }
        "Per-TID Usage" | "Per-CPU Usage" | "Total CPU Usage" => cpu(difference, table, facts),
        _ if table.starts_with("Scheduling latency frequency") => {
            scheduling_bins(difference, table, facts)
        }
        _ if table.starts_with("Scheduling latency stats") => scheduling(difference, table, facts),
        "Scheduling top" | "Scheduling log" => waker(difference, facts),
        _ if table.starts_with("Per-process I/O") => processes(difference, facts),
        _ if table.starts_with("Per-file I/O") => files(difference),
        _ if table.starts_with("Block I/O") => issuers(difference, facts),
        _ if table.starts_with("Top system call") || table == "I/O operations log" => {
            calls(difference, facts)
        }
        _ if table.starts_with("Network Received") => {
            let is_new = facts.has_event(&["net_if_receive_skb"]);
            let none = difference.is_extra() || difference.their("size") == "0 B";
            (is_new && none).then_some("packets received by their new name")
        }
        "Hard IRQ" => shared_line(difference, facts),
        "Network Sent Bytes" => {
            let queued = facts.has_event(&["net_dev_queue"]) && !facts.has_event(&["net_dev_xmit"]);
            (queued && difference.is_extra()).then_some("packets handed to the interface")
        }
        "Syscalls latency statistics" => no_calls(difference)
            .or_else(|| duplicates(difference, facts))
            .or_else(|| ranged(difference)),
        _ if table.contains("distribution") => bins(difference, facts),
        "Interrupt log" if difference.column == "name" => {
            let ours = difference.our("name");
            let shared = difference
                .their("name")
                .split(", ")
                .any(|name| name == ours);
            shared.then_some("shared interrupt lines")
        }
        "Soft IRQ" | "Interrupt log" => softirqs(difference, facts),
        _ if table.contains("emory") => memory(difference, facts),
        _ => None,
    }
}

fn names(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let tid = match difference.table.strip_prefix("System calls of TID ") {
        Some(tid) => tid.split(' ').next().unwrap_or(""),
        None => difference.tid(),
    };
    let had = |name: &str| facts.was_named(tid, name);
    (had(difference.their("comm")) && had(difference.our("comm"))).then_some("name of the thread")
}

/// `'ENOENT': 3, 'success': 2`
fn returned(text: &str) -> Vec<(&str, i64)> {
    let counts = text.split(", ").filter_map(|part| {
        let (name, count) = part.split_once(": ")?;
        Some((name, count.parse().ok()?))
    });
    counts.collect()
}

fn syscalls(difference: &Difference, table: &str, facts: &Facts) -> Option<&'static str> {
    let tid = table.trim_start_matches("System calls of TID ");
    let (theirs, ours) = (difference.their("count"), difference.our("count"));
    match difference.column.as_str() {
        "returned" => {
            let theirs = returned(difference.their("returned"));
            // Addresses in the upper half of the address space are no errors.
            let is_address = |name: &str| {
                let number = name.trim_matches('\'').parse::<i64>();
                number.is_ok_and(|number| number < -4095)
            };
            let addresses = theirs.iter().filter(|(name, _)| is_address(name));
            let addresses: i64 = addresses.map(|(_, count)| count - 1).sum();
            if addresses > 0 {
                let success = format!("'success': {addresses}");
                return (difference.our("returned") == success)
                    .then_some("addresses are no errors");
            }
            let ours = returned(difference.our("returned"));
            let restart = |name: &str| match name {
                "'-512'" => "'ERESTARTSYS'",
                "'-513'" => "'ERESTARTNOINTR'",
                "'-514'" => "'ERESTARTNOHAND'",
                "'-516'" => "'ERESTART_RESTARTBLOCK'",
                _ => "",
            };
            let mut theirs: Vec<(&str, i64)> = theirs;
            let mut has_restarts = false;
            for (name, _) in &mut theirs {
                if !restart(name).is_empty() {
                    *name = restart(name);
                    has_restarts = true;
                }
            }
            theirs.sort_unstable();
            let one_more = ours.iter().map(|(name, count)| (*name, count + 1));
            let sum: i64 = ours.iter().map(|(_, count)| count).sum();
            let is_all = sum.to_string() == difference.our("count");
            let kind = if has_restarts {
                "numbers of restarted calls"
            } else {
                "return values one too many"
            };
            (is_all && one_more.eq(theirs)).then_some(kind)
        }
        "stdev" => (theirs == "2" && difference.their("stdev") == "?").then_some("spread of two"),
        "count" if table == "Total syscalls" => {
            let all = facts
                .trace
                .rows
                .syscall
                .iter()
                .filter(|row| row.dur.is_some() && row.tid.is_some());
            (all.count().to_string() == ours).then_some("calls that end with the thread")
        }
        "count" => {
            let calls = |rows: &[(String, f64)]| -> f64 {
                let named = rows
                    .iter()
                    .filter(|(name, _)| !["thread", "total"].contains(&name.as_str()));
                named.map(|(_, count)| count).sum()
            };
            let more = calls(&difference.extra) - calls(&difference.missing);
            (number(theirs) + more == number(ours)).then_some("calls that end with the thread")
        }
        _ if difference.is_extra() => {
            let exits = facts.exits(tid).to_string();
            let all = facts.calls(tid).count().to_string();
            let by_number = |row: &&whyslow_model::tables::SyscallRow| {
                row.nr.is_some() && facts.text(Some(row.name)) == difference.key
            };
            if ["exit", "exit_group"].contains(&&*difference.key) && ours == exits
                || ["thread", "total"].contains(&&*difference.key) && all == exits
            {
                return Some("calls that end with the thread");
            }
            let known = facts.calls(tid).filter(by_number).count();
            // Returns of signal handlers have no name and no number.
            let is_return = difference.key == "rt_sigreturn";
            (known > 0 || is_return).then_some("calls that the tracer knows by number")
        }
        _ if difference.is_missing() && difference.key == "unknown" => {
            let extra = difference.extra.iter().filter(|(name, _)| {
                !["exit", "exit_group", "thread", "total"].contains(&name.as_str())
            });
            let calls: f64 = extra.map(|(_, count)| count).sum();
            (calls >= number(theirs)).then_some("calls that the tracer knows by number")
        }
        _ => None,
    }
}

fn cpu(difference: &Difference, table: &str, facts: &Facts) -> Option<&'static str> {
    let close = |ratio: f64| (ratio * 100.0 - number(difference.their("usage"))).abs() < 0.006;
    match (difference.column.as_str(), table) {
        ("usage", "Per-CPU Usage") => {
            let cpu = difference.key.trim_start_matches("CPU ").parse().ok()?;
            close(facts.busy_from_the_begin(cpu, difference.range))
                .then_some("CPUs before their first switch")
        }
        ("usage", "Total CPU Usage") => {
            let cpus = &facts.trace.rows.cpu;
            let busy = |cpu| facts.busy_from_the_begin(cpu, difference.range);
            let sum: f64 = cpus.iter().map(|row| busy(row.cpu)).sum();
            close(sum / cpus.len() as f64).then_some("CPUs before their first switch")
        }
        ("row", "Per-TID Usage") if difference.key == "0" => Some("CPUs before their first switch"),
        ("row", "Per-TID Usage") => {
            let usage = Some(number(difference.our("usage")));
            (usage <= difference.least).then_some("beyond the limit")
        }
        ("usage", _) => {
            // Charged from the start of the range, although it arrived with the CPU's first event.
            let tid = difference.key.parse().ok();
            let mut slices = facts.trace.rows.sched_slice.iter();
            let first =
                slices.find(|row| row.tid == tid && row.ts_end > Some(difference.range.0))?;
            let before = (first.ts - difference.range.0).max(0) as f64;
            let length = (difference.range.1 - difference.range.0) as f64;
            let ours = number(difference.our("usage")) + before / length * 100.0;
            let is_it =
                first.dur.is_none() && (ours - number(difference.their("usage"))).abs() < 0.011;
            is_it.then_some("CPUs before their first switch")
        }
        ("priorities", _) => (difference.their("priorities") == "[]")
            .then_some("priority of the running thread at the start"),
        ("migrations", _) => migrations(difference, facts),
        _ => None,
    }
}

fn migrations(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let tid = difference.key.parse().ok();
    let slices = facts.trace.rows.sched_slice.iter();
    let mut slices: Vec<_> = slices.filter(|row| row.tid == tid).collect();
    slices.sort_by_key(|row| (row.utid, row.ts));
    let moved = slices
        .windows(2)
        .filter(|pair| pair[0].utid == pair[1].utid && pair[0].cpu != pair[1].cpu);
    let moves = moved.count() as f64;
    let (theirs, ours) = (
        number(difference.their("migrations")),
        number(difference.our("migrations")),
    );
    if !facts.has_event(&["sched_migrate_task"]) {
        let all = difference.is_ranged || ours == moves;
        return (theirs == 0.0 && all && ours <= moves).then_some("migrations without events");
    }
    // An event after the last slice, or of a child before the event that announces it.
    ((theirs - ours).abs() <= 1.0 && ours >= moves).then_some("migrations at the ends of a life")
}

fn waits_of<'f>(difference: &Difference, table: &str, facts: &'f Facts) -> Vec<&'f Wait> {
    let waits = facts.waits.iter();
    let key = match table.rsplit_once(": ") {
        Some((_, number)) => number,
        None => &difference.key,
    };
    let key: Option<i32> = key.parse().ok();
    let by_prio = table.contains("per-prio") || table.contains("Priority: ");
    let by_tid = table.contains("per-TID") || table.contains("TID: ");
    let is_it = |wait: &&Wait| match (by_prio, by_tid) {
        (true, _) => wait.prio.map(|prio| prio - 100) == key,
        (_, true) => Some(wait.tid) == key,
        _ => true,
    };
    waits.filter(is_it).collect()
}

/// Statistics of the waits as lttng-analyses defines them.
fn scheduling(difference: &Difference, table: &str, facts: &Facts) -> Option<&'static str> {
    let waits = waits_of(difference, table, facts);
    let ns: Vec<i64> = waits.iter().map(|wait| wait.ns).collect();
    let count = ns.len() as f64;
    let mean = ns.iter().sum::<i64>() as f64 / count;
    let squares: f64 = ns.iter().map(|ns| (*ns as f64 - mean).powi(2)).sum();
    let us = |ns: f64| format!("{:.3}", ns / 1e3);
    let figure = match difference.column.as_str() {
        "count" => ns.len().to_string(),
        "min" => us(*ns.iter().min()? as f64),
        "max" => us(*ns.iter().max()? as f64),
        "average" => us(mean),
        "stdev" if ns.len() < 2 => "?".into(),
        "stdev" => us((squares / (count - 1.0)).sqrt()),
        "priorities" => return None,
        _ if difference.is_missing() => ns.len().to_string(),
        _ => return None,
    };
    let column = if difference.is_missing() {
        "count"
    } else {
        &difference.column
    };
    (figure == difference.their(column)).then_some("wakeups of preempted threads")
}

/// Bins of the waits as lttng-analyses defines them, with its own bounds.
fn scheduling_bins(difference: &Difference, table: &str, facts: &Facts) -> Option<&'static str> {
    let ns: Vec<i64> = waits_of(difference, table, facts)
        .iter()
        .map(|wait| wait.ns)
        .collect();
    let place: f64 = difference.key.parse().ok()?;
    let (min, max) = (*ns.iter().min()? as f64, *ns.iter().max()? as f64);
    let bound = |place: f64| min + (max - min) * place / 20.0;
    if difference.column == "from" {
        let close = (bound(place) / 1e3 - number(difference.their("from"))).abs() < 0.002;
        return close.then_some("wakeups of preempted threads");
    }
    let inside = ns.iter().filter(|ns| {
        let ns = **ns as f64;
        bound(place) <= ns && (ns < bound(place + 1.0) || place == 19.0)
    });
    let count = inside.count() as f64;
    if count == number(difference.their("count")) {
        return Some("wakeups of preempted threads");
    }
    on_a_bound(difference, &ns)
}

/// Floating point decides on which side of a bound an equal duration falls.
fn on_a_bound(difference: &Difference, ns: &[i64]) -> Option<&'static str> {
    let place: f64 = difference.key.parse().ok()?;
    let (min, max) = (*ns.iter().min()? as f64, *ns.iter().max()? as f64);
    let off = (number(difference.their("count")) - number(difference.our("count"))).abs();
    let near = |bound: f64| {
        ns.iter()
            .filter(|ns| (**ns as f64 - bound).abs() < 1e-3)
            .count() as f64
    };
    let bound = |place: f64| min + (max - min) * place / 20.0;
    (off <= near(bound(place)) + near(bound(place + 1.0))).then_some("durations on a bound")
}

fn waker(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    if difference.column != "waker" {
        return None;
    }
    let (theirs, ours) = (difference.their("waker"), difference.our("waker"));
    let (name, tid) = theirs.rsplit_once(" (")?;
    let tid = tid.trim_end_matches(')');
    if ours.ends_with(&format!("({tid})")) {
        let ours = ours.rsplit_once(" (").map_or("", |(name, _)| name);
        let both = facts.was_named(tid, name) && facts.was_named(tid, ours);
        return both.then_some("name of the thread");
    }
    let wakee = difference.tid().parse().ok();
    let latency = number(difference.their("latency"));
    let mut states = facts.trace.rows.thread_state.iter();
    let woken = states.find(|row| {
        let same = row
            .dur
            .is_some_and(|dur| (dur as f64 / 1e3 - latency).abs() < 1e-3);
        row.tid == wakee && row.wakeup_id.is_some() && same
    });
    let context = facts.text(woken?.wake_context);
    let is_interrupt = ["irq", "softirq", "timer"].contains(&context);
    (ours == "Unknown (N/A)" && is_interrupt).then_some("woken by an interrupt")
}

fn processes(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let (theirs, ours) = (difference.their("total"), difference.our("total"));
    match difference.column.as_str() {
        "disk" | "net" | "unknown" if theirs == ours => Some("classes of objects"),
        _ if difference.is_missing() && theirs == "0 B" => Some("processes that moved nothing"),
        _ if difference.is_extra() && Some(bytes(ours)) <= difference.least => {
            Some("beyond the limit")
        }
        _ if difference.is_missing() && Some(bytes(theirs)) <= difference.our_least => {
            Some("beyond the limit")
        }
        _ if difference.is_extra() && facts.cut_bytes(&difference.key) as f64 == bytes(ours) => {
            Some("calls cut by the trace")
        }
        _ if difference.is_ranged => ranged(difference),
        _ => None,
    }
}

fn files(difference: &Difference) -> Option<&'static str> {
    let size = bytes(difference.our("size"));
    if difference.is_extra() && Some(size) <= difference.least {
        return Some("beyond the limit");
    }
    if difference.is_ranged {
        return ranged(difference);
    }
    if difference.column == "size" {
        let more = bytes(difference.their("size")) < size;
        return more.then_some("objects that the peer does not know");
    }
    let is_missing = difference.is_missing();
    (is_missing || difference.is_extra()).then_some("names of files")
}

fn issuers(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let op = if difference.table.contains("Write") {
        "write"
    } else {
        "read"
    };
    let issued = facts.issued(op, difference.range);
    let threads = facts.trace.rows.thread.iter();
    let of_process = threads.filter(|row| row.pid.unwrap_or(row.tid).to_string() == difference.key);
    let sizes = of_process.filter_map(|row| issued.get(&row.tid));
    let sizes: Vec<f64> = sizes.map(|bytes| *bytes as f64).collect();
    let theirs = difference.their("size");
    let (size, error) = (bytes(theirs), rounding(theirs));
    let is_so = if difference.is_extra() {
        let ours = bytes(difference.our("size"));
        sizes.iter().all(|issued| *issued < ours)
    } else {
        sizes.iter().any(|issued| (issued - size).abs() <= error)
    };
    is_so.then_some("writing thread")
}

/// Half of the last digit of `1.50 KiB`.
fn rounding(text: &str) -> f64 {
    let unit = text.split_once(' ').map_or("B", |(_, unit)| unit);
    0.006 * bytes(&format!("1 {unit}"))
}

fn calls(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let (theirs, ours) = (difference.their("path"), difference.our("path"));
    match difference.column.as_str() {
        "path" if same_file(theirs, ours) => Some("relative path"),
        "path" if theirs == "unknown" || theirs == "N/A" || theirs.is_empty() => {
            Some("objects that the peer does not know")
        }
        "path" if ours.starts_with("socket") || theirs.starts_with("socket") => {
            Some("names of sockets")
        }
        "path" if ours.starts_with("unknown (") => None,
        "path" => Some("names of files"),
        "fd" => difference
            .their("name")
            .starts_with("dup")
            .then_some("descriptor of dup"),
        "name" => {
            let plain = |name: &str| name.trim_end_matches("64").to_owned();
            (plain(difference.their("name")) == plain(difference.our("name")))
                .then_some("name of the call")
        }
        _ if difference.is_missing() && difference.their("name").starts_with("fcntl") => {
            Some("descriptors duplicated by fcntl")
        }
        _ if difference.is_extra() && difference.our("duration") == "?" => {
            Some("calls cut by the trace")
        }
        _ if difference.is_extra() && difference.is_ranged => {
            // Crosses the end of the range, or uses a descriptor from before it.
            let known = facts.logged.contains(&difference.key);
            known.then_some("calls over the edge of the range")
        }
        _ if difference.is_missing() && difference.is_ranged => ranged(difference),
        _ => None,
    }
}

/// `F_DUPFD` is an open for lttng-analyses. Here `fcntl` is not: the names of calls to filter by do
/// not include the command.
fn duplicates(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    if difference.key != "Open" {
        return None;
    }
    let more = number(difference.their("count")) - number(difference.our("count"));
    let all = facts.duplicated() as f64;
    let is_all = more == all || difference.is_ranged && 0.0 < more && more <= all;
    is_all.then_some("descriptors duplicated by fcntl")
}

fn same_file(theirs: &str, ours: &str) -> bool {
    ours.ends_with(&format!("/{}", theirs.trim_start_matches("./")))
}

fn no_calls(difference: &Difference) -> Option<&'static str> {
    let none = difference.their("count") == "0" && difference.our("count") == "0";
    (none && difference.our(&difference.column) == "?").then_some("figures of nothing")
}

/// In a range lttng-analyses loses reads and writes on descriptors from before it, and does not
/// show what ends after it.
fn ranged(difference: &Difference) -> Option<&'static str> {
    let fewer = |column: &str, of: fn(&str) -> f64| {
        of(difference.their(column)) <= of(difference.our(column))
    };
    let lost = match difference.column.as_str() {
        "row" => true,
        _ if !difference.our("total").is_empty() => fewer("total", bytes),
        _ if !difference.our("size").is_empty() => fewer("size", bytes),
        _ => fewer("count", number),
    };
    (difference.is_ranged && lost).then_some("calls over the edge of the range")
}

fn bins(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    if difference.table.contains("_SOFTIRQ") {
        return softirqs(difference, facts);
    }
    if let Some(name) = difference
        .table
        .strip_prefix("Handler duration frequency distribution ")
    {
        let nr = name
            .rsplit_once('(')
            .map_or("", |(_, nr)| nr.trim_end_matches(')'));
        if difference.column == "row" {
            return (facts.handlers(nr).0.len() > 1).then_some("shared interrupt lines");
        }
    }
    let close = |theirs: &str, ours: &str| (number(theirs) - number(ours)).abs() < 0.0015;
    let (theirs, ours) = (difference.their("from"), difference.our("from"));
    if difference.table.ends_with(" open") && difference.column == "count" {
        let more = number(difference.their("count")) - number(difference.our("count"));
        let all = facts.duplicated() as f64;
        return (0.0 < more && more <= all).then_some("descriptors duplicated by fcntl");
    }
    (difference.column == "from" && close(theirs, ours)).then_some("rounding of a bound")
}

/// Several handlers on one line: lttng-analyses adds them up.
fn shared_line(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let (names, count) = facts.handlers(&difference.key);
    let all = difference.theirs.is_empty() || difference.their("count") == count.to_string();
    (names.len() > 1 && all).then_some("shared interrupt lines")
}

fn softirqs(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let is_new = facts.has_event(&["irq_softirq_entry"]);
    (difference.is_extra() && is_new).then_some("softirqs by their new name")
}

fn memory(difference: &Difference, facts: &Facts) -> Option<&'static str> {
    let names = ["mm_page_alloc", "kmem_mm_page_alloc"];
    if difference.is_missing() && !facts.has_event(&names) {
        return (difference.their("pages") == "0").then_some("pages that were not recorded");
    }
    let more = number(difference.their("pages")) <= number(difference.our("pages"));
    if difference.is_missing() && difference.their("pages") == "0" {
        return Some("processes that moved nothing");
    }
    if !more && difference.table.contains("Deallocations") {
        // Pages freed by a softirq are not attributed to a thread.
        let softirq = facts.has_event(&["softirq_entry", "irq_softirq_entry"]);
        return softirq.then_some("pages freed by interrupts");
    }
    (more || difference.is_extra()).then_some("pages of an allocation")
}
