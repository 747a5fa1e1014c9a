//! The query of `explain`, and its report.

mod always;
mod caveats;
mod contended;
mod devices;
mod dns_lookups;
mod dns_queries;
mod group;
mod marks;
mod profiles;
mod rows;
mod selected;
mod starved_threads;
mod trigger;

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestRow, SyscallRow, ThreadRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::brief::Brief;
use crate::finding::{Subject, finding};
use crate::patterns::Class;
use crate::ranked::{WORTH_MIN, add_by_time, ranked};
use crate::report::{Finding, Judged, Report, SCHEMA};
use crate::sampled;
use crate::several::Budget;
use crate::slow::{self, Programs, SlowGroup, Wanted};
use crate::versus::{Other, Per, versus};
use crate::wall_clock::WallClock;
use crate::{advice, judged};

/// Default number of findings.
pub const FINDINGS: usize = 5;

/// What to explain. By default, what is slowest.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Name of the recording, as commands take it.
    pub recording: String,
    /// Time window; `None` for the whole recording, or for the focus of an excerpt.
    pub window: Option<Window>,
    /// Table and id of an operation.
    pub operation: Option<(String, i64)>,
    /// Threads to explain, by kernel id.
    pub tids: Vec<i32>,
    /// Processes to explain, by kernel id.
    pub pids: Vec<i32>,
    /// Globs for the names of threads to explain; with ids, only those of them.
    pub comms: Vec<String>,
    /// Devices to compare with their peers.
    pub devices: Vec<String>,
    /// Names or classes of system calls: their slow instances are explained …
    pub calls: Vec<String>,
    /// … and the duration from which on a call is slow.
    pub min: Option<Ns>,
    /// Maximum number of findings; 0 for all.
    pub limit: Option<usize>,
    /// Explain requests that are known only from sockets, too.
    pub with_sockets: bool,
    /// How sentences show a point in time; `None`: as time since the start of the window.
    pub clock: Option<WallClock>,
}

impl Query {
    /// Whether only some threads are explained.
    fn selects_threads(&self) -> bool {
        !self.tids.is_empty() || !self.pids.is_empty() || !self.comms.is_empty()
    }
}

/// Answers the query, with a comparison if `other` is given.
pub fn explain(
    tables: &dyn Tables,
    query: &Query,
    other: Option<Other<'_>>,
) -> Result<Report, AnalysisError> {
    let mut report = unwritten(tables, query, other)?;
    let of_operation = report
        .findings
        .first()
        .filter(|_| query.operation.is_some());
    let window = of_operation.map(|finding| {
        let target = &finding.target;
        Window::new(target.begin_ns, target.end_ns)
    });
    report.is_single = query.is_single();
    crate::page::fill(tables, window.or(query.window), &mut report)?;
    Ok(report)
}

impl Query {
    /// Whether the user selected what is explained: an operation, or threads and a window.
    fn is_single(&self) -> bool {
        self.operation.is_some() || self.window.is_some() && !self.tids.is_empty()
    }
}

/// The report without the sentences.
fn unwritten(
    tables: &dyn Tables,
    query: &Query,
    other: Option<Other<'_>>,
) -> Result<Report, AnalysisError> {
    let info = tables.info();
    let window = query.window;
    let mut report = Report {
        schema: SCHEMA,
        judged: Judged::Findings,
        reasons: Vec::new(),
        recording: query.recording.clone(),
        begin_ns: window.map_or(info.begin_ns, |window| window.begin.max(info.begin_ns)),
        end_ns: window.map_or(info.end_ns, |window| window.end.min(info.end_ns)),
        caveats: whyslow_analysis::damage(tables)?.into_iter().collect(),
        ..Report::default()
    };
    let explainer = Explainer {
        tables,
        query,
        other: other.as_ref(),
    };
    let mut has_brief = false;
    if let Some((table, id)) = &query.operation
        && table == RequestRow::TABLE.name
    {
        let finding = crate::requests::one(tables, *id, &query.recording)?;
        report.observations = crate::requests::patterns_of(tables, &finding, &query.recording)?;
        report.findings.push(finding);
    } else if let Some((table, id)) = &query.operation {
        report.findings.push(explainer.operation(table, *id)?);
    } else if let (Some(window), [_, ..]) = (query.window, query.tids.as_slice()) {
        for tid in &query.tids {
            report.findings.extend(explainer.thread(*tid, window)?);
        }
    } else if !query.devices.is_empty() {
        return explainer.compare_devices(report);
    } else {
        let is_of_all = query.calls.is_empty() && !query.selects_threads();
        let find = || crate::detectors::run(tables, query.window, &query.recording);
        // Each reads all system calls once, so they run in parallel.
        let mut brief = Brief::default();
        let (findings, observations) =
            rayon::join(|| explainer.slow(&mut brief), || is_of_all.then(find));
        report.findings = findings?;
        explainer.judge(&mut report)?;
        report.observations = observations.transpose()?.unwrap_or_default();
        report.tracer_share = crate::tracer::share(tables, query.window)?;
        if is_of_all {
            let brief = explainer.is_of_everything().then_some(&mut brief);
            crate::requests::add(tables, query, (other.as_ref(), brief), &mut report)?;
            explainer.add_marks(&mut report)?;
        }
        has_brief = brief.note().is_some();
        report.caveats.extend(brief.note());
    }
    let has_lost = !query.is_single() && judged::leave_lost_out(&mut report.findings);
    explainer.add_trigger(&mut report)?;
    judged::doubt(tables, query.window, &mut report.findings)?;
    judged::judge(tables, query.window, has_lost, &mut report)?;
    if has_brief {
        judged::except_brief(&mut report);
    }
    sampled::add_programs(tables, &mut report.findings)?;
    crate::resolvers::cite(tables, &mut report.findings)?;
    crate::steal::cite(tables, &mut report.findings)?;
    caveats::add_excerpt(tables, &mut report);
    advice::fit(tables, &mut report)?;
    Ok(report)
}

/// Groups of slow operations that are explained, to select the findings from.
const CANDIDATES: usize = 16;
/// System calls around one that its baseline is computed from.
const COMPARED: u64 = 100_000;
/// Threads of one name that are compared with a thread of another recording.
const NAMESAKES: usize = 16;

struct Explainer<'a> {
    tables: &'a dyn Tables,
    query: &'a Query,
    other: Option<&'a Other<'a>>,
}

/// A system call, as its finding names it.
#[derive(Debug, Clone)]
struct Called {
    utid: i32,
    begin: Ns,
    end: Option<Ns>,
    name: String,
    path: Option<String>,
    cut: Option<String>,
    /// Error number; 0 if it succeeded or had not ended.
    errno: i32,
    /// What it sends to, if that has another end.
    to: Option<&'static str>,
}

impl Explainer<'_> {
    /// Whether nothing in particular is requested, only what was slow.
    fn is_of_everything(&self) -> bool {
        let query = self.query;
        let is_narrow = query.selects_threads() || query.min.is_some() || self.other.is_some();
        query.calls.is_empty() && !is_narrow
    }

    /// Length of the window.
    fn length(&self) -> Ns {
        let info = self.tables.info();
        let window = self.query.window;
        let whole = Window::new(info.begin_ns, info.end_ns);
        let window = window.unwrap_or(whole);
        window.end.min(whole.end) - window.begin.max(whole.begin)
    }

    /// Which pattern of slowness it is: for the queried calls, or else for those of the first
    /// finding.
    fn judge(&self, report: &mut Report) -> Result<(), AnalysisError> {
        let query = self.query;
        let mut calls = query.calls.clone();
        if calls.is_empty() {
            let first = report
                .findings
                .iter()
                .find(|finding| finding.target.kind == "operation");
            let name = first.and_then(|finding| finding.target.what.split('(').next());
            calls.extend(name.map(str::to_owned));
        }
        if calls.is_empty() {
            return Ok(());
        }
        let verdict = crate::pattern_verdict::pattern(self.tables, query, &calls)?;
        let Some(verdict) = verdict else {
            return Ok(());
        };
        // "Insufficient" is of interest only if these calls were queried.
        if verdict.class != Class::Insufficient || !query.calls.is_empty() {
            report.patterns.push(verdict.pattern());
        }
        Ok(())
    }

    fn command(&self, rest: &str) -> String {
        format!("whyslow explain {} {rest}", self.query.recording)
            .trim_end()
            .to_owned()
    }

    fn operation(&self, table: &str, id: i64) -> Result<Finding, AnalysisError> {
        let (_, window) = whyslow_analysis::interval_of(self.tables, table, id)?;
        if matches!(table, "lock_wait" | "sample_gap") {
            let recording = &self.query.recording;
            let found = sampled::finding_of(self.tables, (table, id), window, recording)?;
            if let Some(finding) = found {
                return self.proven(finding);
            }
        }
        if table == "dns_lookup"
            && let Some(finding) = self.dns_lookup(id, window)?
        {
            return Ok(finding);
        }
        if table != "syscall"
            && let Some(finding) = self.row(table, id, window)?
        {
            return Ok(finding);
        }
        let Some(call) = self.call(id, window)?.filter(|_| table == "syscall") else {
            return Err(AnalysisError::Query {
                message: format!("cannot explain row {id} of `{table}`: not a call, request or wait of a known thread"),
                hint: Some("pass an id of `top` or `log` (op:ID, block:ID, state:ID, lock:ID, dns:ID), or a window and a thread: -w A..B -t TID".into()),
            });
        };
        let elsewhere = self.elsewhere(std::slice::from_ref(&call.name))?;
        let wanted = Wanted {
            calls: vec![call.name.clone()],
            min: Some(0),
            utids: vec![call.utid],
            near: Some(self.near(&call)),
            errno: Some(call.errno),
            ..Wanted::default()
        };
        let groups = slow::groups(self.tables, &wanted, elsewhere.as_ref())?;
        let group = groups.into_iter().find(|group| group.like.to == call.to);
        let baseline = group.as_ref().and_then(|group| group.baseline.clone());
        let mut finding = self.called(id, &call, baseline)?;
        if let (Some(other), Some(group)) = (self.other, &group) {
            let there = self.there(other).usual(&group.usual, None)?;
            let here = std::slice::from_ref(&finding);
            finding.versus = Some(versus(here, &there, Per::Call, other));
        }
        Ok(finding)
    }

    /// Durations of system calls in the recording or window to compare with.
    fn elsewhere(&self, calls: &[String]) -> Result<Option<Programs>, AnalysisError> {
        let of = |other: &Other<'_>| {
            let wanted = Wanted {
                calls: calls.to_vec(),
                near: other.window,
                ..Wanted::default()
            };
            slow::programs(other.tables, &wanted)
        };
        self.other.map(of).transpose()
    }

    /// The same query over the other recording.
    fn there<'o>(&'o self, other: &'o Other<'o>) -> Explainer<'o> {
        Explainer {
            tables: other.tables,
            query: self.query,
            other: None,
        }
    }

    /// The window around a call that contains enough others to compare it with.
    fn near(&self, call: &Called) -> Window {
        let info = self.tables.info();
        let rows = info.rows_of_whole(SyscallRow::TABLE.name);
        let length = info.whole().length().max(1) as f64;
        let half = (length * (COMPARED as f64 / rows.max(1) as f64) / 2.0) as Ns;
        Window::new(
            call.begin.saturating_sub(half),
            call.begin.saturating_add(half),
        )
    }

    fn called(
        &self,
        id: i64,
        call: &Called,
        baseline: Option<crate::report::Baseline>,
    ) -> Result<Finding, AnalysisError> {
        finding(self.tables, &self.subject(id, call, baseline))
    }

    fn subject(
        &self,
        id: i64,
        call: &Called,
        baseline: Option<crate::report::Baseline>,
    ) -> Subject {
        let what = match &call.path {
            Some(path) => format!("{}({path})", call.name),
            None => call.name.clone(),
        };
        let end = call.end.unwrap_or(self.tables.info().whole().end);
        Subject {
            utid: call.utid,
            begin: call.begin,
            end: end.max(call.begin + 1),
            kind: "operation",
            id: Some(format!("op:{id}")),
            what,
            cut: call.cut.clone(),
            only_waits: false,
            baseline,
            reproduce: self.command(&format!("-w op:{id}")),
            recording: self.query.recording.clone(),
        }
    }

    fn call(&self, id: i64, window: Window) -> Result<Option<Called>, AnalysisError> {
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ids, ts, ts_end, utid] =
            ["id", "ts", "ts_end", "utid"].map(|name| projection.need(name));
        let [name, path, cut] = ["name", "path", "cut"].map(|name| projection.need(name));
        let (errno, class) = (projection.need("errno"), projection.need("fd_class"));
        let mut found = None;
        let here = Window::new(window.begin, window.begin + 1);
        in_order(self.tables, &projection.scan(Some(here)), |batch| {
            let ids = ids.ints(batch)?;
            let Some(row) = (0..batch.num_rows() as u32).find(|row| ids.at(*row) == id) else {
                return Ok(ControlFlow::Continue(()));
            };
            let Some(utid) = utid.ints(batch)?.get(row) else {
                return Ok(ControlFlow::Break(()));
            };
            let name = name.texts(batch)?.get(row).unwrap_or("");
            found = Some(Called {
                utid: utid as i32,
                begin: ts.ints(batch)?.at(row),
                end: ts_end.ints(batch)?.get(row),
                name: name.to_owned(),
                to: slow::sends_to(name, class.texts(batch)?.get(row)),
                path: path.texts(batch)?.get(row).map(str::to_owned),
                cut: cut.texts(batch)?.get(row).map(str::to_owned),
                errno: errno.ints(batch)?.get(row).unwrap_or(0) as i32,
            });
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// What a thread did in a window.
    fn thread(&self, tid: i32, window: Window) -> Result<Vec<Finding>, AnalysisError> {
        let mut found = Vec::new();
        let utids = self.utids(Some(tid), None)?;
        if self.other.is_none() && !sampled::is_kernel_there(self.tables) {
            found.extend(self.sampled(&utids)?);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        for utid in utids {
            let mut finding = self.stretch(utid, window, tid)?;
            if let Some(other) = self.other {
                let there = self.there(other);
                let utids = if other.is_same {
                    vec![utid]
                } else {
                    there.namesakes(&finding.target.actor.name)?
                };
                let stretches = utids.iter().take(NAMESAKES);
                let stretches: Vec<Finding> = stretches
                    .map(|utid| there.stretch(*utid, other.range(), tid))
                    .collect::<Result<_, _>>()?;
                if stretches.is_empty() {
                    let (name, recording) = (&finding.target.actor.name, other.recording);
                    finding.caveats.push(format!(
                        "comparison unavailable: no thread of {recording} is named {name}"
                    ));
                }
                let here = std::slice::from_ref(&finding);
                finding.versus = Some(versus(here, &stretches, Per::Second, other));
            }
            found.push(finding);
        }
        Ok(found)
    }

    fn stretch(&self, utid: i32, window: Window, tid: i32) -> Result<Finding, AnalysisError> {
        let info = self.tables.info();
        let (begin, end) = (window.begin.max(info.begin_ns), window.end.min(info.end_ns));
        finding(
            self.tables,
            &Subject {
                utid,
                begin,
                end: end.max(begin + 1),
                kind: "thread",
                id: None,
                what: "the selected window".into(),
                cut: None,
                only_waits: false,
                baseline: None,
                reproduce: self.command(&format!("-w {}..{} -t {tid}", window.begin, window.end)),
                recording: self.query.recording.clone(),
            },
        )
    }

    /// Threads with this name.
    fn namesakes(&self, name: &str) -> Result<Vec<i32>, AnalysisError> {
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utids, comms] = ["utid", "comm"].map(|name| projection.need(name));
        let mut found = Vec::new();
        in_order(self.tables, &projection.scan(None), |batch| {
            let (utids, comms) = (utids.ints(batch)?, comms.texts(batch)?);
            // The kernel keeps only 15 bytes of the name that a runtime gives its thread.
            let is_named = |comm: &str| comm == name || comm.len() == 15 && name.starts_with(comm);
            let named =
                (0..batch.num_rows() as u32).filter(|row| comms.get(*row).is_some_and(is_named));
            found.extend(named.map(|row| utids.at(row) as i32));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Threads with these kernel ids, which may have been reused.
    fn utids(&self, tid: Option<i32>, pid: Option<i32>) -> Result<Vec<i32>, AnalysisError> {
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utids, tids, pids] = ["utid", "tid", "pid"].map(|name| projection.need(name));
        let mut found = Vec::new();
        in_order(self.tables, &projection.scan(None), |batch| {
            let (utids, tids, pids) = (utids.ints(batch)?, tids.ints(batch)?, pids.ints(batch)?);
            for row in 0..batch.num_rows() as u32 {
                let is = |wanted: Option<i32>, has: Option<i64>| {
                    wanted.is_none_or(|wanted| has == Some(i64::from(wanted)))
                };
                if is(tid, tids.get(row)) && is(pid, pids.get(row)) {
                    found.push(utids.at(row) as i32);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if found.is_empty() {
            let (what, number) = match (tid, pid) {
                (Some(tid), _) => ("thread", tid),
                (_, pid) => ("process", pid.unwrap_or(0)),
            };
            return Err(AnalysisError::Query {
                message: format!("no {what} {number} in this recording"),
                hint: Some("list them with `whyslow threads list`".into()),
            });
        }
        Ok(found)
    }

    fn slow(&self, brief: &mut Brief) -> Result<Vec<Finding>, AnalysisError> {
        let query = self.query;
        let utids = self.selected()?;
        let wanted = Wanted {
            calls: query.calls.clone(),
            min: query.min,
            window: query.window,
            utids,
            ..Wanted::default()
        };
        let elsewhere = self.elsewhere(&query.calls)?;
        let groups = slow::groups(self.tables, &wanted, elsewhere.as_ref())?;
        let (always, groups): (Vec<SlowGroup>, Vec<SlowGroup>) =
            groups.into_iter().partition(|group| group.always.is_some());
        let limit = match query.limit.unwrap_or(FINDINGS) {
            0 => usize::MAX,
            limit => limit,
        };
        let mut findings = Vec::new();
        // A comparison walks many calls of each group.
        let is_compared = self.other.is_some() || !query.calls.is_empty();
        let candidates = if is_compared { 0 } else { CANDIDATES };
        let mut budget = if is_compared {
            Budget::unlimited()
        } else {
            Budget::default()
        };
        let most = groups.first().map_or(0, |group| group.excess) as f64;
        for group in groups.iter().take(limit.max(candidates)) {
            let is_worth = is_compared || group.excess as f64 >= WORTH_MIN * most;
            let budget = if is_worth {
                &mut budget
            } else {
                &mut Budget::none()
            };
            findings.extend(self.of_group(group, budget)?);
        }
        if query.calls.is_empty() {
            let starved = self.starved(&findings, &wanted.utids)?;
            findings.extend(starved);
            findings.extend(self.dns_lookups(&wanted.utids)?);
            findings.extend(self.dns_queries(&wanted.utids)?);
            findings.extend(self.sampled(&wanted.utids)?);
            findings = ranked(findings);
            if self.is_of_everything() {
                brief.take_out(&mut findings, self.length());
            }
            add_by_time(&mut findings, self.contended(&wanted.utids)?);
        } else if self.other.is_none() && !sampled::is_kernel_there(self.tables) {
            findings.extend(self.sampled(&wanted.utids)?);
        }
        findings.truncate(limit);
        self.add_always(&always, limit, &mut findings)?;
        Ok(findings)
    }
}
