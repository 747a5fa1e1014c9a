//! What the sources of a recording state about the events that they contain.
//!
//! The recorder, and tracers whose files declare their events, state it as `topics` in the metadata
//! of the recording. Of other sources only the type is known: a strace log has all system calls of
//! its processes and nothing else, ftrace may have recorded anything.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use whyslow_model::row::Row;
use whyslow_model::tables::MetadataRow;
use whyslow_store::{RecordingInfo, Tables};

use crate::AnalysisError;
use crate::fold::in_order;
use crate::scan::Projection;

/// Whether events of some topics were recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Coverage {
    /// All of them.
    Whole,
    /// Some of the events that they consist of.
    Part,
    None,
    /// The source of this type does not state it.
    Unstated(String),
}

/// How to record what is missing, which depends on what recorded the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recorder {
    /// `whyslow record`.
    Whyslow,
    /// A tracer with events that a user enables by name.
    Tracer,
    Other,
}

/// What was recorded, by topic as in `record --what`, and further topics of imported sources.
#[derive(Debug, Default, Clone)]
pub(crate) struct RecordedTopics {
    whole: BTreeSet<String>,
    part: BTreeSet<String>,
    /// Whether a source states its topics.
    is_stated: bool,
    /// Types of the sources.
    sources: Vec<String>,
}

/// Source types with the topics that they always have, and those that they may have.
const NATURES: &[(&[&str], &[&str], &[&str])] = &[
    (&["spool"], &["counters"], TRACED),
    (&["lttng", "ctf", "text"], &[], TRACED),
    (&["perf", "ftrace", "trace-cmd"], &[], TRACED),
    (&["strace"], &["syscalls"], &[]),
    (&["blktrace", "blkparse"], &["block"], &[]),
    (&["report"], &["counters"], &[]),
    (
        &["snoop"],
        &[],
        &[
            "syscalls", "block", "sched", "signals", "dns", "tcp", "irq", "fs",
        ],
    ),
    (&["jfr"], &["runtime"], &["stacks", "locks", "gaps"]),
    (&["jstack", "py-spy"], &["stacks"], &["locks", "gaps"]),
    (
        &[
            "collapsed",
            "speedscope",
            "chrome",
            "rbspy",
            "stackprof",
            "ruby-prof",
            "pprof",
        ],
        &["stacks"],
        &["gaps"],
    ),
    (&["markers"], &[], &[]),
];

/// Topics that only the recorder, kernel tracers and the text format can have.
const TRACED: &[&str] = &[
    "syscalls",
    "sched",
    "signals",
    "block",
    "irq",
    "ipi",
    "locks",
    "dns",
    "mem",
    "fs",
    "work",
    "tcp",
    "net",
    "pages",
    "page_counts",
    "stacks",
    "functions",
    "usdt",
];

/// Topics that consist of events of another one.
const PART_OF: &[(&str, &str)] = &[
    ("signals", "sched"),
    ("page_counts", "pages"),
    // Also without a log: sockets show them.
    ("requests", "syscalls"),
];

impl RecordedTopics {
    /// The types of the sources only; facts of the metadata are added with [`Self::add`].
    pub(crate) fn of_sources(info: &RecordingInfo) -> Self {
        let sources = info.sources.iter();
        Self {
            sources: sources.map(|source| source.kind.clone()).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn read(tables: &dyn Tables) -> Result<Self, AnalysisError> {
        let mut topics = Self::of_sources(tables.info());
        let mut projection = Projection::new(MetadataRow::TABLE);
        let [key, value] = ["key", "value"].map(|name| projection.need(name));
        in_order(tables, &projection.scan(None), |batch| {
            let (key, value) = (key.texts(batch)?, value.texts(batch)?);
            for row in 0..batch.num_rows() as u32 {
                if let (Some(key), Some(value)) = (key.get(row), value.get(row)) {
                    topics.add(key, value);
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(topics)
    }

    /// Adds a fact of the metadata. Several sources have what any of them has.
    pub(crate) fn add(&mut self, key: &str, value: &str) {
        let set = match key {
            "topics" => &mut self.whole,
            "topics_partial" => &mut self.part,
            _ => return,
        };
        self.is_stated = true;
        let words = value.split(',').filter(|word| !word.is_empty());
        set.extend(words.map(str::to_owned));
    }

    /// Whether a source states that it recorded all events of these topics.
    pub(crate) fn states(&self, topics: &[&str]) -> bool {
        topics.iter().all(|topic| self.whole.contains(*topic))
    }

    /// Type of the first source; empty if the recording was not imported.
    pub(crate) fn first_source(&self) -> &str {
        self.sources.first().map_or("", String::as_str)
    }

    /// Coverage of events that need all of these topics.
    pub(crate) fn coverage(&self, topics: &[&str]) -> Coverage {
        let mut all = Coverage::Whole;
        for topic in topics {
            match (self.of_one(topic), &all) {
                (Coverage::None, _) => return Coverage::None,
                (Coverage::Unstated(source), _) => all = Coverage::Unstated(source),
                (Coverage::Part, Coverage::Whole) => all = Coverage::Part,
                _ => {}
            }
        }
        all
    }

    fn of_one(&self, topic: &str) -> Coverage {
        let whole = PART_OF.iter().find(|(part, _)| *part == topic);
        let names = [Some(topic), whole.map(|(_, whole)| *whole)];
        let has = |set: &BTreeSet<String>| names.iter().flatten().any(|name| set.contains(*name));
        let lists = |topics: &[&str]| names.iter().flatten().any(|name| topics.contains(name));
        let natures = || self.sources.iter().map(|source| (source, nature(source)));
        if has(&self.whole) || natures().any(|(_, (always, _))| lists(always)) {
            return Coverage::Whole;
        }
        if has(&self.part) {
            return Coverage::Part;
        }
        if self.sources.is_empty() && !self.is_stated {
            return Coverage::Unstated(String::new());
        }
        let mut unstated = natures().filter(|(source, (_, may))| {
            lists(may) && !(self.is_stated && can_state(source))
        });
        unstated.next().map_or(Coverage::None, |(source, _)| {
            Coverage::Unstated(source.clone())
        })
    }

    /// What recorded the data; of several sources the one that can record most.
    pub(crate) fn recorder(&self) -> Recorder {
        let has = |kinds: &[&str]| self.sources.iter().any(|one| kinds.contains(&one.as_str()));
        if has(&["spool"]) || (self.sources.is_empty() && self.is_stated) {
            Recorder::Whyslow
        } else if has(&["lttng", "perf", "ftrace", "trace-cmd"]) {
            Recorder::Tracer
        } else {
            Recorder::Other
        }
    }
}

/// Topics that a source of this type always has, and those that it may have. Types that are not
/// listed are logs of requests.
fn nature(source: &str) -> (&'static [&'static str], &'static [&'static str]) {
    let known = NATURES.iter().find(|(names, ..)| names.contains(&source));
    known.map_or((&["requests"], &[]), |(_, always, may)| (always, may))
}

/// Whether sources of this type state their topics, if the program that imported them was new
/// enough.
fn can_state(source: &str) -> bool {
    matches!(source, "spool" | "lttng" | "perf" | "text")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(sources: &[&str], facts: &[(&str, &str)]) -> RecordedTopics {
        let mut topics = RecordedTopics {
            sources: sources.iter().map(|&source| source.to_owned()).collect(),
            ..RecordedTopics::default()
        };
        for (key, value) in facts {
            topics.add(key, value);
        }
        topics
    }

    #[test]
    fn a_recorder_states_what_it_recorded() {
        let spool = topics(&["spool"], &[("topics", "block,sched")]);
        assert_eq!(spool.coverage(&["block"]), Coverage::Whole);
        assert_eq!(spool.coverage(&["signals"]), Coverage::Whole);
        assert_eq!(spool.coverage(&["counters"]), Coverage::Whole);
        assert_eq!(spool.coverage(&["locks"]), Coverage::None);
        assert_eq!(spool.coverage(&["block", "syscalls"]), Coverage::None);
        assert_eq!(spool.coverage(&["requests"]), Coverage::None);
        // Sockets show requests, also if there were none.
        let calls = topics(&["spool"], &[("topics", "syscalls")]);
        assert_eq!(calls.coverage(&["requests"]), Coverage::Whole);
        let part = topics(
            &["spool"],
            &[("topics", "block"), ("topics_partial", "locks")],
        );
        assert_eq!(part.coverage(&["locks"]), Coverage::Part);
        assert_eq!(part.coverage(&["block", "locks"]), Coverage::Part);
        // An older recording.
        let old = topics(&["spool"], &[]);
        assert_eq!(old.coverage(&["locks"]), Coverage::Unstated("spool".into()));
    }

    #[test]
    fn a_recording_has_what_any_of_its_sources_has() {
        let both = topics(&["spool", "ftrace"], &[("topics", "block")]);
        assert_eq!(both.coverage(&["block"]), Coverage::Whole);
        assert_eq!(
            both.coverage(&["locks"]),
            Coverage::Unstated("ftrace".into())
        );
        let twice = topics(
            &["spool", "spool"],
            &[("topics", "block"), ("topics", "net")],
        );
        assert_eq!(twice.coverage(&["block", "net"]), Coverage::Whole);
        let log = topics(&["spool", "access_log"], &[("topics", "block")]);
        assert_eq!(log.coverage(&["requests"]), Coverage::Whole);
    }

    #[test]
    fn some_sources_can_only_have_some_topics() {
        let strace = topics(&["strace"], &[]);
        assert_eq!(strace.coverage(&["syscalls"]), Coverage::Whole);
        assert_eq!(strace.coverage(&["requests"]), Coverage::Whole);
        assert_eq!(strace.coverage(&["sched"]), Coverage::None);
        let ftrace = topics(&["ftrace"], &[]);
        assert_eq!(
            ftrace.coverage(&["block"]),
            Coverage::Unstated("ftrace".into())
        );
        assert_eq!(ftrace.coverage(&["runtime"]), Coverage::None);
        let unknown = topics(&[], &[]);
        assert_eq!(
            unknown.coverage(&["block"]),
            Coverage::Unstated(String::new())
        );
    }
}
