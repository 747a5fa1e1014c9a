//! What can be asked, and its answer.

mod cannot;
mod lookups;
mod name_servers;
mod profiles;

use std::ops::ControlFlow;

use whyslow_analysis::AnalysisError;
use whyslow_analysis::read::{Projection, in_order};
use whyslow_model::row::Row;
use whyslow_model::tables::{RequestRow, SyscallRow, ThreadRow};
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::many;
use crate::patterns::Class;
use crate::ranked::ranked;
use crate::report::{Confidence, Group, Report, SCHEMA, Story};
use crate::sampled;
use crate::slow::{self, Programs, SlowGroup, Wanted};
use crate::starved::{self, Starved};
use crate::story::{Subject, stories, story};
use crate::versus::{Other, Per, versus};

/// Stories that are told where nobody asks for one.
pub const STORIES: usize = 5;

/// What to explain. Without anything, what is slowest.
#[derive(Debug, Clone, Default)]
pub struct Question {
    /// Name of the recording, as commands take it.
    pub recording: String,
    /// Only this time; `None` for the whole recording, or the focus of a part of one.
    pub window: Option<Window>,
    /// Table and id of an operation.
    pub operation: Option<(String, i64)>,
    /// Threads to explain, by kernel id.
    pub tids: Vec<i32>,
    /// Processes to explain, by kernel id.
    pub pids: Vec<i32>,
    /// Devices: what the comparison with their peers says of them.
    pub devices: Vec<String>,
    /// Names or classes of calls of which the slow ones are explained …
    pub calls: Vec<String>,
    /// … and how long they have to take for that.
    pub min: Option<Ns>,
    /// Stories at most; 0 for all.
    pub limit: Option<usize>,
    /// Requests that nobody tells of but the sockets are told, too, as somebody waits for them.
    pub with_sockets: bool,
}

/// Explains what is asked for, if need be beside what it is compared with.
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
    let asker = Asker {
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
        report.stories.push(asker.operation(table, *id)?);
    } else if let (Some(window), [_, ..]) = (question.window, question.tids.as_slice()) {
        for tid in &question.tids {
            report.stories.extend(asker.thread(*tid, window)?);
        }
    } else if !question.devices.is_empty() {
        let (window, devices) = (question.window, &question.devices);
        let mut found =
            crate::detectors::devices::find(tables, window, devices, &question.recording)?;
        found.retain(|finding| devices.contains(&finding.culprit.name));
        if found.is_empty() {
            report.caveats.push(format!(
                "no requests to {} were recorded",
                devices.join(", ")
            ));
        }
        report.findings = found;
        return Ok(report);
    } else {
        let is_of_all =
            question.calls.is_empty() && question.tids.is_empty() && question.pids.is_empty();
        let find = || crate::detectors::run(tables, question.window, &question.recording);
        // Each reads all calls once: at the same time.
        let (stories, findings) = rayon::join(|| asker.slow(), || is_of_all.then(find));
        report.stories = stories?;
        asker.judge(&mut report)?;
        report.findings = findings.transpose()?.unwrap_or_default();
        report.tracer_share = crate::tracer::share(tables, question.window)?;
        if is_of_all {
            crate::requests::add(tables, question, other.as_ref(), &mut report)?;
        }
    }
    if report.stories.is_empty() && report.findings.is_empty() {
        report.caveats.push(cannot::nothing_found(tables).into());
    }
    sampled::add_programs(tables, &mut report.stories)?;
    crate::resolvers::cite(tables, &mut report.stories)?;
    cannot::say_cut(tables, &mut report);
    Ok(report)
}

/// Groups of slow operations that are looked into, to find those worth telling.
const CANDIDATES: usize = 16;
/// Calls around one that are looked at for what such calls take.
const COMPARED: u64 = 100_000;
/// Threads of a name that stand for one of another recording.
const NAMESAKES: usize = 16;
/// The same of threads that could not run.
const STARVED: usize = 3;

struct Asker<'a> {
    tables: &'a dyn Tables,
    question: &'a Question,
    other: Option<&'a Other<'a>>,
}

/// A call as its story names it.
#[derive(Debug, Clone)]
struct Called {
    utid: i32,
    begin: Ns,
    end: Option<Ns>,
    name: String,
    path: Option<String>,
    cut: Option<String>,
}

impl Asker<'_> {
    /// Which kind of slowness it is: of the calls that are asked for, else of those of the first story.
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
        let judged = crate::judged::pattern(self.tables, question.window, &calls, question.min)?;
        let Some(judged) = judged else {
            return Ok(());
        };
        // Nobody asked: that there are too few to tell is no news.
        if judged.class != Class::Insufficient || !question.calls.is_empty() {
            report.patterns.push(judged.pattern());
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
            let told = sampled::story_of(self.tables, (table, id), window, recording)?;
            if let Some(story) = told {
                return self.proven(story);
            }
        }
        if table == "dns_lookup"
            && let Some(story) = self.lookup(id, window)?
        {
            return Ok(story);
        }
        let Some(call) = self.call(id, window)?.filter(|_| table == "syscall") else {
            return Err(AnalysisError::Query {
                message: format!("`{table}` {id} is no system call of a known thread"),
                hint: Some("explain takes op:ID, dns:ID, lock:ID and gap:ID of profiles, or a window and a thread: -w A..B -t TID".into()),
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

    /// How long calls take where it is compared with.
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

    /// The same questions there.
    fn there<'o>(&'o self, other: &'o Other<'o>) -> Asker<'o> {
        Asker {
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
        for one in calls.iter().take(many::WALKED) {
            let window = Window::new(one.ts, one.ts + one.dur.max(1));
            if let Some(call) = self.call(one.id, window)? {
                subjects.push(self.subject(one.id, &call, baseline.cloned()));
            }
        }
        stories(self.tables, &subjects)
    }

    /// The stretch around a call that has enough others to compare it with.
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

    /// What a thread did in a window: as an operation if it was in one call all the time.
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
                        "no thread of {recording} is named {name}: nothing to compare with"
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
                what: "this stretch".into(),
                cut: None,
                only_waits: false,
                baseline: None,
                reproduce: self.command(&format!("-w {}..{} -t {tid}", window.begin, window.end)),
                recording: self.question.recording.clone(),
            },
        )
    }

    /// Threads of a name.
    fn namesakes(&self, name: &str) -> Result<Vec<i32>, AnalysisError> {
        let mut projection = Projection::new(ThreadRow::TABLE);
        let [utids, comms] = ["utid", "comm"].map(|name| projection.need(name));
        let mut found = Vec::new();
        in_order(self.tables, &projection.scan(None), |batch| {
            let (utids, comms) = (utids.ints(batch)?, comms.texts(batch)?);
            // The kernel keeps 15 bytes of what a runtime calls its thread.
            let is_named = |comm: &str| comm == name || comm.len() == 15 && name.starts_with(comm);
            let named =
                (0..batch.num_rows() as u32).filter(|row| comms.get(*row).is_some_and(is_named));
            found.extend(named.map(|row| utids.at(row) as i32));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Threads of this id, of which there may have been several one after another.
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
                message: format!("the recording has no {what} {number}"),
                hint: Some("`whyslow threads list` shows all".into()),
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
        // Each of those that are compared is walked often.
        let is_compared = self.other.is_some() || !question.calls.is_empty();
        let candidates = if is_compared { 0 } else { CANDIDATES };
        for group in groups.iter().take(limit.max(candidates)) {
            stories.extend(self.of_group(group)?);
        }
        if question.calls.is_empty() {
            let starved = self.starved(&stories)?;
            stories.extend(starved);
            stories.extend(self.lookups(&wanted.utids)?);
            stories.extend(self.questions(&wanted.utids)?);
            stories.extend(self.sampled(&wanted.utids)?);
            stories = ranked(stories);
        } else if self.other.is_none() && !sampled::is_kernel_there(self.tables) {
            stories.extend(self.sampled(&wanted.utids)?);
        }
        stories.truncate(limit);
        Ok(stories)
    }

    /// What the slow calls of a group have more than others.
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
                    "there is no {call} by {comm} in {recording} to compare with"
                ));
            }
        }
        if let Some(of_group) = &mut story.group
            && slow.len() > 1
        {
            of_group.walked = slow.len() as u64;
            of_group.compared = usual.len() as u64;
            of_group.excess = many::excess(&slow, &usual);
        }
        Ok(())
    }

    /// Threads that could not run, or waited for memory.
    fn starved(&self, told: &[Story]) -> Result<Vec<Story>, AnalysisError> {
        let question = self.question;
        // Whose calls are slow for the same reason has a story.
        let is_told = |thread: &Starved| {
            let of_thread = told
                .iter()
                .filter(|story| story.target.actor.tid == Some(thread.tid));
            let groups = of_thread.filter_map(|story| story.group.as_ref());
            groups.map(|group| group.dur_ns_total).sum::<Ns>() * 2 >= thread.total
        };
        let found = starved::threads(self.tables, question.window)?;
        let is_asked =
            |thread: &&Starved| question.tids.is_empty() || question.tids.contains(&thread.tid);
        let mut stories = Vec::new();
        let wanted = found
            .iter()
            .filter(is_asked)
            .filter(|thread| !is_told(thread));
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
                        "a stretch with {} wait{} for a CPU or for memory ({} together)",
                        thread.waits,
                        if thread.waits == 1 { "" } else { "s" },
                        crate::say::length(thread.total)
                    ),
                    cut: None,
                    only_waits: true,
                    baseline: None,
                    reproduce: self
                        .command(&format!("-w {} -t {tid}", crate::say::window(begin, end))),
                    recording: question.recording.clone(),
                },
            )?;
            story.group = Some(Group {
                operation: "waits for a CPU or for memory".into(),
                count: thread.waits,
                dur_ns_total: thread.total,
                dur_ns_max: thread.total,
                walked: 1,
                compared: 0,
                excess: Vec::new(),
            });
            // On a busy machine everybody waits for everybody: only one that stands out is a story.
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
