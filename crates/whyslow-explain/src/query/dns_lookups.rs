//! Slow DNS lookups.
//!
//! A thread that looks up a name waits in poll(), as idle servers do. System calls do not
//! distinguish the two, so lookups are queried separately.

use std::ops::ControlFlow;

use rustc_hash::FxHashMap;
use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::DnsLookupRow;
use whyslow_model::{Ns, Window};

use super::Explainer;
use crate::detectors::counters::has;
use crate::finding::{Subject, finding};
use crate::report::{Baseline, Finding, Group};
use crate::slow::{Counts, Like, Slow, SlowGroup, Wanted, group, process_names, sort};

/// Shorter lookups are usual for a resolver that has to query other servers.
const LOOKUP_MIN_NS: Ns = 100_000_000;
/// Maximum number of names with a finding, those with the most time beyond the usual first.
const NAMES: usize = 4;
/// Distinct pairs of program and name.
const GROUPS_MAX: usize = 65_536;

/// Lookups of a name by a program, by result.
type Names = FxHashMap<Like, Counts>;

impl Explainer<'_> {
    /// A finding for each program and name with slow lookups.
    pub(super) fn dns_lookups(&self, utids: &[i32]) -> Result<Vec<Finding>, AnalysisError> {
        // Without waits of threads there is nothing to walk; `detectors::counters` reports the
        // lookups.
        if !has(self.tables, "dns_lookup")
            || !(has(self.tables, "syscall") || has(self.tables, "thread_state"))
        {
            return Ok(Vec::new());
        }
        let wanted = Wanted {
            min: Some(LOOKUP_MIN_NS),
            window: self.query.window,
            utids: utids.to_vec(),
            ..Wanted::default()
        };
        let groups = self.slow_names(&wanted)?;
        let of_group = |group: &SlowGroup| self.of_name(group);
        groups.iter().take(NAMES).map(of_group).collect()
    }

    /// The finding of one lookup; none if its thread is not known.
    pub(super) fn dns_lookup(
        &self,
        id: i64,
        window: Window,
    ) -> Result<Option<Finding>, AnalysisError> {
        let mut found = None;
        let comms = process_names(self.tables)?;
        self.each_lookup(Some(window), |lookup, upid, (host, result)| {
            if lookup.id == id {
                found = Some((lookup, like(&comms, upid, host, result)));
            }
        })?;
        let Some((lookup, like)) = found else {
            return Ok(None);
        };
        let wanted = Wanted {
            min: Some(0),
            ..Wanted::default()
        };
        let counts = self.names(&comms)?.remove(&like);
        let what = like.call.clone();
        let of_name = counts.and_then(|counts| group(like, counts, None, &wanted));
        let usual = of_name.and_then(|group| group.baseline);
        self.of_lookup(lookup, what, usual).map(Some)
    }

    fn slow_names(&self, wanted: &Wanted) -> Result<Vec<SlowGroup>, AnalysisError> {
        let comms = process_names(self.tables)?;
        let mut groups: Vec<SlowGroup> = self
            .names(&comms)?
            .into_iter()
            .filter_map(|(like, counts)| group(like, counts, None, wanted))
            .collect();
        sort(&mut groups);
        Ok(groups)
    }

    /// All lookups, by program, name and result.
    fn names(&self, comms: &FxHashMap<i64, String>) -> Result<Names, AnalysisError> {
        let mut names = Names::default();
        self.each_lookup(None, |lookup, upid, (host, result)| {
            let like = like(comms, upid, host, result);
            if names.len() < GROUPS_MAX || names.contains_key(&like) {
                names.entry(like).or_insert_with(Counts::new).add(lookup);
            }
        })?;
        Ok(names)
    }

    /// Completed lookups of known names by known threads: process, name and result of each.
    pub(super) fn each_lookup(
        &self,
        window: Option<Window>,
        mut each: impl FnMut(Slow, i64, (&str, Option<&str>)),
    ) -> Result<(), AnalysisError> {
        let mut projection = Projection::new(DnsLookupRow::TABLE);
        let [ts, dur, id] = ["ts", "dur", "id"].map(|name| projection.need(name));
        let [utid, upid] = ["utid", "upid"].map(|name| projection.need(name));
        let [host, result] = ["host", "result"].map(|name| projection.need(name));
        in_order(self.tables, &projection.scan(window), |batch| {
            let (ts, dur, id) = (ts.ints(batch)?, dur.ints(batch)?, id.ints(batch)?);
            let (utid, upid) = (utid.ints(batch)?, upid.ints(batch)?);
            let (host, result) = (host.texts(batch)?, result.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                if let (Some(dur), Some(utid), Some(host)) =
                    (dur.get(row), utid.get(row), host.get(row))
                {
                    let lookup = Slow {
                        dur,
                        id: id.at(row),
                        ts: ts.at(row),
                        utid: utid as i32,
                        upid: upid.get(row).unwrap_or(-1) as i32,
                    };
                    each(lookup, upid.get(row).unwrap_or(-1), (host, result.get(row)));
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    fn of_name(&self, group: &SlowGroup) -> Result<Finding, AnalysisError> {
        let longest = group.longest[0];
        let mut finding =
            self.of_lookup(longest, group.like.call.clone(), group.baseline.clone())?;
        finding.group = Some(Group {
            operation: group.like.operation(),
            count: group.count,
            threads: group.threads(),
            processes: group.processes(),
            dur_ns_total: group.total,
            dur_ns_max: longest.dur,
            walked: 1,
            ..Group::default()
        });
        Ok(finding)
    }

    fn of_lookup(
        &self,
        lookup: Slow,
        what: String,
        baseline: Option<Baseline>,
    ) -> Result<Finding, AnalysisError> {
        let id = format!("dns:{}", lookup.id);
        let subject = Subject {
            utid: lookup.utid,
            begin: lookup.ts,
            end: lookup.ts + lookup.dur.max(1),
            kind: "lookup",
            reproduce: self.command(&format!("-w {id}")),
            id: Some(id),
            what,
            cut: None,
            only_waits: false,
            baseline,
            recording: self.query.recording.clone(),
        };
        finding(self.tables, &subject)
    }
}

/// What a lookup is compared with.
fn like(comms: &FxHashMap<i64, String>, upid: i64, host: &str, result: Option<&str>) -> Like {
    Like {
        comm: comms.get(&upid).cloned().unwrap_or_default(),
        call: format!("DNS lookup of {host}"),
        failure: result.filter(|result| *result != "ok").map(str::to_owned),
        to: None,
    }
}
