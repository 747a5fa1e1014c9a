//! Explains one slow operation, or a time window of one thread.

use whyslow_analysis::AnalysisError;
use whyslow_model::sort::IndexSort;
use whyslow_model::tables::{CUT_UNCERTAIN, ThreadStateRow};
use whyslow_model::{Ns, Row, Window};
use whyslow_store::Tables;

use crate::attribution::Attribution;
use crate::blame::{Blame, Blamed, by_culprit};
use crate::levels::{self, Claim};
use crate::middlemen::is_event_loop;
use crate::page::Page;
use crate::report::{
    ActorKind, Alternative, Baseline, Confidence, Finding, Grade, Missing, Part, Remote,
    RemoteWait, Target, Waiter,
};
use crate::walk::{Walk, walk};
use crate::window_slice::columns::rows;
use crate::window_slice::{Utid, WindowSlice};
use crate::{blocks, overlap, sentence};

/// An operation that takes less than this many times its usual duration is not slow.
const SLOWER_MIN: f64 = 2.0;
/// Parts with a smaller share of the time are not listed as alternatives.
const ALTERNATIVE_MIN: f64 = 0.15;
/// A part of a request that is at least this long is listed, whatever its share.
const NOTICED_NS: Ns = 100_000_000;
/// Maximum number of alternatives.
const ALTERNATIVES: usize = 12;
/// Waits for other hosts that can be followed there.
const REMOTE_MAX: usize = 64;
/// A shorter operation is slow only relative to a baseline.
const SHORT_NS: Ns = 1_000_000;

/// Caveat of an operation that cannot be compared with others.
pub(crate) const NO_BASELINE: &str =
    "no baseline (fewer than 20 such operations recorded): usual duration unknown";

/// What is to be explained.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) utid: Utid,
    pub(crate) begin: Ns,
    pub(crate) end: Ns,
    pub(crate) kind: &'static str,
    pub(crate) id: Option<String>,
    pub(crate) what: String,
    pub(crate) cut: Option<String>,
    /// Time of the thread on a CPU is its work and not a cause.
    pub(crate) only_waits: bool,
    pub(crate) baseline: Option<Baseline>,
    /// The command that gives this finding.
    pub(crate) reproduce: String,
    /// How the recording is named in commands.
    pub(crate) recording: String,
}

/// What led to the window is read, too: this time before it …
const BEFORE_NS: Ns = 1_000_000_000;
/// … or the time of this many rows, if that is shorter.
const BEFORE_ROWS: f64 = 50_000.0;

/// A thread returns from the call that woke another one after about this time.
const WOKEN_NS: Ns = 1_000_000;

/// Rows that may be in memory at a time: about 200 MB.
pub(crate) const ROWS_MAX: f64 = 2_000_000.0;

pub(crate) fn finding(tables: &dyn Tables, subject: &Subject) -> Result<Finding, AnalysisError> {
    titled(tables, subject, &|_| None)
}

/// The finding of a subject whose description is made from the parts of its time.
pub(crate) fn titled(
    tables: &dyn Tables,
    subject: &Subject,
    title: &dyn Fn(&[Part]) -> Option<String>,
) -> Result<Finding, AnalysisError> {
    let after = after(tables, std::slice::from_ref(subject))?;
    let around = Window::new(subject.begin - before(tables), after);
    let slice = WindowSlice::load(tables, around)?;
    let attribution = Attribution::new(&slice);
    let walked = walked(&slice, &attribution, subject);
    let found = from_walk(&slice, &attribution, subject, &walked);
    let what = title(&found.parts);
    let Some(what) = what else {
        return Ok(found);
    };
    let subject = Subject {
        what,
        ..subject.clone()
    };
    Ok(from_walk(&slice, &attribution, &subject, &walked))
}

/// Findings of several subjects. Subjects that are close together in time are read once.
pub(crate) fn findings(
    tables: &dyn Tables,
    subjects: &[Subject],
) -> Result<Vec<Finding>, AnalysisError> {
    let (Some(begin), Some(end)) = (
        subjects.iter().map(|subject| subject.begin).min(),
        subjects.iter().map(|subject| subject.end).max(),
    ) else {
        return Ok(Vec::new());
    };
    if rows_in(tables, end - begin) <= ROWS_MAX {
        let around = Window::new(begin - before(tables), after(tables, subjects)?);
        let slice = WindowSlice::load(tables, around)?;
        return Ok(subjects
            .iter()
            .map(|subject| from_slice(&slice, subject))
            .collect());
    }
    subjects
        .iter()
        .map(|subject| finding(tables, subject))
        .collect()
}

/// Approximate number of rows in a window of this length.
pub(crate) fn rows_in(tables: &dyn Tables, length: Ns) -> f64 {
    let info = tables.info();
    let rows: u64 = ["thread_state", "syscall", "wakeup", "block_io"]
        .iter()
        .map(|name| info.rows_of_whole(name))
        .sum();
    rows as f64 * length as f64 / info.whole().length().max(1) as f64
}

pub(crate) fn before(tables: &dyn Tables) -> Ns {
    let rows = rows_in(tables, BEFORE_NS);
    BEFORE_NS.min((BEFORE_NS as f64 * BEFORE_ROWS / rows.max(1.0)) as Ns)
}

/// End of the rows to read: what ends a wait is evidence for it, also if the wait goes on beyond the
/// end of its subject. A limit keeps the rows few.
fn after(tables: &dyn Tables, subjects: &[Subject]) -> Result<Ns, AnalysisError> {
    let end = subjects.iter().map(|subject| subject.end).max();
    let end = end.unwrap_or(0);
    let limit = end + before(tables);
    // What a thread does just after a wait shows what it waited for.
    let mut until = end.saturating_add(WOKEN_NS);
    let at_end = Window::new(end - 1, end + 1);
    let columns = (&["ts", "ts_end", "utid"][..], &["state"][..]);
    rows(
        tables,
        ThreadStateRow::TABLE,
        columns,
        Some(at_end),
        |cells, row| {
            let is_asleep = matches!(cells.text(0, row), "sleeping" | "uninterruptible");
            let of = |subject: &Subject| Some(subject.utid) == cells.small(2, row);
            if let Some(ended) = cells.int(1, row)
                && is_asleep
                && subjects.iter().any(of)
            {
                until = until.max(ended.saturating_add(WOKEN_NS));
            }
        },
    )?;
    Ok(until.min(limit).max(end) + 1)
}

/// The finding of a block request, whose submitter is the thread of the subject. `None` if the slice
/// has no such request.
pub(crate) fn of_block_request(
    tables: &dyn Tables,
    subject: &Subject,
    id: i64,
) -> Result<Option<Finding>, AnalysisError> {
    let around = Window::new(subject.begin - before(tables), subject.end + 1);
    let slice = WindowSlice::load(tables, around)?;
    let Some(request) = slice.request(id) else {
        return Ok(None);
    };
    let attribution = Attribution::new(&slice);
    let window = (subject.begin, subject.end);
    let pieces = blocks::split(&slice, &attribution, request, subject.utid, window);
    let walked = Walk::of_pieces(pieces);
    Ok(Some(from_walk(&slice, &attribution, subject, &walked)))
}

/// The finding of a subject, from a slice that contains all of it.
pub(crate) fn from_slice(slice: &WindowSlice, subject: &Subject) -> Finding {
    let attribution = Attribution::new(slice);
    let walked = walked(slice, &attribution, subject);
    from_walk(slice, &attribution, subject, &walked)
}

fn walked(slice: &WindowSlice, attribution: &Attribution<'_>, subject: &Subject) -> Walk {
    let window = (subject.begin, subject.end);
    if slice.recorded.sched {
        walk(slice, attribution, subject.utid, window)
    } else {
        overlap::intervals(slice, attribution, subject.utid, window)
    }
}

fn from_walk(
    slice: &WindowSlice,
    attribution: &Attribution<'_>,
    subject: &Subject,
    walked: &Walk,
) -> Finding {
    let blame = Blame::new(slice, attribution, subject.utid, walked);
    let parts = blame.parts(walked);
    FindingBuilder {
        slice,
        subject,
        blame: &blame,
        walked,
        parts,
    }
    .build()
}

struct FindingBuilder<'t, 'm> {
    slice: &'m WindowSlice,
    subject: &'t Subject,
    blame: &'t Blame<'m>,
    walked: &'t Walk,
    parts: Vec<Blamed>,
}

/// The culprit: the part that represents it, all time attributed to it, and the confidence.
struct Named {
    place: usize,
    sum: Ns,
    share: f64,
    score: f64,
    grade: Grade,
}

impl FindingBuilder<'_, '_> {
    fn build(self) -> Finding {
        let subject = self.subject;
        let length = (subject.end - subject.begin).max(1);
        let target = Target {
            kind: subject.kind.into(),
            id: subject.id.clone(),
            what: subject.what.clone(),
            actor: self.blame.actor_of(subject.utid),
            begin_ns: subject.begin,
            end_ns: subject.end,
            cut: subject.cut.clone(),
        };
        let baseline = subject.baseline.as_ref();
        let is_usual = baseline.is_some_and(|baseline| {
            (length as f64) < SLOWER_MIN * baseline.median_ns.max(1) as f64
        });
        let named = self.named();
        let confidence = self.confidence(named.as_ref(), is_usual);
        let named = named.filter(|_| confidence != Confidence::None);
        let cause = named.as_ref().map(|named| {
            let part = &self.parts[named.place].part;
            (part, named.sum, named.share, named.grade)
        });
        let unexplained = self.unexplained();
        let chain = named
            .as_ref()
            .map(|named| self.blame.chain(self.walked, &self.parts[named.place]))
            .unwrap_or_default();
        let verdict = sentence::verdict(&target, baseline, cause, &chain, is_usual);
        let remote = self.remote(&target, &verdict, is_usual);
        let suggestions = named.as_ref().map_or_else(Vec::new, |named| {
            let part = &self.parts[named.place].part;
            crate::advice::on(&part.mechanism, &part.root)
        });
        let alternatives = self.alternatives(named.as_ref());
        Finding {
            across: Vec::new(),
            did: Vec::new(),
            behind: None,
            is_trigger: false,
            page: Page::default(),
            remote,
            verdict,
            confidence,
            score: named.as_ref().map_or(0.0, |named| named.score),
            culprit: named.as_ref().map(|named| named.place),
            chain,
            unexplained_ns: unexplained,
            saved_at_most_ns: named.as_ref().map_or(0, |named| named.sum),
            alternatives,
            neighbours: overlap::neighbours(self.slice, self.blame, (subject.begin, subject.end)),
            missing: missing(self.slice),
            suggestions,
            caveats: self.caveats(),
            reproduce: subject.reproduce.clone(),
            baseline: subject.baseline.clone(),
            group: None,
            contention: None,
            versus: None,
            also: Vec::new(),
            parts: self.shown_parts(),
            target,
        }
    }

    /// All parts, each with the command that shows its evidence.
    fn shown_parts(&self) -> Vec<Part> {
        let mut parts: Vec<_> = self
            .parts
            .iter()
            .map(|blamed| blamed.part.clone())
            .collect();
        for part in &mut parts {
            part.shown_by = Some(self.shown_by(part));
        }
        parts
    }

    /// What is needed to follow its waits on other hosts.
    fn remote(&self, target: &Target, verdict: &str, is_usual: bool) -> Remote {
        Remote {
            waits: self.remote_waits(),
            head: sentence::head(target, self.subject.baseline.as_ref()),
            summary: verdict.to_owned(),
            is_usual,
        }
    }

    /// Its waits for other hosts by time; if there are too many, the longest.
    fn remote_waits(&self) -> Vec<RemoteWait> {
        let parts = self.parts.iter().enumerate();
        let mut waits: Vec<RemoteWait> = parts
            .flat_map(|(part, blamed)| {
                let waits = blamed.remote.iter();
                waits.map(move |place| (part, *place))
            })
            .map(|(part, place)| {
                let interval = &self.walked.intervals[place as usize];
                RemoteWait {
                    part,
                    begin: interval.begin,
                    end: interval.end,
                    by: Waiter::Thread(self.blame.at_end(self.walked, interval)),
                }
            })
            .collect();
        waits.index_sort_by_key(|wait| (wait.begin - wait.end, wait.begin));
        waits.truncate(REMOTE_MAX);
        waits.index_sort_by_ints(|wait| [wait.begin, 0, 0]);
        waits
    }

    /// The culprit that most of the time is attributed to. The thread itself counts only where it
    /// was not doing its usual work.
    fn named(&self) -> Option<Named> {
        let length = (self.subject.end - self.subject.begin).max(1) as f64;
        let is_work = |blamed: &Blamed| {
            let part = &blamed.part;
            self.subject.only_waits
                && part.culprit.kind == ActorKind::Own
                && matches!(part.root.as_str(), "cpu_running" | "timer_sleep")
        };
        // The overhead of the recording is reported separately.
        let is_left_out = |blamed: &Blamed| blamed.is_tracer || is_work(blamed);
        let sums = by_culprit(&self.parts, self.pid(), &is_left_out);
        let best = sums.into_iter().find(|(place, _)| {
            let part = &self.parts[*place].part;
            part.culprit.kind != ActorKind::Unknown
                && !matches!(part.root.as_str(), "unknown" | "lost" | "still_blocked")
        })?;
        let (place, sums) = best;
        let sum: Ns = sums.iter().sum();
        let score = (sums[2] as f64 + 0.8 * sums[1] as f64 + 0.3 * sums[0] as f64) / length;
        let grade = if sums[2] * 2 >= sum {
            Grade::A
        } else if (sums[2] + sums[1]) * 2 >= sum {
            Grade::B
        } else {
            Grade::C
        };
        Some(Named {
            place,
            sum,
            share: sum as f64 / length,
            score,
            grade,
        })
    }

    fn confidence(&self, named: Option<&Named>, is_usual: bool) -> Confidence {
        let is_uncertain = self.subject.cut.as_deref() == Some(CUT_UNCERTAIN);
        let Some(named) = named.filter(|_| !is_uncertain) else {
            return Confidence::None;
        };
        let part = &self.parts[named.place].part;
        levels::level(&Claim {
            score: named.score,
            share: named.share,
            grade: named.grade,
            mechanism: &part.mechanism,
            root: &part.root,
            culprit: part.culprit.kind,
            is_usual,
            is_lossy: self
                .slice
                .is_lossy(None, (self.subject.begin, self.subject.end)),
            has_states: self.slice.recorded.sched,
            has_handlers: self.slice.recorded.handlers,
            is_event_loop: is_event_loop(part),
            is_alone: self.subject.baseline.is_none() && self.subject.kind == "operation",
            is_short: self.is_short(),
        })
    }

    /// The process of the slow thread.
    fn pid(&self) -> Option<i32> {
        let thread_table = &self.slice.thread_table;
        let thread_info = thread_table.get(self.subject.utid)?;
        thread_info.pid
    }

    /// Whether it may not be slow at all: short, and without a baseline.
    fn is_short(&self) -> bool {
        self.subject.baseline.is_none() && self.subject.end - self.subject.begin < SHORT_NS
    }

    fn unexplained(&self) -> Ns {
        let unknown = self.parts.iter().filter(|blamed| {
            matches!(
                blamed.part.root.as_str(),
                "unknown" | "lost" | "still_blocked"
            ) && blamed.part.culprit.kind != ActorKind::Process
        });
        unknown.map(|blamed| blamed.part.dur_ns).sum()
    }

    fn alternatives(&self, named: Option<&Named>) -> Vec<Alternative> {
        let same = |blamed: &Blamed| {
            named.is_some_and(|named| {
                let part = &self.parts[named.place].part;
                let program = self.parts[named.place].program.as_ref();
                let is_same = part
                    .culprit
                    .is_culprit_with(&blamed.part.culprit, self.pid());
                (is_same || program.is_some() && program == blamed.program.as_ref())
                    && (part.culprit.kind != ActorKind::Own
                        || (part.root == "cpu_running") == (blamed.part.root == "cpu_running"))
            })
        };
        let victim = sentence::thread(&self.blame.actor_of(self.subject.utid));
        let parts = self.parts.iter().enumerate();
        parts
            .filter(|(_, blamed)| {
                let is_much = blamed.part.share >= ALTERNATIVE_MIN
                    || self.subject.kind == "request" && blamed.part.dur_ns >= NOTICED_NS;
                is_much && !same(blamed) && !blamed.is_tracer
            })
            .take(ALTERNATIVES)
            .map(|(place, blamed)| Alternative {
                part: place,
                summary: format!(
                    "{} ({}) {}",
                    sentence::length(blamed.part.dur_ns),
                    sentence::percent(blamed.part.share),
                    self.clause(blamed, &victim).with_grade(blamed.part.grade)
                ),
            })
            .collect()
    }

    fn clause(&self, blamed: &Blamed, victim: &str) -> sentence::Clause {
        let chain = self.blame.chain(self.walked, blamed);
        sentence::clause(&sentence::of_first(&blamed.part, &chain), victim)
    }

    fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        match self.subject.cut.as_deref() {
            None => {}
            Some(CUT_UNCERTAIN) => caveats.push(
                "events were lost between the start and the end of the operation: they may belong \
                 to different operations"
                    .into(),
            ),
            Some(_) => caveats.push(
                "the operation extends beyond the recording: its duration is a lower bound".into(),
            ),
        }
        if self.subject.baseline.is_none() && self.subject.kind == "operation" {
            caveats.push(NO_BASELINE.into());
        }
        if self.is_short() && self.subject.kind != "operation" {
            caveats.push("no baseline, and shorter than 1 ms: it may be as fast as usual".into());
        }
        let lost = self
            .parts
            .iter()
            .filter(|blamed| blamed.part.root == "lost");
        let lost: Ns = lost.map(|blamed| blamed.part.dur_ns).sum();
        if lost > 0 {
            caveats.push(format!(
                "events were lost for {} of this time",
                sentence::length(lost)
            ));
        }
        caveats
    }

    /// The command that shows the rows behind a part.
    fn shown_by(&self, part: &crate::report::Part) -> String {
        let recording = &self.subject.recording;
        let window = match &self.subject.id {
            Some(id) => id.clone(),
            None => sentence::window(self.subject.begin, self.subject.end),
        };
        let kind = match part.root.as_str() {
            "block_queue" | "block_service" | "block_held" | "device_held" | "swap_in" => {
                "block top"
            }
            "cpu_runqueue" | "cpu_throttled" | "cpu_idle_delay" => "sched top",
            "cpu_running" | "cpu_stalled" => "cpu usage",
            "lock_kernel" | "lock_inode" => "locks top",
            "writeback_wait" | "journal_wait" | "dirty_throttle" => "fs top",
            "reclaim" | "memory_throttle" => "mem top",
            "irq_stolen" => "irq top",
            "send_delayed" | "network_retransmit" => "net log",
            _ => "states log",
        };
        let tid = part.culprit.tid.filter(|_| matches!(kind, "states log"));
        let tid = tid.map_or_else(String::new, |tid| format!(" --tid {tid}"));
        format!("whyslow {kind} {recording} -w {window}{tid}")
    }
}

/// Event classes that the recording lacks, and what they would show.
fn missing(slice: &WindowSlice) -> Vec<Missing> {
    let recorded = slice.recorded;
    let classes = [
        (
            recorded.sched,
            "sched",
            "which thread waited for which, and for how long",
            "--what +sched",
        ),
        (
            recorded.calls,
            "syscalls",
            "which system call and file were involved",
            "--what +syscalls",
        ),
        (
            recorded.requests,
            "block",
            "which processes' requests the disk served meanwhile",
            "--what +block",
        ),
        (
            recorded.stacks,
            "stacks",
            "where in the kernel the thread waited: locks, journal, CPU quota",
            "--stacks 1ms",
        ),
        (
            recorded.locks,
            "locks",
            "which kernel lock it was, and which thread held it",
            "--what +locks",
        ),
        (
            recorded.work,
            "fs",
            "journal commits and throttled writers",
            "--what +fs",
        ),
    ];
    let missing = classes.into_iter().filter(|(is_there, ..)| !is_there);
    missing
        .map(|(_, events, decides, with)| Missing {
            events: events.into(),
            decides: decides.into(),
            record_with: format!("whyslow record {with}"),
        })
        .collect()
}
