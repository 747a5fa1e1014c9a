//! Output of ruby-prof: total times per method (flat), per method and caller (graph), and a call
//! tree in callgrind format.
//!
//! ```text
//! Measure Mode: wall_time
//! Thread ID: 80
//!
//!  %self      total      self      wait     child     calls  name                           location
//!   0.41     12.996     0.053    12.943     0.000      156   TCPServer#accept               web.rb:64
//! ```
//!
//! A graph has a block for each method: callers above its own line (which starts with percentages),
//! callees below; the line of a caller contains the time of the method in calls by that caller. A
//! call tree has the exclusive cost of each method, and the inclusive cost of each of its callees.
//!
//! Neither contains times of day or whole stacks: a method is a stack of one or two frames, and
//! counts as one sample per microsecond of its own time.

use whyslow_model::Ns;

use super::Read;
use crate::profile::{
    CodeFrame, CodeKind, NO_STACK, Point, SampleKind, SampledState, SampledThread,
};

const MODE: &str = "Measure Mode: ";
const THREAD: &str = "Thread ID: ";
const EVENTS: &str = "events: ";
/// Measures in seconds, or in microseconds in a call tree.
const TIMES: &[&str] = &["wall_time", "process_time", "cpu_time", "gc_time"];

pub(super) fn is_printed(head: &str) -> bool {
    head.starts_with(MODE) && head.contains(THREAD)
}

pub(super) fn is_call_tree(head: &str) -> bool {
    let mut lines = head.lines().filter(|line| !line.is_empty());
    let begins = |line: Option<&str>, what: &str| line.is_some_and(|line| line.starts_with(what));
    begins(lines.next(), EVENTS) && begins(lines.next(), "fl=") && begins(lines.next(), "fn=")
}

struct Reading {
    read: Read,
    thread: u32,
    at: Ns,
}

impl Reading {
    fn new(measure: &str, written: Option<Ns>) -> Self {
        let mut read = Read::default();
        read.lacks.sums = true;
        read.lacks.not_time = !TIMES.contains(&measure);
        let fact = ("ruby_prof_measure".to_owned(), measure.to_owned());
        read.profile.facts.push(fact);
        let mut reading = Self {
            read,
            thread: 0,
            at: written.unwrap_or(0),
        };
        reading.begin("all");
        reading
    }

    /// Threads are identified by their object id, in the order of output.
    fn begin(&mut self, name: &str) {
        let number = self.read.profile.threads.len() as i64 + 1;
        self.thread = self.read.profile.thread(SampledThread {
            tid: None,
            runtime_id: Some(number),
            name: Some(name.to_owned()),
        });
    }

    /// Innermost first.
    fn add(&mut self, frames: &[CodeFrame], own: f64) {
        let micros = (own.max(0.0) * 1e6).round();
        if micros < 1.0 {
            return;
        }
        let profile = &mut self.read.profile;
        let frames: Vec<u32> = frames
            .iter()
            .map(|code| profile.frame(code.clone()))
            .collect();
        let stack = profile.stack(&frames);
        if stack == NO_STACK {
            return;
        }
        let credits = self.read.weigh(micros as u64);
        self.read.profile.points.push(Point {
            ts: self.at,
            span: 0,
            thread: self.thread,
            stack,
            credits,
            kind: SampleKind::Execution,
            state: SampledState::Unknown,
            is_assumed: false,
        });
    }

    fn finish(mut self) -> Read {
        self.read.lacks.times = self.read.samples;
        self.read
    }
}

fn method(name: &str, place: Option<(&str, i32)>) -> CodeFrame {
    CodeFrame {
        kind: CodeKind::Managed,
        function: name.trim_start_matches('*').to_owned(),
        module: place.map(|(file, _)| file.to_owned()),
        line: place.map(|(_, line)| line).filter(|line| *line > 0),
    }
}

/// `Object#handle                  web.rb:29`; a method without a file has only the name.
fn named(text: &str) -> CodeFrame {
    let text = text.trim();
    let place = text.rsplit_once(' ').and_then(|(name, place)| {
        let (file, line) = place.rsplit_once(':')?;
        Some((name.trim_end(), file, line.parse().ok()?))
    });
    match place {
        Some((name, file, line)) => method(name, Some((file, line))),
        None => method(text, None),
    }
}

/// The numbers of a line, and the text after them.
struct Row<'l> {
    /// Percentages are only in the line of the method itself.
    is_own: bool,
    this: f64,
    wait: f64,
    rest: &'l str,
}

/// `shares` columns with or without percent signs; then total, self, wait, child, calls and the
/// name.
fn row(line: &str, shares: usize) -> Option<Row<'_>> {
    let mut rest = line.trim_start();
    let mut word = || {
        let (word, after) = rest.split_once(char::is_whitespace)?;
        rest = after.trim_start();
        Some(word)
    };
    let mut first = word()?;
    let is_own = first.ends_with('%') || shares == 1;
    if is_own {
        for _ in 0..shares {
            first.trim_end_matches('%').parse::<f64>().ok()?;
            first = word()?;
        }
    }
    let _total: f64 = first.parse().ok()?;
    let this = word()?.parse().ok()?;
    let wait = word()?.parse().ok()?;
    let _children: f64 = word()?.parse().ok()?;
    let calls = word()?;
    let is_count = |c: char| c.is_ascii_digit() || c == '/';
    (calls.chars().all(is_count) && !rest.trim().is_empty()).then_some(Row {
        is_own,
        this,
        wait,
        rest,
    })
}

/// Text between the tables.
fn is_message(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || line.starts_with(['*', '%'])
        || ["Fiber ID:", "Total", "Sort by:", "Columns are:", "The "]
            .iter()
            .any(|begin| line.starts_with(begin))
        || [" - The ", "#test - "]
            .iter()
            .any(|part| line.contains(part))
}

pub(super) fn read_printed(text: &str, written: Option<Ns>) -> Read {
    let measure = text.lines().next().and_then(|line| line.strip_prefix(MODE));
    let mut reading = Reading::new(measure.unwrap_or("").trim(), written);
    let is_graph = text
        .lines()
        .any(|line| line.trim_start().starts_with("%total"));
    let mut callers: Vec<(&str, f64)> = Vec::new();
    let mut is_below = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(thread) = line.strip_prefix(THREAD) {
            reading.begin(&format!("thread {}", thread.trim()));
        } else if line.starts_with("------") {
            callers.clear();
            is_below = false;
        } else if line.starts_with(MODE) || is_message(line) {
        } else if let Some(row) = row(line, if is_graph { 2 } else { 1 }) {
            let own = row.this + row.wait;
            if !is_graph {
                reading.add(&[named(row.rest)], own);
            } else if !row.is_own {
                // Callees have blocks of their own.
                if !is_below {
                    callers.push((row.rest.trim(), own));
                }
            } else {
                is_below = true;
                let code = named(row.rest);
                if callers.is_empty() {
                    reading.add(&[code], own);
                } else {
                    for (caller, own) in callers.drain(..) {
                        reading.add(&[code.clone(), method(caller, None)], own);
                    }
                }
            }
        } else {
            reading
                .read
                .bad(|| format!("line {}: not a method or caller", number + 1));
        }
    }
    reading.finish()
}

pub(super) fn read_call_tree(text: &str, written: Option<Ns>) -> Read {
    let mut lines = text.lines().enumerate();
    let measure = lines
        .by_ref()
        .find_map(|(_, line)| line.strip_prefix(EVENTS));
    let mut reading = Reading::new(measure.unwrap_or("").trim(), written);
    let (mut file, mut name) = ("", "");
    let mut is_of_callee = false;
    for (number, line) in lines {
        let (key, value) = line.split_once('=').unwrap_or(("", line));
        match key {
            "fl" => file = value,
            "fn" => name = value,
            "cfl" | "cfi" | "cfn" | "ob" | "cob" => {}
            "calls" => is_of_callee = true,
            _ if line.trim().is_empty() => {}
            // Inclusive cost of a callee: its own time is in its own entry.
            _ if std::mem::take(&mut is_of_callee) => {}
            _ => {
                let cost = line.split_once(' ').and_then(|(place, cost)| {
                    Some((place.parse().ok()?, cost.trim().parse::<f64>().ok()?))
                });
                let Some((place, cost)) = cost.filter(|_| !name.is_empty()) else {
                    reading
                        .read
                        .bad(|| format!("line {}: invalid cost of a method", number + 1));
                    continue;
                };
                let file = Some(file).filter(|file| !file.is_empty());
                let code = method(name, file.map(|file| (file, place)));
                reading.add(&[code], cost / 1e6);
            }
        }
    }
    reading.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points_of(read: &Read) -> Vec<String> {
        let profile = &read.profile;
        let points = profile.points.iter().map(|point| {
            let frames = profile.frames_of(point.stack);
            let names: Vec<&str> = frames.map(|frame| frame.function.as_str()).collect();
            let thread = &profile.threads[point.thread as usize];
            let name = thread.name.as_deref().unwrap_or("");
            format!("{name}: {} x{}", names.join("<"), point.credits)
        });
        points.collect()
    }

    #[test]
    fn methods_have_their_own_time_by_caller() {
        let flat = "Measure Mode: wall_time\nThread ID: 80\nFiber ID: 60\nTotal: 2.0\nSort by: self_time\n\n \
            %self      total      self      wait     child     calls  name                           location\n  \
            0.41      2.000     0.500     1.000     0.500      156  *TCPServer#accept               \n  \
            0.10      0.250     0.250     0.000     0.000        1   Object#a                       web.rb:64\n\
            what is this\n\n* recursively called methods\n";
        assert!(is_printed(flat));
        let read = read_printed(flat, None);
        assert_eq!(
            points_of(&read),
            [
                "thread 80: TCPServer#accept x1500000",
                "thread 80: Object#a x250000"
            ]
        );
        assert_eq!((read.lacks.bad, read.lacks.sums), (1, true));
        let graph = "Measure Mode: wall_time\nThread ID: 80\n\n  %total   %self      total       self       wait      \
            child            calls     name                          location\n------------\n\
            \x20                    1.000      1.000      0.000      0.000              1/3     Object#b\n\
            \x20                    0.500      0.250      0.250      0.000              2/3     Object#c\n\
            \x20100.00%  50.00%      1.500      1.250      0.250      0.000                3     Kernel#sleep  \n\
            \x20                    0.100      0.100      0.000      0.000              1/1     Object#d\n";
        assert_eq!(
            points_of(&read_printed(graph, None)),
            [
                "thread 80: Kernel#sleep<Object#b x1000000",
                "thread 80: Kernel#sleep<Object#c x500000"
            ]
        );
    }

    #[test]
    fn a_call_tree_has_costs_of_methods_themselves() {
        let tree = "events: wall_time\n\nfl=/a.rb\nfn=Object::b\n5 100\ncfl=/a.rb\ncfn=Kernel::c\ncalls=2 9\n9 50\n\n\
            fl=\nfn=Kernel::c\n0 50\nnonsense\n";
        assert!(is_call_tree(tree));
        let read = read_call_tree(tree, None);
        assert_eq!(
            points_of(&read),
            ["all: Object::b x100", "all: Kernel::c x50"]
        );
        assert_eq!((read.lacks.bad, read.lacks.not_time), (1, false));
        assert!(read_call_tree("events: memory\n", None).lacks.not_time);
    }
}
