//! Differences from another window, or another recording.

use rustc_hash::FxHashMap;
use whyslow_model::sort::IndexSort;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::report::{Actor, Difference, Finding, Versus};

/// Minimum difference that is reported, as a share of the longer time.
const SHARE_MIN: f64 = 0.01;
const SECOND: f64 = 1e9;

/// The other side of a comparison.
#[derive(Clone, Copy)]
pub struct Other<'t> {
    /// Its tables.
    pub tables: &'t dyn Tables,
    /// `None` for the whole recording.
    pub window: Option<Window>,
    /// Its name in commands.
    pub recording: &'t str,
    /// It is the explained recording itself, so processes have the same ids.
    pub is_same: bool,
}

impl Other<'_> {
    pub(crate) fn range(&self) -> Window {
        let info = self.tables.info();
        let all = Window::new(info.begin_ns, info.end_ns);
        self.window.map_or(all, |window| {
            Window::new(window.begin.max(all.begin), window.end.min(all.end))
        })
    }
}

/// What times are divided by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    Call,
    /// Of the window: windows have different lengths.
    Second,
}

/// Compares findings of here with those of there, by mechanism and culprit.
pub(crate) fn versus(here: &[Finding], there: &[Finding], per: Per, other: &Other<'_>) -> Versus {
    let mut times = Times::default();
    for (findings, is_here) in [(here, true), (there, false)] {
        let all = divisor(findings, per);
        for part in findings.iter().flat_map(|finding| &finding.parts) {
            let culprit = comparable(&part.culprit, other.is_same);
            let of_both = times.entry((part.mechanism.clone(), culprit)).or_default();
            let mean = part.dur_ns as f64 / all;
            *(if is_here {
                &mut of_both.0
            } else {
                &mut of_both.1
            }) += mean;
        }
    }
    let times = by_name(times);
    let mean = |findings: &[Finding]| {
        let length: Ns = findings.iter().map(length).sum();
        (!findings.is_empty()).then(|| (length as f64 / divisor(findings, per)) as Ns)
    };
    let longer = mean(here).max(mean(there)).unwrap_or(0) as f64;
    let mut differences: Vec<Difference> = times
        .into_iter()
        .filter(|(_, (here, there))| (here - there).abs() >= SHARE_MIN * longer)
        .map(|((mechanism, culprit), (here, there))| Difference {
            mechanism,
            culprit,
            here_ns: here as Ns,
            there_ns: there as Ns,
        })
        .collect();
    differences.index_sort_by_key(|one| {
        let less = -(one.here_ns - one.there_ns).abs();
        (less, one.mechanism.clone(), one.culprit.clone())
    });
    let range = other.range();
    Versus {
        recording: other.recording.to_owned(),
        begin_ns: range.begin,
        end_ns: range.end,
        per: match per {
            Per::Call => "call",
            Per::Second => "second",
        }
        .to_owned(),
        here: here.len() as u64,
        there: there.len() as u64,
        mean_here_ns: mean(here).unwrap_or(0),
        mean_there_ns: mean(there),
        differences,
    }
}

fn length(finding: &Finding) -> Ns {
    finding.target.end_ns - finding.target.begin_ns
}

fn divisor(findings: &[Finding], per: Per) -> f64 {
    match per {
        Per::Call => findings.len() as f64,
        Per::Second => findings.iter().map(length).sum::<Ns>() as f64 / SECOND,
    }
}

type Times = FxHashMap<(String, Actor), (f64, f64)>;

/// Merges processes of one name into one culprit: short-lived ones never occur on both sides.
fn by_name(times: Times) -> Times {
    let nameless = |(mechanism, actor): &(String, Actor)| {
        let pid = None;
        (
            mechanism.clone(),
            Actor {
                pid,
                ..actor.clone()
            },
        )
    };
    let mut processes: FxHashMap<(String, Actor), usize> = FxHashMap::default();
    for key in times.keys() {
        *processes.entry(nameless(key)).or_default() += 1;
    }
    let mut merged = Times::default();
    for (key, (here, there)) in times {
        let name = nameless(&key);
        let key = if processes[&name] > 1 { name } else { key };
        let sums = merged.entry(key).or_default();
        *sums = (sums.0 + here, sums.1 + there);
    }
    merged
}

/// Reduces a culprit to its process, without ids if the other side is another recording.
fn comparable(actor: &Actor, keeps_pid: bool) -> Actor {
    Actor {
        pid: actor.pid.filter(|_| keeps_pid),
        tid: None,
        ..actor.clone()
    }
}
