//! Findings of threads that waited for a CPU, for disks or for memory.

use whyslow_analysis::AnalysisError;
use whyslow_model::Ns;

use super::Explainer;
use crate::finding::{Subject, titled};
use crate::report::{Confidence, Finding, Group, Part};
use crate::sentence;
use crate::starved::{self, Starved};

/// Starved threads that are explained.
const STARVED: usize = 3;
/// What is waited for is named with at least this share of the waits.
const NAMED_MIN: f64 = 0.25;

/// `a window with 8 waits for disks (60.2 ms in total)`.
fn title(thread: &Starved, objects: &str) -> String {
    let (waits, total) = (thread.waits, sentence::length(thread.total));
    let s = if waits == 1 { "" } else { "s" };
    format!("a window with {waits} wait{s}{objects} ({total} in total)")
}

/// What most of the waits were for, as the walk found: ` for disks`, ` for a CPU and for memory`;
/// empty if that is not known of at least half of them.
fn objects(parts: &[Part], waited: Ns) -> String {
    let mut sums: Vec<(&str, Ns)> = Vec::new();
    for part in parts {
        let Some(object) = object(&part.root) else {
            continue;
        };
        match sums.iter_mut().find(|(known, _)| *known == object) {
            Some((_, sum)) => *sum += part.dur_ns,
            None => sums.push((object, part.dur_ns)),
        }
    }
    let total: Ns = sums.iter().map(|(_, sum)| sum).sum();
    if total * 2 < waited {
        return String::new();
    }
    sums.retain(|(_, sum)| *sum as f64 >= NAMED_MIN * total as f64);
    sums.sort_by_key(|(object, sum)| (std::cmp::Reverse(*sum), *object));
    let named: Vec<&str> = sums.iter().map(|(object, _)| *object).collect();
    if named.is_empty() {
        return String::new();
    }
    format!(" {}", named.join(" and "))
}

/// What a wait with this root was for; none if that is not known, or if it is no such wait.
fn object(root: &str) -> Option<&'static str> {
    Some(match root {
        "cpu_runqueue" | "cpu_throttled" | "cpu_idle_delay" | "cpu_stalled" | "irq_stolen" => {
            "for a CPU"
        }
        "block_service" | "block_queue" | "block_held" | "device_held" | "io_wait"
        | "page_fault_io" => "for disks",
        "writeback_wait" | "dirty_throttle" => "for writeback",
        "journal_wait" => "for the file system journal",
        "reclaim" | "memory_throttle" | "swap_in" => "for memory",
        root if root.starts_with("lock_") => "for locks",
        _ => return None,
    })
}

impl Explainer<'_> {
    /// Threads that could not run, or waited for disks or memory outside of slow calls.
    pub(super) fn starved(
        &self,
        known: &[Finding],
        utids: &[i32],
    ) -> Result<Vec<Finding>, AnalysisError> {
        let query = self.query;
        // If slow calls explain most of a thread's waits, it already has a finding.
        let is_known = |thread: &Starved| {
            let of_thread = known
                .iter()
                .filter(|finding| finding.target.actor.tid == Some(thread.tid));
            let groups = of_thread.filter_map(|finding| finding.group.as_ref());
            groups.map(|group| group.dur_ns_total).sum::<Ns>() * 2 >= thread.total
        };
        let found = starved::threads(self.tables, query.window)?;
        let is_wanted = |thread: &&Starved| utids.is_empty() || utids.contains(&thread.utid);
        let mut findings = Vec::new();
        let wanted = found
            .iter()
            .filter(is_wanted)
            .filter(|thread| !is_known(thread));
        for thread in wanted.take(STARVED) {
            let (begin, end, tid) = (thread.begin, thread.end, thread.tid);
            let subject = Subject {
                utid: thread.utid,
                begin,
                end,
                kind: "thread",
                id: None,
                what: title(thread, ""),
                cut: None,
                only_waits: true,
                baseline: None,
                reproduce: self.command(&format!("-w {} -t {tid}", sentence::window(begin, end))),
                recording: query.recording.clone(),
            };
            let title = |parts: &[Part]| Some(title(thread, &objects(parts, thread.total)));
            let mut finding = titled(self.tables, &subject, &title)?;
            finding.group = Some(Group {
                operation: format!("waits{}", objects(&finding.parts, thread.total)),
                count: thread.waits,
                dur_ns_total: thread.total,
                dur_ns_max: thread.total,
                walked: 1,
                ..Group::default()
            });
            // On a busy machine all threads wait for each other: only one that stands out is a
            // finding.
            if finding.confidence >= Confidence::Medium {
                findings.push(finding);
            }
        }
        Ok(findings)
    }
}
