//! The query of `explain`, and its report.

mod caveats;
mod dns_lookups;
mod dns_queries;
mod profiles;

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestRow, SyscallRow, ThreadRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::group_excess;
use crate::patterns::Class;
use crate::ranked::ranked;
use crate::report::{Confidence, Group, Report, SCHEMA, Story};
use crate::sampled;
use crate::slow::{self, Programs, SlowGroup, Wanted};
use crate::starved::{self, Starved};
use crate::story::{Subject, stories, story};
use crate::versus::{Other, Per, versus};

/// Default number of stories.
pub const STORIES: usize = 5;

/// What to explain. By default, what is slowest.
#[derive(Debug, Clone, Default)]
pub struct Question {
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
    /// Devices to compare with their peers.
    pub devices: Vec<String>,
    /// Names or classes of system calls: their slow instances are explained …
    pub calls: Vec<String>,
    /// … and the duration from which on a call is slow.
    pub min: Option<Ns>,
    /// Maximum number of stories; 0 for all.
    pub limit: Option<usize>,
    /// Explain requests that are known only from sockets, too.
    pub with_sockets: bool,
}

/// Answers the query, with a comparison if `other` is given.
pub fn explain(
    tables: &dyn Tables,
    question: &Question,
    other: Option<Other<'_>>,
) -> Result<Report, AnalysisError> {
    let info = tables.info();
    let mut report = Report {
        schema: SCHEMA,
        recording: question.recording.clone(),
        begin_ns: info.begin_ns,
        end_ns: info.end_ns,
        stories: Vec::new(),
        findings: Vec::new(),
        patterns: Vec::new(),
        tracer_share: None,
        caveats: whyslow_analysis::damage(tables)?.into_iter().collect(),
    };
    let explainer = Explainer {
        tables,
        question,
        other: other.as_ref(),
    };
    if let Some((table, id)) = &question.operation
        && table == RequestRow::TABLE.name
    {
        let story = crate::requests::one(tables, *id, &question.recording)?;
        report.stories.push(story);
    } else if let Some((table, id)) = &question.operation {
        report.stories.push(explainer.operation(table, *id)?);
    } else if let (Some(window), [_, ..]) = (question.window, question.tids.as_slice()) {
        for tid in &question.tids {
            report.stories.extend(explainer.thread(*tid, window)?);
        }
    } else if !question.devices.is_empty() {
        let (window, devices) = (question.window, &question.devices);
        let mut found =
            crate::detectors::devices::find(tables, window, devices, &question.recording)?;
        found.retain(|finding| devices.contains(&finding.culprit.name));
        if found.is_empty() {
            report.caveats.push(format!(
                "no requests to {} in this recording",
                devices.join(", ")
            ));
        }
        report.findings = found;
        return Ok(report);
    } else {
        let is_of_all =
            question.calls.is_empty() && question.tids.is_empty() && question.pids.is_empty();
        let find = || crate::detectors::run(tables, question.window, &question.recording);
        // Each reads all system calls once, so they run in parallel.
        let (stories, findings) = rayon::join(|| explainer.slow(), || is_of_all.then(find));
        report.stories = stories?;
        explainer.judge(&mut report)?;
        report.findings = findings.transpose()?.unwrap_or_default();
        report.tracer_share = crate::tracer::share(tables, question.window)?;
        if is_of_all {
            crate::requests::add(tables, question, other.as_ref(), &mut report)?;
        }
    }
    if report.stories.is_empty() && report.findings.is_empty() {
        report.caveats.push(caveats::nothing_found(tables).into());
    }
    sampled::add_programs(tables, &mut report.stories)?;
    crate::resolvers::cite(tables, &mut report.stories)?;
    caveats::add_excerpt(tables, &mut report);
    Ok(report)
}

/// Groups of slow operations that are explained, to select the stories from.
const CANDIDATES: usize = 16;
/// System calls around one that its baseline is computed from.
const COMPARED: u64 = 100_000;
/// Threads of one name that are compared with a thread of another recording.
const NAMESAKES: usize = 16;
/// Starved threads that are explained.
const STARVED: usize = 3;

struct Explainer<'a> {
    tables: &'a dyn Tables,
    question: &'a Question,
    other: Option<&'a Other<'a>>,
}

/// A system call, as its story names it.
#[derive(Debug, Clone)]
struct Called {
    utid: i32,
    begin: Ns,
    end: Option<Ns>,
    name: String,
    path: Option<String>,
    cut: Option<String>,
}

impl Explainer<'_> {
    /// Which pattern of slowness it is: for the queried calls, or else for those of the first
    /// story.
    fn judge(&self, report: &mut Report) -> Result<(), AnalysisError> {
        let question = self.question;
        let mut calls = question.calls.clone();
        if calls.is_empty() {
            let first = report
                .stories
                .iter()
                .find(|story| story.target.kind == "operation");
            let name = first.and_then(|story| story.target.what.split('(').next());
            calls.extend(name.map(str::to_owned));
        }
        if calls.is_empty() {
            return Ok(());
        }
        let verdict =
            crate::pattern_verdict::pattern(self.tables, question.window, &calls, question.min)?;
        let Some(verdict) = verdict else {
            return Ok(());
        };
        // "Insufficient" is of interest only if these calls were queried.
        if verdict.class != Class::Insufficient || !question.calls.is_empty() {
            report.patterns.push(verdict.pattern());
        }
        Ok(())
    }

    fn command(&self, rest: &str) -> String {
        format!("whyslow explain {} {rest}", self.question.recording)
            .trim_end()
            .to_owned()
    }

    fn operation(&self, table: &str, id: i64) -> Result<Story, AnalysisError> {
        let (_, window) = whyslow_analysis::interval_of(self.tables, table, id)?;
        if matches!(table, "lock_wait" | "sample_gap") {
            let recording = &self.question.recording;
            let found = sampled::story_of(self.tables, (table, id), window, recording)?;
            if let Some(story) = found {
                return self.proven(story);
            }
        }
        if table == "dns_lookup"
            && let Some(story) = self.dns_lookup(id, window)?
        {
            return Ok(story);
        }
        let Some(call) = self.call(id, window)?.filter(|_| table == "syscall") else {
            return Err(AnalysisError::Query {
                message: format!("cannot explain `{table}` {id}: not a system call of a known thread"),
                hint: Some("pass op:ID, dns:ID, lock:ID or gap:ID (of a profile), or a window and a thread: -w A..B -t TID".into()),
            });
        };
        let elsewhere = self.elsewhere(std::slice::from_ref(&call.name))?;
        let wanted = Wanted {
            calls: vec![call.name.clone()],
            min: Some(0),
            utids: vec![call.utid],
            near: Some(self.near(&call)),
            ..Wanted::default()
        };
        let groups = slow::groups(self.tables, &wanted, elsewhere.as_ref())?;
        let group = groups.into_iter().next();
        let baseline = group.as_ref().and_then(|group| group.baseline.clone());
        let mut story = self.called(id, &call, baseline)?;
        if let (Some(other), Some(group)) = (self.other, &group) {
            let there = self.there(other).walked(&group.usual, None)?;
            let here = std::slice::from_ref(&story);
            story.versus = Some(versus(here, &there, Per::Call, other));
        }
        Ok(story)
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
            question: self.question,
            other: None,
        }
    }

    /// Stories of some calls.
    fn walked(
        &self,
        calls: &[slow::Slow],
        baseline: Option<&crate::report::Baseline>,
    ) -> Result<Vec<Story>, AnalysisError> {
        let mut subjects = Vec::new();
        for one in calls.iter().take(group_excess::WALKED) {
            let window = Window::new(one.ts, one.ts + one.dur.max(1));
            if let Some(call) = self.call(one.id, window)? {
                subjects.push(self.subject(one.id, &call, baseline.cloned()));
            }
        }
        stories(self.tables, &subjects)
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
    ) -> Result<Story, AnalysisError> {
        story(self.tables, &self.subject(id, call, baseline))
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
            recording: self.question.recording.clone(),
        }
    }

    fn call(&self, id: i64, window: Window) -> Result<Option<Called>, AnalysisError> {
        let mut projection = Projection::new(SyscallRow::TABLE);
        let [ids, ts, ts_end, utid] =
            ["id", "ts", "ts_end", "utid"].map(|name| projection.need(name));
        let [name, path, cut] = ["name", "path", "cut"].map(|name| projection.need(name));
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
            found = Some(Called {
                utid: utid as i32,
                begin: ts.ints(batch)?.at(row),
                end: ts_end.ints(batch)?.get(row),
                name: name.texts(batch)?.get(row).unwrap_or("").to_owned(),
                path: path.texts(batch)?.get(row).map(str::to_owned),
                cut: cut.texts(batch)?.get(row).map(str::to_owned),
            });
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// What a thread did in a window.
    fn thread(&self, tid: i32, window: Window) -> Result<Vec<Story>, AnalysisError> {
        let mut found = Vec::new();
        let utids = self.utids(Some(tid), None)?;
        if self.other.is_none() && !sampled::is_kernel_there(self.tables) {
            found.extend(self.sampled(&utids)?);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        for utid in utids {
            let mut story = self.stretch(utid, window, tid)?;
            if let Some(other) = self.other {
                let there = self.there(other);
                let utids = if other.is_same {
                    vec![utid]
                } else {
                    there.namesakes(&story.target.actor.name)?
                };
                let stretches = utids.iter().take(NAMESAKES);
                let stretches: Vec<Story> = stretches
                    .map(|utid| there.stretch(*utid, other.range(), tid))
                    .collect::<Result<_, _>>()?;
                if stretches.is_empty() {
                    let (name, recording) = (&story.target.actor.name, other.recording);
                    story.caveats.push(format!(
                        "comparison unavailable: no thread of {recording} is named {name}"
                    ));
                }
                let here = std::slice::from_ref(&story);
                story.versus = Some(versus(here, &stretches, Per::Second, other));
            }
            found.push(story);
        }
        Ok(found)
    }

    fn stretch(&self, utid: i32, window: Window, tid: i32) -> Result<Story, AnalysisError> {
        let info = self.tables.info();
        let (begin, end) = (window.begin.max(info.begin_ns), window.end.min(info.end_ns));
        story(
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
                recording: self.question.recording.clone(),
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

    fn slow(&self) -> Result<Vec<Story>, AnalysisError> {
        let question = self.question;
        let mut utids = Vec::new();
        for tid in &question.tids {
            utids.extend(self.utids(Some(*tid), None)?);
        }
        for pid in &question.pids {
            utids.extend(self.utids(None, Some(*pid))?);
        }
        let wanted = Wanted {
            calls: question.calls.clone(),
            min: question.min,
            window: question.window,
            utids,
            near: None,
        };
        let elsewhere = self.elsewhere(&question.calls)?;
        let groups = slow::groups(self.tables, &wanted, elsewhere.as_ref())?;
        let limit = match question.limit.unwrap_or(STORIES) {
            0 => usize::MAX,
            limit => limit,
        };
        let mut stories = Vec::new();
        // A comparison walks many calls of each group.
        let is_compared = self.other.is_some() || !question.calls.is_empty();
        let candidates = if is_compared { 0 } else { CANDIDATES };
        for group in groups.iter().take(limit.max(candidates)) {
            stories.extend(self.of_group(group)?);
        }
        if question.calls.is_empty() {
            let starved = self.starved(&stories)?;
            stories.extend(starved);
            stories.extend(self.dns_lookups(&wanted.utids)?);
            stories.extend(self.dns_queries(&wanted.utids)?);
            stories.extend(self.sampled(&wanted.utids)?);
            stories = ranked(stories);
        } else if self.other.is_none() && !sampled::is_kernel_there(self.tables) {
            stories.extend(self.sampled(&wanted.utids)?);
        }
        stories.truncate(limit);
        Ok(stories)
    }

    /// What slow calls of a group spend more time on than others.
    fn compare(&self, group: &SlowGroup, story: &mut Story) -> Result<(), AnalysisError> {
        let slow = self.walked(&group.longest, group.baseline.as_ref())?;
        let usual = match self.other {
            Some(other) => self.there(other).walked(&group.usual, None)?,
            None => self.walked(&group.usual, group.baseline.as_ref())?,
        };
        if let Some(other) = self.other {
            story.versus = Some(versus(&slow, &usual, Per::Call, other));
            if group.elsewhere == Some(0) {
                let (call, comm, recording) = (&group.call, &group.comm, other.recording);
                story.caveats.push(format!(
                    "comparison unavailable: {recording} has no {call} by {comm}"
                ));
            }
        }
        if let Some(of_group) = &mut story.group
            && slow.len() > 1
        {
            of_group.walked = slow.len() as u64;
            of_group.compared = usual.len() as u64;
            of_group.excess = group_excess::excess(&slow, &usual);
        }
        Ok(())
    }

    /// Threads that could not run, or waited for memory.
    fn starved(&self, known: &[Story]) -> Result<Vec<Story>, AnalysisError> {
        let question = self.question;
        // If slow calls explain most of a thread's waits, it already has a story.
        let is_known = |thread: &Starved| {
            let of_thread = known
                .iter()
                .filter(|story| story.target.actor.tid == Some(thread.tid));
            let groups = of_thread.filter_map(|story| story.group.as_ref());
            groups.map(|group| group.dur_ns_total).sum::<Ns>() * 2 >= thread.total
        };
        let found = starved::threads(self.tables, question.window)?;
        let is_wanted =
            |thread: &&Starved| question.tids.is_empty() || question.tids.contains(&thread.tid);
        let mut stories = Vec::new();
        let wanted = found
            .iter()
            .filter(is_wanted)
            .filter(|thread| !is_known(thread));
        for thread in wanted.take(STARVED) {
            let (begin, end, tid) = (thread.begin, thread.end, thread.tid);
            let mut story = story(
                self.tables,
                &Subject {
                    utid: thread.utid,
                    begin,
                    end,
                    kind: "thread",
                    id: None,
                    what: format!(
                        "a window with {} wait{} for CPU or memory ({} in total)",
                        thread.waits,
                        if thread.waits == 1 { "" } else { "s" },
                        crate::sentence::length(thread.total)
                    ),
                    cut: None,
                    only_waits: true,
                    baseline: None,
                    reproduce: self.command(&format!(
                        "-w {} -t {tid}",
                        crate::sentence::window(begin, end)
                    )),
                    recording: question.recording.clone(),
                },
            )?;
            story.group = Some(Group {
                operation: "waits for CPU or memory".into(),
                count: thread.waits,
                dur_ns_total: thread.total,
                dur_ns_max: thread.total,
                walked: 1,
                compared: 0,
                excess: Vec::new(),
            });
            // On a busy machine all threads wait for each other: only one that stands out is a
            // story.
            if story.confidence >= Confidence::Medium {
                stories.push(story);
            }
        }
        Ok(stories)
    }

    fn of_group(&self, group: &SlowGroup) -> Result<Option<Story>, AnalysisError> {
        let longest = group.longest[0];
        let window = Window::new(longest.ts, longest.ts + longest.dur.max(1));
        let Some(call) = self.call(longest.id, window)? else {
            return Ok(None);
        };
        let mut story = self.called(longest.id, &call, group.baseline.clone())?;
        story.group = Some(Group {
            operation: format!("{} by {}", group.call, group.comm),
            count: group.count,
            dur_ns_total: group.total,
            dur_ns_max: longest.dur,
            walked: 1,
            compared: 0,
            excess: Vec::new(),
        });
        if !self.question.calls.is_empty() || self.other.is_some() {
            self.compare(group, &mut story)?;
        }
        Ok(Some(story))
    }
}
